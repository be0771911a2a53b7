"""Codes of the labels of a block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from klr_bench.errors import shown
from klr_bench.experiment.data.labels import Labels, number, some
from klr_bench.experiment.data.streams.blocks import Block
from klr_bench.experiment.data.streams.compiled import encode

MOST_COMPARED = 100
"""Labels with which each is compared in turn; where there are more, a dictionary finds the others."""


class Codes:
    """Codes 0, 1, ... of labels, as `Labels` gives them; if it is `closed`, no label may be new."""

    def __init__(self, labels: Labels, *, closed: bool) -> None:
        self.labels = labels
        self._most = len(labels.spellings) if closed else None

    def of(self, values: NDArray[np.float64], code_of: Callable[[int], int]) -> NDArray[np.int32]:
        """Return the codes (n,) of labels; `values` are numbers, NaN for a word.  `code_of` takes a row.

        It is asked for words and for what is new.
        """
        first = [number(text) for text in self.labels.spellings[:MOST_COMPARED]]
        known = np.array([np.nan if value is None else value for value in first], dtype=np.float64)
        codes = np.empty(len(values), dtype=np.int32)
        encode(values, known, codes)
        for row in np.flatnonzero(codes < 0).tolist():
            codes[row] = code_of(row)
        return codes

    def code(self, block: Block, position: int, text: str, advice: str) -> int:
        """Return the code of the label with that text, which stands at a position of a block.  Raises KlrBenchError."""
        try:
            code = self.labels.code(text)
        except ValueError as error:
            raise block.refusal(position, f"{error}{advice}") from error
        if self._most is not None and code >= self._most:
            known = ", ".join(some(self.labels.spellings[: self._most]))
            reason = f"the label {shown(repr(text))} is none of the classes {known}; mend the line or set classes=."
            raise block.refusal(position, reason)
        return code

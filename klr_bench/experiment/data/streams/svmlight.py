"""Blocks of svmlight text as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from klr_bench.errors import KlrBenchError, shown
from klr_bench.experiment.data.labels import LARGEST
from klr_bench.experiment.data.streams.blocks import Block, blocks
from klr_bench.experiment.data.streams.codes import Codes
from klr_bench.experiment.data.streams.compiled import POSITION, ROWS, svmlight_rows
from klr_bench.experiment.data.streams.pieces import Sparse
from klr_bench.experiment.data.svmlight import fault

SHORTEST = 4
"""Bytes of the shortest entry, such as `` 1:2``."""


@dataclass(frozen=True)
class Svmlight:
    """The rows of svmlight files, one file after another."""

    paths: tuple[Path, ...]

    def n_features(self, given: int | None) -> int | None:
        """Return how many features there are, as far as it is known without reading all rows."""
        return given

    def pieces(self, codes: Codes, lowest: int, highest: int) -> Iterator[Sparse]:
        """Yield the rows of each block; indices are to be between `lowest` and `highest`.

        Raises KlrBenchError that names the file and the line, and DamagedFileError.
        """
        for path in self.paths:
            empty = True
            for block in blocks(path):
                piece = _Reading(block, codes, lowest, highest).piece()
                empty = empty and not len(piece.codes)
                yield piece
            if empty:
                message = f"{path}: no rows; lines like '+1 3:0.5 7:1' are expected."
                raise KlrBenchError(message)


class _Reading:
    """One block while it is read."""

    def __init__(self, block: Block, codes: Codes, lowest: int, highest: int) -> None:
        self.block, self.codes, self.lowest, self.highest = block, codes, lowest, highest
        most = block.end // SHORTEST + 1
        self.labels = np.empty(block.n_lines, dtype=np.float64)
        self.places = np.empty((block.n_lines, 2), dtype=np.int32)
        self.indptr = np.zeros(block.n_lines + 1, dtype=np.int64)
        self.indices = np.empty(most, dtype=np.int32)
        self.values = np.empty(most, dtype=np.float32)
        self.state = np.array([0, 0, 0, np.iinfo(np.int32).max, -1], dtype=np.int64)

    def piece(self) -> Sparse:
        """Return the rows of the block."""
        while self.state[POSITION] < self.block.end:
            svmlight_rows(
                self.block.codes,
                self.lowest,
                self.highest,
                self.labels,
                self.places,
                self.indptr[1:],
                self.indices,
                self.values,
                self.state,
            )
            if self.state[POSITION] < self.block.end:
                self._read_line()
        n_rows, n_entries, smallest, largest = self.state[ROWS:].tolist()
        codes = self.codes.of(self.labels[:n_rows], self._code)
        indptr, indices, values = self.indptr[: n_rows + 1], self.indices[:n_entries], self.values[:n_entries]
        return Sparse(codes, indptr, indices, values, smallest, largest)

    def _code(self, row: int) -> int:
        begin, end = self.places[row].tolist()
        text = self.block.text[begin:end].decode(errors="backslashreplace")
        if ":" in text or "," in text:
            what = "a label is missing" if ":" in text else "expected one label (of CSV: format='csv')"
            reason = f"the line begins with {shown(repr(text))}; {what}."
            raise self.block.refusal(begin, reason)
        return self.codes.code(self.block, begin, text, "; use numbers or words.")

    def _read_line(self) -> None:
        """Read the line that is not plain."""
        position, row, entry, smallest, largest = self.state.tolist()
        line, after = self.block.line_at(position)
        label, *rest = line.partition(b"#")[0].split(None, 1)
        tokens = rest[0] if rest else b""
        reason = fault(tokens)
        if reason:
            raise self.block.refusal(position, reason)
        begin = position + line.index(label)
        self.labels[row] = np.nan
        self.places[row] = begin, begin + len(label)
        for index, value in self._entries(position, tokens):
            smallest, largest = min(smallest, index), max(largest, index)
            if value != 0:
                self.indices[entry], self.values[entry] = index, value
                entry += 1
        self.indptr[row + 1] = entry
        self.state[:] = after, row + 1, entry, smallest, largest

    def _entries(self, position: int, tokens: bytes) -> Iterator[tuple[int, np.float32]]:
        """Yield the entries of a line in which there is no fault but, perhaps, the range of an index or a value."""
        for token in tokens.decode().split():
            name, _, text = token.partition(":")
            if name == "qid":
                continue
            index = int(name)
            if not self.lowest <= index <= self.highest:
                reason = (
                    f"the index {index} is not between {self.lowest} and {self.highest}; mend the line, or set "
                    "n_features= and zero_based=."
                )
                raise self.block.refusal(position, reason)
            with np.errstate(over="ignore"):
                value = np.float32(float(text))
            if not abs(value) <= LARGEST:
                reason = (
                    f"the value of index {index} is not a number between -{LARGEST:g} and {LARGEST:g}; "
                    "mend or remove the row."
                )
                raise self.block.refusal(position, reason)
            yield index, value

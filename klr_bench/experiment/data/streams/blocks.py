"""A text file in blocks of some MB that end at line ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.data.compression import LONGEST_LINE, open_plain

BLOCK = 1 << 21
"""Bytes of text that are read at a time."""
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole lines of a file; the last one ends with a line feed too."""

    path: Path
    first: int  # line of the file in which the block begins, from 1
    text: bytes  # may go on behind `end`
    end: int
    n_lines: int

    @property
    def codes(self) -> NDArray[np.uint8]:
        """The bytes of the lines as an array."""
        return np.frombuffer(self.text, dtype=np.uint8, count=self.end)

    def line_at(self, position: int) -> tuple[bytes, int]:
        """Return the line that begins at a position, with its line feed, and the position of the next line."""
        after = self.text.index(b"\n", position) + 1
        return self.text[position:after], after

    def refusal(self, position: int, reason: str) -> KlrBenchError:
        """Return the error about the line at a position."""
        return KlrBenchError(f"{self.path}, line {self.number(position)}: {reason}")

    def number(self, position: int) -> int:
        """Return the number of the line at a position, from 1."""
        return self.first + self.text.count(b"\n", 0, position)


def blocks(path: Path) -> Iterator[Block]:
    """Yield a file, plain or compressed, in blocks.  Raises KlrBenchError for a line without end, DamagedFileError."""
    rest, first = b"", 1
    with open_plain(path) as (stream, _):
        while content := stream.read(BLOCK):
            text = rest + content
            end = text.rfind(b"\n") + 1
            if len(text) - end > LONGEST_LINE:
                line = first + text.count(b"\n")
                message = (
                    f"{path}, line {line}: more than {LONGEST_LINE:,} characters, expected one "
                    "row a line; mend or remove the line."
                )
                raise KlrBenchError(message)
            if end:
                block = _block(path, first, text, end)
                yield block
                first += block.n_lines
            rest = text[end:]
        if rest:
            yield _block(path, first, rest + b"\n", len(rest) + 1)


def _block(path: Path, first: int, text: bytes, end: int) -> Block:
    if first == 1 and text.startswith(BOM):
        text, end = text[len(BOM) :], end - len(BOM)
    return Block(path, first, text, end, text.count(b"\n", 0, end))

"""Blocks of delimited text (CSV and similar) as rows."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.data.delimited import Layout, fault, fields_of, layout_of
from klr_bench.experiment.data.labels import LARGEST, number
from klr_bench.experiment.data.streams.blocks import Block, blocks
from klr_bench.experiment.data.streams.codes import Codes
from klr_bench.experiment.data.streams.compiled import POSITION, ROWS, delimited_rows
from klr_bench.experiment.data.streams.pieces import Dense


@dataclass(frozen=True)
class Delimited:
    """The rows of delimited files of one layout, one file after another; each may have a header."""

    paths: tuple[Path, ...]
    label_column: str | int | None

    def n_features(self, given: int | None) -> int:
        """Return how many features the first line has.  Raises KlrBenchError unless that is `given`, or None is."""
        found = layout_of(self.paths[0], self.label_column).n_columns - 1
        if given not in {None, found}:
            message = (
                f"{self.paths[0]}: {found} columns of features, expected n_features={given}; leave n_features= out, or "
                "mend the file."
            )
            raise KlrBenchError(message)
        return found

    def pieces(self, codes: Codes, lowest: int, highest: int) -> Iterator[Dense]:
        """Yield the rows of each block.

        Raises KlrBenchError that names the file and the line, and DamagedFileError.
        """
        first: Layout | None = None
        for path in self.paths:
            layout = layout_of(path, self.label_column if first is None else first.label, first)
            if "\n" in "".join(layout.header or ()):
                message = f"{path}: a name in the header has a line break; a stream needs one row per line. Remove it."
                raise KlrBenchError(message)
            first = first or layout
            header, empty = layout.header is not None, True
            for block in blocks(path):
                position = 0
                while header and position < block.end:
                    line, position = block.line_at(position)
                    header = not line.strip()
                piece = _Reading(block, codes, layout, position).piece()
                empty = empty and not len(piece.codes)
                yield piece
            if empty:
                message = f"{path}: no rows."
                raise KlrBenchError(message)


class _Reading:
    """One block while it is read, from a position on."""

    def __init__(self, block: Block, codes: Codes, layout: Layout, position: int) -> None:
        self.block, self.codes, self.layout = block, codes, layout
        most = min(block.n_lines, block.end // (2 * layout.n_columns) + 1)  # a field and what ends it: two bytes
        self.labels = np.empty(most, dtype=np.float64)
        self.places = np.empty((most, 2), dtype=np.int32)
        self.X = np.empty((most, layout.n_columns - 1), dtype=np.float32)
        self.texts: dict[int, str] = {}  # labels of rows that are not plain lines
        self.state = np.array([position, 0, 0, 0, 0], dtype=np.int64)

    def piece(self) -> Dense:
        """Return the rows of the block."""
        while self.state[POSITION] < self.block.end:
            delimited_rows(
                self.block.codes,
                ord(self.layout.delimiter),
                self.layout.n_columns,
                self.layout.label,
                self.labels,
                self.places,
                self.X,
                self.state,
            )
            if self.state[POSITION] < self.block.end:
                self._read_line()
        n_rows = int(self.state[ROWS])
        return Dense(self.codes.of(self.labels[:n_rows], self._code), self.X[:n_rows])

    def _code(self, row: int) -> int:
        begin, end = self.places[row].tolist()
        return self._code_at(begin, self.texts.get(row) or self.block.text[begin:end].decode(errors="backslashreplace"))

    def _code_at(self, position: int, text: str) -> int:
        advice = f" ({self.layout.named(self.layout.label)}); set label_column= if the labels stand elsewhere."
        return self.codes.code(self.block, position, text, advice)

    def _read_line(self) -> None:
        """Read the line that is not plain."""
        position, row = self.state[: ROWS + 1].tolist()
        line, after = self.block.line_at(position)
        for fields in self._fields(position, line.decode(errors="backslashreplace")):
            self.X[row] = self._numbers(position, fields)
            self.labels[row], self.places[row] = np.nan, position
            self.texts[row] = fields[self.layout.label]
            self.state[ROWS] = row + 1
        self.state[POSITION] = after

    def _fields(self, position: int, line: str) -> list[list[str]]:
        """Return the fields of a line in a list, which is empty if the line is blank."""
        try:
            rows = [fields for _, fields in fields_of(iter([line]), self.layout.delimiter)]
        except csv.Error as error:
            reason = (
                "not delimited text, such as a line end within a field; a stream needs one row per line. Correct the "
                "line, or write such texts in one line."
            )
            raise self.block.refusal(position, reason) from error
        for fields in rows:
            if len(fields) != self.layout.n_columns:
                counted = f"{len(fields)} columns, the first line has {self.layout.n_columns}"
                raise self.block.refusal(position, f"{counted}; mend or remove the row.")
        return rows

    def _numbers(self, position: int, fields: list[str]) -> NDArray[np.float32]:
        """Return the features of a row."""
        label = self.layout.label
        numbers = [number(field) for field in fields[:label] + fields[label + 1 :]]
        with np.errstate(over="ignore"):
            values = np.array(numbers, dtype=np.float64).astype(np.float32)  # NaN for None
        if not (np.abs(values) <= LARGEST).all():
            raise KlrBenchError(fault(self.block.path, self.layout, [(self.block.number(position), fields)]))
        return values

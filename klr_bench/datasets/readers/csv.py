"""Chunks of numbers from delimited text (CSV and similar); quoted fields may span lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from klr_bench.datasets.class_labels import LARGEST, Labels, number
from klr_bench.datasets.compression import LONGEST_LINE
from klr_bench.datasets.readers.chunks import Block, BlockReader, Chunk, blocks
from klr_bench.datasets.readers.compiled import POSITION, ROWS, delimited_rows
from klr_bench.datasets.readers.layout import (
    SET_LABEL,
    Layout,
    OpenQuoteError,
    fields_of,
    no_labelled_row,
    not_delimited,
)
from klr_bench.errors import KlrBenchError, shown


def read_chunks(path: Path, layout: Layout, labels: Labels) -> Iterator[Chunk]:
    """Yield the rows of a file, plain or compressed, whose layout is known.

    Raises KlrBenchError that names the file and the line, and DamagedFileError.
    """
    header, empty = layout.header is not None, True
    unread = b""
    error: OpenQuoteError | None = None
    for block in blocks(path, any_line_end=True):
        if unread:
            block = replace(block, first=block.first - unread.count(b"\n"), text=unread + block.text)
        reader = _BlockReader(block, layout, labels)
        if header:
            header = reader.next_row() is None
        chunk = reader.chunk()
        unread, error = reader.unread, reader.error
        if error and len(unread) > LONGEST_LINE:
            break
        empty = empty and not len(chunk.codes)
        yield chunk
    if error:
        raise not_delimited(path, error)
    if empty:
        raise no_labelled_row(path, layout, labels)


class _BlockReader(BlockReader):
    def __init__(self, block: Block, layout: Layout, labels: Labels) -> None:
        shortest = 2 * layout.n_columns - 1  # bytes of a row: each field but the label has a digit, and its end
        n_rows = min(block.text.count(b"\n"), len(block.text) // shortest + 1)
        advice = f"mend the line, or set {SET_LABEL} if the labels are in another column."
        super().__init__(block, labels, n_rows, f" ({layout.named(layout.label)}); {advice}")
        self.layout = layout
        self.X = np.empty((n_rows, layout.n_columns - 1), dtype=np.float32)
        self.texts: dict[int, str] = {}  # labels of rows that Python has read
        self.state = np.array([0, 0], dtype=np.int64)
        self.unread = b""
        self.error: OpenQuoteError | None = None
        """A row at the end of the block with a quote that is not closed, and the error about it."""

    def chunk(self) -> Chunk:
        columns = ord(self.layout.delimiter), self.layout.n_columns, self.layout.label
        while self.state[POSITION] < len(self.bytes):
            delimited_rows(self.bytes, *columns, self.targets, self.places, self.X, self.state)
            row = self.next_row()
            if row is not None:
                self._take(*row)
        n_rows = int(self.state[ROWS])
        codes = self.codes(n_rows)
        return Chunk(codes[codes >= 0], self.X[:n_rows][codes >= 0], 0, self.layout.n_columns - 2)

    def label(self, row: int) -> str:
        return self.texts[row] if row in self.texts else super().label(row)

    def next_row(self) -> tuple[int, list[str]] | None:
        """Read a row in Python, and return where it begins and its fields; None if the block has no further row."""
        begin = after = int(self.state[POSITION])
        starts = []

        def lines() -> Iterator[str]:
            nonlocal after
            while after < len(self.block.text):
                starts.append(after)
                line, after = self.block.line_at(after)
                yield line.decode(errors="backslashreplace")

        first = self.block.line_number(begin)
        try:
            line, fields = next(fields_of(lines(), self.layout.delimiter, first), (first, None))
        except OpenQuoteError as error:
            self.unread, self.error, fields = self.block.text[begin:], error, None
        except csv.Error as error:
            raise not_delimited(self.block.path, error) from error
        self.state[POSITION] = after
        if fields is None:
            return None
        self.layout.check_row(self.block.path, line, fields)
        return starts[line - first], fields

    def _take(self, position: int, fields: list[str]) -> None:
        row, label = int(self.state[ROWS]), self.layout.label
        if self.labels.drops(fields[label]):
            return
        numbers = [number(field) for field in fields[:label] + fields[label + 1 :]]
        with np.errstate(over="ignore"):
            values = np.array(numbers, dtype=np.float64).astype(np.float32)  # NaN for None
        if not (np.abs(values) <= LARGEST).all():
            raise self._bad_number(position, fields)
        self.X[row] = values
        self.targets[row], self.places[row] = np.nan, position
        self.texts[row] = fields[label]
        self.state[ROWS] = row + 1

    def _bad_number(self, position: int, fields: Sequence[str]) -> KlrBenchError:
        for column, field in enumerate(fields):
            value = number(field)
            if column != self.layout.label and (value is None or not abs(value) <= LARGEST):
                break
        what = f"{shown(repr(field))} is not a number between -{LARGEST:g} and {LARGEST:g}; mend or remove the row."
        where = f"{self.block.path}, line {self.block.line_number(position)}, {self.layout.named(column)}"
        return KlrBenchError(f"{where}: {what}")

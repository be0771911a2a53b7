"""Chunks of numbers from delimited text (CSV and similar); quoted fields may span lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from klr_bench.datasets.class_labels import LARGEST, number
from klr_bench.datasets.compression import LONGEST_LINE
from klr_bench.datasets.readers.chunks import RUN_SETTINGS, Block, Dense, LabelEncoder, Settings, blocks
from klr_bench.datasets.readers.compiled import POSITION, ROWS, delimited_rows
from klr_bench.datasets.readers.layout import Layout, OpenQuoteError, fields_of, not_delimited
from klr_bench.errors import KlrBenchError, shown


def read_chunks(
    path: Path, layout: Layout, encoder: LabelEncoder, settings: Settings = RUN_SETTINGS
) -> Iterator[Dense]:
    """Yield the rows of a file, plain or compressed, whose layout is known.

    Raises KlrBenchError that names the file and the line, and DamagedFileError.
    """
    header, empty = layout.header is not None, True
    open_row: OpenRow | None = None
    for block in blocks(path, any_line_end=True):
        reader = _BlockReader(open_row.continued(block) if open_row else block, layout, encoder, settings)
        if header:
            header = reader.next_row() is None
        chunk = reader.chunk()
        open_row = reader.open_row
        empty = empty and not len(chunk.codes)
        yield chunk
    if open_row:
        raise not_delimited(path, open_row.error)
    if empty:
        what = "no rows."
        if encoder.labels.dropped:
            what = (
                f"no row has a label in {layout.named(layout.label)}; {settings.label_column}NAME takes another column."
            )
        message = f"{path}: {what}"
        raise KlrBenchError(message)


@dataclass(frozen=True)
class OpenRow:
    """The end of a block, from a row on whose quoted field goes on in the next block."""

    block: Block
    position: int
    error: OpenQuoteError

    def continued(self, following: Block) -> Block:
        """Return a block of the open row and the lines of the following block."""
        lines = self.block.text[self.position : self.block.end]
        if len(lines) > LONGEST_LINE:
            raise not_delimited(self.block.path, self.error)
        text = lines + following.text[: following.end]
        return Block(self.block.path, self.block.line_number(self.position), text, len(text))


class _BlockReader:
    """Compiled code reads the lines of a block; Python reads or refuses the row at which it stops."""

    def __init__(self, block: Block, layout: Layout, encoder: LabelEncoder, settings: Settings) -> None:
        self.block, self.layout, self.encoder = block, layout, encoder
        self.label_advice = (
            f" ({layout.named(layout.label)}); set {settings.label_column} if the labels stand elsewhere."
        )
        shortest = 2 * layout.n_columns - 1  # bytes of a row: each field but the label has a digit, and its end
        n_rows = min(block.n_lines, block.end // shortest + 1)
        self.labels = np.empty(n_rows, dtype=np.float64)
        self.places = np.empty((n_rows, 2), dtype=np.int32)
        self.X = np.empty((n_rows, layout.n_columns - 1), dtype=np.float32)
        self.texts: dict[int, str] = {}  # labels of rows that Python has read
        self.state = np.array([0, 0], dtype=np.int64)
        self.open_row: OpenRow | None = None

    def chunk(self) -> Dense:
        columns = ord(self.layout.delimiter), self.layout.n_columns, self.layout.label
        while self.state[POSITION] < self.block.end:
            delimited_rows(self.block.codes, *columns, self.labels, self.places, self.X, self.state)
            row = self.next_row()
            if row is not None:
                self._take(*row)
        n_rows = int(self.state[ROWS])
        codes = self.encoder.encode(self.labels[:n_rows], self._code)
        labelled = codes >= 0
        return Dense(codes[labelled], self.X[:n_rows][labelled])

    def next_row(self) -> tuple[int, list[str]] | None:
        """Read a row in Python, and return where it begins and its fields; None if the block has no further row."""
        begin = after = int(self.state[POSITION])
        starts = []

        def lines() -> Iterator[str]:
            nonlocal after
            while after < self.block.end:
                starts.append(after)
                line, after = self.block.line_at(after)
                yield line.decode(errors="backslashreplace")

        first = self.block.line_number(begin)
        try:
            line, fields = next(fields_of(lines(), self.layout.delimiter, first), (first, None))
        except OpenQuoteError as error:
            self.open_row = OpenRow(self.block, begin, error)
            fields = None
        except csv.Error as error:
            raise not_delimited(self.block.path, error) from error
        self.state[POSITION] = after
        if fields is None:
            return None
        self.layout.check_row(self.block.path, line, fields)
        return starts[line - first], fields

    def _take(self, position: int, fields: list[str]) -> None:
        row, label = int(self.state[ROWS]), self.layout.label
        if self.encoder.drops(fields[label]):
            return
        numbers = [number(field) for field in fields[:label] + fields[label + 1 :]]
        with np.errstate(over="ignore"):
            values = np.array(numbers, dtype=np.float64).astype(np.float32)  # NaN for None
        if not (np.abs(values) <= LARGEST).all():
            raise self._bad_number(position, fields)
        self.X[row] = values
        self.labels[row], self.places[row] = np.nan, position
        self.texts[row] = fields[label]
        self.state[ROWS] = row + 1

    def _bad_number(self, position: int, fields: Sequence[str]) -> KlrBenchError:
        for column, field in enumerate(fields):
            value = number(field)
            if column != self.layout.label and (value is None or not abs(value) <= LARGEST):
                break
        kind = "a number" if value is None else f"between -{LARGEST:g} and {LARGEST:g}"
        where = f"{self.block.path}, line {self.block.line_number(position)}, {self.layout.named(column)}"
        return KlrBenchError(f"{where}: {shown(repr(field))} is not {kind}; mend or remove the row.")

    def _code(self, row: int) -> int:
        begin, end = self.places[row].tolist()
        text = self.texts.get(row)
        if text is None:
            text = self.block.text[begin:end].decode(errors="backslashreplace").strip()
        try:
            return self.encoder.code(text, self.label_advice)
        except ValueError as error:
            raise self.block.refusal(begin, str(error)) from error

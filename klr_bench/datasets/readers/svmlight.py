"""The svmlight (LIBSVM) text format: ``label index:value index:value ... # comment``, indices ascending."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from klr_bench.datasets.class_labels import LARGEST, number
from klr_bench.datasets.readers.chunks import RUN_SETTINGS, Block, LabelEncoder, Settings, Sparse, blocks
from klr_bench.datasets.readers.compiled import POSITION, ROWS, svmlight_rows
from klr_bench.errors import KlrBenchError, shown

SHORTEST_ENTRY = 4
"""Bytes of an entry such as `` 1:2``."""
MOST_DIGITS = 100
"""Digits of an index, with leading zeros."""
MOST_INDEX = 2**31 - 1
EXPECTED = "lines like '+1 3:0.5 7:1' are expected."


def read_chunks(
    path: Path, encoder: LabelEncoder, lowest: int = 0, highest: int = MOST_INDEX, settings: Settings = RUN_SETTINGS
) -> Iterator[Sparse]:
    """Yield the rows of a file, plain or compressed; indices must be between `lowest` and `highest`.

    Raises KlrBenchError that names the file and the line, and DamagedFileError.
    """
    empty = True
    for block in blocks(path):
        chunk = _BlockReader(block, encoder, lowest, highest, settings).chunk()
        empty = empty and not len(chunk.codes)
        yield chunk
    if empty:
        message = f"{path}: no rows; {EXPECTED}"
        raise KlrBenchError(message)


class _BlockReader:
    """Compiled code reads the lines of a block; Python reads or refuses the line at which it stops."""

    def __init__(self, block: Block, encoder: LabelEncoder, lowest: int, highest: int, settings: Settings) -> None:
        self.block, self.encoder, self.lowest, self.highest, self.settings = block, encoder, lowest, highest, settings
        n_lines, n_entries = block.n_lines, block.end // SHORTEST_ENTRY + 1
        self.labels = np.empty(n_lines, dtype=np.float64)
        self.places = np.empty((n_lines, 2), dtype=np.int32)
        self.indptr = np.zeros(n_lines + 1, dtype=np.int64)
        self.indices = np.empty(n_entries, dtype=np.int32)
        self.values = np.empty(n_entries, dtype=np.float32)
        self.state = np.array([0, 0, 0, np.iinfo(np.int32).max, -1], dtype=np.int64)

    def chunk(self) -> Sparse:
        bounds = self.lowest, self.highest
        arrays = self.labels, self.places, self.indptr[1:], self.indices, self.values, self.state
        while self.state[POSITION] < self.block.end:
            svmlight_rows(self.block.codes, *bounds, *arrays)
            if self.state[POSITION] < self.block.end:
                self._read_line()
        n_rows, n_entries, smallest, largest = self.state[ROWS:].tolist()
        codes = self.encoder.encode(self.labels[:n_rows], self._code)
        indices, values = self.indices[:n_entries].copy(), self.values[:n_entries].copy()
        return Sparse(codes, self.indptr[: n_rows + 1], indices, values, smallest, largest)

    def _code(self, row: int) -> int:
        begin, end = self.places[row].tolist()
        text = self.block.text[begin:end].decode(errors="backslashreplace")
        if ":" in text or "," in text:
            what = "a label is missing" if ":" in text else f"expected one label (of CSV: {self.settings.csv_format})"
            raise self.block.refusal(begin, f"the line begins with {shown(repr(text))}; {what}.")
        try:
            return self.encoder.code(text, "; use numbers or words.")
        except ValueError as error:
            raise self.block.refusal(begin, str(error)) from error

    def _read_line(self) -> None:
        position, row, entry, smallest, largest = self.state.tolist()
        line, after = self.block.line_at(position)
        label, *rest = line.partition(b"#")[0].split(None, 1) or [b""]
        tokens = rest[0] if rest else b""
        if reason := fault(tokens):
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
        """Yield the entries of a well-formed line; refuse indices and values that are out of range."""
        for token in tokens.decode().split():
            name, _, text = token.partition(":")
            if name == "qid":
                continue
            index = int(name)
            if not self.lowest <= index <= self.highest:
                between = f"the index {index} is not between {self.lowest} and {self.highest}"
                raise self.block.refusal(position, f"{between}; mend the line, or {self.settings.indices}.")
            with np.errstate(over="ignore"):
                value = np.float32(float(text))
            if not abs(value) <= LARGEST:
                reason = (
                    f"the value of index {index} is not a number between -{LARGEST:g} and {LARGEST:g}; "
                    "mend or remove the row."
                )
                raise self.block.refusal(position, reason)
            yield index, value


def fault(row: bytes) -> str | None:
    """Return what is wrong with a row, without its label, or None."""
    previous = -1
    for token in row.decode(errors="backslashreplace").split():
        index, colon, value = token.partition(":")
        if index == "qid":  # used for rankings only
            continue
        where = shown(repr(token))
        if not colon:
            return f"{where} is not index:value."
        if not index.isascii() or not index.isdigit():
            return f"{shown(repr(index))} in {where} is not an index; whole numbers from 0 or 1 are expected."
        if number(value) is None:
            return f"{shown(repr(value))} in {where} is not a number."
        if len(index) > MOST_DIGITS or int(index) > MOST_INDEX:
            return f"the index {shown(index)} is too large."
        if int(index) <= previous:
            return f"index {index} stands after index {previous}; indices must ascend, each only once."
        previous = int(index)
    return None

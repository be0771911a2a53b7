"""Reader for the svmlight (LIBSVM) format, with lines such as ``+1 3:0.5 7:1 # comment``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from klr_bench.config.models import MOST_FEATURES
from klr_bench.datasets.class_labels import LARGEST, Labels, parse_number
from klr_bench.datasets.compression import not_decodable
from klr_bench.datasets.layout import SET_FEATURES
from klr_bench.datasets.readers.chunks import Block, Chunk, blocks, type_of
from klr_bench.datasets.readers.compiled import POSITION, ROWS, svmlight_rows
from klr_bench.errors import fail, sanitize

SHORTEST_ENTRY = 4
"""Minimum number of bytes of an entry, such as `` 1:2``."""
EXPECTED = "expected lines such as '+1 3:0.5 7:1'."


def read_chunks(
    path: Path,
    labels: Labels,
    lowest: int = 0,
    highest: int = MOST_FEATURES,
    *,
    encoding: str | None = None,
    dtype: Any = None,
) -> Iterator[Chunk]:
    """Parse a plain or compressed svmlight file, and yield its rows in chunks.

    Feature indices must be between `lowest` and `highest`.  `dtype` is the type of the features; None is float32, or
    float64 if the first block of lines needs it.  Raises KlrBenchError that names the file and the line, and
    DamagedFileError.
    """
    empty = True
    for block in blocks(path, encoding):
        chunk = _BlockReader(block, labels, lowest, highest).chunk()
        empty = empty and not len(chunk.codes)
        dtype = dtype or type_of(chunk)
        X = chunk.X.astype(dtype or np.float32)
        X.eliminate_zeros()  # numbers that float32 rounds to 0
        yield replace(chunk, X=X)
    if empty:
        fail(f"{path}: no {'row has a label' if labels.dropped else 'rows'}; {EXPECTED}")


def different_bases(files: Mapping[Path, Any]) -> list[str]:
    """Return a warning if the feature index 0 occurs in some files but not in all of them.

    `files` maps paths to the smallest and largest index of each file, such as a `Chunk`.  Files without features have
    no base.
    """
    ranges = {path: (file.smallest, file.largest) for path, file in files.items() if file.largest >= 0}
    zero = [path for path, (smallest, _) in ranges.items() if smallest == 0]
    others = [path for path in ranges if path not in zero]
    if not zero or not others:
        return []
    first, other = (f"{path} (indices {ranges[path][0]} to {ranges[path][1]})" for path in (zero[0], others[0]))
    return [
        f"warning: the feature index 0 occurs in {first}, but not in {other}. Indices are counted from 0 in all files; "
        "if they begin with 1 in some, features are mixed up: write all files with the same first index"
    ]


class _BlockReader:
    """Parser for a block of lines; compiled code parses simple lines, Python code the others."""

    def __init__(self, block: Block, labels: Labels, lowest: int, highest: int) -> None:
        self.block, self.labels, self.lowest, self.highest = block, labels, lowest, highest
        n_lines, n_entries = block.text.count(b"\n"), len(block.text) // SHORTEST_ENTRY + 1
        self.targets = np.empty(n_lines, dtype=np.float64)
        self.places = np.empty((n_lines, 2), dtype=np.int32)
        self.indptr = np.zeros(n_lines + 1, dtype=np.int64)
        self.indices = np.empty(n_entries, dtype=np.int32)
        self.values = np.empty(n_entries, dtype=np.float64)
        self.state = np.array([0, 0, 0, np.iinfo(np.int32).max, -1], dtype=np.int64)

    def chunk(self) -> Chunk:
        text = np.frombuffer(self.block.text, dtype=np.uint8)
        arrays = self.targets, self.places, self.indptr[1:], self.indices, self.values, self.state
        while self.state[POSITION] < len(text):
            svmlight_rows(text, self.lowest, self.highest, *arrays)
            if self.state[POSITION] < len(text):
                self._read_line()
        n_rows, n_entries, smallest, largest = self.state[ROWS:].tolist()
        codes = self.labels.encode(self.targets[:n_rows], self._code)
        indices, values = self.indices[:n_entries].copy(), self.values[:n_entries].copy()
        X = sp.csr_matrix((values, indices, self.indptr[: n_rows + 1].astype(np.int32)), (n_rows, self.highest + 1))
        labeled = codes >= 0
        return Chunk(codes[labeled], X if labeled.all() else X[labeled], smallest, largest)

    def _code(self, row: int) -> int:
        begin, end = self.places[row].tolist()
        text = self._decoded(self.block.text[begin:end])
        if ":" in text or "," in text:
            what = "the label is missing" if ":" in text else "expected one label (for CSV set data.format=csv)"
            raise self.block.error_at(begin, f"the line begins with {sanitize(repr(text))}; {what}.")
        try:
            return -1 if self.labels.drops(text) else self.labels.code(text)
        except ValueError as error:
            raise self.block.error_at(begin, f"{error}; correct the line.") from error

    def _decoded(self, text: bytes) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise not_decodable(self.block.path, None) from error

    def _read_line(self) -> None:
        position, row, entry, smallest, largest = self.state.tolist()
        after = self.block.text.index(b"\n", position) + 1
        line = self.block.text[position:after]
        label, *rest = line.partition(b"#")[0].split(None, 1) or [b""]
        begin, previous = position + line.index(label), -1
        self.targets[row] = np.nan
        self.places[row] = begin, begin + len(label)
        for token in self._decoded(rest[0]).split() if rest else []:
            name, colon, text = token.partition(":")
            if name == "qid" and colon:  # qid:value is used only for ranking problems
                continue
            if reason := self._fault(token, name, colon, text, previous):
                raise self.block.error_at(position, f"{reason}; correct the line.")
            index = previous = int(name)
            smallest, largest = min(smallest, index), max(largest, index)
            value = float(text)
            if value != 0:
                self.indices[entry], self.values[entry] = index, value
                entry += 1
        self.indptr[row + 1] = entry
        self.state[:] = after, row + 1, entry, smallest, largest

    def _fault(self, token: str, name: str, colon: str, text: str, previous: int) -> str | None:
        value = parse_number(text)
        if not colon:
            return f"{sanitize(repr(token))} is not index:value"
        if not (name.isascii() and name.isdigit()):
            return f"{sanitize(repr(name))} in {sanitize(repr(token))} is not an index (an integer >= 0)"
        if len(name) > 100 or not self.lowest <= int(name) <= self.highest:
            between = f"the index {sanitize(name)} is not between {self.lowest} and {self.highest}"
            if not int(name[:100]):
                return f"{between}; if indices begin with 0, set zero_based=True, or omit {SET_FEATURES}"
            return f"{between}; set {SET_FEATURES} if it is correct"
        if int(name) <= previous:
            return f"index {name} follows index {previous}; indices must be strictly increasing"
        if value is None or not abs(value) <= LARGEST:
            where = f"{sanitize(repr(text))} in {sanitize(repr(token))}"
            return f"{where} is not a number between -{LARGEST:g} and {LARGEST:g}"
        return None

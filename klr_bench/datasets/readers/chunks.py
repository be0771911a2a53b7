"""Blocks of a text file, the chunks of rows that the readers make of them, and the codes of labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import Labels, is_unlabelled, number, some
from klr_bench.datasets.compression import LONGEST_LINE, open_plain
from klr_bench.datasets.readers.compiled import encode
from klr_bench.errors import KlrBenchError, shown

BLOCK = 1 << 21
"""Bytes of text that are read at a time."""
BOM = b"\xef\xbb\xbf"
MOST_COMPARED = 100
"""Labels that compiled code compares one by one; a dictionary finds the others."""


class Settings(NamedTuple):
    """How messages name what a user may change."""

    label_column: str
    indices: str  # what to do about an index that is out of range
    csv_format: str


RUN_SETTINGS = Settings("data.label=", "set data.n_features=", "data.format=csv")
STREAM_SETTINGS = Settings("label_column=", "set n_features= and zero_based=", "format='csv'")


@dataclass(frozen=True)
class Block:
    """Whole lines of a file; the last one ends with a line feed too."""

    path: Path
    first: int  # number in the file, from 1, of the first line
    text: bytes  # may continue after `end`
    end: int

    @property
    def n_lines(self) -> int:
        return self.text.count(b"\n", 0, self.end)

    @property
    def codes(self) -> NDArray[np.uint8]:
        """The bytes of the lines as an array."""
        return np.frombuffer(self.text, dtype=np.uint8, count=self.end)

    def line_at(self, position: int) -> tuple[bytes, int]:
        """Return the line that begins at a position, with its line feed, and the position of the next line."""
        after = self.text.index(b"\n", position) + 1
        return self.text[position:after], after

    def line_number(self, position: int) -> int:
        """Return the number in the file of the line at a position."""
        return self.first + self.text.count(b"\n", 0, position)

    def refusal(self, position: int, reason: str) -> KlrBenchError:
        """Return an error that names the file and the line at this position."""
        return KlrBenchError(f"{self.path}, line {self.line_number(position)}: {reason}")


def blocks(path: Path, *, any_line_end: bool = False) -> Iterator[Block]:
    """Yield a file, plain or compressed, in blocks of whole lines.

    With `any_line_end` a carriage return alone ends a line too, and is replaced.  Raises DamagedFileError, and
    KlrBenchError for a line that is too long.
    """
    rest, first = b"", 1
    with open_plain(path) as (stream, _):
        while content := stream.read(BLOCK):
            text = rest + content
            if any_line_end and b"\r" in text:
                text = re.sub(rb"\r(?=[^\n])", b"\n", text)
            end = text.rfind(b"\n") + 1
            if len(text) - end > LONGEST_LINE:
                line = first + text.count(b"\n")
                message = (
                    f"{path}, line {line}: more than {LONGEST_LINE:,} characters, expected one "
                    "row a line; mend or remove the line."
                )
                raise KlrBenchError(message)
            if end:
                yield _block(path, first, text, end)
                first += text.count(b"\n", 0, end)
            rest = text[end:]
        if rest:
            yield _block(path, first, rest + b"\n", len(rest) + 1)


def _block(path: Path, first: int, text: bytes, end: int) -> Block:
    if first == 1 and text.startswith(BOM):
        return Block(path, first, text[len(BOM) :], end - len(BOM))
    return Block(path, first, text, end)


class LabelEncoder:
    """Codes 0, 1, ... of labels, as `Labels` assigns them; no label may be new if it is `closed`.

    With `drop_unlabelled` a missing label has the code -1, and is counted in ``labels.dropped``.
    """

    def __init__(self, labels: Labels, *, closed: bool = False, drop_unlabelled: bool = False) -> None:
        self.labels, self.drop_unlabelled = labels, drop_unlabelled
        self._n_known = len(labels.spellings) if closed else None

    def encode(self, values: NDArray[np.float64], code_of: Callable[[int], int]) -> NDArray[np.int32]:
        """Return the codes (n,) of labels; `values` are numbers, NaN for a word.

        `code_of(row)` is called for words and for new labels.
        """
        first = [number(text) for text in self.labels.spellings[:MOST_COMPARED]]
        known = np.array([np.nan if value is None else value for value in first], dtype=np.float64)
        codes = np.empty(len(values), dtype=np.int32)
        encode(values, known, codes)
        for row in np.flatnonzero(codes < 0).tolist():
            codes[row] = code_of(row)
        return codes

    def drops(self, text: str) -> bool:
        """Return True if the row with this label is dropped, and count it."""
        dropped = self.drop_unlabelled and is_unlabelled(text)
        if dropped:
            self.labels.dropped[text] += 1
        return dropped

    def code(self, text: str, advice: str) -> int:
        """Return the code of a label.  Raises ValueError, whose message ends with `advice` for a malformed label."""
        if self.drops(text):
            return -1
        try:
            code = self.labels.code(text)
        except ValueError as error:
            message = f"{error}{advice}"
            raise ValueError(message) from error
        if self._n_known is not None and code >= self._n_known:
            known = ", ".join(some(self.labels.spellings[: self._n_known]))
            message = f"the label {shown(repr(text))} is none of the classes {known}; mend the line or set classes=."
            raise ValueError(message)
        return code


@dataclass(frozen=True)
class Dense:
    """Rows of a matrix, with the codes of their labels."""

    codes: NDArray[np.int32]  # (n,)
    X: NDArray[np.float32]  # (n, d)
    smallest: ClassVar[int] = 0

    @property
    def largest(self) -> int:
        """The last column."""
        return int(self.X.shape[1]) - 1

    def cut(self, begin: int, end: int) -> Dense:
        """Return some of the rows, in the same memory."""
        return Dense(self.codes[begin:end], self.X[begin:end])

    @staticmethod
    def joined(parts: Sequence[Dense]) -> Dense:
        """Return the rows of all parts, copied."""
        return Dense(np.concatenate([part.codes for part in parts]), np.concatenate([part.X for part in parts]))

    def matrix(self, base: int, n_features: int) -> NDArray[np.float32]:
        return self.X


@dataclass(frozen=True)
class Sparse:
    """Rows of a CSR matrix, with the indices of the file and the codes of their labels."""

    codes: NDArray[np.int32]  # (n,)
    indptr: NDArray[np.int64]  # (n + 1,): the first entry need not be 0
    indices: NDArray[np.int32]  # (nnz,): of all rows, from the entry indptr[0] on
    values: NDArray[np.float32]  # (nnz,)
    smallest: int  # index that occurs, also with the value 0, here or in the rows that these were cut from
    largest: int

    def cut(self, begin: int, end: int) -> Sparse:
        """Return some of the rows, in the same memory."""
        indptr = self.indptr[begin : end + 1]
        entries = slice(int(indptr[0] - self.indptr[0]), int(indptr[-1] - self.indptr[0]))
        return Sparse(
            self.codes[begin:end], indptr, self.indices[entries], self.values[entries], self.smallest, self.largest
        )

    @staticmethod
    def joined(parts: Sequence[Sparse]) -> Sparse:
        """Return the rows of all parts, copied."""
        lengths = np.concatenate([np.diff(part.indptr) for part in parts])
        return Sparse(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.values for part in parts]),
            min(part.smallest for part in parts),
            max(part.largest for part in parts),
        )

    def matrix(self, base: int, n_features: int) -> Any:
        """Return a CSR matrix (n, n_features) whose columns are the indices less `base`."""
        indptr = self.indptr - self.indptr[0]
        small = indptr.astype(np.int32) if len(self.values) < 2**31 else indptr
        X = sp.csr_matrix((self.values, self.indices - np.int32(base), small), shape=(len(self.codes), n_features))
        X.has_sorted_indices = X.has_canonical_format = True
        return X


Chunk = TypeVar("Chunk", Dense, Sparse)


def rechunked(chunks: Iterator[Chunk], chunk_rows: int, skip_rows: int) -> Iterator[Chunk]:
    """Yield the rows after the first `skip_rows` in chunks of `chunk_rows` rows; the last chunk may be smaller.

    Each chunk owns its memory.
    """
    waiting: list[Chunk] = []
    n_waiting = 0
    for chunk in chunks:
        begin = min(skip_rows, len(chunk.codes))
        skip_rows -= begin
        while begin < len(chunk.codes):
            end = min(begin + chunk_rows - n_waiting, len(chunk.codes))
            waiting.append(chunk.cut(begin, end))
            n_waiting += end - begin
            begin = end
            if n_waiting == chunk_rows:
                yield chunk.joined(waiting)
                waiting, n_waiting = [], 0
    if waiting:
        yield waiting[0].joined(waiting)

"""Rows in memory, with codes of their labels: as they come from a block of text, or as a chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True)
class Dense:
    """Rows of a matrix."""

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
        """Return X."""
        return self.X


@dataclass(frozen=True)
class Sparse:
    """Rows of a CSR matrix, with the indices of the file."""

    codes: NDArray[np.int32]  # (n,)
    indptr: NDArray[np.int64]  # (n + 1,): the first entry need not be 0
    indices: NDArray[np.int32]  # (nnz,): of all rows, from the entry indptr[0] on
    values: NDArray[np.float32]  # (nnz,)
    smallest: int  # of the indices that occur, also with the value 0, here or in the rows that these were cut from
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
        indptr = (self.indptr - self.indptr[0]).astype(np.int32)
        X = sp.csr_matrix((self.values, self.indices - np.int32(base), indptr), shape=(len(self.codes), n_features))
        X.has_sorted_indices = X.has_canonical_format = True
        return X


Piece = TypeVar("Piece", Dense, Sparse)


def rechunked(pieces: Iterator[Piece], chunk_rows: int, skip_rows: int) -> Iterator[Piece]:
    """Yield the rows after the first `skip_rows` in pieces of `chunk_rows` rows, and the rest in a last one.

    What is yielded owns its memory.
    """
    waiting: list[Piece] = []
    n_waiting = 0
    for piece in pieces:
        begin = min(skip_rows, len(piece.codes))
        skip_rows -= begin
        while begin < len(piece.codes):
            end = min(begin + chunk_rows - n_waiting, len(piece.codes))
            waiting.append(piece.cut(begin, end))
            n_waiting += end - begin
            begin = end
            if n_waiting == chunk_rows:
                yield piece.joined(waiting)
                waiting, n_waiting = [], 0
    if waiting:
        yield waiting[0].joined(waiting)

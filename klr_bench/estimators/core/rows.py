"""Rows that arrive a few at a time, stored in arrays that grow by doubling."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

MOST_DENSE_MB = 1000.0
"""Largest dense array that is made for sparse rows with many features."""


class Growing:
    """A one- or two-dimensional array with spare room at its end: appending costs O(1) per row on average."""

    _order = "C"

    def __init__(self, shape, dtype):
        self._array = np.empty(shape, dtype, self._order)
        self._used = 0

    def __len__(self):
        return self._used

    @property
    def dtype(self):
        return self._array.dtype

    def append(self, rows):
        """Add rows (k, ...) at the end; return self."""
        needed = self._used + len(rows)
        if needed > len(self._array):
            shape = max(needed, 2 * len(self._array)), *self._array.shape[1:]
            larger = np.empty(shape, self.dtype, self._order)
            larger[: self._used] = self.rows
            self._array = larger
        self._array[self._used : needed] = rows
        self._used = needed
        return self

    @property
    def rows(self):
        """The rows in use, as a view."""
        return self._array[: self._used]

    def take(self, places):
        return self.rows[places]

    def __getstate__(self):
        return {"_array": self.rows.copy(self._order), "_used": self._used}  # without the spare room


class GrowingColumns(Growing):
    """A matrix that grows by columns at its end; each row is contiguous."""

    _order = "F"

    def __init__(self, n_rows, dtype):
        super().__init__((0, n_rows), dtype)

    def append(self, columns):
        """Add columns (n_rows, k) at the end; return self."""
        return super().append(columns.T)

    @property
    def columns(self):
        """The columns in use, as a view."""
        return self.rows.T

    @property
    def array(self):
        """The whole matrix, with the spare room at its end."""
        return self._array.T


class GrowingCSR:
    """A CSR matrix with spare room at its end."""

    def __init__(self, n_features, dtype):
        self._n_features = n_features
        self._data = Growing(64, dtype)
        self._indices = Growing(64, np.int32)
        self._indptr = Growing(64, np.int64).append([0])

    def __len__(self):
        return len(self._indptr) - 1

    @property
    def dtype(self):
        return self._data.dtype

    def append(self, rows):
        """Add the rows of a CSR matrix (k, n_features) at the end; return self."""
        self._indptr.append(rows.indptr[1:] + self._indptr.rows[-1])
        self._data.append(rows.data)
        self._indices.append(rows.indices)
        return self

    @property
    def rows(self):
        """The rows in use, as a CSR matrix that shares their memory."""
        arrays = self._data.rows, self._indices.rows, self._indptr.rows
        return sp.csr_matrix(arrays, shape=(len(self), self._n_features), copy=False)

    def take(self, places):
        return self.rows[places]


def enlarged(array, shape):
    """Return an array of this shape that starts with `array`; the rest is 0, and takes no memory until it is used."""
    larger = np.zeros(shape, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def grown(array, n):
    """Return an array with at least n rows that starts with those of `array`; its size doubles, new rows are 0."""
    return array if n <= len(array) else enlarged(array, (max(n, 2 * len(array)), *array.shape[1:]))


def growing_like(X):
    """Return an empty store for rows like those of X (n, d), dense or CSR."""
    if sp.issparse(X):
        return GrowingCSR(X.shape[1], X.dtype)
    return Growing((0, X.shape[1]), X.dtype)


def in_layout(X, sparse):
    """Return the rows X as CSR if `sparse`, else as a dense array; unchanged if they already have this layout."""
    if sp.issparse(X) == sparse:
        return X
    return sp.csr_matrix(X) if sparse else X.toarray()


def refuse_dense(name, what, X, n, instead):
    """Raise a ValueError if n dense rows with the features of sparse rows X take too much memory."""
    needed = n * X.shape[1] * 8 / 1e6
    if sp.issparse(X) and needed > MOST_DENSE_MB:
        size = f"{X.shape[1]:,} features would take {needed:,.0f} MB"
        message = f"{name}: {what} of {size}, too much for sparse rows; {instead}, or reduce X."
        raise ValueError(message)


def make_writable(thing: Any) -> None:
    """Replace the read-only arrays of an estimator that was loaded with memory maps, and of its parts, by copies."""
    for name, value in vars(thing).items():
        if isinstance(value, np.ndarray):
            if not value.flags.writeable:
                setattr(thing, name, np.array(value))
        elif is_dataclass(value):  # the parts of a kernel's operands, which nobody writes to
            continue
        elif hasattr(value, "__dict__") and type(value).__module__.startswith("klr_bench."):
            make_writable(value)


def without_duplicates(X: Any) -> Any:
    """Return X; duplicate entries of a CSR matrix are added, in a copy."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def restricted(X, columns):
    """Return CSR rows X (n, d) without the entries in other columns than these (k,), ascending: CSR (n, k)."""
    places = np.searchsorted(columns, X.indices)
    listed = np.append(columns, -1)[places] == X.indices
    indptr = np.concatenate([[0], np.cumsum(listed)])[X.indptr]
    return sp.csr_matrix((X.data[listed], places[listed], indptr), shape=(X.shape[0], len(columns)))


def occurring(X):
    """Return the numbers (c,) of the columns with a stored entry, ascending, and their CSR matrix (n, c).

    X (n, d) is a CSR matrix, or an array, of which all columns are taken.
    """
    if not sp.issparse(X):
        return np.arange(X.shape[1]), sp.csr_matrix(X)
    X = without_duplicates(X)
    there = np.zeros(X.shape[1], dtype=bool)
    there[X.indices] = True
    columns = np.flatnonzero(there)
    renumbered = np.cumsum(there, dtype=X.indices.dtype) - 1
    return columns, sp.csr_matrix((X.data, renumbered[X.indices], X.indptr), shape=(X.shape[0], len(columns)))

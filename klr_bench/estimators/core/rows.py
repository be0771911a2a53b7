"""Storage, layout and sampling of rows."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

ROUNDING = 16 * np.finfo(np.float64).eps
"""Relative difference up to which numbers computed in float64 count as equal."""
MOST_PLACES = 2**31 - 1
"""Largest number of features and of stored entries of CSR rows, whose indices are int32 in compiled code."""
MOST_DENSE_MB = 1000.0
"""Maximum size of a dense array created for sparse rows with many features."""


class Growing:
    """One- or two-dimensional array with spare capacity, so that appending takes O(1) per row."""

    def __init__(self, shape, dtype):
        self._array = np.empty(shape, dtype)
        self.dtype, self._used = self._array.dtype, 0

    def __len__(self):
        return self._used

    def reserve(self, n):
        """Enlarge the array if there is no room for n more rows."""
        needed = self._used + n
        if needed > len(self._array):
            shape = max(needed, 2 * len(self._array)), *self._array.shape[1:]
            larger = np.empty(shape, self.dtype)
            larger[: self._used] = self.rows
            self._array = larger

    def append(self, rows):
        """Append rows to the array, and return self."""
        self.reserve(len(rows))
        self._array[self._used : self._used + len(rows)] = rows
        self._used += len(rows)
        return self

    @property
    def rows(self):
        """The rows appended so far, as a view of the array."""
        return self._array[: self._used]

    def take(self, places):
        return self.rows[places]

    def keep(self, places):
        """Keep only the rows with the given indices, in this order."""
        kept = np.empty_like(self._array)
        kept[: len(places)] = self.rows[places]
        self._array, self._used = kept, len(places)

    def __getstate__(self):
        return vars(self) | {"_array": self.rows.copy()}  # without the spare room


class GrowingCSR:
    """CSR matrix to which rows can be appended."""

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
        """Append the rows of another CSR matrix, and return self."""
        self._indptr.append(rows.indptr[1:] + self._indptr.rows[-1])
        self._data.append(rows.data)
        self._indices.append(rows.indices)
        return self

    @property
    def rows(self):
        """The rows appended so far, as a CSR matrix that shares the memory of this object."""
        arrays = self._data.rows, self._indices.rows, self._indptr.rows
        return sp.csr_matrix(arrays, shape=(len(self), self._n_features), copy=False)

    def take(self, places):
        return self.rows[places]

    def keep(self, places):
        """Keep only the rows with the given indices, in this order."""
        rows = self.take(places)
        self.__init__(self._n_features, self.dtype)
        self.append(rows)


def enlarged(array, shape):
    """Copy an array to the beginning of a larger array of zeros, and return the larger array.

    The zeros take no memory until they are used.
    """
    larger = np.zeros(shape, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def grown(array, n):
    """Return `array` itself if it has n rows or more, and an enlarged copy of it otherwise."""
    return array if n <= len(array) else enlarged(array, (max(n, 2 * len(array)), *array.shape[1:]))


def slices(n, size):
    """Return consecutive slices of at most `size` rows that together cover n rows."""
    ends = [*range(0, n, size), n]
    return list(map(slice, ends, ends[1:]))


def evenly_spaced(n, most):
    """Return the indices of at most `most` of n rows, evenly spaced from the first to the last."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


def weighted_sample(n, most, weights, random=None):
    """Return at most `most` of n rows at equal steps of the cumulated weight, with weights.

    If n is at most `most`, these are all rows with their `weights` (n,), or None.  Otherwise all have the weight 1, and
    a row with a large weight is there several times; for equal weights they are `evenly_spaced`.  With `random`, they
    are at random places of the steps, because rows may alternate.
    """
    if n <= most:
        return np.arange(n), weights
    places = evenly_spaced(n, most) + 0.5
    if random is not None:
        places = (np.arange(most) + random.random_sample(most)) * n / most
    if weights is None:
        return places.astype(int), None
    below = np.cumsum(weights)
    return np.minimum(np.searchsorted(below, places / n * below[-1], side="right"), n - 1), np.ones(most)


def growing_like(X):
    """Return an empty store for rows with the layout and the number of columns of X."""
    if sp.issparse(X):
        return GrowingCSR(X.shape[1], X.dtype)
    return Growing((0, X.shape[1]), X.dtype)


def in_layout(X, sparse):
    """Convert X to a CSR matrix if `sparse` is True, and to a dense array otherwise."""
    if sp.issparse(X) == sparse:
        return X
    return sp.csr_matrix(X) if sparse else X.toarray()


def with_scaled_columns(X, factors):
    """Multiply each column of an array or a CSR matrix by its factor, in the dtype of X."""
    factors = factors.astype(X.dtype)
    if not sp.issparse(X):
        return X * factors
    scaled = X.copy()
    scaled.data *= factors[X.indices]
    return scaled


def largest_of(X):
    """Return the largest absolute value of a dense or CSR matrix X."""
    values = X.data if sp.issparse(X) else X
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))


def weighted_median(values, weights):
    """Return the median of values (n,) with weights (n,) > 0.

    It is the mean of two values if half of the total weight is at or below the first of them, like np.median.
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    half = below[-1] / 2 * (1 - ROUNDING)
    first, last = np.searchsorted(below, [half, below[-1] / 2 * (1 + ROUNDING)], side="left")
    return float(values[order[first]] + values[order[min(last, len(order) - 1)]]) / 2


def stacked(parts):
    """Stack the rows of several arrays, or of several CSR matrices."""
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.vstack(parts)


def check_size(what, got, expected):
    """Raise ValueError if sizes that belong together differ, as in a damaged model.

    Compiled code does not check them.
    """
    if got != expected:
        message = f"expected {what} of size {expected}, got {got}; the model or the rows are damaged. Fit it again."
        raise ValueError(message)


def refuse_dense(name, what, X, n, instead):
    """Raise ValueError if n rows of a sparse X would need too much memory as a dense array."""
    needed = n * X.shape[1] * 8 / 1e6
    if sp.issparse(X) and needed > MOST_DENSE_MB:
        dense = f"{what} of {X.shape[1]:,} features"
        message = f"{name}: {dense} need {needed:,.0f} MB as a dense array; {instead}, or reduce X."
        raise ValueError(message)


def make_writable(thing: Any) -> None:
    """Replace the read-only arrays of a loaded estimator by writable copies."""
    for name, value in vars(thing).items():
        if isinstance(value, np.ndarray):
            if not value.flags.writeable:
                setattr(thing, name, np.array(value))
        elif is_dataclass(value):  # operands and their parts are dataclasses, which are never modified
            continue
        elif hasattr(value, "__dict__") and type(value).__module__.startswith("klr_bench."):
            make_writable(value)


def csr_places(X):
    """Return `indptr` and `indices` of the CSR matrix X as int32.

    Raises ValueError if they do not fit.
    """
    if X.nnz > MOST_PLACES:
        message = (
            f"Expected CSR rows with at most {MOST_PLACES:,} entries that are not 0, got {X.nnz:,}; use fewer rows."
        )
        raise ValueError(message)
    return X.indptr.astype(np.int32, copy=False), X.indices.astype(np.int32, copy=False)


def canonical(X: Any) -> Any:
    """Return CSR rows without duplicate entries and stored zeros; any other X as it is."""
    if sp.issparse(X) and not (X.has_canonical_format and X.data.all()):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X


def restricted(X, columns):
    """Select columns of the CSR matrix X, given their indices in ascending order."""
    places = np.searchsorted(columns, X.indices)
    listed = np.append(columns, -1)[places] == X.indices
    indptr = np.concatenate([[0], np.cumsum(listed)])[X.indptr]
    return sp.csr_matrix((X.data[listed], places[listed], indptr), shape=(X.shape[0], len(columns)))


def occurring(X, others=()):
    """Return the indices of the nonempty columns of X, and these columns as a CSR matrix.

    X (n, d) is a CSR matrix, or an array, of which all columns are taken.  The columns `others` count as nonempty.
    """
    if not sp.issparse(X):
        return np.arange(X.shape[1]), sp.csr_matrix(X)
    X = canonical(X)
    there = np.zeros(X.shape[1], dtype=bool)
    there[X.indices] = True
    there[list(others)] = True
    columns = np.flatnonzero(there)
    renumbered = np.cumsum(there, dtype=X.indices.dtype) - 1
    return columns, sp.csr_matrix((X.data, renumbered[X.indices], X.indptr), shape=(X.shape[0], len(columns)))

"""Feature matrix Z of all training rows, and matrix products with Z.

Z has shape (N, D) for N rows and D features.

Z is stored column by column in the precision of X, and every sum is a float64: with float32 features the products are
then exact enough for any duality gap.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, void

from klr_bench.estimators.core.checks import warn
from klr_bench.estimators.core.jit import compiled, read_only
from klr_bench.estimators.kernel_values.features import KernelFeatures, LinearFeatures

BLOCK = 4_000_000
"""Number of features computed at once."""
TILE = 2048
"""Number of rows per tile of compiled sums, so that part of a column stays in the L1 cache."""
GRAM_ROWS = 8192
"""Number of rows scaled and multiplied at once."""


def rows_of_a_block(n_features):
    """Return the number of rows per block, so that a block has at most BLOCK feature values."""
    return max(BLOCK // max(n_features, 1), 1)


class FeatureMatrix:
    """Matrix of the features of all training rows, stored in memory if it fits.

    It is stored by columns, or by rows for solvers that process single examples.

    A matrix of more than `memory_limit` MB is computed again in every pass, a block of rows at a time; columns taken
    from it are stored if they fit.
    """

    def __init__(self, features, X, *, by_rows=False, memory_limit=3400.0):
        self.features, self._X = features, X
        self.by_rows, self.memory_limit = by_rows, memory_limit
        self.shape = (X.shape[0], features.n_features)
        self.size_mb = self.shape[0] * self.shape[1] * X.dtype.itemsize / 1e6
        self.stored, self.stored_in_X = None, False
        if isinstance(features, LinearFeatures) and isinstance(X, np.ndarray) and features.is_all_of(X):
            self.stored_in_X = X.flags.c_contiguous if by_rows else X.flags.f_contiguous
        if self.stored_in_X:
            self.stored = np.asarray(X)
        elif self.size_mb <= memory_limit:
            self.stored = np.empty(self.shape, dtype=X.dtype, order="C" if by_rows else "F")
            for rows in self._slices():
                self.stored[rows] = features.transform(X[rows])

    def _slices(self):
        n, step = self.shape[0], rows_of_a_block(self.shape[1])
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def warn_if_large(self):
        """Warn if the features do not fit in memory and are recomputed in every pass."""
        if self.stored is None:
            message = (
                f"The {self.shape[0]} x {self.shape[1]} feature matrix takes {self.size_mb:.0f} MB, more than "
                f"memory_limit={self.memory_limit:g}, so the features are recomputed in every pass."
            )
            if isinstance(self.features, KernelFeatures):
                message += " That takes long; raise memory_limit, or approximate the kernel with features='fourier'."
            warn(message)

    def take(self, J):
        """Return the columns with the indices J as a new `FeatureMatrix`."""
        if self.stored is None:
            limit = self.memory_limit / 2
            return FeatureMatrix(self.features.take(J), self._X, by_rows=self.by_rows, memory_limit=limit)
        room = self.memory_limit - (0 if self.stored_in_X else self.size_mb)
        if self.size_mb * len(J) > room * self.shape[1]:
            return FeatureMatrix(LinearFeatures(J), self.stored, by_rows=self.by_rows, memory_limit=0)
        columns = np.ascontiguousarray(self.stored[:, J]) if self.by_rows else self.stored.T[J].T
        return FeatureMatrix(LinearFeatures.of(columns), columns, by_rows=self.by_rows, memory_limit=room)

    def blocks(self):
        """Iterate over all rows in blocks; yield the slice of rows and their transposed features."""
        if self.stored is not None and not self.by_rows:
            yield slice(0, self.shape[0]), self.stored.T
            return
        for rows in self._slices():
            block = self.features.transform(self._X[rows]) if self.stored is None else self.stored[rows]
            yield rows, np.ascontiguousarray(block.T)

    def rows(self, indices):
        """Return the features of the rows with the given indices, of shape (k, D)."""
        rows = self.features.transform(self._X[indices]) if self.stored is None else self.stored[indices]
        return np.ascontiguousarray(rows)

    def times(self, w):
        """Return the matrix-vector product Z w, using only the columns with nonzero weights."""
        J, out, part = np.flatnonzero(w), np.zeros(self.shape[0]), self
        places = J
        if self.stored is None and len(J) < self.shape[1]:
            part, places = self.take(J), np.arange(len(J))
        for rows, block in part.blocks() if len(J) else ():
            _add_columns(block, places, w[J], out[rows])
        return out

    def sums(self, V, h=None):
        """Compute weighted sums of the rows of Z, and of their squares, in one pass over Z.

        Returns V Z of shape (k, D) for the weights V (k, N), and sum_i h_i Z_ij^2 of shape (D,) for the weights h (N,),
        or an empty array if h is None.
        """
        out = np.zeros((len(V), self.shape[1]))
        squares = np.zeros(0 if h is None else self.shape[1])
        for rows, block in self.blocks():
            weights = np.ascontiguousarray(V[:, rows])
            _add_sums(block, weights, np.zeros(0) if h is None else h[rows], out, squares)
        return out, squares

    def gram(self, h):
        """Return the weighted Gram matrix Z' diag(h) Z of shape (D, D), for weights h >= 0."""
        D = self.shape[1]
        out, root = np.zeros((D, D)), np.sqrt(h).astype(self._X.dtype)
        for rows, block in self.blocks():
            weights = root[rows]
            for start in range(0, len(weights), GRAM_ROWS):
                scaled = block[:, start : start + GRAM_ROWS] * weights[start : start + GRAM_ROWS]
                out += scaled @ scaled.T
        return out


_REALS = read_only(float64, 1)


@compiled(lambda real: void(read_only(real, 2), read_only(int64, 1), _REALS, float64[::1]), fastmath=True)
def _add_columns(Z, J, w, out):
    """Add to `out` the rows of Z with the indices J, multiplied by the weights w."""
    n = Z.shape[1]
    for start in range(0, n, TILE):
        tile = out[start : min(start + TILE, n)]
        for k in range(len(J)):
            column, weight = Z[J[k], start : start + len(tile)], w[k]
            for i in range(len(tile)):
                tile[i] += weight * column[i]


@compiled(
    lambda real: void(read_only(real, 2), read_only(float64, 2), _REALS, float64[:, ::1], float64[::1]), fastmath=True
)
def _add_sums(Z, V, h, out, squares):
    """Add to `out` and `squares` the weighted sums of the columns of Z and of their squares."""
    D, n = Z.shape
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        for j in range(D):
            column = Z[j, start:end]
            for k in range(len(V)):
                weights, total = V[k, start:end], 0.0
                for i in range(len(column)):
                    total += weights[i] * column[i]
                out[k, j] += total
            if len(h):
                weights, total = h[start:end], 0.0
                for i in range(len(column)):
                    total += weights[i] * (float64(column[i]) * column[i])
                squares[j] += total

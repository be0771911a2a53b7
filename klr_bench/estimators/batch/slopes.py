"""Mean squared derivatives of kernel expansions along each feature, for the rbf kernel.

The derivative of f(x) = sum_c a_c exp(-gamma ||x - z_c||^2) along feature j at a row x_i is
2 gamma ((T Z)_ij - x_ij t_i), where T_ic = a_c k(x_i, z_c) and t_i = sum_c T_ic.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numba import float64, int64, void

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.rows import in_layout, slices

SLOPE_VALUES = 2**20
"""Number of derivatives, and of kernel values, that are computed at a time."""
WIDE = 200
"""Sparse rows with more features than the squared number of centers divided by WIDE are never made dense."""


def mean_squared_slopes(operands, X, centers, coefs, shares):
    """Return each feature's weighted mean squared derivative (d,) at rows X (n, d).

    It is summed over m expansions.  `coefs` (m, n_centers) are those of the rbf kernel of `operands`, and `shares` (n,) the weights of the rows.
    """
    d, right = X.shape[1], operands.right(centers)
    if sp.issparse(X) and centers.shape[0] ** 2 < WIDE * d:
        return _of_sparse_rows(
            operands.values(operands.left(X), right), X, centers, coefs, shares, operands.kernel.gamma
        )
    total = np.zeros(d)
    for part in slices(X.shape[0], max(SLOPE_VALUES // max(d, centers.shape[0]), 1)):
        rows = X[part]
        K, rows = operands.values(operands.left(rows), right), in_layout(rows, sparse=False)
        for coef in coefs:
            terms = K * coef.astype(K.dtype)
            slopes = 2 * operands.kernel.gamma * (terms @ centers - rows * terms.sum(axis=1, keepdims=True))
            total += shares[part] @ slopes.astype(np.float64) ** 2
    return total


def _of_sparse_rows(K, X, centers, coefs, shares, gamma):
    """Multiply out the squares, so that only pairs of non-zeros of the same feature are visited."""
    squares, mixed, own_squares = np.zeros((K.shape[1],) * 2), np.zeros(K.shape), np.zeros(len(K))
    for coef in coefs:
        terms = K * coef
        sums = terms.sum(axis=1)
        weighted = shares[:, None] * terms
        squares += terms.T @ weighted
        mixed -= 2 * sums[:, None] * weighted
        own_squares += shares * sums**2
    total = own_squares @ X.multiply(X)
    left, right = map(_columns, (X, centers))
    add_pairs(*right, *right, squares, total)
    add_pairs(*left, *right, mixed, total)
    return 4 * gamma**2 * np.maximum(total, 0.0)


def _columns(X):
    columns = X.tocsc()
    return columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data.astype(np.float64)


_COLUMNS = int64[::1], int64[::1], float64[::1]


@compiled(void(*_COLUMNS, *_COLUMNS, float64[:, ::1], float64[::1]))
def add_pairs(starts, rows, values, other_starts, other_rows, other_values, factors, sums):
    """Add to sums[j] the sum of x_ij z_cj factors_ic over the non-zeros of feature j.

    X and Z are in CSC layout.
    """
    for j in range(len(sums)):
        for a in range(starts[j], starts[j + 1]):
            total = 0.0
            for b in range(other_starts[j], other_starts[j + 1]):
                total += other_values[b] * factors[rows[a], other_rows[b]]
            sums[j] += values[a] * total

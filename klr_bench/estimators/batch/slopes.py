"""Mean squared derivatives of kernel expansions along each feature.

With T_ic = a_c k(x_i, z_c) and t_i = sum_c T_ic, the derivative of f(x) = sum_c a_c k(x, z_c) along feature j at a row
x_i is

    rbf        2 gamma ((T Z)_ij - x_ij t_i)
    laplacian  -gamma sum_c T_ic sign(x_ij - z_cj)

For the laplacian kernel it is the mean of the derivatives to the left and to the right, and the sign of 0 is 0.
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

    It is summed over m expansions.  `coefs` (m, n_centers) are those of the kernel of `operands`, and `shares` (n,) the
    weights of the rows.
    """
    kernel, d, right = operands.kernel, X.shape[1], operands.right(centers)
    if sp.issparse(X) and centers.shape[0] ** 2 < WIDE * d:
        K = operands.values(operands.left(X), right)
        of_sparse_rows = _squares_of_sparse_rows if kernel.name == "rbf" else _signs_of_sparse_rows
        return kernel.gamma**2 * of_sparse_rows(K, X, centers, coefs, shares)
    total = np.zeros(d)
    Z = np.ascontiguousarray(in_layout(centers, sparse=False).T) if kernel.name == "laplacian" else centers
    for part in slices(X.shape[0], max(SLOPE_VALUES // max(d, centers.shape[0]), 1)):
        rows = X[part]
        K, rows = operands.values(operands.left(rows), right), in_layout(rows, sparse=False)
        for coef in coefs:
            terms = K * coef.astype(K.dtype)
            if kernel.name == "laplacian":
                slopes = np.empty(rows.shape)
                add_signs(terms, np.ascontiguousarray(rows), Z, slopes)
            else:
                slopes = 2 * (terms @ Z - rows * terms.sum(axis=1, keepdims=True))
            total += shares[part] @ slopes.astype(np.float64) ** 2
    return kernel.gamma**2 * total


def _signature(real):
    return void(real[:, ::1], real[:, ::1], real[:, ::1], float64[:, ::1])


@compiled(_signature, fastmath={"reassoc", "contract"})
def add_signs(terms, X, Z, sums):
    """Set `sums` (n, d) to sum_c terms_ic sign(x_ij - z_jc), with terms (n, m), Z (d, m)."""
    for i in range(len(X)):
        row = terms[i]
        for j in range(X.shape[1]):
            value, z, total = X[i, j], Z[j], row.dtype.type(0.0)
            for c in range(len(row)):
                total += row[c] * (row.dtype.type(value > z[c]) - row.dtype.type(value < z[c]))
            sums[i, j] = total


def _signs_of_sparse_rows(K, X, centers, coefs, shares):
    """Visit only pairs of non-zeros of the same feature, and pairs of those of the centers."""
    total, left, right = np.zeros(X.shape[1]), *map(_columns, (X, centers))
    for coef in coefs:
        terms = (K * coef).astype(np.float64)
        add_squared_signs(*left, *right, terms, terms.sum(axis=1), terms.T @ (shares[:, None] * terms), shares, total)
    return np.maximum(total, 0.0)


def _squares_of_sparse_rows(K, X, centers, coefs, shares):
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
    return 4 * np.maximum(total, 0.0)


def _columns(X):
    columns = X.tocsc()
    return columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data.astype(np.float64)


_COLUMNS = int64[::1], int64[::1], float64[::1]


@compiled(void(*_COLUMNS, *_COLUMNS, float64[:, ::1], float64[::1], float64[:, ::1], float64[::1], float64[::1]))
def add_squared_signs(
    starts, rows, values, other_starts, other_rows, other_values, terms, sums, products, shares, total
):
    """Add to total[j] the sum of shares_i (sum_c terms_ic sign(x_ij - z_cj))^2 over all rows i.

    X and Z are in CSC layout; sums (n,) are those of the terms over c, and `products` are terms' diag(shares) terms.
    """
    for j in range(len(total)):
        others = range(other_starts[j], other_starts[j + 1])
        for a in others:
            for b in others:
                factor = np.sign(other_values[a]) * np.sign(other_values[b])
                total[j] += factor * products[other_rows[a], other_rows[b]]
        for a in range(starts[j], starts[j + 1]):  # rows with x_ij other than 0, which counts as 0 above
            i, value = rows[a], values[a]
            of_zero, slope = 0.0, np.sign(value) * sums[i]
            for b in others:
                term = terms[i, other_rows[b]]
                of_zero -= term * np.sign(other_values[b])
                slope += term * (np.sign(value - other_values[b]) - np.sign(value))
            total[j] += shares[i] * (slope**2 - of_zero**2)


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

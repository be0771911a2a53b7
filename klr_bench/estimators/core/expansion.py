"""Functions sum_i a_i k(x_i, .): the layout of their rows, and their values at new rows, tile by tile."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.core.kernels import dense_is_cheaper, origin_of
from klr_bench.estimators.core.rows import in_layout

COLUMNS = 256
"""New rows per tile."""
TILE = 1024
"""Support vectors per tile: with 256 columns its kernel values take 1 MB in float32."""


def layout_of(X):
    """Return (whether CSR rows stay sparse, the origin of dense rows or None), decided by the first rows of X."""
    by_index = sp.issparse(X) and not dense_is_cheaper(X)
    return by_index, None if by_index else origin_of(X)


def evaluate(kernel, origin, left, weights, X):
    """Return f (k, m), float64, for rows X (m, d) and weights (k, n) for the examples of a left operand (n, d')."""
    f = np.zeros((len(weights), X.shape[0]))
    for start in range(0, X.shape[0], COLUMNS):
        block = slice(start, start + COLUMNS)
        right = kernel.right(in_layout(X[block], sp.issparse(left)), origin)
        f[:, block] = expand(kernel, left, weights, right)
    return f


def decide(kernel, by_index, origin, support, coef, X):
    """Return f (m,), float64, for rows X (m, d), given the rows `support` (n, d) and their coefficients (n,).

    Of k functions, with coefficients (k, n), the result is (m, k).
    `by_index` and `origin` are the results of `layout_of`.
    """
    left = kernel.left(in_layout(support, by_index), origin)
    f = evaluate(kernel, origin, left, np.atleast_2d(coef).astype(X.dtype), X)
    return f[0] if coef.ndim == 1 else np.ascontiguousarray(f.T)


def expand(kernel, left, weights, right):
    """Return f (n_learners, m), float64: sum_i weights[:, i] k(x_i, z_j), tile by tile.

    left and right are operands of n rows x_i and m rows z_j; weights (n_learners, n) are in the kernel's precision.
    """
    f = np.zeros((len(weights), right.shape[1]))
    for start in range(0, weights.shape[1], TILE):
        tile = slice(start, start + TILE)
        f += kernel.sums(left[tile], weights[:, tile], right)
    return f

"""Evaluation of kernel expansions sum_i a_i k(x_i, x) at new rows x, tile by tile."""

from __future__ import annotations

import math

import numpy as np

from klr_bench.estimators.core.operand_base import TILE
from klr_bench.estimators.core.threads import n_threads, parallel_map

COLUMNS = 256
"""Number of new rows per tile."""
WORTH_THREADS = 2**20
"""Number of kernel values from which on a prediction uses several threads; they take about a millisecond."""


def evaluate(operands, left, weights, X):
    """Evaluate k kernel expansions at the rows of X.

    `weights` (k, n) are the coefficients of the n examples in `left`. The result is float64 of shape (k, m).  The rows
    of X must fit the operands.
    """
    f = np.zeros((len(weights), X.shape[0]))

    def fill(start):
        block = slice(start, start + COLUMNS)
        f[:, block] = expand(operands, left, weights, operands.right(X[block]))

    starts = range(0, X.shape[0], COLUMNS)
    if weights.shape[1] * X.shape[0] >= WORTH_THREADS:
        parallel_map(fill, starts)
    else:
        for start in starts:
            fill(start)
    return f


def decide(operands, support, coef, X):
    """Evaluate one or more kernel expansions at the rows of X.

    For coefficients of shape (n,) the result is a float64 array of shape (m,); for shape (k, n) it is (m, k).
    """
    operands = operands.fitting(X)
    f = evaluate(operands, operands.left(support), np.atleast_2d(coef).astype(X.dtype), X)
    return f[0] if coef.ndim == 1 else np.ascontiguousarray(f.T)


def expand(operands, left, weights, right):
    """Compute sum_i weights[:, i] k(x_i, z_j) for every row z_j, tile by tile.

    left and right are operands of n rows x_i and m rows z_j; weights (n_learners, n) are in the kernel's precision.
    The tiles are added in their order, so that the result does not depend on the number of threads.
    """

    n = weights.shape[1]
    n_tiles = 1 if n <= TILE else 2 * math.ceil(n / (2 * TILE))  # an even number of tiles, which two threads can share
    size = max(math.ceil(n / n_tiles), 1)
    if n_tiles == 1 or n_threads(n_tiles) == 1:
        return operands.sums(left, weights, right, size)

    def sums(start):
        tile = slice(start, start + size)
        return operands.sums(left[tile], weights[:, tile], right)

    f = np.zeros((len(weights), right.shape[1]))
    for of_tile in parallel_map(sums, range(0, n, size)):
        f += of_tile
    return f

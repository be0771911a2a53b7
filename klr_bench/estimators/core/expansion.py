"""Evaluation of kernel expansions sum_i a_i k(x_i, x) at new rows x, tile by tile."""

from __future__ import annotations

import numpy as np

from klr_bench.estimators.core.threads import parallel_map

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
        f[:, block] = operands.expand(left, weights, operands.right(X[block]))

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

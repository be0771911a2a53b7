"""A full covariance of many features, updated in blocks of examples, exactly.

Within a block the covariance is S = S_0 - V V'.  V has one column sqrt(beta_j) u_j, u_j = S_j x_j, for each update so
far in the block.  The decisions need no vector of d numbers, only the inner products p_ji = u_j'x_i of the block:

    p_ji = x_j'S_0 x_i - sum_{l<j} beta_l p_lj p_li,   v_i = p_ii,   f(x_i) = mean_0'x_i + sum_{j<i} alpha_j y_j p_ji

This is a Cholesky factorisation whose pivots are the rule's answers.  A block therefore costs the product S_0 X', the
recursion on its small matrix X S_0 X', a triangular solve for the u_j, and one product that adds V to S.  S is read and
written a few times per block; a loop over examples would do so for each example.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, types
from scipy.linalg import get_blas_funcs

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.rows import in_layout
from klr_bench.estimators.linear.engine import REFUSED, RULE, Gaussian, ask

BLOCK = 128
"""Examples per block."""

_vector, _matrix = float64[::1], float64[:, ::1]


@compiled(types.void(RULE, _matrix, float64, _vector, _vector, _vector, _matrix, _vector, _vector, int64[::1], int64))
def _decide(rule, parameters, limit, squared, y, f, P, alpha, beta, counts, t):
    """Set alpha and beta (b,), and turn the upper triangle of P (b, b) from X S_0 X' into the p_ji.

    f (b,) is mean_0'x_i and squared (b,) is ||x_i||^2.
    """
    b = len(y)
    for i in range(b):
        numbers = parameters[min(i, len(parameters) - 1)]
        alpha[i], beta[i] = ask(rule, y[i] * f[i], P[i, i], squared[i], limit, numbers, counts, t + i + 1)
        if counts[REFUSED]:
            return
        if alpha[i] == 0.0 and beta[i] == 0.0:
            continue
        own, step = P[i, i + 1 :], alpha[i] * y[i]
        later = f[i + 1 :]
        for k in range(len(later)):
            later[k] += step * own[k]
        for j in range(i + 1, b):
            row, source, weight = P[j, j:], P[i, j:], beta[i] * P[i, j]
            for k in range(len(row)):
                row[k] -= weight * source[k]


class Blocked(Gaussian):
    """The full covariance of many features, in the precision of X; only the lower triangle is updated."""

    rows = BLOCK

    def __init__(self, d, limit, first, dtype):
        super().__init__(d, limit)
        self.S = np.eye(d, dtype=dtype, order="F")
        self.S[np.diag_indices(d)] = first

    def _learn(self, rule, parameters, X, y):
        decided = np.zeros(len(y))
        for start in range(0, len(y), BLOCK):
            block = slice(start, start + BLOCK)
            own = parameters[block] if len(parameters) > 1 else parameters
            self._learn_block(rule, own, X[block], y[block], decided[block], self.t + start)
            if self.counts[REFUSED]:
                break
        return decided

    def _learn_block(self, rule, parameters, X, y, f, t):
        X = in_layout(X, sparse=False)
        f[:] = X @ self.mean
        symm, trsm, syrk = get_blas_funcs(("symm", "trsm", "syrk"), (self.S,))
        SX = symm(1.0, self.S, X.T, lower=1)  # (d, b), one column per example
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            P = (X @ SX).astype(np.float64)
        alpha, beta = np.zeros(len(y)), np.zeros(len(y))
        squared = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        _decide(rule, parameters, self.limit, squared, y, f, P, alpha, beta, self.counts, t)
        active = np.flatnonzero((alpha != 0.0) | (beta != 0.0))
        if self.counts[REFUSED] or not len(active):
            return
        # u_j = S_0 x_j - sum_{l<j} beta_l p_lj u_l, for all j: U T = S_0 X'
        T = (beta[active, None] * P[np.ix_(active, active)]).astype(SX.dtype)
        U = trsm(1.0, np.asfortranarray(T), SX.T[active].T, side=1, diag=1, overwrite_b=1)
        self.mean += U @ (alpha * y)[active]
        U *= np.sqrt(beta[active]).astype(U.dtype)
        self.S = syrk(-1.0, U, beta=1.0, c=self.S, lower=1, overwrite_c=1)

    def covariance(self):
        """Return S, (d, d)."""
        lower = np.tril(self.S)
        return lower + np.tril(lower, -1).T

"""Online updates of a Gaussian distribution over the weights of a linear classifier.

The distribution is N(mean, S).

For an example x with the label y = -1 or +1, a rule computes (alpha, beta) from the margin m = y mean'x and its
variance v = x'Sx:

    mean += alpha y S x,      S -= beta (S x)(S x)'

A rule depends on nothing else, so the same rule works for a full S, for its diagonal, and for a fixed S = I (beta = 0).
The engine ensures that rounding cannot make S indefinite: S^-1 grows by (beta / (1 - beta v)) x x', and this factor is
kept below limit / ||x||^2.  A full S of many features is updated in blocks of examples.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numba import float32, float64, int32, int64, types
from scipy.linalg import get_blas_funcs

from klr_bench.estimators.core.jit import as_argument, compiled, read_only
from klr_bench.estimators.core.rows import in_layout
from klr_bench.estimators.online.state import STATES, BlockState

RULE_SIGNATURE = types.UniTuple(float64, 2)(float64, float64, float64[::1])
"""Numba signature of ``rule(m, v, parameters) -> (alpha, beta)``, with v > 0 and beta >= 0; (0, 0) means no update."""

RULE = types.FunctionType(RULE_SIGNATURE)

rule = compiled(RULE_SIGNATURE)
"""Decorator that compiles an update rule."""

BLOCK = 128
"""Number of examples per block for the full covariance of many features."""

LIMITS = {"float64": 1e8, "float32": 1e4}
"""Largest eigenvalue that one example may add to S^-1, per precision of S; CW can disable the limit."""


@compiled(inline="always")
def apply_rule(rule, m, v, squared, limit, parameters, state, i):
    """Compute the step sizes of an update rule for row i; count a mistake and an update.

    alpha and beta are set, beta is limited, and the row is refused if a value is not finite.
    """
    state["mistakes"] += m <= 0.0
    alpha, beta = 0.0, 0.0
    if v > 0.0:
        alpha, beta = rule(m, v, parameters)
        if beta * squared > limit * (1.0 - beta * v):
            beta = limit / (squared + limit * v)
        state["updates"] += alpha != 0.0 or beta != 0.0
    if not math.isfinite(m + v + alpha + beta):
        state["refused"] = state["t"] + i + 1
    return alpha, beta


def _full_signature(real):
    vector = float64[::1]
    matrix = float64[:, ::1]
    return types.void(RULE, matrix, float64, read_only(real, 2), vector, vector, vector, matrix, STATES)


@compiled([_full_signature(float32), _full_signature(float64)])
def _learn_full(rule, parameters, limit, X, y, decided, mean, S, states):
    d, state = len(mean), states[0]
    x, u = np.empty(d), np.empty(d)
    for i in range(len(y)):
        f, v, squared = 0.0, 0.0, 0.0
        u[:] = 0.0
        for j in range(d):
            x[j] = X[i, j]
            if x[j] != 0.0:
                f += x[j] * mean[j]
                row, weight = S[j], x[j]
                for k in range(d):
                    u[k] += weight * row[k]
        for j in range(d):
            v += x[j] * u[j]
            squared += x[j] * x[j]
        decided[i] = f
        arguments = parameters[min(i, len(parameters) - 1)]
        alpha, beta = apply_rule(rule, y[i] * f, v, squared, limit, arguments, state, i)
        if state["refused"]:
            return
        if alpha != 0.0:
            step = alpha * y[i]
            for k in range(d):
                mean[k] += step * u[k]
        if beta != 0.0:
            root = math.sqrt(beta)
            for k in range(d):
                u[k] *= root  # keeps S exactly symmetric
            for j in range(d):
                if u[j] != 0.0:
                    row, weight = S[j], u[j]
                    for k in range(d):
                        row[k] -= weight * u[k]


def _diagonal_signature(real, index):
    vector, integers = float64[::1], int64[::1]
    rows = read_only(real, 1), integers, read_only(index, 1), integers, integers
    return types.void(RULE, float64[:, ::1], float64, types.Tuple(rows), *[vector] * 4, STATES)


@compiled([_diagonal_signature(real, index) for real in (float32, float64) for index in (int32, int64)])
def _learn_diagonal(rule, parameters, limit, rows, y, decided, mean, S, states):
    """Update the weights and their variances from sparse rows, one row after the other.

    `rows` are arrays data, starts, indices, offsets and lengths: row i has the values data[starts[i] : starts[i] +
    lengths[i]] of the features indices[offsets[i] : offsets[i] + lengths[i]].
    """
    data, starts, indices, offsets, lengths = rows
    state = states[0]
    for i in range(len(y)):
        values = data[starts[i] : starts[i] + lengths[i]]
        features = indices[offsets[i] : offsets[i] + lengths[i]]
        f, v, squared = 0.0, 0.0, 0.0
        for k in range(len(values)):
            j, value = features[k], float64(values[k])
            f += value * mean[j]
            v += value * value * S[j]
            squared += value * value
        decided[i] = f
        arguments = parameters[min(i, len(parameters) - 1)]
        alpha, beta = apply_rule(rule, y[i] * f, v, squared, limit, arguments, state, i)
        if state["refused"]:
            return
        if alpha != 0.0 or beta != 0.0:
            step = alpha * y[i]
            for k in range(len(values)):
                j = features[k]
                u = S[j] * values[k]
                mean[j] += step * u
                S[j] -= beta * u * u


class Gaussian(BlockState):
    """Engine of an online linear learner: the distribution of its weights, and its counts.

    `update`, called with the weights of rows or nothing, returns the rule and its parameters; it is set by the learner.
    After `learn`, `decided` has the decision value of each row, computed before learning from it.
    """

    watched_chunk = BlockState.chunk

    def __init__(self, d, limit):
        super().__init__()
        self.limit = limit
        self.mean = np.zeros(d)
        self.decided = np.zeros(0)

    def learn(self, X, y, draws=None, numbers=None, factors=None):
        """Update the weights from the rows of X and their labels y, one row after the other."""
        rule, values = self.update() if factors is None else self.update(factors)
        parameters = np.ascontiguousarray(np.column_stack(np.broadcast_arrays(*values)), dtype=np.float64)
        self.decided = np.zeros(len(y))
        self._learn(as_argument(rule), parameters, X, y)
        self.states["t"] += len(y)


class Diagonal(Gaussian):
    """State with a diagonal covariance; dense and CSR rows give the same results."""

    def __init__(self, d, limit, first):
        super().__init__(d, limit)
        self.variance = np.full(d, float(first))

    def _learn(self, rule, parameters, X, y):
        n, d = X.shape
        if sp.issparse(X):
            data, indices, starts = X.data, X.indices, X.indptr.astype(np.int64)
            offsets, lengths = starts[:-1], np.diff(starts)
        else:
            data, indices, starts = X.reshape(-1), np.arange(d), d * np.arange(n + 1)
            offsets, lengths = np.zeros(n, dtype=np.int64), np.full(n, d)
        rows = data, starts[:-1], indices, offsets, lengths
        _learn_diagonal(rule, parameters, self.limit, rows, y, self.decided, self.mean, self.variance, self.states)

    def covariance(self):
        """Return a copy of the variances of the weights, of shape (d,)."""
        return self.variance.copy()


class Full(Gaussian):
    """State with a full float64 covariance that fits in the cache, updated after every example."""

    def __init__(self, d, limit, first):
        super().__init__(d, limit)
        self.S = first * np.eye(d)

    def _learn(self, rule, parameters, X, y):
        X = in_layout(X, sparse=False)
        _learn_full(rule, parameters, self.limit, X, y, self.decided, self.mean, self.S, self.states)

    def covariance(self):
        """Return a copy of the covariance matrix of the weights, of shape (d, d)."""
        return self.S.copy()


_vector, _matrix = float64[::1], float64[:, ::1]


@compiled(types.void(RULE, _matrix, float64, _vector, _vector, _vector, _matrix, _vector, _vector, STATES))
def _decide(rule, parameters, limit, squared, y, f, P, alpha, beta, states):
    """Compute the step sizes alpha and beta of a block of examples, one after the other.

    P (b, b) and f (b,) are updated in place: initially P is X S_0 X' and f has mean_0'x_i; at the end they have the
    p_ji and f(x_i) of `Blocked`.
    """
    b, state = len(y), states[0]
    for i in range(b):
        arguments = parameters[min(i, len(parameters) - 1)]
        alpha[i], beta[i] = apply_rule(rule, y[i] * f[i], P[i, i], squared[i], limit, arguments, state, i)
        if state["refused"]:
            return
        if alpha[i] == 0.0 and beta[i] == 0.0:
            continue
        products, step = P[i, i + 1 :], alpha[i] * y[i]
        later = f[i + 1 :]
        for k in range(len(later)):
            later[k] += step * products[k]
        for j in range(i + 1, b):
            row, source, weight = P[j, j:], P[i, j:], beta[i] * P[i, j]
            for k in range(len(row)):
                row[k] -= weight * source[k]


class Blocked(Gaussian):
    """State with a full covariance matrix of many features, updated in blocks of examples.

    The covariance has the precision of X, and only its lower triangle is updated.

    Within a block S = S_0 - V V', where V has one column sqrt(beta_j) u_j, u_j = S_j x_j, per update so far in the
    block.  The decision values need only the inner products p_ji = u_j'x_i, and no vectors of length d:

        p_ji = x_j'S_0 x_i - sum_{l<j} beta_l p_lj p_li,  v_i = p_ii,  f(x_i) = mean_0'x_i + sum_{j<i} alpha_j y_j p_ji

    This is a Cholesky factorization whose pivots come from the rule.  A block costs the product S_0 X', the
    recursion on X S_0 X', a triangular solve for the u_j, and one product that adds V to S.
    """

    chunk = watched_chunk = BLOCK

    def __init__(self, d, limit, first, dtype):
        super().__init__(d, limit)
        self.S = np.eye(d, dtype=dtype, order="F")
        self.S[np.diag_indices(d)] = first

    def _learn(self, rule, parameters, X, y):
        X = in_layout(X, sparse=False)
        self.decided[:] = X @ self.mean
        symm, trsm, syrk = get_blas_funcs(("symm", "trsm", "syrk"), (self.S,))
        SX = symm(1.0, self.S, X.T, lower=1)  # (d, b): one column per example
        with np.errstate(over="ignore", invalid="ignore"):  # `_decide` detects non-finite values
            P = (X @ SX).astype(np.float64)
        alpha, beta = np.zeros(len(y)), np.zeros(len(y))
        squared = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        _decide(rule, parameters, self.limit, squared, y, self.decided, P, alpha, beta, self.states)
        active = np.flatnonzero((alpha != 0.0) | (beta != 0.0))
        if self.refused or not len(active):
            return
        # U T = S_0 X' is a triangular system; solve it for the matrix U
        T = (beta[active, None] * P[np.ix_(active, active)]).astype(SX.dtype)
        U = trsm(1.0, np.asfortranarray(T), SX.T[active].T, side=1, diag=1, overwrite_b=1)
        self.mean += U @ (alpha * y)[active]
        U *= np.sqrt(beta[active]).astype(U.dtype)
        self.S = syrk(-1.0, U, beta=1.0, c=self.S, lower=1, overwrite_c=1)

    def covariance(self):
        """Return a copy of the covariance matrix of the weights, of shape (d, d)."""
        lower = np.tril(self.S)
        return lower + np.tril(lower, -1).T

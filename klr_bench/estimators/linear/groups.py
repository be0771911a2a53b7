"""Linear classification on groups of features, a subproblem of sparse batch learning.

Each of the disjoint groups k has a covariance S_k, whitened features z_ik = S_k^(1/2) x_ik and whitened weights w_k
(Tan et al., 2016, equation 16; with C times the squared loss for q = 2, for which the steps of algorithm 3 are exact):

    min_w  Omega(w) + C sum_i max(0, 1 - y_i w'z_i)^q,    Omega(w) = (sigma/2) ||w||^2 + (1/2) (sum_k ||w_k||)^2
    max_a  sum_i a_i - [q = 2] sum_i a_i^2/(4 C) - Omega*(z),    z = sum_i a_i y_i z_i,    a_i >= 0 (and <= C if q = 1)

No root of S_k is needed.  Only the norm of z_k matters, ||z_k||^2 = g'S_k g with g = sum_i a_i y_i x_ik, and the
weights of the features themselves are S_k^(1/2) w_k = c_k S_k g with a scalar c_k.

A later batch of rows starts from u_k = S_k g of the batch before: z_k = S_k^(-1/2) u_k + sum_i a_i y_i z_ik with the
new S_k.  With z0 = z at a = 0, the regularizer is then Omega(w) - z0'w + Omega*(z0) >= 0, and its conjugate is
Omega*(z) - Omega*(z0).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numba import boolean, float32, float64, int32, int64, types
from scipy.linalg import eigh

from klr_bench.estimators.core.checks import LearningFailed
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.rows import enlarged
from klr_bench.estimators.linear.base import box, per_row

FLAT = 1e-13
"""Absolute slope of the dual objective at which a line search stops; for comparison, the slope at a = 0 is 1."""
MAX_SECANTS = 100

_vector, _places = float64[::1], int64[::1]


@compiled(float64(_vector, float64, _vector))
def conjugate(norms, sigma, c):
    """Return the convex conjugate of the regularizer; store the factors of its gradient in c.

    The conjugate is Omega*(z), its gradient c_k z_k in group k; `norms` are the ||z_k|| (K,), and c (K,) is set.

    c_k = max(0, 1 - tau/||z_k||)/sigma with tau = (sum of the norms above tau)/(sigma + number of them).  tau increases
    from 0; each value excludes more groups, until no further group is excluded.
    """
    tau, n_before = 0.0, -1
    for _ in range(len(norms) + 1):
        total, above = 0.0, 0
        for k in range(len(norms)):
            if norms[k] > tau:
                total += norms[k]
                above += 1
        if above == n_before:
            break
        tau, n_before = total / (sigma + above), above
    value = 0.0
    for k in range(len(norms)):
        c[k] = (1.0 - tau / norms[k]) / sigma if norms[k] > tau else 0.0
        value += 0.5 * c[k] * norms[k] * norms[k]
    return value


@compiled(float64(float64, float64, _vector, _vector, _vector, float64, _vector, _vector))
def slope(step, slack, squares, e, v, sigma, norms, c):
    """Return the derivative of the dual objective after a step along one dual variable.

    `norms` and `c` (K,) are overwritten.
    """
    for k in range(len(squares)):
        norms[k] = np.sqrt(max(0.0, squares[k] + step * (2.0 * e[k] + step * v[k])))
    conjugate(norms, sigma, c)
    value = slack
    for k in range(len(squares)):
        value -= c[k] * (e[k] + step * v[k])
    return value


@compiled(float64(float64, float64, float64, _vector, _vector, _vector, float64, _vector, _vector))
def line_search(step, slack, softness, squares, e, v, sigma, norms, c):
    """Return `step`, or a shorter step that maximizes the dual objective along one variable."""
    at_high = slope(step, slack - softness * step, squares, e, v, sigma, norms, c)
    if (at_high < 0.0) != (step > 0.0):
        return step
    low, high, side = 0.0, step, 0
    at_low = slope(0.0, slack, squares, e, v, sigma, norms, c)
    if (at_low < 0.0) == (at_high < 0.0):  # the maximum is at 0 up to rounding errors
        return 0.0
    for _ in range(MAX_SECANTS):
        step = (low * at_high - high * at_low) / (at_high - at_low)
        value = slope(step, slack - softness * step, squares, e, v, sigma, norms, c)
        if abs(value) <= FLAT or not min(low, high) < step < max(low, high):
            break
        if (value < 0.0) == (at_high < 0.0):
            high, at_high, at_low = step, value, 0.5 * at_low if side > 0 else at_low
            side = 1
        else:
            low, at_low, at_high = step, value, 0.5 * at_high if side < 0 else at_high
            side = -1
    return step


def _signature(real, index):
    return types.void(
        real[::1], index[::1], index[::1], _vector, _places, _places, float64[:, ::1], boolean, _vector, _vector,
        _vector, _vector, _vector, float64,
    )  # fmt: skip


@compiled([_signature(real, index) for real in (float32, float64) for index in (int32, int64)])
def _ascend(data, indices, indptr, y, group, begin, S, plain, u, squares, a, bound, softness, sigma):
    """Make one pass of dual coordinate ascent, updating the dual variables and sums in place.

    `a` (n,) are the dual variables, u (p,) is S_k g, and squares (K,) are the ||z_k||^2.
    The rows are CSR matrices of the selected features, ordered by group.  The features of group k begin at begin[k],
    and its covariance is S[begin[k]:], or I if `plain`.
    """
    K = len(squares)
    e, v, c, norms, trial = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
    norms[:] = np.sqrt(squares)
    conjugate(norms, sigma, c)
    for i in range(len(y)):
        row, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        e[:] = 0.0
        v[:] = 0.0
        f, squared = 0.0, 0.0
        for s in range(len(row)):
            k = group[row[s]]
            e[k] += y[i] * x[s] * u[row[s]]
            if plain:
                v[k] += x[s] * float64(x[s])
            else:
                covariances, other = S[row[s]], s
                while other >= 0 and group[row[other]] == k:  # visit each pair of features once, with weight 2
                    weight = 1.0 if other == s else 2.0
                    v[k] += weight * x[s] * covariances[row[other] - begin[k]] * x[other]
                    other -= 1
        for k in range(K):
            f += c[k] * e[k]
            squared += v[k]
        # the step of algorithm 3, shortened if a_i would leave its bounds
        step = max(-a[i], min(bound[i] - a[i], (1.0 - f - softness[i] * a[i]) / (squared + softness[i])))
        if step == 0.0:
            continue
        step = line_search(step, 1.0 - softness[i] * a[i], softness[i], squares, e, v, sigma, norms, trial)
        a[i] += step
        for s in range(len(row)):
            weight = step * y[i] * x[s]
            if plain:
                u[row[s]] += weight
            else:
                k, covariances = group[row[s]], S[row[s]]
                part = u[begin[k] : begin[k + 1]]
                for j in range(len(part)):
                    part[j] += weight * covariances[j]
        for k in range(K):
            squares[k] = max(0.0, squares[k] + step * (2.0 * e[k] + step * v[k]))
            norms[k] = np.sqrt(squares[k])
        conjugate(norms, sigma, c)


class Subproblem:
    """Linear classification problem restricted to the groups of features selected so far.

    `features` and `weights` (p,) are ordered by group, `a` (n,) are the dual variables, and C is a scalar or an array
    with one value per row.  The covariances are S_k = (I + X_k' diag(precisions) X_k)^-1, or I if `precisions`, with
    one value per row, is None.
    """

    def __init__(self, X, y, C, q, sigma, precisions=None):
        self._X = sp.csr_matrix(X)
        C = per_row(C, len(y))
        self._y, self._C, self._q, self._sigma, self._precisions = y, C, q, sigma, precisions
        self._bound, self._softness = box(C, q)
        self.features, self.weights = np.empty(0, dtype=np.int64), np.empty(0)
        self.a = np.zeros(len(y))
        self._begin, self._S = np.zeros(1, dtype=np.int64), np.empty((0, 0))
        self._inverses, self._u0, self._g0 = [], np.empty(0), np.empty(0)

    def add(self, features, inverse=None, u=None):
        """Add a group of r features.

        For a group of the batch before, `inverse` (r, r) and u (r,) are those that `groups` returned.
        """
        p, r = len(self.features), len(features)
        self.features = np.append(self.features, features)
        self._rows = self._X[:, self.features]
        self._rows.sort_indices()
        self._begin = np.append(self._begin, p + r)
        self._group = np.repeat(np.arange(len(self._begin) - 1), np.diff(self._begin))
        if self._precisions is not None:
            added = self._rows[:, p:].astype(np.float64)
            weighted = added.multiply(self._precisions[:, None]).tocsr()
            inverse = (np.eye(r) if inverse is None else inverse) + (added.T @ weighted).toarray()
            if not np.isfinite(inverse).all():
                message = "X'X is not finite; scale X, for example to [0, 1]."
                raise LearningFailed(message)
            e, V = eigh(inverse)
            self._S = enlarged(self._S, (p + r, max(r, self._S.shape[1])))
            self._S[p:, :r] = (V / np.maximum(e, 1.0)) @ V.T  # in exact arithmetic, the eigenvalues e are at least 1
        self._inverses.append(inverse)
        u = np.zeros(r) if u is None else u
        self._u0 = np.append(self._u0, u)
        self._g0 = np.append(self._g0, u if inverse is None else inverse @ u)

    def groups(self):
        """Return the features, inverse covariance S_k^-1 and vector u_k of each group of features.

        S_k^-1 is None without covariances.
        """
        bounds = zip(self._begin[:-1], self._begin[1:], self._inverses, strict=True)
        return [(self.features[first:end], inverse, self._u[first:end]) for first, end, inverse in bounds]

    def size_mb(self, features=()):
        """Return the memory in MB that the problem would need with one more group of features."""
        selected, width = np.append(self.features, features).astype(np.int64), max(self._S.shape[1], len(features))
        mask = np.zeros(self._X.shape[1], dtype=bool)
        mask[selected] = True
        entries = np.count_nonzero(mask[self._X.indices])
        return (
            entries * (self._X.dtype.itemsize + 4) + (self._precisions is not None) * 8 * len(selected) * width
        ) / 1e6

    def solve(self, n_passes, gap_tol):
        """Maximize the dual objective over the dual variables, and return the value reached.

        It makes at most n_passes passes and stops early if the relative duality gap is at most gap_tol.
        """
        self.a = np.zeros(len(self._y))
        self._set_state()
        self._conjugate0 = self._conjugate
        for n_done in range(1, n_passes + 1):
            rows, plain = self._rows, self._precisions is None
            _ascend(
                rows.data, rows.indices, rows.indptr, self._y, self._group, self._begin, self._S, plain,
                self._u, self._squares, self.a, self._bound, self._softness, self._sigma,
            )  # fmt: skip
            self._set_state()
            dual = self.dual()
            if not -1e-9 * (self.a.sum() + self._conjugate0) <= dual < np.inf:  # the dual is >= 0 up to rounding errors
                message = f"Rounding errors made the dual objective invalid ({dual:g}); scale X, for example to [0, 1]."
                raise LearningFailed(message)
            if n_done == n_passes or self.primal() - dual <= gap_tol * abs(dual):
                break
        return dual

    def _set_state(self):
        g = self._rows.T @ (self.a * self._y)
        change = g.copy()
        if self._precisions is not None:
            for first, end in zip(self._begin[:-1], self._begin[1:], strict=True):
                change[first:end] = self._S[first:end, : end - first] @ g[first:end]
        self._u = self._u0 + change
        squares = self._g0 * self._u0 + g * (2.0 * self._u0 + change)  # the sum over group k is ||z_k||^2
        self._squares = np.maximum(np.add.reduceat(squares, self._begin[:-1]), 0.0)
        c = np.empty(len(self._squares))
        self._conjugate = conjugate(np.sqrt(self._squares), self._sigma, c)
        self.weights = c[self._group] * self._u

    def dual(self):
        """Return the dual objective at the current dual variables."""
        softened = np.sqrt(self._softness) * self.a  # a'a could overflow
        return float(self.a.sum() - 0.5 * (softened @ softened) - (self._conjugate - self._conjugate0))

    def primal(self):
        """Return the primal objective at the current weights."""
        loss = np.maximum(0.0, 1.0 - self._y * (self._rows @ self.weights))
        regularizer = self._conjugate - self._g0 @ self.weights + self._conjugate0
        return float(regularizer + self._C @ loss**self._q)

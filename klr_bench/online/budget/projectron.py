"""Projectron and Projectron++: a full budget is not exceeded, what comes then is projected onto it.

Orabona, Keshet, Caputo (JMLR 10, 2009).

Neither drops a support vector, so that their span only grows.  It has an orthonormal basis, the rows of a triangular
matrix E applied to the k(x_i, .), with E K E' = I and K the kernel matrix of the support vectors: f is a vector v of
coordinates, and P k(x, .) has the coordinates w = E k.  For a block of examples w is a matrix product; what happens
within the block happens to the matrix of the inner products of the w.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numba import boolean, float64, int64
from scipy.linalg import solve_triangular

from klr_bench.expansion import layout_of
from klr_bench.jit import compiled
from klr_bench.online.base import POSITIVE
from klr_bench.online.budget.base import BudgetKernelClassifier
from klr_bench.rows import growing_like, grown, in_layout

BLOCK = 128
PANEL = 128
"""Rows of E that are multiplied at once: what is 0 to the right of them is left out."""
_DEPENDENT = 1e-10
"""An example lies in the span of others if the square of its distance from it is this part of k(x, x) or less."""


@compiled(int64(float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], int64, boolean, float64,
                float64[::1], int64[::1], float64[:, ::1], int64[::1]))  # fmt: skip
def _block(y, gram, projected, f, room, margins, eta, c, inserted, new, counts):
    """Go through a block of b examples; return how many of them were inserted.

    gram, projected (b, b): inner products of the k(x_i, .), and of their projections, which change with each
    insertion; f (b,): values of the function when the block begins.  Written: c (b,), the steps along the
    projections; inserted (b,), who was; new (b, b), their coordinates along each new direction; counts: mistakes,
    and where f was not finite, or 0.
    """
    n = 0
    for i in range(len(y)):
        if not math.isfinite(f[i] + gram[i, i]):
            counts[1] = i + 1
            break
        z = y[i] * f[i]
        counts[0] += z <= 0.0
        away = max(gram[i, i] - projected[i, i], 0.0)
        if z <= 0.0:
            c[i] = y[i]
            if n < room and away > _DEPENDENT * gram[i, i]:
                for j in range(i, len(y)):
                    new[n, j] = (gram[i, j] - projected[i, j]) / math.sqrt(away)
                for k in range(i, len(y)):
                    for j in range(i, len(y)):
                        projected[k, j] += new[n, k] * new[n, j]
                inserted[n] = i
                n += 1
        elif margins and z < 1.0 and projected[i, i] > 0.0:
            gain = (1.0 - z) - math.sqrt(away) / eta
            if gain > 0.0:
                c[i] = y[i] * min((1.0 - z) / projected[i, i], 2.0 * gain / projected[i, i], 1.0)
        if c[i] != 0.0:
            for j in range(i + 1, len(y)):
                f[j] += c[i] * projected[i, j]
    return n


class ProjectionState:
    """What a Projectron knows between two blocks.

    Attributes: `support` and `left`, the support vectors and their operand in float64; `basis`, E; `v` and
    `v_sum`, the coordinates of f and the sum of those of the f_t so far.
    """

    def __init__(self, kernel, X, budget):
        """Start on rows like those of X, dense or CSR."""
        self.kernel, self.budget = kernel, budget
        self.sparse = sp.issparse(X)
        self.by_index, self.origin = layout_of(X)
        self.support = growing_like(X)
        self._left = growing_like(self._operand(X[:1]))
        self.basis, self.v, self.v_sum = np.zeros((0, 0)), np.zeros(0), np.zeros(0)
        self.t = self.n_mistakes = self.refused = 0
        self.last_value = 0.0

    def _operand(self, X):
        return self.kernel.left(in_layout(X, self.by_index).astype(np.float64), self.origin)

    def learn(self, X, y, *, margins, eta):
        """Learn from rows X (n, d) with labels y (n,), -1.0 or +1.0; `margins`: also where 0 < y f(x) < 1."""
        for start in range(0, len(y), BLOCK):
            if not self.refused:
                self._learn_block(X[start : start + BLOCK], y[start : start + BLOCK], margins, eta)

    def _learn_block(self, X, y, margins, eta):
        n, b = len(self.support), len(y)
        left = self._operand(X)
        right = self.kernel.right(in_layout(X, self.by_index).astype(np.float64), self.origin)
        w = self._coordinates(self.kernel.values(self._left.rows, right)) if n else np.zeros((0, b))
        gram, f = np.ascontiguousarray(self.kernel.values(left, right)), self.v[:n] @ w
        c, inserted, new, counts = (
            np.zeros(b),
            np.zeros(b, dtype=np.int64),
            np.zeros((b, b)),
            np.zeros(2, dtype=np.int64),
        )
        values = f.copy()
        k = _block(y, gram, w.T @ w, values, self.budget - n, margins, eta, c, inserted, new, counts)
        inserted, w = inserted[:k], np.vstack([w, new[:k]])
        self._grow(n + k)
        if k:  # k(x_i, .) = sum over the old directions and the new: the new ones are what is left, orthonormal
            old, triangle = w[:n, inserted], w[n:, inserted].T
            left_over = np.hstack([-old.T @ self.basis[:n, :n], np.eye(k)])
            self.basis[n : n + k, : n + k] = solve_triangular(triangle, left_over, lower=True, check_finite=False)
        self.v_sum[: n + k] += b * self.v[: n + k] + w @ (c * np.arange(b - 1, -1, -1))
        self.v[: n + k] += w @ c
        self.support.append(X[inserted])
        self._left.append(left[inserted])
        self.n_mistakes += int(counts[0])
        self.refused = self.t + int(counts[1]) if counts[1] else 0
        self.last_value = values[max(counts[1] - 1, 0)] if counts[1] else values[-1]
        self.t += b

    def _coordinates(self, k):
        """Return w = E k, (n, b), for kernel values k (n, b) with the support vectors."""
        w = np.empty_like(k)
        for start in range(0, len(k), PANEL):
            stop = min(start + PANEL, len(k))
            w[start:stop] = self.basis[start:stop, :stop] @ k[:stop]
        return w

    def _grow(self, n):
        if n > len(self.v):
            self.v, self.v_sum = grown(self.v, n), grown(self.v_sum, n)
            basis = np.zeros((len(self.v), len(self.v)))
            basis[: len(self.basis), : len(self.basis)] = self.basis
            self.basis = basis

    def coefficients(self, *, average):
        """Return the numbers of the examples in f and their coefficients, of the average of the f_t or of the last."""
        n = len(self.support)
        v = self.v_sum[:n] / max(self.t, 1) if average else self.v[:n]
        return np.arange(n), v @ self.basis[:n, :n]


class Projectron(BudgetKernelClassifier):
    """Adds y k(x, .) at each mistake while there is room; then its projection onto the support vectors.

    An example in the span of the support vectors takes no room.

    Parameters
    ----------
    budget : int >= 1, default=100
        Support vectors at most; takes 8 budget^2 bytes.
    average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs
        See `BudgetKernelClassifier`, also for the fitted attributes.  Training is in float64 whatever `dtype`.

    References
    ----------
    Orabona, Keshet, Caputo, JMLR 10, 2009, figure 2; with a budget in place of the threshold eta.
    """

    _margins = False

    def __init__(
        self,
        budget=100,
        *,
        average=False,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1.0,
        random_state=None,
        dtype=None,
        n_epochs=1,
    ):
        super().__init__(budget, average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs)

    def _new_state(self, X):
        return ProjectionState(self._kernel(), X, self.budget)

    def _learning(self):
        eta = getattr(self, "eta", 1.0)
        return lambda X, signs, draws: self._state.learn(X, signs, margins=self._margins, eta=eta)


class ProjectronPlusPlus(Projectron):
    """A `Projectron` that also learns where 0 < y f(x) < 1.

    With the loss l = 1 - y f(x), P the projection and delta = ||k - P k||, f gets y tau P k where l > delta / eta:

        tau = min(l / ||P k||^2, 2 (l - delta / eta) / ||P k||^2, 1)

    Parameters
    ----------
    budget : int >= 1, default=100
        Support vectors at most; takes 8 budget^2 bytes.
    eta : float > 0, default=0.1
        How far from the span, in units of the loss, an example may lie.
    average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs
        See `BudgetKernelClassifier`, also for the fitted attributes.  Training is in float64 whatever `dtype`.

    References
    ----------
    Orabona, Keshet, Caputo, JMLR 10, 2009, figure 3; with a budget in place of the threshold for mistakes.
    """

    _margins = True
    _parameter_constraints = Projectron._parameter_constraints | {"eta": [POSITIVE]}

    def __init__(
        self,
        budget=100,
        eta=0.1,
        *,
        average=False,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1.0,
        random_state=None,
        dtype=None,
        n_epochs=1,
    ):
        super().__init__(
            budget,
            average=average,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            random_state=random_state,
            dtype=dtype,
            n_epochs=n_epochs,
        )
        self.eta = eta

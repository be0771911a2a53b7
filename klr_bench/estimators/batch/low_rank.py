"""Kernel logistic regression on low-rank features, for a path of decreasing penalties.

The kernel matrix of n rows is approximated by L'L, where L (r, n) are the first rows of a Cholesky factor that takes
next the first row of data with nearly the largest remaining diagonal element.  For m problems with f = b L, b (m, r),
the objectives

    (lam/2) ||b||^2 + sum_i v_i log(1 + exp(-y_i f_i))

are minimized by Newton's method.  The steps are computed by conjugate gradients, preconditioned by c L V L' + lam I,
where c is nearly the mean curvature of the loss: few iterations are enough, and all problems and steps with nearly the
same c / lam share the factorization.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, types
from scipy.linalg import cho_factor, get_lapack_funcs, solve_triangular

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.kernel_values.row_blocks import loss_curvatures, loss_slopes

MAX_STEPS, MAX_CG, HALVINGS = 15, 30, 12
"""Largest numbers of Newton steps, of iterations of conjugate gradients in a step, and of halvings of a step."""
NEAR = 3.0
"""Factor by which the ratio of mean curvature and penalty may differ from that of the preconditioner."""
CG_TOL = 0.1
"""Largest relative residual at the end of conjugate gradients."""
EQUAL = 1 - 1e-4
"""Diagonal elements from this multiple of the largest one on count as equal, so that rounding does not choose."""
EARLY, TOO_NARROW = 4, 0.1
"""Factorization ends at a part 1/EARLY of the largest rank if this share of the diagonal is still left."""


def _signature(real):
    return types.Tuple((real[:, ::1], int64[::1], float64))(real[:, ::1], float64, int64)


@compiled(_signature, fastmath={"contract", "reassoc"})
def factor(K, tol, most):
    """Factorize a kernel matrix (n, n) until little of its diagonal is left.

    It ends at the share `tol` of the diagonal, or at rank `most`.  Return L (r, n) of K = L'L, the indices (r,) of the
    rows of data in their order, and the share that is left.
    """
    n, r = len(K), 0
    L, pivots, diagonal = np.empty((most, n), dtype=K.dtype), np.zeros(most, dtype=np.int64), np.diag(K).copy()
    total = left = float(diagonal.sum())
    while r < most and left > tol * total:
        if r == most // EARLY and left > TOO_NARROW * total and most < n:
            break
        pivot = np.argmax(diagonal >= EQUAL * diagonal.max())
        row = L[r]
        row[:] = K[pivot]
        for q in range(0, r - r % 4, 4):  # four rows at a time, so that `row` is read and written less often
            first, second, third, fourth = L[q], L[q + 1], L[q + 2], L[q + 3]
            a, b, c, d = first[pivot], second[pivot], third[pivot], fourth[pivot]
            for j in range(n):
                row[j] -= a * first[j] + b * second[j] + c * third[j] + d * fourth[j]
        for q in range(r - r % 4, r):
            a = L[q, pivot]
            for j in range(n):
                row[j] -= a * L[q, j]
        scale, left = 1.0 / math.sqrt(diagonal[pivot]), 0.0
        for j in range(n):
            row[j] *= scale
            diagonal[j] = max(diagonal[j] - row[j] * row[j], 0.0)
            left += diagonal[j]
        diagonal[pivot] = 0.0
        pivots[r] = pivot
        r += 1
    return L[:r].copy(), pivots[:r].copy(), left / total


def low_rank_path(L, pivots, signs, lams, shares, tol):
    """Yield the coefficients (m, r) of the kernel functions of the pivots for each penalty.

    L (r, n) and `pivots` (r,) are those of `factor`, `signs` (m, n) the labels, and `shares` (n,) those of the rows in
    the loss.  Each fit starts from the last solution, and ends when Newton's method predicts a decrease of the
    objective by less than the share `tol`.
    """
    triangle, newton = L[:, pivots], Newton(L, signs, shares)
    for lam in lams:
        newton.minimize(lam, tol)
        yield solve_triangular(triangle, newton.b.T, check_finite=False).T


class Newton:
    """State of Newton's method for m problems: b (m, r) and f = b L (m, n).

    The features L (r, n) are those of all problems.
    """

    def __init__(self, L, signs, shares):
        self.L, self.signs, self.shares = L, signs, shares
        self.gram = (L * shares.astype(L.dtype)) @ L.T
        self.b, self.f = np.zeros((len(signs), len(L))), np.zeros(signs.shape)
        self.ratio, self.cholesky = 0.0, self.gram
        (self.solve,) = get_lapack_funcs(("potrs",), (L,))  # cho_solve checks arguments in each call

    def minimize(self, lam, tol):
        """Move b and f to the minima for a penalty, up to the relative distance `tol`."""
        some = np.arange(len(self.b))
        objective = self._objective(some, self.b, self.f, lam)
        for _ in range(MAX_STEPS):
            direction, change, decrease = self._direction(some, objective, lam, tol)
            size = np.ones(len(some))
            for _ in range(HALVINGS):
                b, f = self.b[some] + size[:, None] * direction, self.f[some] + size[:, None] * change
                new = self._objective(some, b, f, lam)
                is_larger = new > objective - 1e-4 * size * decrease
                if not is_larger.any():
                    break
                size = np.where(is_larger, size / 2, size)
            self.b[some], self.f[some] = b, f
            unfinished = decrease > 2 * tol * new
            some, objective = some[unfinished], new[unfinished]
            if not len(some):
                return

    def _objective(self, some, b, f, lam):
        return np.logaddexp(0, -self.signs[some] * f) @ self.shares + lam / 2 * np.sum(b**2, axis=1)

    def _direction(self, some, objective, lam, tol):
        """Return the Newton step of some problems, its change of f, and the decrease along it."""
        L, real = self.L, self.L.dtype
        slopes = loss_slopes(self.f[some], self.signs[some], self.shares)
        curvatures = loss_curvatures(self.f[some], self.signs[some], self.shares)
        ratio, curvatures = curvatures.sum(axis=1).mean() / lam, curvatures.astype(real)
        if not self.ratio / NEAR < ratio < self.ratio * NEAR:
            H = self.gram * real.type(ratio)
            H[np.diag_indices(len(H))] += real.type(1)
            self.ratio, (self.cholesky, _) = ratio, cho_factor(H.T, overwrite_a=True, check_finite=False)

        def preconditioned(r):
            return self.solve(self.cholesky, r.T.astype(real), overwrite_b=True)[0].T.astype(np.float64) / lam

        gradient = (slopes.astype(real) @ L.T).astype(np.float64) + lam * self.b[some]
        x, change, r = np.zeros_like(gradient), np.zeros(slopes.shape), -gradient
        p = z = preconditioned(r)
        squares = first = np.sum(r * z, axis=1)
        enough = np.maximum(np.minimum(CG_TOL**2, first / objective) * first, tol / 10 * objective)
        for _ in range(MAX_CG):
            along = p.astype(real) @ L
            Hp = ((curvatures * along) @ L.T).astype(np.float64) + lam * p
            alpha = np.where(squares > 0, squares / np.maximum(np.sum(p * Hp, axis=1), 1e-300), 0.0)[:, None]
            x, change, r = x + alpha * p, change + alpha * along, r - alpha * Hp
            z = preconditioned(r)
            before, squares = squares, np.sum(r * z, axis=1)
            if np.all(squares <= enough):
                break
            p = z + (squares / np.maximum(before, 1e-300))[:, None] * p
        return x, change, -np.sum(gradient * x, axis=1)

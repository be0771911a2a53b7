"""Newton's method for kernel logistic regression on a few centers, in O(B^2) memory.

f = sum_j a_j k(z_j, .) with the centers z_1 ... z_B.  G (B, B) are the kernel values of the centers, K (n, B) those of
the rows with the centers, v_i the shares of the rows (1/n without weights), and T'T = G + jitter I.  In w = T a the
objective

    J(w) = (lam/2) ||w||^2 + sum_i v_i log(1 + exp(-y_i f_i)),    f = K a

is minimized by Newton's method.  Its steps are computed by conjugate gradients: a product of the Hessian and a vector
is a pass over the rows, in which kernel values are computed again.  The preconditioner is the Hessian of some of the
rows, whose minimum is the starting point (Marteau-Ferey, Bach, Rudi, 2019).  All classes are solved together, so that
each kernel value of a pass is used for all of them; their arrays have the shape (k, ...).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular
from scipy.special import expit

from klr_bench.estimators.core.rows import slices
from klr_bench.estimators.core.threads import parallel_map
from klr_bench.estimators.core.tiles import SIDE

VALUES = 2**19
"""Number of kernel values per block of rows; they take 2 MB in float32."""
ROWS_PER_CENTER, LEAST_ROWS, MOST_ROWS = 8, 2000, 16_000
"""Number of rows of the preconditioner, per center, and its limits."""
JITTER = {"float32": 1e-7, "float64": 1e-13}
"""Multiple of B times the mean diagonal of G that is added to its diagonal."""
PATH = 10.0
"""Factor between the values of lam for which the problem of the preconditioner's rows is solved in turn."""
FIRST_LAM = 1e-2
MAX_CG, CG_TOL = 50, 0.1
"""Limit of the iterations of conjugate gradients in a Newton step, and the largest relative residual at their end."""
BISECTIONS = 20


class CenterRows:
    """Kernel values of rows with centers, computed in each pass or stored if they fit.

    Passes over the blocks are parallel; sums are added in the order of the blocks, so that they do not depend on the
    number of threads.
    """

    def __init__(self, operands, X, centers, limit):
        self._operands, self._rows, centers = operands, operands.rows(X), operands.rows(centers)
        self._left, self._right = operands.left(centers), operands.right(centers)
        self.n, self.B, self.dtype = X.shape[0], centers.shape[0], X.dtype
        G = operands.values(self._left, self._right).astype(np.float64)
        self.G = (G + G.T) / 2
        self.blocks = slices(self.n, min(max(VALUES // self.B // SIDE, 1) * SIDE, 4096))
        self._stored = self._prepared = None
        fitting = limit * 1e6 / (self.n * self.dtype.itemsize)
        if fitting >= self.B:
            self._stored = parallel_map(self._values, self.blocks)
        elif isinstance(self._left, np.ndarray) and 2 * self._left.shape[1] <= fitting:
            self._prepared = parallel_map(self._operands_of, self.blocks)

    def _values(self, block):
        return self._operands.values(self._operands.left(self._rows[block]), self._right)

    def _operands_of(self, block):
        rows = self._rows[block]
        return self._operands.left(rows), np.ascontiguousarray(self._operands.right(rows))

    def some(self, places):
        """Return the kernel values (m, B) of the rows with the given sorted places."""
        return np.concatenate([self._values(places[part]) for part in slices(len(places), 4096)])

    def sums(self, a, weights_of):
        """Return f (k, n) of all rows, and the sums (k, B) of their kernel values with weights.

        `a` (k, B) are coefficients, f = K a, and weights_of(f, block) returns the weights (k, m) for the f (k, m) of a
        block of rows.
        """
        a = a.astype(self.dtype)
        f = np.empty((len(a), self.n))
        twice = len(a) == 1 and self._stored is None and self.dtype == np.float32  # faster than storing a tile

        def one(place):
            block = self.blocks[place]
            if twice:
                left, right = self._operands_of(block) if self._prepared is None else self._prepared[place]
                f[:, block] = self._operands.sums(self._left, a, right)
                weights = weights_of(f[:, block], block).astype(self.dtype)
                return self._operands.sums(left, weights, self._right).astype(np.float64)
            K = self._values(block) if self._stored is None else self._stored[place]
            f[:, block] = (K @ a.T).T
            return (K.T @ weights_of(f[:, block], block).T.astype(self.dtype)).T.astype(np.float64)

        total = np.zeros(a.shape)
        for part in slices(len(self.blocks), 64):  # 64 partial sums at a time are in memory
            for values in parallel_map(one, range(part.start, part.stop)):
                total += values
        return f, total


def newton_steps(operands, X, centers, signs, shares, lam, random, tol=1e-8, max_iter=30, cache_size=200):
    """Yield the solver at its starting point and after each Newton step.

    The steps end when all problems are finished, after `max_iter` steps, or if a step changes nothing.  `cache_size`
    are MB of kernel values.
    """
    solver = NewtonCG(CenterRows(operands, X, centers, cache_size), signs, shares, lam, random)
    while True:
        solver.evaluate()
        yield solver
        unfinished = solver.unfinished(tol)
        if not unfinished.any() or solver.n_iter == max_iter or not solver.step(unfinished):
            return


class NewtonCG:
    """State of Newton's method for k problems with the same rows and centers.

    `signs` (k, n) are the labels -1.0 and 1.0, and `shares` (n,) the shares of the rows in the loss.  `w` (k, B) are
    the current points; `objective` (k,), `gradient` (k, B) and `distance` (k,), the estimated distances of the
    objectives from their minima, belong to them after `evaluate`.
    """

    def __init__(self, rows, signs, shares, lam, random):
        self.rows, self.signs, self.shares, self.lam, self.n_passes = rows, signs, shares, lam, 0
        self.n_iter = 0
        self.T = _factor(rows.G, JITTER[rows.dtype.name])
        m = min(rows.n, min(max(ROWS_PER_CENTER * rows.B, LEAST_ROWS), MOST_ROWS))
        positive = np.flatnonzero(shares)
        some = np.sort(random.permutation(positive)[:m])
        self._Z = np.ascontiguousarray(solve_triangular(self.T, rows.some(some).T, trans=1, check_finite=False).T)
        self._Z = self._Z.astype(rows.dtype, copy=False)
        self._signs, self._shares = signs[:, some], shares[some] / shares[some].sum()
        self.w = np.zeros((len(signs), rows.B))
        self._solve_sample()

    def coef(self):
        """Return the coefficients (k, B) of the centers."""
        return self._coef(self.w)

    def _coef(self, w):
        """Return a = T^-1 w for each of the points w (k, B)."""
        return solve_triangular(self.T, w.T, check_finite=False).T

    def evaluate(self):
        """Compute the objectives, gradients and distances at w.

        The distance is g'P^-1 g / 2 with the gradient g and the preconditioner P; the exact Hessian in place of P would
        give the decrease predicted by Newton's method.
        """
        self._f, sums = self._pass(self.w, lambda f, block: _slopes(f, self.signs[:, block], self.shares[block]))
        losses = np.logaddexp(0, -self.signs * self._f) @ self.shares
        self.objective = losses + self.lam / 2 * np.sum(self.w**2, axis=1)
        self.gradient = sums + self.lam * self.w
        self._factors = [
            self._sample_factor(self._sample_values(w), signs, self.lam)
            for w, signs in zip(self.w, self._signs, strict=True)
        ]
        self.distance = np.sum(self.gradient * self._precondition(self.gradient), axis=1) / 2

    def unfinished(self, tol):
        """Return a mask (k,) of the problems with a distance of more than tol times the objective."""
        return self.distance > tol * self.objective

    def step(self, unfinished):
        """Make a Newton step for some problems, selected by a mask (k,); return False if nothing changes."""
        self.n_iter += 1
        curvature = _curvatures(self._f, self.signs, self.shares)
        right = np.where(unfinished[:, None], self.gradient, 0.0)
        direction, change = self._conjugate_gradients(right, lambda f, block: curvature[:, block] * f)
        sizes = self._line_search(direction, change)
        self.w = self.w - sizes[:, None] * direction
        return bool(np.any(sizes))

    def _pass(self, w, weights_of):
        self.n_passes += 1
        f, sums = self.rows.sums(self._coef(w), weights_of)
        return f, solve_triangular(self.T, sums.T, trans=1, check_finite=False).T

    def _conjugate_gradients(self, right, weights_of):
        """Return directions x (k, B) with H x = right up to a tolerance, and K T^-1 x (k, n)."""
        x, change, r = np.zeros_like(self.w), np.zeros_like(self._f), right
        p = z = self._precondition(r)
        squares = first = np.sum(r * z, axis=1)
        tol = np.minimum(CG_TOL, np.sqrt(first / np.maximum(self.objective, 1e-300)))
        for _ in range(MAX_CG):
            active = squares > tol**2 * first
            if not active.any():
                break
            f, sums = self._pass(p, weights_of)
            Hp = sums + self.lam * p
            curvatures = np.sum(p * Hp, axis=1)
            alpha = np.where(active & (curvatures > 0), squares / np.where(curvatures > 0, curvatures, 1), 0)[:, None]
            x, change, r = x + alpha * p, change + alpha * f, r - alpha * Hp
            z = self._precondition(r)
            before, squares = squares, np.where(active, np.sum(r * z, axis=1), 0.0)
            p = z + (squares / np.where(before > 0, before, 1))[:, None] * p
        return x, change

    def _line_search(self, direction, change):
        """Return the step sizes in [0, 2] that minimize the objectives, by bisection."""
        signs, shares = self.signs, self.shares
        along, squares = np.sum(self.w * direction, axis=1), np.sum(direction**2, axis=1)
        low, high = np.zeros(len(self.w)), np.full(len(self.w), 2.0)
        for _ in range(BISECTIONS):
            t = (low + high) / 2
            s = expit(-signs * (self._f - t[:, None] * change))
            slope = (signs * s * change) @ shares - self.lam * (along - t * squares)
            low, high = np.where(slope < 0, t, low), np.where(slope < 0, high, t)
        return np.where(squares > 0, (low + high) / 2, 0.0)

    def _solve_sample(self):
        """Minimize the objective over the rows of the preconditioner, for decreasing values of lam."""
        lams, lam = [], self.lam
        while lam < FIRST_LAM:
            lams.append(lam)
            lam *= PATH
        for k, signs in enumerate(self._signs):
            for lam in [*lams[::-1], self.lam]:
                f = self._sample_values(self.w[k])
                slopes = _slopes(f, signs, self._shares)
                g = (slopes.astype(self._Z.dtype) @ self._Z).astype(np.float64) + lam * self.w[k]
                self.w[k] -= cho_solve(self._sample_factor(f, signs, lam), g, check_finite=False)

    def _sample_values(self, w):
        """Return f of the rows of the preconditioner, for one point w (B,)."""
        return (self._Z @ w.astype(self._Z.dtype)).astype(np.float64)

    def _sample_factor(self, f, signs, lam):
        """Return the Cholesky factor of the Hessian of these rows."""
        scaled = self._Z * np.sqrt(_curvatures(f, signs, self._shares)).astype(self._Z.dtype)[:, None]
        H = (scaled.T @ scaled).astype(np.float64)
        H[np.diag_indices(len(H))] += lam
        return cho_factor(H, lower=False, overwrite_a=True, check_finite=False)

    def _precondition(self, r):
        return np.stack(
            [cho_solve(factor, one, check_finite=False) for factor, one in zip(self._factors, r, strict=True)]
        )


def _slopes(f, signs, shares):
    """Return the derivative of each row's loss with respect to f, times its share."""
    return -shares * signs * expit(-signs * f)


def _curvatures(f, signs, shares):
    """Return the second derivative of each row's loss with respect to f, times its share."""
    s = expit(signs * f)
    return shares * s * (1 - s)


def _factor(G, jitter):
    """Return a Cholesky factor of G plus a multiple of the identity.

    The multiple grows by factors of 10 until the sum is positive definite.
    """
    added = jitter * len(G) * max(float(np.mean(np.diag(G))), np.finfo(float).tiny)
    while True:
        try:
            return cholesky(G + added * np.eye(len(G)), lower=False, check_finite=False)
        except LinAlgError:
            added *= 10

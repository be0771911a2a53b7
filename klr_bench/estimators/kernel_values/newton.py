"""Newton's method for kernel logistic regression on a few centers, in O(B^2) memory.

f = sum_j a_j k(z_j, .) with the centers z_1 ... z_B.  G (B, B) are the kernel values of the centers, K (n, B) those of
the rows with the centers, v_i the shares of the rows (1/n without weights), and T'T = G + jitter I.  In w = T a the
objective

    J(w) = (lam/2) ||w||^2 + sum_i v_i log(1 + exp(-y_i f_i)),    f = K a

is minimized by Newton's method.  An intercept is one more coordinate of w, with the kernel value 1 and without a
penalty.  The steps are computed by conjugate gradients: a product of the Hessian and a vector is a pass over the rows,
in which kernel values are computed again.  The preconditioner is the Hessian of the objective of a sample of rows, and
the minimum of that objective is the starting point (Marteau-Ferey, Bach, Rudi, NeurIPS 2019).  All classes are solved
together, so that each kernel value of a pass is used for all of them; their arrays have the shape (k, ...).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, get_blas_funcs, solve_triangular

from klr_bench.estimators.core.rows import slices
from klr_bench.estimators.kernel_values.operands import refuse_indefinite
from klr_bench.estimators.kernel_values.row_blocks import (
    Centers,
    Rows,
    add_neighbors,
    in_this_process,
    loss_curvatures,
    loss_slopes,
)

ROWS_PER_CENTER, LEAST_ROWS, MANY_ROWS = 16, 2000, 16_000
"""Number of rows of the preconditioner, per center, and its limits; above MANY_ROWS half as many per center."""
LEAST_LAM = 1e-2
"""Least lam of a sample of few rows, times their number.  With less, its Hessian says little about that of all rows."""
PATH_ROWS = 4
"""Of more than LEAST_ROWS rows, every PATH_ROWS-th is used for the larger values of lam."""
JITTER = {"float32": 1e-7, "float64": 1e-13}
"""Multiple of B times the mean diagonal of G that is added to its diagonal."""
MOST_JITTER = 1e-3
"""Largest share of the trace of G that is added; with a positive semi-definite kernel less is enough."""
PATH = 10.0
"""Factor between the values of lam for which the problem of the preconditioner's rows is solved in turn."""
FIRST_LAM = 1e-2
MAX_CG, CG_TOL = 50, 0.2
"""Limit of the iterations of conjugate gradients in a Newton step, and the largest relative residual at their end."""
KEPT_FACTOR = 1e-2
"""The preconditioner is not computed again if the relative distance from the minimum was less before the last step."""
ROUNDS, PARTS = 2, 8
"""Number of rounds of the line search, and of the parts into which each divides an interval."""


def newton_steps(
    operands,
    X,
    centers,
    signs,
    shares,
    lam,
    random,
    tol=1e-8,
    max_iter=30,
    cache_size=200,
    map_rows=None,
    fit_intercept=False,
):
    """Yield the solver at its starting point and after each Newton step.

    `signs` (k, n) are the labels -1 and 1, and `shares` (n,) the shares of the rows in the loss.  The steps end when
    all problems are finished, after `max_iter` steps, or if a step changes nothing.  `cache_size` are MB of kernel
    values.  `map_rows` is `in_this_process` or has the same arguments.
    """
    signs, centers = signs.astype(np.int8), Centers(operands, centers, X.shape[0], cache_size)
    m = max(ROWS_PER_CENTER * centers.B, LEAST_ROWS)
    m = min(X.shape[0], m, max(m // 2, MANY_ROWS))
    some = np.sort(random.permutation(np.flatnonzero(shares))[:m])
    make = partial(Rows, centers)
    with (map_rows or in_this_process)(make, X, signs, shares, centers.block_rows) as call:
        solver = NewtonCG(centers, call, X[some], signs[:, some], shares[some], lam, tol, fit_intercept)
        while True:
            solver.evaluate()
            yield solver
            unfinished = solver.unfinished()
            if not unfinished.any() or solver.n_iter == max_iter or not solver.step(unfinished):
                return


class NewtonCG:
    """State of Newton's method for k problems with the same rows and centers.

    call(name, *arguments) computes sums over all rows, see `in_this_process`.  X, `signs` and `shares` are those of the
    preconditioner's rows.  `w` (k, B) are the current points, or (k, B + 1) with an intercept; `objective` (k,),
    `gradient` (k, B) and `distance` (k,), the estimated distances of the objectives from their minima, belong to them
    after `evaluate`.
    """

    def __init__(self, centers, call, X, signs, shares, lam, tol, fit_intercept):
        self._call, self.lam, self.n_passes, self.n_iter = call, lam, 0, 0
        self.tol = max(tol, np.finfo(centers.dtype).eps)  # smaller distances are rounding errors
        self.T = _factor(centers, JITTER[centers.dtype.name])
        X = centers.operands.rows(X)
        T = self.T.astype(centers.dtype)
        blocks = (centers.values(X[part]).T for part in slices(X.shape[0], 4096))
        self._Z = np.concatenate([solve_triangular(T, K, trans=1, check_finite=False).T for K in blocks])
        self._penalized = np.ones(centers.B + fit_intercept)
        self._penalized[centers.B :] = 0.0
        if fit_intercept:
            self._Z = np.column_stack([self._Z, np.ones(len(self._Z), dtype=centers.dtype)])
        self._signs, self._shares = signs, shares / shares.sum()
        self._sample_lam = max(lam, LEAST_LAM * (1 - shares.sum()) / len(shares))
        self.w, self.distance = np.zeros((len(signs), len(self._penalized))), np.full(len(signs), np.inf)
        self._solve_sample(max(lam / np.sqrt(shares.sum()), self._sample_lam))

    def coef(self):
        """Return the coefficients (k, B) of the centers; with intercepts, these are the last column."""
        return self._coef(self.w)

    def _coef(self, w):
        """Convert parameter vectors w to the coefficients T^-1 w of the centers; keep the intercept."""
        B = len(self.T)
        return np.hstack([solve_triangular(self.T, w[:, :B].T, check_finite=False).T, w[:, B:]])

    def evaluate(self):
        """Compute the objectives, their gradients and their estimated distances from the minimum.

        The distance is g'P^-1 g / 2 with the gradient g and the preconditioner P; the exact Hessian in place of P would
        give the decrease predicted by Newton's method.
        """
        sums = self._sum("gradient", self._coef(self.w))
        self.objective = sums[:, -1] + self.lam / 2 * np.sum(self._penalized * self.w**2, axis=1)
        self.gradient = self._back(sums[:, :-1]) + self.lam * self._penalized * self.w
        if not np.all(self.distance <= KEPT_FACTOR * self.objective):
            points = zip(self.w, self._signs, strict=True)
            self._factors = [self._sample_derivatives(w, signs, self._sample_lam)[1] for w, signs in points]
        self.distance = np.sum(self.gradient * self._precondition(self.gradient), axis=1) / 2

    def unfinished(self):
        """Return a mask (k,) of the problems whose objective is not yet minimized to within tol."""
        return self.distance > self.tol * self.objective

    def step(self, unfinished):
        """Take a Newton step for the problems selected by a mask (k,).

        Return False if nothing changes.
        """
        self.n_iter += 1
        direction, last = self._conjugate_gradients(np.where(unfinished[:, None], self.gradient, 0.0))
        sizes = self._line_search(direction, last)
        self.w = self.w - sizes[:, None] * direction
        return bool(np.any(sizes))

    def _sum(self, name, *arguments):
        """Call a method of each `Block` of rows; return the sum of the results."""
        sums = []
        for part in self._call(name, *arguments):
            add_neighbors(sums, *part)
        self.n_passes += name != "slopes"
        return sum(value for _, _, value in sums)

    def _back(self, sums):
        """Convert gradients with respect to a = T^-1 w to gradients with respect to w."""
        B = len(self.T)
        return np.hstack([solve_triangular(self.T, sums[:, :B].T, trans=1, check_finite=False).T, sums[:, B:]])

    def _conjugate_gradients(self, right):
        """Solve H x = right for the Hessian H up to a tolerance; return x and the last step sizes."""
        x, r, alpha = np.zeros_like(self.w), right, np.zeros(len(right))
        p = z = self._precondition(r)
        squares = first = np.sum(r * z, axis=1)
        enough = np.minimum(CG_TOL**2, first / np.maximum(self.objective, 1e-300)) * first
        enough = np.maximum(enough, self.tol * self.objective / 10)
        for _ in range(MAX_CG):
            active = squares > enough
            if not active.any():
                break
            Hp = self._back(self._sum("hessian", self._coef(p), alpha)) + self.lam * self._penalized * p
            curvatures = np.sum(p * Hp, axis=1)
            alpha = np.where(active & (curvatures > 0), squares / np.where(curvatures > 0, curvatures, 1), 0)
            x, r = x + alpha[:, None] * p, r - alpha[:, None] * Hp
            z = self._precondition(r)
            before, squares = squares, np.where(active, np.sum(r * z, axis=1), 0.0)
            p = z + (squares / np.where(before > 0, before, 1))[:, None] * p
        return x, alpha

    def _line_search(self, direction, step):
        """Return the step sizes in [0, 2] that minimize the objectives.

        Each round divides the interval in which the slope changes its sign into PARTS; the last one is interpolated.
        """
        penalized = self._penalized * direction
        along, squares = np.sum(self.w * penalized, axis=1), np.sum(direction * penalized, axis=1)
        problems, low, width = np.arange(len(self.w)), np.zeros(len(self.w)), 2.0
        for _ in range(ROUNDS):
            sizes = low + width * np.linspace(0, 1, PARTS + 1)[:, None]
            slopes = self._sum("slopes", sizes, step) - self.lam * (along - sizes * squares)
            step = np.zeros(len(self.w))
            part = np.clip(np.sum(slopes < 0, axis=0) - 1, 0, PARTS - 1)
            low, width = sizes[part, problems], width / PARTS
        before, after = slopes[part, problems], slopes[part + 1, problems]
        share = np.clip(before / np.where(before < after, before - after, -1.0), 0, 1)
        return np.where(direction.any(axis=1), low + width * share, 0.0)

    def _solve_sample(self, last):
        """Find a starting point: minimize the objective of a sample of rows for decreasing lam.

        `last` is its last value.  It is above lam if the sample has few of the rows, which it would otherwise overfit.
        """
        lams, few = [last] * 2, PATH_ROWS if len(self._Z) > LEAST_ROWS else 1
        while lams[-1] < FIRST_LAM:
            lams.append(lams[-1] * PATH)
        for k, signs in enumerate(self._signs):
            for place, lam in reversed([*enumerate(lams)]):
                gradient, factor = self._sample_derivatives(self.w[k], signs, lam, few if place > 1 else 1)
                self.w[k] -= cho_solve(factor, gradient, check_finite=False)

    def _sample_derivatives(self, w, signs, lam, every=1):
        """Return the gradient at w and a Cholesky factor of the Hessian, from a sample of rows."""
        Z, signs, shares = self._Z[::every], signs[::every], self._shares[::every]
        shares = shares / shares.sum()
        f = (Z @ w.astype(Z.dtype)).astype(np.float64)
        gradient = (loss_slopes(f, signs, shares).astype(Z.dtype) @ Z).astype(np.float64) + lam * self._penalized * w
        scaled = Z * np.sqrt(loss_curvatures(f, signs, shares)).astype(Z.dtype)[:, None]
        (syrk,) = get_blas_funcs(["syrk"], [scaled])
        H = syrk(1.0, scaled.T).astype(np.float64)  # sets only the upper triangle, which `cho_factor` reads
        H[np.diag_indices(len(H))] += lam * self._penalized
        try:
            return gradient, cho_factor(H, lower=False, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            message = "Rounding errors made the Hessian indefinite; increase lam, or choose weights of similar size."
            raise ValueError(message) from error

    def _precondition(self, r):
        return np.stack(
            [cho_solve(factor, residual, check_finite=False) for factor, residual in zip(self._factors, r, strict=True)]
        )


def _factor(centers, jitter):
    """Return a Cholesky factor of the kernel values of the centers plus a multiple of I.

    The multiple grows by factors of 10 until the sum is positive definite.
    """
    G = centers.gram()
    added = jitter * len(G) * max(float(np.mean(np.diag(G))), np.finfo(float).tiny)
    while True:
        try:
            return cholesky(G + added * np.eye(len(G)), lower=False, check_finite=False)
        except LinAlgError:
            added *= 10
        if added > MOST_JITTER * np.abs(np.diag(G)).sum():
            refuse_indefinite(centers.operands.kernel, f"it has an eigenvalue below {-added / 10:.1g}")

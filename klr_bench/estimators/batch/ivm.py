"""Import vector machine: kernel logistic regression on greedily selected training rows.

Let K (n, q) be the kernel values of all rows with the q import vectors, G (q, q) those among the import vectors,
f = K a, s_j = sigma(-y_j f(x_j)), v_j the share of row j in the loss, 1/n without weights, and
w_j = v_j s_j (1 - s_j).  A Newton step gives the solution of

    (K'WK + lam G) a = K'(W f + v y s).
"""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from klr_bench.estimators.batch.base import ExpansionClassifier, usual_lam
from klr_bench.estimators.core.checks import checked_fit, verbose_callback, warn
from klr_bench.estimators.core.multiclass import gather, in_common, one_vs_rest
from klr_bench.estimators.core.parameters import (
    CLASS_WEIGHT,
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    VERBOSE,
    estimator,
    parameter,
)
from klr_bench.estimators.core.rows import slices
from klr_bench.estimators.core.vectors import TIE
from klr_bench.estimators.kernel_values.operands import refuse_indefinite

CANDIDATES = 64
"""Number of candidates per tile; their kernel values and f are float64 arrays (n, CANDIDATES)."""
NEW = 1e-10
"""Minimum share of a candidate's curvature not explained by the import vectors; below it the system is singular."""
DRAWS = 10
"""Maximum number of times that candidates are drawn in a round."""
ROUNDS = 3
"""Number of rounds whose mean gain determines the end, because a single round may gain little if two import vectors are
needed.
"""


@estimator
class ImportVectorMachine(ExpansionClassifier):
    r"""Kernel logistic regression on a few greedily selected training rows, the import vectors.

    Use it for up to some 1,000 scaled rows, if the model should consist of a few training rows, which can be looked at.
    The q-th round takes time O(n q) for each candidate row.

    Parameters
    ----------
    lam : float or None, default=None
        Weight of the squared norm, > 0; None is 1 / (10 n_samples), with the sum of the weights in place of n_samples
        if rows have weights.  Try 1e-5, 1e-4, ..., 1.
    max_import_vectors : int, default=100
        Largest number of import vectors, >= 1, per class if there are more than two.  The q-th round takes time O(n q)
        for every candidate; where a warning says that the objective still falls, raise it.
    n_candidates : int or None, default=None
        Number of rows, drawn at random, that are tried in each round, >= 1; None is all rows, with time O(n^2 q) for a
        round.  With 59, as in the experiments, one is among the best 5 % of all rows with probability 0.95.  If none
        lowers the objective, others are drawn, at most nine times.
    tol : float, default=1e-3
        The fit ends when the last three rounds have lowered the objective by at most this share of it each, on average,
        or when the import vectors depend on each other up to rounding; tol >= 0.  1e-2 gives fewer import vectors.
    random_state : int, RandomState instance or None, default=None
        Seed of the candidates; of no effect with ``n_candidates=None``.
    dtype : {"float32", "float64"} or None, default=None
        Precision of ``support_vectors_``; None follows X: float32 stays, all else is float64.  The fit is in float64.

    Attributes
    ----------
    support_vectors_ : ndarray or CSR matrix of shape (n_support_, n_features)
        The import vectors in the order in which they were chosen; for more than two classes in the order of the rows.
    dual_coef_ : ndarray of shape (n_support_,), or (n_classes, n_support_) for more than two classes, float64
        Their coefficients.
    n_support_ : int
        Number of import vectors.
    n_iter_ : int, or ndarray of shape (n_classes,) for more than two classes
        Number of rounds.
    objective_ : float, or ndarray of shape (n_classes,) for more than two classes
        Objective after the last round.

    Notes
    -----
    f is a sum over a few rows S, the import vectors; each round adds the row that lowers the objective most, after one
    Newton step:

    .. math::

        & \min_{S, b} \; \frac{\lambda}{2} {\lVert f \rVert}^2 + \frac{1}{n} \sum_{i=1}^n \log(1 + e^{-y_i f(x_i)}) \\
        & f = \sum_{j \in S} b_j k(x_j, \cdot)

    lambda is the parameter ``lam``; with weights of rows, their shares stand for 1/n.  With more than two classes,
    ``estimators_`` has one machine per class (one-vs-rest).

    References
    ----------
    Zhu, Hastie, Journal of Computational and Graphical Statistics, 2005, section 3.

    Examples
    --------
    >>> from klr_bench import ImportVectorMachine
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = ImportVectorMachine(lam=1e-3, tol=1e-2, gamma=2.0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_ < len(X) / 10
    (True, True)
    """

    lam: float | None = parameter(POSITIVE, None, default=None)
    _: KW_ONLY
    max_import_vectors: int = parameter(COUNT, default=100)
    n_candidates: int | None = parameter(COUNT, None, default=None)
    tol: float = parameter(NOT_NEGATIVE, default=1e-3)
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)
    verbose: int | bool = parameter(*VERBOSE, default=False)

    @one_vs_rest
    @checked_fit
    def fit(self, X, y, sample_weight=None, callback=None):
        """Select import vectors from the rows of X and fit their coefficients; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, some above 0.
        callback : callable, default=None
            ``callback(estimator, t)`` is called after each round, t = rounds x n_samples; returning True ends the fit.

        Raises
        ------
        ValueError
            If parameters or data are refused, or kernel values are so large that an objective is not finite.
        """
        X, y, weights = self._begin(X, y, sample_weight)
        signs, n = self._signs(y), len(y)
        shares, total = self._shares(weights, n)
        candidates = np.flatnonzero(shares)
        rows = self._operands.rows(X.astype(np.float64))  # in float32, similar rows would appear linearly dependent
        lam = usual_lam(total) if self.lam is None else self.lam
        machine = _Machine(self._operands, rows, signs, shares, lam)
        self.n_iter_, callback, objectives = 0, verbose_callback(self, callback), [machine.objective]
        while self.n_iter_ < min(self.max_import_vectors, len(candidates)):
            others = np.setdiff1d(candidates, machine.chosen)
            for _ in range(DRAWS):  # candidates may all be copies of import vectors
                some = others
                if self.n_candidates is not None and self.n_candidates < len(others):
                    some = self._random.choice(others, self.n_candidates, replace=False)
                grew = machine.grow(some)
                if grew or len(some) == len(others):
                    break
                others = np.setdiff1d(others, some)
            objectives.append(machine.objective)
            self.n_iter_ += 1
            self.support_vectors_, self.dual_coef_ = X[machine.chosen], machine.coef
            self._numbers, self.n_support_ = np.array(machine.chosen), len(machine.chosen)
            self.objective_ = machine.objective
            if callback is not None and callback(self, self.n_iter_ * n):
                return self
            gains = -np.diff(objectives[-1 - ROUNDS :])
            if not grew or (len(gains) == ROUNDS and gains.mean() <= self.tol * machine.objective):
                return self
        if self.n_iter_ < len(candidates):
            limit = self.max_import_vectors
            message = f"ImportVectorMachine: the objective was still decreasing at max_import_vectors={limit}."
            warn(message, ConvergenceWarning)
        return self

    def _gather(self):
        self._operands = self.estimators_[0]._operands
        self.support_vectors_, self.dual_coef_ = in_common(self)
        self.n_support_ = self.support_vectors_.shape[0]
        gather(self, ("n_iter_", "objective_"))


class _Machine:
    """State of the greedy algorithm: the import vectors, their coefficients, and the objective."""

    def __init__(self, operands, rows, y, shares, lam):
        self.operands, self.rows, self.left = operands, rows, operands.left(rows)
        self.y, self.shares, self.lam = y, shares, lam
        self.chosen, self.coef = [], np.zeros(0)
        self.K, self.f = np.zeros((len(y), 0)), np.zeros(len(y))
        self.objective = np.log(2)

    def grow(self, candidates):
        """Add the candidate that lowers the objective most; return False if none lowers it."""
        y, K, lam = self.y, self.K, self.lam
        s = np.exp(-np.logaddexp(0, y * self.f))
        w = self.shares * s * (1 - s)
        target = w * self.f + self.shares * y * s
        system = K.T @ (w[:, None] * K) + lam * K[self.chosen]
        try:
            factor = cho_factor(system) if self.chosen else None
        except LinAlgError:
            return False

        def solve(right):
            return right[:0] if factor is None else cho_solve(factor, right)

        alone = solve(K.T @ target)

        def with_candidates(rows):
            """Evaluate the models that result from adding each of the given rows on its own.

            Return the objectives, the coefficients, the values of f and the kernel values, with one column for each
            row.

            The objective is inf for a row that depends linearly on the import vectors.
            """
            new = self.operands.values(self.left, self.operands.right(self.rows[rows]))
            diagonal = new[rows, np.arange(len(rows))]
            border = K.T @ (w[:, None] * new) + lam * K[rows].T
            curvature = np.einsum("ij,ij,i->j", new, new, w) + lam * diagonal
            if not np.isfinite(curvature).all():
                message = "ImportVectorMachine: kernel values are too large or not finite; scale X."
                raise ValueError(message)
            along = solve(border)
            left_over = curvature - np.sum(border * along, axis=0)
            independent = left_over > NEW * curvature
            coef = np.where(independent, new.T @ target - border.T @ alone, 0) / np.where(independent, left_over, 1)
            coefs = np.vstack([alone[:, None] - along * coef, coef])
            f = K @ coefs[:-1] + new * coef
            gram = K[self.chosen] @ coefs[:-1]
            norms = np.sum(coefs[:-1] * (gram + 2 * K[rows].T * coef), axis=0) + coef * coef * diagonal
            objectives = lam / 2 * norms + self.shares @ np.logaddexp(0, -y[:, None] * f)
            return np.where(independent, objectives, np.inf), coefs, f, new

        parts = slices(len(candidates), CANDIDATES)
        objectives = np.concatenate([with_candidates(candidates[part])[0] for part in parts])
        best = np.argmax(objectives <= objectives.min() * (1 + TIE))
        if not objectives[best] < self.objective:
            return False
        objective, coefs, f, column = with_candidates(candidates[best : best + 1])
        if objective[0] < 0:
            refuse_indefinite(self.operands.kernel, f"the objective is {objective[0]:g}")
        self.objective, self.coef, self.f = float(objective[0]), coefs[:, 0], f[:, 0]
        self.chosen.append(int(candidates[best]))
        self.K = np.column_stack([K, column])
        return True

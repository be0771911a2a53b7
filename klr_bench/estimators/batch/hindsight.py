"""The function that online learners are compared with: a best one in hindsight, as a row of an experiment."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.batch.base import ExpansionClassifier
from klr_bench.estimators.batch.dual import DualCDKLR
from klr_bench.estimators.core.binary import BinaryKernelClassifier
from klr_bench.estimators.core.classifier import checked_fit
from klr_bench.estimators.core.parameters import AT_LEAST_ONE, COUNT, NOT_NEGATIVE, NUMBER, POSITIVE
from klr_bench.estimators.online.bounds import AUXILIARY, auxiliary_values
from klr_bench.estimators.online.engine import BLOCK

PRECISION = 0.01
"""Of log(lam), where lam is sought for a function on the ball's surface."""


class BestInHindsight(ExpansionClassifier):
    """The f of `klr_bench.estimators.online.bounds`: found on all rows, then evaluated along them, in their order.

    f minimises (lam/2) ||f||^2 + (1/n) sum_i log(1 + exp(-y_i f(x_i))), by `DualCDKLR`.  If it lies outside of the ball
    ||f|| <= R of the learners that it is compared with, lam is raised until it lies on its surface: f is then the best
    function in the ball.  With lam = 1 / (eta n) it is the f for which the bound of gradient descent with step eta,
    sum_i l(y_i f(x_i)) + ||f||^2 / (2 eta) + eta n / 2, is smallest.

    A callback is called after the solution, along the rows as an online learner calls it, so that the loss of f on the
    first t rows is known where that of the learner is.  Of two classes only.

    Parameters
    ----------
    R : float, default=1e3
        Radius > 0 of the ball.
    lam : float or None, default=None
        Weight of the squared norm, > 0; None is 1 / (R sqrt(n)), which belongs to eta = R / sqrt(n).
    h : {"log_gamma", "log_one_plus_gamma", "hard_cutoff"}, default="log_gamma"
        The auxiliary function of `AuxiliaryKLR` whose sum `cumulative_h_` is.
    aux_gamma, aux_delta : float, default=1.1 and 1.0
        Its parameters.
    tol : float, default=1e-4
        See `BatchKLR`; the norm needs a smaller gap than the loss.
    max_iter, kernel, gamma, degree, coef0, random_state, dtype
        See `BatchKLR`.

    Attributes
    ----------
    norm_ : float
        ||f||, at most R.
    lam_ : float
        The weight of the squared norm that f belongs to.
    cumulative_loss_, cumulative_h_ : float
        sum_i log(1 + exp(-z_i)) and sum_i h(z_i), z_i = y_i f(x_i), over all rows, or those so far in a callback.
    classes_, support_vectors_, dual_coef_, n_support_, n_iter_, objective_, n_features_in_
        See `BatchKLR`.
    """

    _parameter_constraints = BinaryKernelClassifier._parameter_constraints | {
        "R": [POSITIVE],
        "lam": [POSITIVE, None],
        "h": [StrOptions(set(AUXILIARY))],
        "aux_gamma": [AT_LEAST_ONE],
        "aux_delta": [NUMBER],
        "tol": [NOT_NEGATIVE],
        "max_iter": [COUNT],
    }

    def __init__(
        self,
        R=1e3,
        lam=None,
        *,
        h="log_gamma",
        aux_gamma=1.1,
        aux_delta=1.0,
        tol=1e-4,
        max_iter=1000,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1.0,
        random_state=None,
        dtype=None,
    ):
        self.R = R
        self.lam = lam
        self.h = h
        self.aux_gamma = aux_gamma
        self.aux_delta = aux_delta
        self.tol = tol
        self.max_iter = max_iter
        super().__init__(kernel, gamma, degree, coef0, random_state, dtype)

    @checked_fit
    def fit(self, X, y, callback=None):
        """Find f on the rows of X (n, d), and go along them with the callback.

        `callback(estimator, t)` is called after each block of rows, with the sums over the first t rows; where it
        returns True the sums end there.
        """
        X, y = self._begin(X, y)
        if len(self.classes_) > 2:
            message = f"BestInHindsight: expected two classes, got {len(self.classes_)}: the bounds are for two."
            raise ValueError(message)
        solver, f = self._in_ball(X, y)
        self.support_vectors_, self.n_support_ = solver.support_vectors_, solver.n_support_
        self.dual_coef_, self.n_iter_, self.objective_ = solver.dual_coef_, solver.n_iter_, solver.objective_
        self.lam_, self.norm_ = solver.lam, _norm(solver, f)
        if self.norm_ > self.R:  # by a part of PRECISION
            self.dual_coef_, f = self.R / self.norm_ * self.dual_coef_, self.R / self.norm_ * f
            self.norm_ = float(self.R)
        z = self._signs(y) * f
        losses = np.cumsum(np.logaddexp(0, -z))
        values = np.cumsum(auxiliary_values(z, self.h, self.aux_gamma, self.aux_delta))
        for t in [*range(BLOCK, len(z), BLOCK), len(z)]:
            self.cumulative_loss_, self.cumulative_h_ = float(losses[t - 1]), float(values[t - 1])
            if callback is not None and callback(self, t):
                break
        return self

    def progress(self):
        """Return what a checkpoint keeps: the sums so far, and the norm and the support vectors of f."""
        return {**super().progress(), **self._compared()}

    def summary(self):
        """Return what the fit has led to: as the other batch solvers, and norm and sums."""
        return {**super().summary(), **self._compared()}

    def _compared(self):
        sums = {"cumulative_loss": self.cumulative_loss_, "cumulative_h": self.cumulative_h_}
        return {"norm": self.norm_, **sums}

    def _in_ball(self, X, y):
        """Return the solver with the smallest lam, from the given one on, whose f lies in the ball, and f (n,)."""
        shared = ("tol", "max_iter", "kernel", "gamma", "degree", "coef0", "dtype")
        lam = 1 / (self.R * math.sqrt(len(y))) if self.lam is None else self.lam
        solver = DualCDKLR(
            lam, warm_start=True, random_state=self._random, **{name: getattr(self, name) for name in shared}
        )

        def excess(place):
            """Return log(||f|| / R) of the solution for lam = exp(place), and leave the solver there."""
            f = solver.set_params(lam=math.exp(place)).fit(X, y).decision_function(X)
            return math.log(max(_norm(solver, f), 1e-300) / self.R)

        if excess(math.log(lam)) > 0:
            largest = 2 * math.log(2) / self.R**2  # (lam/2) ||f||^2 is at most the objective log(2) of f = 0
            excess(brentq(excess, math.log(lam), math.log(largest), xtol=PRECISION))
        return solver, solver.decision_function(X)


def _norm(solver, f):
    return math.sqrt(max(float(solver.dual_coef_ @ f), 0.0))

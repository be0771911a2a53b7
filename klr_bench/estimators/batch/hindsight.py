"""The best fixed classifier in hindsight, as a reference for online learners."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY

import numpy as np
from scipy.optimize import brentq
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.batch.base import ExpansionClassifier
from klr_bench.estimators.batch.dual import DualCDKLR
from klr_bench.estimators.core.checks import checked_fit
from klr_bench.estimators.core.parameters import (
    AT_LEAST_ONE,
    COUNT,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    estimator,
    parameter,
)
from klr_bench.estimators.online.bounds import AUXILIARY, auxiliary_values
from klr_bench.estimators.online.engine import BLOCK


@estimator
class BestInHindsight(ExpansionClassifier):
    """The best fixed classifier in hindsight, as a reference for online learners.

    It is fitted to all rows. Its losses are then added up for the bounds in `klr_bench.estimators.online.bounds`.

    f is the solution of `DualCDKLR`.  If it lies outside of the ball ||f|| <= R of the online learners, lam is raised
    until it is the best function in the ball, on its surface.  With lam = 1 / (eta n) the bound of gradient descent
    with step eta, sum_i l(y_i f(x_i)) + ||f||^2 / (2 eta) + eta n / 2, is smallest.  For two classes only.

    Parameters
    ----------
    R : float, default=1e3
        Radius > 0 of the ball.
    lam : float or None, default=None
        Weight of the squared norm, > 0; None is 1 / (R sqrt(n)), which belongs to eta = R / sqrt(n).
    h : {"log_gamma", "log_one_plus_gamma", "hard_cutoff"}, default="log_gamma"
        The auxiliary function of `AuxiliaryKLR` whose sum is `cumulative_h_`.
    aux_gamma : float, default=1.1
        gamma >= 1 of the first two h.
    aux_delta : float, default=1.0
        delta of h="hard_cutoff", any number.
    tol : float, default=1e-4
        Largest relative duality gap, >= 0, of the solution; the norm needs a smaller gap than the loss.
    max_iter : int, default=1000
        Largest number of epochs, >= 1, of each fit of `DualCDKLR`.

    Attributes
    ----------
    norm_, lam_ : float
        ||f||, at most R, and the weight of the squared norm that f belongs to.
    cumulative_loss_, cumulative_h_ : float
        sum_i log(1 + exp(-z_i)) and sum_i h(z_i), z_i = y_i f(x_i), over all rows, or those so far in a callback.
    support_vectors_ : ndarray or CSR matrix of shape (n_samples, n_features)
        All training rows, in the precision of the kernel values.
    dual_coef_ : ndarray of shape (n_samples,), float64
        b of f = sum_i b_i k(x_i, .).
    n_support_, n_iter_ : int
        Number of training rows, and of the epochs of the last fit of `DualCDKLR`.
    objective_ : float
        Primal objective of the last fit of `DualCDKLR`.
    """

    R: float = parameter(POSITIVE, default=1e3)
    lam: float | None = parameter(POSITIVE, None, default=None)
    _: KW_ONLY
    h: str = parameter(StrOptions(set(AUXILIARY)), default="log_gamma")
    aux_gamma: float = parameter(AT_LEAST_ONE, default=1.1)
    aux_delta: float = parameter(NUMBER, default=1.0)
    tol: float = parameter(NOT_NEGATIVE, default=1e-4)
    max_iter: int = parameter(COUNT, default=1000)

    @checked_fit
    def fit(self, X, y, callback=None):
        """Fit f to all rows of X, then add up its losses row by row; return self.

        `callback(estimator, t)` is called after each block of rows, as by an online learner; returning True ends the
        sums at row t.
        """
        _, y, _ = self._begin(X, y)
        if len(self.classes_) > 2:
            message = f"BestInHindsight: expected two classes, got {len(self.classes_)}."
            raise ValueError(message)
        solver, f = self._in_ball(X, y)
        for name in ("support_vectors_", "n_support_", "dual_coef_", "n_iter_", "objective_"):
            setattr(self, name, getattr(solver, name))
        self.lam_, self.norm_ = solver.lam, _norm(solver, f)
        if self.norm_ > self.R:  # by the precision of lam
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def progress(self):
        """Return the cumulative losses, the norm of f and its number of support vectors."""
        sums = {"cumulative_loss": self.cumulative_loss_, "cumulative_h": self.cumulative_h_}
        return {**super().progress(), "norm": self.norm_, **sums}

    def summary(self):
        """Return the metrics of `progress`, the number of iterations and the objective."""
        return super().summary() | self.progress()

    def _in_ball(self, X, y):
        """Find the smallest lam whose solution f has a norm of at most R; return the solver and f."""
        shared = ("tol", "max_iter", "kernel", "gamma", "degree", "coef0", "dtype")
        lam = 1 / (self.R * math.sqrt(len(y))) if self.lam is None else self.lam
        parameters = {name: getattr(self, name) for name in shared}
        solver = DualCDKLR(lam, warm_start=True, random_state=self._random, **parameters)

        def excess(log_lam):
            """Fit the solver with lam = exp(log_lam), and return log(||f|| / R)."""
            f = solver.set_params(lam=math.exp(log_lam)).fit(X, y).decision_function(X)
            return math.log(max(_norm(solver, f), 1e-300) / self.R)

        if excess(math.log(lam)) > 0:
            largest = 2 * math.log(2) / self.R**2  # (lam/2) ||f||^2 is at most log(2), the objective at f = 0
            excess(brentq(excess, math.log(lam), math.log(largest), xtol=0.01))
        return solver, solver.decision_function(X)


def _norm(solver, f):
    return math.sqrt(max(float(solver.dual_coef_ @ f), 0.0))

"""Base class of `L1KLR`, which implements all but its constructor and `fit`."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import islice

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import checked_decision, distinct_labels, verbose_callback, warn
from klr_bench.estimators.core.kernel_classifier import KernelClassifier
from klr_bench.estimators.core.kernels import kernel_of
from klr_bench.estimators.core.multiclass import fitted_learners, gather, reporting, spread
from klr_bench.estimators.core.rows import occurring
from klr_bench.estimators.kernel_values.features import FourierFeatures, KernelFeatures, LinearFeatures
from klr_bench.estimators.kernel_values.operands import DENSE_AT_MOST
from klr_bench.estimators.l1.cgd import cgd
from klr_bench.estimators.l1.fista import fista
from klr_bench.estimators.l1.matrix import FeatureMatrix, rows_of_a_block
from klr_bench.estimators.l1.problem import Iterate, Problem
from klr_bench.estimators.l1.prox_newton import prox_newton
from klr_bench.estimators.l1.sgd_c import CHUNK, sgd_c

SOLVERS = ("fista", "multiscale_fista", "cgd", "sgd_c", "prox_newton")
REFERENCES = ("prox_newton", "cgd", "multiscale_fista", "fista")
"""Solvers that can compute the reference objective, because they measure the duality gap."""
CHECKS, WITHIN = 20, 0.01
"""SGD-C stops if the mean of its last CHECKS objectives differs from the reference by at most WITHIN, as a share."""
CHECKS_IN_A_PASS = 100
"""Number of evaluations of the objective per pass; the paper has one per example, and each takes a whole pass."""


class L1Classifier(KernelClassifier):
    """Base class of `L1KLR`, a sparse linear classifier on features computed from the rows of X.

    A subclass defines the parameters and `fit`; the features are computed by `_map`.
    """

    _drawn_for = None
    """(n_features, n_components, gamma) for which Fourier features were drawn; None for other features."""

    def _fit_classes(self, X, ys, weights, callback):
        starts = [learner._last_solution() for learner in self.estimators_]
        for learner in self.estimators_:
            learner._clear()
        first = self.estimators_[0]
        problem, _ = first.prepare(X, ys[0], weights)
        for k, (learner, y, last) in enumerate(zip(self.estimators_, ys, starts, strict=True)):
            learner.adopt(first)
            class_problem = replace(problem, y=np.where(y, 1.0, -1.0))
            random = check_random_state(learner.random_state)
            report = reporting(self, k, self.steps(len(y))[0], callback)
            learner.solve(class_problem, random, learner._initial_point(last), **report)
            if self._ended:
                return

    def prepare(self, X, y, sample_weight=None):
        """Validate the data and compute the features; return the `Problem` and a RandomState."""
        X, y, weights = self._first_rows(X, y, sample_weight)
        if self._has_many():
            message = f"expected two classes, got {len(self.classes_)}; use L1KLR().fit for one-vs-rest."
            raise ValueError(message)
        random = check_random_state(self.random_state)
        self._map, self._columns = self._feature_map(X, weights, random), slice(None)
        features, rows = self._map, X
        if self.features == "linear" and sp.issparse(X) and X.shape[1] > DENSE_AT_MOST:
            self._columns, rows = occurring(X)  # columns that are always 0 get the coefficient 0
            features = LinearFeatures.of(rows)
        by_rows = self.solver == "sgd_c" and self.reference is None
        matrix = FeatureMatrix(features, rows, by_rows=by_rows, memory_limit=self.memory_limit)
        matrix.warn_if_large()
        return Problem(matrix, self._signs(y), 0.0, self.fit_intercept, weights), random

    def adopt(self, other):
        """Copy the classes and the feature map of another estimator prepared on the same rows."""
        self.classes_, self.n_features_in_ = other.classes_, other.n_features_in_
        self._map, self._columns, self._drawn_for = other._map, other._columns, other._drawn_for
        if "feature_names_in_" in vars(other):
            self.feature_names_in_ = other.feature_names_in_

    def _feature_map(self, X, weights, random):
        last, self._drawn_for = self._drawn_for, None
        if self.features == "linear":
            return LinearFeatures.of(X)
        if self.features == "kernel":
            return KernelFeatures.of(X, kernel_of(self, X, weights))
        gamma = float(kernel_of(self, X, weights).gamma)
        drawn_for = (X.shape[1], self.n_components, gamma)
        is_kept = self.warm_start and drawn_for == last
        features = self._map if is_kept else FourierFeatures.of(X, self.n_components, gamma, random)
        self._drawn_for = drawn_for
        return features

    def _last_solution(self):
        return (self.coef_, self.intercept_) if self.warm_start and "coef_" in vars(self) else None

    def _initial_point(self, last):
        """Return the parameter vector for a warm start, or None if a warm start is not possible."""
        if last is None or last[0].shape != (self._map.n_features,):
            return None
        coef, intercept = last
        return np.append(coef[self._columns], intercept) if self.fit_intercept else coef[self._columns]

    def solve(self, problem, random, start=None, callback=None):
        """Solve a prepared problem and set the fitted attributes; return the parameter vector.

        The vector (P,) is the solution of the first stage.  `start` (P,) is the initial vector; by default w = 0.
        """
        problem, callback = self._with_lam(problem), verbose_callback(self, callback)
        self._places, self.n_iter_, self._stage, self._reached = self._columns, 0, 1, False
        if self.lam_ >= self.lambda_max_:
            message = f"lam={self.lam_:g} is at least lambda_max={self.lambda_max_:g}, so all coefficients are 0."
            warn(message)
            self._finish(Iterate(problem, problem.null_point()))
            return problem.null_point()
        x = problem.null_point() if start is None else np.array(start, dtype=np.float64)
        reference = self._reference_objective(problem)
        iterate, stopped = self._run(problem, x, random, callback, reference)
        x, D = iterate.x, problem.matrix.shape[1]
        if self.two_stage and not stopped and np.any(x[:D]):
            J = np.flatnonzero(x[:D])
            self._places = np.arange(self._map.n_features)[self._columns][J]
            self.lam_, self._stage = 0.1 * self.lam_, 2  # line 296
            part = replace(problem, matrix=problem.matrix.take(J), lam=self.lam_)
            iterate, stopped = self._run(part, np.append(x[J], x[D:]), random, callback)
        self._finish(iterate)
        self.converged_ = self.converged_ or (reference is not None and self._reached)
        if not self.converged_ and not stopped and self.solver != "sgd_c":
            message = (
                f"L1KLR did not converge in {self.n_iter_} iterations: relative duality gap {self.duality_gap_:.3g}."
            )
            warn(message, ConvergenceWarning)
        return x

    def _with_lam(self, problem):
        self.lambda_max_ = problem.lambda_max()
        self.lam_ = self.lam * self.lambda_max_ if self.lam_relative else float(self.lam)
        return replace(problem, lam=self.lam_)

    def _run(self, problem, x, random, callback, reference=None):
        """Run the solver; return its last iterate and whether the callback ended the fit."""
        before, limit = self.n_iter_, self._length(len(problem.y))[0]
        ends = self._stopping_rule(reference)
        every = CHUNK if reference is None else max(len(problem.y) // CHECKS_IN_A_PASS, 1)
        for t, iterate in enumerate(self._iterates(problem, x, random, every), 1):
            steps = t if iterate.step is None else iterate.step
            self.n_iter_ = before + steps
            if callback is not None:
                self._publish(iterate)
                if callback(self, self.n_iter_):
                    return iterate, True
            self._reached = ends(iterate)
            if self._reached or iterate.stuck or steps >= limit:
                return iterate, False
        raise AssertionError

    def _iterates(self, problem, x, random, every=CHUNK):
        if self.solver == "prox_newton":
            return prox_newton(problem, x)
        if self.solver == "cgd":
            return cgd(problem, x, threshold=self.threshold)
        if self.solver == "sgd_c":
            last = self._length(len(problem.y))[0]
            return sgd_c(problem, x, random=random, eta0=self.eta0, last=last, every=every)
        scale = "identity" if self.solver == "fista" else self.hessian
        return fista(problem, x, scale=scale, growth=self.growth)

    def _length(self, n_samples):
        """Return the maximum number of steps per stage, and the step number of the first checkpoint."""
        if self.solver == "sgd_c":
            return max(round(self.n_epochs * n_samples), 1), CHUNK
        return self.max_iter, 1

    def _stopping_rule(self, reference):
        if reference is None:
            return lambda iterate: iterate.reaches(self.tol)
        if self.solver != "sgd_c":
            return lambda iterate: iterate.objective <= reference
        last = deque(maxlen=CHECKS)

        def mean_is_near(iterate):
            last.append(iterate.objective)
            return len(last) == CHECKS and abs(sum(last) / CHECKS / reference - 1) <= WITHIN

        return mean_is_near

    def _reference_objective(self, problem):
        """Return the objective value at which the solver stops, or None to use the duality gap."""
        if not isinstance(self.reference, str):
            return self.reference
        other = clone(self).set_params(solver=self.reference)
        for iterate in islice(other._iterates(problem, problem.null_point(), None), self.max_iter):
            if iterate.reaches(self.tol) or iterate.stuck:
                return iterate.objective
        message = f"{self.reference} did not reach the reference objective in {self.max_iter} iterations."
        warn(message, ConvergenceWarning)
        return None

    def _publish(self, iterate):
        D = iterate.problem.matrix.shape[1]
        self._iterate = iterate
        self.coef_ = np.zeros(self._map.n_features)
        self.coef_[self._places] = iterate.x[:D]
        self.intercept_ = float(iterate.x[D]) if iterate.problem.intercept else 0.0
        self._set_support()

    def _finish(self, iterate):
        self._publish(iterate)
        self._iterate, self._final = None, (iterate.objective, iterate.relative_gap)
        self.converged_ = iterate.relative_gap <= self.tol

    def _gather(self):
        learners = fitted_learners(self)
        gather(self, ("coef_", "intercept_", "n_iter_", "lam_", "lambda_max_"))
        self.converged_ = np.array([getattr(learner, "converged_", False) for learner in learners])
        self._map, self._drawn_for = learners[0]._map, learners[0]._drawn_for
        self._stage, self._iterate = learners[-1]._stage, None
        self._final = tuple(np.array([(learner.objective_, learner.duality_gap_) for learner in learners]).T)
        self._set_support()

    def _set_support(self):
        if self.features == "kernel":
            self.support_vectors_ = self._map.centers[self._used()]
            self.n_support_ = self.support_vectors_.shape[0]

    def _used(self):
        return np.flatnonzero(np.atleast_2d(self.coef_).any(axis=0))

    @property
    def objective_(self):
        """Value of the objective; an array with one value per class for more than two classes."""
        return self._iterate.objective if self._iterate is not None else self._final[0]

    @property
    def duality_gap_(self):
        """Duality gap divided by the objective; an array if there are more than two classes."""
        return self._iterate.relative_gap if self._iterate is not None else self._final[1]

    def ended_at(self):
        """Return the number of solver steps after which the fit ended."""
        return int(np.max(self.n_iter_))

    def progress(self):
        """Return the values stored at a checkpoint, as a dict from names to numbers.

        The names are "n_support" for kernel features, "nonzero_fraction", "objective", "duality_gap", and "stage" if
        the fit has two.

        The objective and the gap are missing in the second stage.
        """
        values = {"n_support": self.n_support_} if self.features == "kernel" else {}
        values["nonzero_fraction"] = float(np.mean(self.coef_ != 0))
        if self._stage == 1:
            values |= self._objectives()
        return values | ({"stage": self._stage} if self.two_stage else {})

    def _objectives(self):
        return {"objective": float(np.sum(self.objective_)), "duality_gap": float(np.max(self.duality_gap_))}

    def summary(self):
        """Return the size, objective, duality gap and number of iterations of the fit as a dict."""
        values = self.progress() | self._objectives() | {"n_iter": int(np.max(self.n_iter_))}
        return {name: value for name, value in values.items() if name != "stage"}

    def selected_features(self):
        """Return the columns of X with nonzero coefficients, or None if features is not "linear"."""
        return self._used() if self.features == "linear" else None

    @checked_decision
    def decision_function(self, X):
        """Return the decision values of the rows of X.

        For a row x with the features z(x) the value is w'z(x) + b.  The shape is (n_samples,), or (n_samples,
        n_classes) for more than two classes, in float64.
        """
        check_is_fitted(self, "coef_")
        X = self._validate(X, dtype=self._dtypes())
        J = self._used()
        part, w = self._map.take(J), self.coef_[..., J].T
        values = np.tile(self.intercept_, (X.shape[0], *[1] * (w.ndim - 1)))
        stays_sparse = sp.issparse(X) and X.shape[1] > DENSE_AT_MOST
        step = rows_of_a_block(len(J) if stays_sparse else max(len(J), X.shape[1]))
        for start in range(0, X.shape[0], step):
            values[start : start + step] += part.transform(X[start : start + step]) @ w
        return spread(self, values)

    def rehearse(self, X, y):
        """Return an unfitted copy that stops where this fit stopped, without a reference solver.

        The copy is given the reference objective, or, for "sgd_c", the number of examples, so that it evaluates no
        objectives; the paper times that second run (lines 316-318).  With more than two classes, or two stages of
        "sgd_c", returns self.
        """
        in_two_stages = self.solver == "sgd_c" and self.two_stage
        if not isinstance(self.reference, str) or in_two_stages or len(distinct_labels(y)) > 2:
            return self
        model = clone(self)
        if self.solver == "sgd_c":
            model.fit(X, y)
            return clone(self).set_params(reference=None, n_epochs=model.n_iter_ / len(y))
        problem, _ = model.prepare(X, y)
        return clone(self).set_params(reference=model._reference_objective(model._with_lam(problem)))

    def steps(self, n_samples):
        """Return the maximum number of steps of `fit` and the step number of the first checkpoint."""
        last, first = self._length(n_samples)
        return last * (1 + self.two_stage), first

    def stand_in(self):
        """Return an estimator to fit before timing, so that this solver's code is compiled."""
        return type(self)(solver=self.solver)

"""Base class of `PrototypeKLR`, which implements all but its constructor and `fit`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import checked_decision, warn
from klr_bench.estimators.core.classifier import Classifier
from klr_bench.estimators.core.kernels import squared_norms
from klr_bench.estimators.core.rows import in_layout, restricted
from klr_bench.estimators.kernel_values.operands import DENSE_AT_MOST
from klr_bench.estimators.prototype.kernels import PrototypeKernel
from klr_bench.estimators.prototype.model import PARTS, Layout, Model, Rows
from klr_bench.estimators.prototype.solvers import adam, by_gradient, coefficients, in_batches, lbfgs
from klr_bench.estimators.prototype.start import first_point, unit_of

LBFGS_WORK = 5e6
"""Maximum of X.size times the number of prototypes for which L-BFGS on all rows is the fastest solver."""
WATCHED = 20_000
"""Number of rows on which the objective is evaluated after a mini-batch pass."""


class PrototypeClassifier(Classifier):
    """Base class of `PrototypeKLR`; a subclass defines the parameters and `fit`."""

    watched = ("accuracy", "log_loss")
    """Metrics that are evaluated at a checkpoint."""

    def _publish(self, x):
        """Set the fitted attributes, which are copies of the parameter vector x."""
        self._x = x
        b0, B, U, theta = self._model.layout.views(x)
        if self._columns is None:
            self.prototypes_ = np.array(U.T if self._origin is None else U.T + self._origin, order="C")
        else:
            some = sp.csr_matrix(U[:-1].T)
            shape = (some.shape[0], self.n_features_in_)
            self.prototypes_ = sp.csr_matrix((some.data, self._columns[some.indices], some.indptr), shape=shape)
        self.n_support_ = self.prototypes_.shape[0]
        self.gamma_ = float(np.exp(theta[0]))
        two = len(self.classes_) == 2
        self.dual_coef_ = np.array(B[:, 0] if two else B.T, dtype=np.float64, order="C")
        self.intercept_ = float(b0[0]) if two else b0.astype(np.float64)

    def progress(self):
        """Return gamma and the number of prototypes, as a dict to be stored at a checkpoint.

        If X has two features, the dict also has all coordinates of the prototypes and coefficients, named "u_0_1",
        "b_0_1" and so on.
        """
        values = {"n_support": self.n_support_, "gamma": self.gamma_}
        if self.n_features_in_ == 2:
            arrays = {"u": self.prototypes_, "b": np.atleast_2d(self.dual_coef_), "b0": np.atleast_1d(self.intercept_)}
            for name, array in arrays.items():
                values |= {"_".join([name, *map(str, at)]): float(value) for at, value in np.ndenumerate(array)}
        return values

    def steps(self, n_samples):
        """Return the maximum number of passes of `fit` and the pass number of the first checkpoint."""
        return self.max_iter, 1

    def ended_at(self):
        """Return the number of the last pass."""
        return self.n_iter_

    def summary(self):
        """Return the prototype count, nonzero fraction, pass count and objective, as a dict."""
        U = self.prototypes_
        nonzero = U.count_nonzero() if sp.issparse(U) else np.count_nonzero(U)
        return {
            "n_support": self.n_support_,
            "nonzero_fraction": nonzero / math.prod(U.shape),
            "n_iter": self.n_iter_,
            "objective": self.objective_,
        }

    def stand_in(self):
        """Return an estimator to fit before timing, so that this solver's code is compiled."""
        return type(self)(solver=self.solver)

    def kernel_values(self, X):
        """Return the kernel values of rows and prototypes, of shape (n_samples, n_prototypes)."""
        check_is_fitted(self)
        rows = self._new_rows(X)
        return np.concatenate([self._model.kernel_values(self._x, block) for block, _, _ in rows.blocks()])

    @checked_decision
    def decision_function(self, X):
        """Return the decision values of the rows of X.

        The shape is (n_samples, n_classes), or (n_samples,) for two classes, where positive values mean the second.
        """
        check_is_fitted(self)
        scores = self._model.scores(self._x, self._new_rows(X))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _scores(self, f):
        return f

    def _new_rows(self, X):
        X = self._validate(X, dtype=self._x.dtype)
        X = in_layout(X, sparse=True) if self.lazy else X
        return Rows(X if self._columns is None else self._compacted(in_layout(X, sparse=True)), None, self._origin)

    def _compacted(self, X):
        """Drop columns that were empty in training; append the norm of each row's dropped entries."""
        some = restricted(X, self._columns)
        others = np.sqrt(np.maximum(squared_norms(X) - squared_norms(some), 0))
        return sp.hstack([some, sp.csr_matrix(others[:, None])], format="csr")

    def _check_settings(self, X):
        if self.lazy and (self.kernel != "rbf" or not sp.issparse(X)):
            message = (
                f"lazy=True requires kernel='rbf' and a CSR matrix, got kernel={self.kernel!r} and {type(X).__name__}."
            )
            raise ValueError(message)
        if not self._parts():
            message = (
                "Nothing to learn: set learn_coef or learn_prototypes to True, or learn_width with a nonlinear kernel."
            )
            raise ValueError(message)

    def _parts(self):
        wanted = (self.learn_coef, self.learn_prototypes, self.learn_width and self.kernel != "linear")
        return tuple(part for part, learned in zip(PARTS, wanted, strict=True) if learned)

    def _rows(self, X, y, weights, random):
        """Return the solver, and training and validation rows (or None) with weights of mean 1."""
        self._mean_weight = 1.0 if weights is None else float(weights.mean())
        weights = None if weights is None else weights / weights.mean()
        self._columns, origin = None, None
        if sp.issparse(X) and X.shape[1] > DENSE_AT_MOST:
            self._columns = np.unique(X.indices)
            X = self._compacted(X)
        if self.kernel == "rbf" and not sp.issparse(X) and not self.l1:
            origin = np.average(X, axis=0, weights=weights).astype(X.dtype)
        codes = np.searchsorted(self.classes_, y).astype(np.intp)
        rows = Rows(X, codes, origin, weights)
        solver = self.solver
        if self._parts() == ("b",) or (solver == "auto" and rows.X.size * self._n_prototypes(len(rows)) <= LBFGS_WORK):
            solver = "lbfgs"
        rows, held_out = rows.split(0.0 if solver == "lbfgs" else self.validation_fraction, random)
        if self.n_prototypes is not None and self.n_prototypes > len(rows):
            message = f"n_prototypes={self.n_prototypes}: expected at most {len(rows)}, the number of training rows."
            raise ValueError(message)
        return "adam" if solver == "auto" else solver, rows, held_out

    def _n_prototypes(self, n):
        """Return the number of prototypes for n rows."""
        return min(max(10, 2 * len(self.classes_)), n) if self.n_prototypes is None else self.n_prototypes

    def _first_point(self, rows, random):
        """Create the model and return its initial parameter vector."""
        n, d = rows.X.shape
        M = 1 if len(self.classes_) == 2 else len(self.classes_)
        J = self._n_prototypes(n)
        l2 = 0.05 / (self._mean_weight * rows.v.sum()) if self.l2 is None else float(self.l2)
        kernel = PrototypeKernel(self.kernel, int(self.degree), float(self.coef0), self.lazy)
        self._model = Model(Layout(M, J, d), kernel, float(self.l1), l2, self.loss)
        self._origin = rows.origin
        gamma = 1 / self.n_features_in_ if self.gamma is None and self.kernel != "rbf" else self.gamma
        return first_point(self._model, rows, init=self.init, gamma=gamma, learn_coef=self.learn_coef, random=random)

    def _learn(self, solver, x, rows, held_out, random, callback):
        """Run the solver from the initial parameter vector x, and set the fitted attributes."""
        parts = self._parts()
        if parts == ("b",):
            K = np.concatenate([self._model.kernel_values(x, X) for X, _, _ in rows.blocks()])
            b, x = self._model.layout.slices["b"], x.astype(np.float64)
            options = {"tol": 1e-2 * self.tol, "max_iter": 10 * self.max_iter}
            x[b], self.converged_ = coefficients(self._model, K, rows.y, rows.v, x[b], **options)
            self.n_iter_ = 1
            self._publish(x)
            if callback is not None:
                callback(self, self.n_iter_)
            return
        if solver == "lbfgs":
            ended = self._descend(x, rows, parts, callback)
        else:
            ended = self._go_on(solver, x, rows, held_out, parts, random, callback)
        if not ended:
            message = (
                f"PrototypeKLR: the objective was still decreasing after {self.max_iter} passes; increase max_iter."
            )
            warn(message, ConvergenceWarning)

    def _descend(self, x, rows, parts, callback):
        """Run L-BFGS on all training rows; return False if more passes could improve the objective."""
        stopped = False

        def watch(x):
            nonlocal stopped
            self.n_iter_ += 1
            if callback is not None:
                self._publish(x)
                stopped = bool(callback(self, self.n_iter_))
                if stopped:
                    raise StopIteration

        rows = Rows(rows.X.astype(np.float64), rows.y, rows.origin, rows.v)
        limits = {"tol": 1e-2 * self.tol, "max_iter": self.max_iter}
        x, self.converged_ = lbfgs(self._model, x, rows, parts, callback=watch, **limits)
        self._publish(x)
        return self.converged_ or stopped

    def _go_on(self, solver, x, rows, held_out, parts, random, callback):
        """Run a mini-batch solver; return False if more passes could improve the objective."""
        model, n = self._model, len(rows)
        watched = rows if n <= WATCHED else rows.subset(np.sort(random.permutation(n)[:WATCHED]))
        options = {
            "rate": self.learning_rate,
            "unit": unit_of(model, x, rows, self.n_features_in_),
            "batch_size": self.batch_size or n,
            "max_iter": self.max_iter,
            "random": random,
        }
        iterates_of = {"adam": adam, "alternating": in_batches, "gradient": by_gradient}[solver]
        iterates = iterates_of(model, x, rows, watched, parts, **options)
        if held_out is not None:
            watched, model = held_out, replace(model, l1=0.0, l2=0.0)
        last = model.objective(x, watched)
        best, until_end = (last, x), solver == "adam"
        for x, undone in iterates:
            self.n_iter_ += 1
            self._publish(x)
            if callback is not None and callback(self, self.n_iter_):
                return True
            objective = model.objective(x, watched)
            if held_out is None or objective < best[0]:
                best = objective, x
            self.converged_ = not undone and self.tol > 0 and last - objective < self.tol * last
            if self.converged_ and not until_end:
                break
            last = objective
        self._publish(best[1])
        return self.converged_ or until_end or self.tol == 0

"""Base class of online learners that represent their classifier by support vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.binary import ANY_KERNEL
from klr_bench.estimators.core.classifier import checked_decision
from klr_bench.estimators.core.parameters import JOBS, Number, estimator, parameter
from klr_bench.estimators.online.engine import OnlineState
from klr_bench.estimators.online.many import SharedFit, grouped, order_key
from klr_bench.estimators.online.passes import OnlineClassifier

RADIUS = Number(Real, 0, None, closed="right")
"""Constraint of the radius of a ball, which may be infinite."""
SHARED = ("kernel", "gamma", "degree", "coef0", "dtype", "n_epochs", "class_weight")
"""Parameters that learners sharing a pass must have in common."""
BY_RADIUS = "R/sqrt(T)"
"""Step size: the radius divided by the square root of the number of rows in the first call."""


@estimator
class OnlineKernelClassifier(OnlineClassifier):
    """Kernel classifier that learns row by row, in one or several passes over the data.

    With more than two classes it learns one function f_k per class, which separates it from the others, all in the same
    passes: each kernel value is computed once for all of them.

    A subclass has `_update()`, which returns its `Update`: the compiled rule, its numbers, and the radius R of the ball
    that f is projected into.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        exp(-gamma ||x - z||^2), (gamma x'z + coef0)^degree, x'z, exp(-gamma sum_j |x_j - z_j|),
        tanh(gamma x'z + coef0), or a function f(X, Z) that returns the kernel values (n, m) of two blocks of rows.
        With "precomputed" X is the matrix (n_samples, n_samples) of the kernel values of the training rows, for
        predictions those of other rows with the training rows; ``support_vectors_`` are indices in a column, and there
        is no `partial_fit`.  "sigmoid" is not positive semi-definite: no bound holds, and negative squares of ||f||
        count as 0.  The papers use the rbf kernel, and (x'z + 1)^2 for the texts of RCV1, which is kernel="poly",
        gamma=1, degree=2, coef0=1.
    n_jobs : int or None, default=None
        Number of threads that compute kernel values; None uses as many as BLAS would, -1 one per core.  The result does
        not depend on it.

    Attributes
    ----------
    support_vectors_ : ndarray or CSR matrix of shape (n_support_, n_features), dtype of the kernel values
        The examples inserted in f, or in any f_k, in the order of their insertion; after several passes in the order of
        the rows.
    dual_coef_ : ndarray of shape (n_support_,), or (n_classes, n_support_) for more than two classes, float64
        Coefficients of the average classifier, (1/T) sum_{t=1..T} f_t, or of the last one, f_{T+1}.  After several
        passes the average is that of the f_t of the last one.
    n_support_ : int
        Number of inserted examples.  An insertion at the last step counts, although its weight in the average is 0.
    n_updates_ : int
        Number of insertions: several passes may insert an example more than once, and in several f_k.
    n_mistakes_ : int
        Number of examples with y f_t(x) <= 0 at their own step, added over all f_k.
    t_ : int
        Number of examples seen, T, in all passes.
    """

    _: KW_ONLY
    kernel: str | Callable[..., Any] = parameter(*ANY_KERNEL, default="rbf")
    n_jobs: int | None = parameter(*JOBS, default=None)

    grows = True
    """True because memory grows with the support vectors; see `klr_bench.protocols`."""
    _fixed = ("kernel", "gamma", "degree", "coef0", "dtype")

    @checked_decision
    def decision_function(self, X):
        """Return the decision values f(x) for the rows x of X.

        The result is float64, of shape (n_samples,) or (n_samples, n_classes).
        """
        check_is_fitted(self, ["dual_coef_", "_state"])
        X = self._validate(X, dtype=self._state.dtype)
        f = self._state.decide(np.atleast_2d(self.dual_coef_).astype(X.dtype), X)
        return np.ascontiguousarray(f.T) if self._has_many() else f[0]

    @property
    def support_vectors_(self):
        """The support vectors, in a matrix of shape (n_support_, n_features).

        Examples stored as bits are unpacked at each access.
        """
        return self._state.support.rows

    def for_rows(self, n_samples):
        """Set the number of rows T, which determines the step size R/sqrt(T); return self."""
        self._rows_of_step, self._learn_row = n_samples, None
        return self

    def pass_key(self, n_classes):
        """Return a key that is equal for learners that can share a pass over the data.

        Learners with equal keys can share one; the key is None if this learner cannot.  A shared pass is for two
        classes, and for learners with the `fit` of this class and the same order of rows.
        """
        if n_classes != 2 or type(self).fit is not OnlineKernelClassifier.fit:
            return None
        return OnlineKernelClassifier, order_key(self), *(repr(getattr(self, name, None)) for name in SHARED)

    def fit_together(self, estimators, X, y, callback=None):
        """Fit learners with equal values of `pass_key` in one pass; return a `SharedFit`."""
        return SharedFit(estimators, X, y, callback)

    def _engine(self, X, weights):
        n = len(self.classes_) if self._has_many() else 1
        engine = self._state or OnlineState(self._kernel(X, weights), self._rows(X), range(n))
        engine.groups = grouped([self._update()] * n)
        return engine

    def _step_size(self):
        if self.eta != BY_RADIUS:
            return self.eta
        return self.R / math.sqrt(getattr(self, "_rows_of_step", None) or self._n_first)

    def _publish(self):
        state = self._state
        coef = [state.coefficients(i, average=self.average) for i in range(len(state.row))]
        self.dual_coef_ = np.array(coef) if self._has_many() else coef[0]
        self.n_support_, self.n_updates_ = len(state.support), state.n_insertions()
        self.n_mistakes_ = int(state.counts[:, 0].sum())
        self.t_ = state.t

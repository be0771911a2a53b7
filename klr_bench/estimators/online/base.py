"""The scikit-learn interface of the online learners with support vectors: parameters, shared passes, prediction."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.classifier import checked_decision
from klr_bench.estimators.core.parameters import CLASS_WEIGHT, JOBS, Number
from klr_bench.estimators.online import engine
from klr_bench.estimators.online.many import SharedFit, Update, grouped, order_key
from klr_bench.estimators.online.passes import OnlineClassifier

RADIUS = Number(Real, 0, None, closed="right")
"""Constraint of the radius of a ball; it may be infinite."""
SHARED = ("kernel", "gamma", "degree", "coef0", "dtype", "n_epochs", "class_weight")
"""Parameters that learners have in common if they share a pass."""
BY_RADIUS = "R/sqrt(T)"
"""A step size: the radius divided by the square root of the number of rows of the first call."""


class OnlineKernelClassifier(OnlineClassifier):
    """A binary kernel classifier that learns row by row, in one pass or in several.

    With more than two classes it learns one function f_k for each, which tells it from the rest, all in the same
    passes: each kernel value is computed once for all of them.

    A subclass sets its compiled update rule, `_rule`; its `_rule_arguments()` returns the rule's numbers and the radius
    R of the ball that f is projected into.

    Parameters
    ----------
    average : bool
        Predict with the average of the f_t; otherwise with the last one.
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        exp(-gamma ||x - z||^2), (gamma x'z + coef0)^degree or x'z.  The papers use the rbf kernel, and (x'z + 1)^2 for
        the texts of RCV1, which is kernel="poly", gamma=1, degree=2, coef0=1.
    gamma : float, {"scale", "median"} or None, default="scale"
        gamma > 0 of the rbf and poly kernels; None is 1 / n_features, "scale" 1 / (n_features X.var()), "median" 1 / (2
        m^2) with the median distance m of rows; by the rows of the fit, or of the first call of `partial_fit`.  Worth
        trying are 0.1, 0.3, 1 and 3 times the value of "scale", the grid of configs/experiment/own_file.yaml.  The
        papers take 1 / (2 s^2), where s is a percentile of the distances of training rows: the 20th in Zhang et al.,
        ICML 2013, the 5th in Zhang et al., AAAI 2012.
    degree : float, default=3
        Degree > 0 of the poly kernel.
    coef0 : float, default=1.0
        Constant of the poly kernel; at 0 or above the kernel is positive definite for a whole `degree`.
    random_state : int, RandomState instance or None, default=None
        Seed; one uniform number is drawn per example, also by methods that do not use it.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the kernel values; None follows X: float32 stays float32, all else is float64.  float32 takes
        half the time or less.  Coefficients, scale and norm are always float64.
    n_epochs : int, default=1
        Passes of `fit` over the rows, at least 1; the papers make one.  A row that is inserted in several passes is one
        support vector.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by which those of the rows are multiplied; "balanced" is n_samples / (n_classes n_k) for
        n_k rows of class k.
    n_jobs : int or None, default=None
        Threads that compute kernel values; None is as many as BLAS would use, -1 one for each core.  The result does
        not depend on it.
    shuffle : bool, default=True
        Whether `fit` draws an order of the rows for each pass, from `random_state`; otherwise it learns in their order,
        as `partial_fit` does.  False is for rows that are in random order already, as in the papers' runs; rows sorted
        by class need True.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), dtype of y
        The classes in sorted order.
    support_vectors_ : ndarray or CSR matrix of shape (n_support_, n_features), dtype of the kernel values
        The examples inserted in f, or in any f_k, in the order of their insertion; after several passes in that of the
        rows.
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
    n_features_in_ : int
        Number of features.
    """

    grows = True
    """With the support vectors: see `klr_bench.protocols`."""
    _fixed = ("kernel", "gamma", "degree", "coef0", "dtype")
    _parameter_constraints = OnlineClassifier._parameter_constraints | {"class_weight": CLASS_WEIGHT, "n_jobs": JOBS}

    def __init__(
        self, average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs, shuffle, class_weight, n_jobs
    ):
        self.average = average
        super().__init__(kernel, gamma, degree, coef0, random_state, dtype)
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    @checked_decision
    def decision_function(self, X):
        """Return f(x) for the rows of X (n_samples, n_features), as float64 (n_samples,) or (n_samples, n_classes)."""
        check_is_fitted(self, ["dual_coef_", "_state"])
        X = self._validate(X, dtype=self._dtype_of_rows())
        f = self._state.decide(np.atleast_2d(self.dual_coef_).astype(X.dtype), X)
        return np.ascontiguousarray(f.T) if self._has_many() else f[0]

    @property
    def support_vectors_(self):
        """The inserted examples, (n_support_, n_features); where they are stored as bits, unpacked at each access."""
        if getattr(self, "_state", None) is None:
            message = f"{type(self).__name__} has no support vectors before a fit."
            raise AttributeError(message)
        return self._state.support.rows

    def for_rows(self, n_samples):
        """Let a step size of R/sqrt(T) be that of a fit to `n_samples` rows; return self."""
        self._rows_of_step = n_samples
        return self

    def pass_key(self, n_classes):
        """Return what learners must have in common to share a pass; None where this one cannot share.

        A pass is for two classes, and for learners with the `fit` of this class that go through the rows in one order.
        """
        if n_classes != 2 or type(self).fit is not OnlineKernelClassifier.fit:
            return None
        passes = self._passes(1)  # which n_epochs=None does not tell
        return OnlineKernelClassifier, order_key(self), passes, *(repr(getattr(self, name, None)) for name in SHARED)

    def fit_together(self, estimators, X, y, callback=None):
        """Fit learners with equal keys in one pass; return a `SharedFit`."""
        return SharedFit(estimators, X, y, callback)

    def _update(self, stream=0):
        """Return what the engine needs of this learner, which takes its draws from the stream of this number."""
        parameters, radius = self._rule_arguments()
        return Update(type(self)._rule, parameters, radius, stream)

    def _dtype_of_rows(self):
        return self._state.support.dtype

    def _new_state(self, X):
        return engine.OnlineState(self._kernel(X), X, range(len(self.classes_) if self._has_many() else 1))

    def _learning(self):
        """Return the function of rows (b, d), signs, draws, numbers and weights, all (b,), that learns from a block.

        With more than two classes the signs are (n_classes, b).
        """
        groups = grouped([self._update()] * len(self._state.row))

        def learn(X, signs, draws, numbers, weights):
            draws, factors = self._weighted(draws, weights)
            self._state.learn_block(groups, X, signs, draws, numbers, factors)

        return learn

    def _weighted(self, draws, weights):
        """Return the draws and the factors of the steps (b,), or None, for rows of these weights (b,), or None."""
        return draws, weights

    def _end_pass(self):
        """After one of several passes, count each inserted row once."""
        self._count_again()
        self._state.merge()
        self._publish()

    def _refused_at(self):
        learner = np.argmax(self._state.refused > 0)
        return self._state.refused[learner], self._state.scalars[learner, 3]

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

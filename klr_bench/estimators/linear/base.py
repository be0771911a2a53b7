"""The scikit-learn side of the linear learners: validation, one pass over the rows, prediction."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.binary import COUNT, POSITIVE, BinaryClassifier
from klr_bench.estimators.core.contract import FIRST
from klr_bench.estimators.core.rows import without_duplicates
from klr_bench.estimators.linear.blocked import Blocked
from klr_bench.estimators.linear.engine import LIMITS, MISTAKES, REFUSED, UPDATES, Diagonal, Full

CONFIDENCE = Interval(Real, 0.5, 1, closed="neither")
"""The constraint of a probability that is more than a guess."""
PREDICTED_ROWS = 4096
IN_CACHE = 256
"""Features whose full covariance stays in the processor's cache: above, it is updated in blocks."""


class LinearClassifier(BinaryClassifier):
    """A binary classifier f(x) = coef_'x for dense arrays and CSR matrices, float32 or float64.

    There is no intercept: append a constant feature where one is needed.  A subclass has `fit`, which calls `_begin`
    and sets `coef_`, (n_features,) float64.
    """

    def decision_function(self, X):
        """Return f(x) for the rows of X (n_samples, n_features), as float64 (n_samples,)."""
        check_is_fitted(self, "coef_")
        X = self._validate(X, dtype=self._dtypes())
        values = np.empty(X.shape[0])
        for start in range(0, len(values), PREDICTED_ROWS):  # of float32 rows the product makes a copy in float64
            values[start : start + PREDICTED_ROWS] = X[start : start + PREDICTED_ROWS] @ self.coef_
        return values

    def progress(self):
        """Return what a checkpoint keeps: the share of weights other than 0."""
        return {"nonzero_fraction": float(np.mean(self.coef_ != 0))}

    def summary(self):
        """Return what the fit has led to, by name."""
        return self.progress()

    def selected_features(self):
        """Return the columns of X with a weight other than 0, in ascending order."""
        return np.flatnonzero(self.coef_)

    def _begin(self, X, y):
        """Forget an earlier fit; return X, validated, and y as signs, (n_samples,) -1.0 or +1.0."""
        self._forget()
        X, y = self._validate(X, y, dtype=self._dtypes(), reset=True)
        self._set_classes(y)
        return X, self._signs(y)


class IncrementalClassifier(LinearClassifier):
    """A linear classifier that goes on learning with `partial_fit`.

    A subclass has `_start(X)`, which sets what is known before the first row, for rows like those of X, and
    `_learn(X, signs, callback)`, which learns from all rows and returns True where the callback asked to stop.
    """

    n_epochs = 1
    """Passes that `fit` makes, where they are no parameter."""

    def fit(self, X, y, callback=None):
        """Forget everything and learn from all rows, in their order.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Two classes of any kind; decision values above 0 mean the second in sorted order.
        callback : callable, default=None
            `callback(estimator, t)` is called after each block of examples; returning True ends the fit.

        Returns
        -------
        self
        """
        X, signs = self._begin(X, y)
        self._start(X)
        for _ in range(self.n_epochs):
            if self._learn(X, signs, callback):
                break
        return self

    def partial_fit(self, X, y, classes=None, callback=None):
        """Go on learning, from the rows of X, in their order.

        Parameters
        ----------
        X, y, callback
            As for `fit`.
        classes : array of shape (2,), default=None
            Both classes; needed at the first call if y has only one of them.

        Returns
        -------
        self
        """
        first = "coef_" not in vars(self)
        X, signs = self._go_on(X, y, classes, first=first)
        if first:
            self._start(X)
        self._learn(X, signs, callback)
        return self

    def steps(self, n_samples):
        """Return the largest t that a callback of `fit` may see, and the first worth a checkpoint."""
        return n_samples * self.n_epochs, FIRST

    def summary(self):
        """Return the share of weights other than 0, and the updates."""
        return {**super().summary(), "n_updates": self.n_updates_}

    def _go_on(self, X, y, classes, *, first):
        """As `_begin`, for a call of `partial_fit`: only the first call forgets, and fixes features and classes."""
        if first:
            self._forget()
        else:
            self._validate_params()
        X, y = self._validate(X, y, dtype=self._dtypes(), reset=first)
        if first:
            self._set_classes(y if classes is None else classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            message = f"classes={np.unique(classes).tolist()}: the first call was with {self.classes_.tolist()}."
            raise ValueError(message)
        return X, self._signs(y)


class OnlineLinearClassifier(IncrementalClassifier):
    """A linear classifier that is learned in one pass over the rows, in their order.

    The result depends on the sequence of rows alone, up to rounding, not on how it is cut into calls of `partial_fit`.
    A subclass returns from `_update()` its compiled update rule and the numbers that the rule gets.

    Parameters
    ----------
    n_epochs : int, default=1
        Passes that `fit` makes over the rows.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (n_features,), float64
        The weights, the mean of their distribution.
    n_updates_ : int
        Examples at which something changed.
    n_mistakes_ : int
        Examples with y f(x) <= 0 when they came.
    t_ : int
        Examples seen.
    n_features_in_ : int
    """

    _parameter_constraints = {"n_epochs": [COUNT]}  # noqa: RUF012

    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

    def _start(self, X):
        self._state = self._new_state(X)

    def _new_state(self, X):
        """Return the state before the first example, for rows like those of X: S = I, which PA leaves as it is."""
        return Diagonal(X.shape[1], math.inf, 1.0)

    def _learn(self, X, signs, callback):
        """Learn from all rows, a few at a time; return True where the callback asked to stop."""
        X, state = without_duplicates(X), self._state
        rule, parameters = self._update()
        parameters = np.array(parameters, dtype=np.float64)
        for start in range(0, len(signs), state.rows):
            block = slice(start, start + state.rows)
            state.learn(rule, parameters, X[block], signs[block])
            if state.counts[REFUSED]:
                self._publish()
                self._refuse(state.counts[REFUSED])
            if callback is not None:
                self._publish()
                if callback(self, state.t):
                    return True
        self._publish()
        return False

    def _refuse(self, t):
        message = (
            f"{type(self).__name__}: at example {t} the margin, its variance or the update is not finite in the "
            "precision of X; scale the features, for example to [0, 1], or choose milder parameters."
        )
        raise ValueError(message)

    def _publish(self):
        """Set the fitted attributes from the state, as views."""
        state = self._state
        self.coef_ = state.mean
        self.n_mistakes_, self.n_updates_ = int(state.counts[MISTAKES]), int(state.counts[UPDATES])
        self.t_ = state.t


class ConfidenceLearner(OnlineLinearClassifier):
    """An online linear classifier with a Gaussian over its weights; at first the mean is 0 and the covariance I.

    Parameters
    ----------
    covariance : {"full", "diagonal"}, default="full"
        Full: time and memory grow with the square of the features; float64 up to 256 of them, beyond in the precision
        of X.  Diagonal: they grow with the features that are not 0.
    n_epochs : int, default=1
        Passes that `fit` makes over the rows.
    memory_limit : float, default=4000.0
        MB that a full covariance may take.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features), or (n_features,) if diagonal
        Of the weights; computed when it is read.

    The others are those of `OnlineLinearClassifier`.
    """

    _parameter_constraints = OnlineLinearClassifier._parameter_constraints | {
        "covariance": [StrOptions({"full", "diagonal"})],
        "memory_limit": [POSITIVE],
    }

    def __init__(self, covariance, n_epochs, memory_limit):
        super().__init__(n_epochs)
        self.covariance = covariance
        self.memory_limit = memory_limit

    @property
    def covariance_(self):
        """The covariance of the weights, a copy."""
        check_is_fitted(self, "coef_")
        return self._state.covariance()

    def _new_state(self, X):
        d = X.shape[1]
        if self.covariance == "diagonal":
            return Diagonal(d, self._limit(np.dtype(np.float64)), self._first_variance())
        dtype = np.dtype(np.float64 if d <= IN_CACHE else X.dtype)
        check_memory(self, d, dtype, 'covariance="diagonal"')
        limit, first = self._limit(dtype), self._first_variance()
        return Full(d, limit, first) if d <= IN_CACHE else Blocked(d, limit, first, dtype)

    def _limit(self, dtype):
        """Return what an example may add to the inverse of a covariance in this precision, in its own direction."""
        return LIMITS[dtype.name]

    def _first_variance(self):
        """Return the variance of each weight before the first example."""
        return 1.0


def check_memory(estimator, d, dtype, instead):
    """Refuse a full covariance of d features that takes more than `memory_limit`, and say what to do `instead`."""
    needed = d * d * dtype.itemsize / 1e6
    if needed > estimator.memory_limit:
        message = (
            f"{type(estimator).__name__}: a full covariance of {d:,} features takes {needed:,.0f} MB in {dtype}, more "
            f"than memory_limit={estimator.memory_limit:g}. Use {instead}, or raise memory_limit where there is room."
        )
        raise ValueError(message)

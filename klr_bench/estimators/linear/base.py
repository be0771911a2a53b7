"""The scikit-learn interface of the linear learners: validation, one pass over the rows, prediction."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.binary import BinaryClassifier
from klr_bench.estimators.core.classifier import decides, learns
from klr_bench.estimators.core.one_against_rest import begun, one_against_rest, spread
from klr_bench.estimators.core.parameters import COUNT, POSITIVE, Number
from klr_bench.estimators.core.weights import row_weights
from klr_bench.estimators.linear.blocked import Blocked
from klr_bench.estimators.linear.engine import LIMITS, MISTAKES, REFUSED, UPDATES, Diagonal, Full
from klr_bench.protocols import FIRST

CONFIDENCE = Number(Real, 0.5, 1, closed="neither")
"""Constraint of a probability above 0.5."""
PREDICTED_ROWS = 4096
IN_CACHE = 256
"""Features whose full covariance stays in the processor's cache; with more, it is updated in blocks."""


class LinearClassifier(BinaryClassifier):
    r"""A linear classifier for dense arrays and CSR matrices, float32 or float64.

    .. math::

        f(x) = w^T x, \qquad \hat{y} = \operatorname{sign} f(x)

    w is ``coef_``.  There is no intercept: append a constant feature if you need one.  With more than two classes there
    is one such classifier for each, which tells it from the rest, in ``estimators_``.  ``coef_`` is then (n_classes,
    n_features), and what is a number or an array for two classes is an array or a list with one entry for each class.

    A subclass has a ``fit``, with the decorator ``one_against_rest``, that calls ``_begin`` and sets ``coef_``,
    (n_features,) float64.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order, in the dtype of y.
    coef_ : ndarray of shape (n_features,), or (n_classes, n_features) for more than two classes, float64
        The weights w.
    n_features_in_ : int
        Number of features.
    """

    @decides
    def decision_function(self, X):
        """Return f(x) for the rows of X (n_samples, n_features), as float64 (n_samples,) or (n_samples, n_classes)."""
        check_is_fitted(self, "coef_")
        X, coef = self._validate(X, dtype=self._dtypes()), self.coef_.T
        values = np.empty((X.shape[0], *coef.shape[1:]))
        for start in range(0, len(values), PREDICTED_ROWS):  # with float32 rows the product copies them to float64
            values[start : start + PREDICTED_ROWS] = X[start : start + PREDICTED_ROWS] @ coef
        return spread(self, values)

    def progress(self):
        """Return what a checkpoint keeps: the share of weights other than 0."""
        return {"nonzero_fraction": float(np.mean(self.coef_ != 0))}

    def summary(self):
        """Return what the fit has led to, by name."""
        return self.progress()

    def selected_features(self):
        """Return the columns of X with a weight other than 0, in ascending order."""
        return np.flatnonzero(np.atleast_2d(self.coef_).any(axis=0))

    def _gather(self):
        """Set what the learners have learned: `coef_`, and of each other attribute one entry per class."""
        learners = begun(self)
        own = {"classes_", "n_features_in_", "feature_names_in_", "t_"}
        for name in [name for name in vars(learners[0]) if name.endswith("_") and name[0] != "_" and name not in own]:
            values = [getattr(learner, name) for learner in learners]
            setattr(self, name, np.array(values) if name == "coef_" or np.isscalar(values[0]) else values)
        if hasattr(learners[0], "t_"):
            self.t_ = learners[0].t_

    def _begin(self, X, y):
        """Forget an earlier fit; return X, validated, and y as signs, (n_samples,) -1.0 or +1.0."""
        self._forget()
        X, y = self._validate(X, y, dtype=self._dtypes(), reset=True)
        self._set_classes(y)
        return X, self._signs(y)

    def _weighted(self, X, signs, sample_weight):
        """Return the rows, their signs, and their weights (n,) or None; rows of weight 0 are left out."""
        labels = self.classes_[(signs > 0).astype(int)]
        weights = row_weights(sample_weight, self.class_weight, X, labels, self.classes_)
        if weights is None or weights.all():
            return X, signs, weights
        kept = np.flatnonzero(weights)
        return X[kept], signs[kept], weights[kept]

    def _begin_weighted(self, X, y, sample_weight):
        """As `_begin`, with the C of each row, (n,), in proportion to its weight; some of each class are above 0."""
        X, signs, weights = self._weighted(*self._begin(X, y), sample_weight)
        if weights is None:
            return X, signs, np.full(len(signs), float(self.C))
        if len(np.unique(signs)) < 2:
            message = f"{type(self).__name__}: expected a weight above 0 in each class."
            raise ValueError(message)
        return X, signs, self.C * weights


class IncrementalClassifier(LinearClassifier):
    """A linear classifier that can continue learning with `partial_fit`.

    A subclass has `_start(X)`, which sets the state before the first row, for rows like those of X, and
    `_learn(X, signs, callback)`, which learns from all rows and returns True if the callback asked to stop.
    """

    n_epochs = 1
    """Passes of `fit`, for subclasses without this parameter."""

    @learns
    @one_against_rest
    def fit(self, X, y, callback=None):
        """Forget an earlier fit and learn from all rows, in their order.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        callback : callable, default=None
            ``callback(estimator, t)`` is called after each block of examples; returning True ends the fit.

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

    @learns
    @one_against_rest
    def partial_fit(self, X, y, classes=None, callback=None):
        """Continue learning from the rows of X, in their order.

        Parameters
        ----------
        X, y, callback
            As for `fit`.
        classes : array of shape (n_classes,), default=None
            All classes; required in the first call if y does not contain all of them.

        Returns
        -------
        self
        """
        first = "coef_" not in vars(self)
        X, y = self._next_rows(X, y, classes, first=first)
        if first:
            self._start(X)
        self._learn(X, self._signs(y), callback)
        return self

    def steps(self, n_samples):
        """Return the largest t that a callback of `fit` may see, and the first worth a checkpoint."""
        return n_samples * self.n_epochs, FIRST

    def summary(self):
        """Return the share of weights other than 0, and the updates."""
        return {**super().summary(), "n_updates": int(np.sum(self.n_updates_))}


class OnlineLinearClassifier(IncrementalClassifier):
    r"""A linear classifier that learns in one pass over the rows, in their order.

    .. math::

        & w \leftarrow w + \alpha \, y \, \Sigma x, \qquad \Sigma \leftarrow \Sigma - \beta \, \Sigma x (\Sigma x)^T \\
        & m = y \, w^T x, \qquad v = x^T \Sigma x

    The numbers alpha and beta, which are the rule of a subclass, depend on the margin m and its variance v only; the
    passive-aggressive rules have beta = 0 and the identity as Sigma.  The result depends on the sequence of rows only,
    up to rounding, not on how it is split into calls of ``partial_fit``.

    ``_update()`` of a subclass returns its compiled update rule and the numbers of the rule; where it takes weights
    (n,) of the rows, ``_update(weights)`` may return arrays of such numbers, one for each row.

    Parameters
    ----------
    n_epochs : int, default=1
        Passes of ``fit`` over the rows, >= 1.  The published comparisons make one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order, in the dtype of y.
    coef_ : ndarray of shape (n_features,), or (n_classes, n_features) for more than two classes, float64
        The weights, or the mean of their distribution.
    n_updates_ : int
        Number of rows that changed the weights or their covariance.
    n_mistakes_ : int
        Number of rows with y f(x) <= 0 at their own step.
    t_ : int
        Number of rows seen.
    n_features_in_ : int
        Number of features.
    """

    _parameter_constraints = {"n_epochs": [COUNT]}  # noqa: RUF012

    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

    def _start(self, X):
        self._state = self._new_state(X)

    def _new_state(self, X):
        """Return the state before the first example, for rows like those of X: S = I, which PA never changes."""
        return Diagonal(X.shape[1], math.inf, 1.0)

    def _learn(self, X, signs, callback, weights=None):
        """Learn from all rows, a few at a time; return True if the callback asked to stop."""
        state = self._state
        rule, numbers = self._update() if weights is None else self._update(weights)
        parameters = np.column_stack(np.broadcast_arrays(*map(np.atleast_1d, numbers))).astype(np.float64)
        for start in range(0, len(signs), state.rows):
            block = slice(start, start + state.rows)
            state.learn(rule, parameters if weights is None else parameters[block], X[block], signs[block])
            if state.counts[REFUSED]:
                self._publish()
                self._refuse(state.counts[REFUSED])
            self._note_decided()
            if callback is not None:
                self._publish()
                if callback(self, state.t):
                    return True
        self._publish()
        return False

    def _note_decided(self):
        """After a block of rows: `Progressive` keeps what was predicted for them."""

    def _refuse(self, t):
        message = (
            f"{type(self).__name__}: at example {t} the margin, its variance or the update is not finite in the "
            "precision of X; scale the features, for example to [0, 1], or choose milder parameters."
        )
        raise ValueError(message)

    def _publish(self):
        """Set the fitted attributes as views of the state."""
        state = self._state
        self.coef_ = state.mean
        self.n_mistakes_, self.n_updates_ = int(state.counts[MISTAKES]), int(state.counts[UPDATES])
        self.t_ = state.t


class ConfidenceLearner(OnlineLinearClassifier):
    r"""An online linear classifier with a Gaussian over its weights.

    .. math::

        w \sim N(\mu, \Sigma), \qquad \mu_1 = 0, \qquad \Sigma_1 = I

    ``coef_`` is the mean, ``covariance_`` the covariance Sigma, which shrinks in the directions of the rows seen: there
    later steps are smaller.

    Parameters
    ----------
    covariance : {"full", "diagonal"}, default="full"
        "full": time and memory grow with the square of the number of features.  It is kept in float64 for up to 256
        features, otherwise in the precision of X.  "diagonal": they grow with the number of non-zero features, so it is
        the choice for texts.  The comparisons with Tan et al. (2016, table 2) have "full".
    n_epochs : int, default=1
        Passes of ``fit`` over the rows, >= 1.  The published comparisons make one.
    memory_limit : float, default=4000.0
        MB > 0 that a full covariance may take, else ``fit`` raises an error.  The default is reached at 22,000 features
        in float64 and at 31,000 in float32.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features), or (n_features,) if diagonal
        Covariance of the weights, computed when it is read.
    classes_, coef_, n_updates_, n_mistakes_, t_, n_features_in_
        See `OnlineLinearClassifier`.
    """

    _fixed = ("covariance",)
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
        """A copy of the covariance of the weights; of more than two classes a list."""
        check_is_fitted(self, "coef_")
        if self._has_many():
            return [learner.covariance_ for learner in self.estimators_]
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
        """Return the most that one example may add to the inverse covariance, in its own direction."""
        return LIMITS[dtype.name]

    def _first_variance(self):
        """Return the variance of each weight before the first example."""
        return 1.0


def check_memory(estimator, d, dtype, instead):
    """Refuse a full covariance of d features that takes more than `memory_limit`; `instead` says what to use."""
    needed = d * d * dtype.itemsize / 1e6
    if needed > estimator.memory_limit:
        message = (
            f"{type(estimator).__name__}: a full covariance of {d:,} features takes {needed:,.0f} MB in {dtype}, more "
            f"than memory_limit={estimator.memory_limit:g}. Use {instead}, or raise memory_limit where there is room."
        )
        raise ValueError(message)

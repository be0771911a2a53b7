"""The scikit-learn interface of the linear learners: validation, `fit` and `partial_fit`, prediction."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.binary import BinaryClassifier
from klr_bench.estimators.core.classifier import checked_decision, checked_fit, refuse_balanced, row_weights
from klr_bench.estimators.core.one_against_rest import begun, one_against_rest, spread
from klr_bench.estimators.core.parameters import CLASS_WEIGHT
from klr_bench.protocols import FIRST

PREDICTED_ROWS = 4096


class LinearClassifier(BinaryClassifier):
    """A linear classifier f(x) = coef_'x; a subclass has `fit`, which calls `_begin` and sets `coef_`."""

    @checked_decision
    def decision_function(self, X):
        """Return f(x) for the rows of X (n_samples, n_features), as float64 (n_samples,) or (n_samples, n_classes)."""
        check_is_fitted(self, "coef_")
        X, coef = self._validate(X, dtype=self._dtypes()), self.coef_.T
        values = np.empty((X.shape[0], *coef.shape[1:]))
        for start in range(0, len(values), PREDICTED_ROWS):  # with float32 rows the product copies them to float64
            values[start : start + PREDICTED_ROWS] = X[start : start + PREDICTED_ROWS] @ coef
        return spread(self, values)

    def progress(self):
        """Return what a checkpoint keeps: the share of non-zero weights."""
        return {"nonzero_fraction": float(np.mean(self.coef_ != 0))}

    def selected_features(self):
        """Return `selected_features_` or the columns of X with a non-zero weight, in ascending order."""
        selected = getattr(self, "selected_features_", None)
        if selected is None:
            return np.flatnonzero(np.atleast_2d(self.coef_).any(axis=0))
        return np.unique(np.concatenate(selected) if self._has_many() else selected)

    def _gather(self):
        """Set the fitted attributes from those of the binary learners, one entry per class."""
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
        weights = row_weights(sample_weight, getattr(self, "class_weight", None), X, labels, self.classes_)
        if weights is None or weights.all():
            return X, signs, weights
        rows = np.flatnonzero(weights)
        return X[rows], signs[rows], weights[rows]

    def _begin_weighted(self, X, y, sample_weight):
        """Return the rows and signs of `_begin`, and C (n,) times the weights of the rows."""
        X, signs, weights = self._weighted(*self._begin(X, y), sample_weight)
        if len(np.unique(signs)) < 2:
            message = f"{type(self).__name__}: expected a weight above 0 in each class."
            raise ValueError(message)
        return X, signs, per_row(self.C, len(signs)) if weights is None else self.C * weights


class IncrementalClassifier(LinearClassifier):
    """A linear classifier that can continue learning with `partial_fit`.

    A subclass has `_start(X)`, which sets the state before the first row, for rows like those of X, and
    `_learn(X, signs, callback, weights)`, which learns from all rows and returns True if the callback asked to stop.
    The weights (n,) of the rows are all above 0, or None.
    """

    n_epochs = 1
    """Passes of `fit`, for subclasses without this parameter."""

    @checked_fit
    @one_against_rest
    def fit(self, X, y, callback=None):
        """Forget an earlier fit and learn from all rows, in their order; return self.

        Parameters
        ----------
        X, y, callback
            As for `AROW.fit`.
        """
        return self._fit(X, y, None, callback)

    @checked_fit
    @one_against_rest
    def partial_fit(self, X, y, classes=None, callback=None):
        """Continue learning from the rows of X, in their order; return self.

        Parameters
        ----------
        X, y, classes, callback
            As for `AROW.partial_fit`.
        """
        return self._partial_fit(X, y, classes, None, callback)

    def _fit(self, X, y, sample_weight, callback):
        X, signs, weights = self._weighted(*self._begin(X, y), sample_weight)
        self._start(X)
        for _ in range(self.n_epochs):
            if self._learn(X, signs, callback, weights):
                break
        return self

    def _partial_fit(self, X, y, classes, sample_weight, callback):
        first = "coef_" not in vars(self)
        X, y = self._next_rows(X, y, classes, first=first)
        X, signs, weights = self._weighted(X, self._signs(y), sample_weight)
        if first:
            self._start(X)
        self._learn(X, signs, callback, weights)
        return self

    def steps(self, n_samples):
        """Return the largest t that a callback of `fit` may see, and the first worth a checkpoint."""
        return n_samples * self.n_epochs, FIRST

    def summary(self):
        """Return the share of non-zero weights, and the number of updates."""
        return self.progress() | {"n_updates": int(np.sum(self.n_updates_))}


class Weighted:
    """Mixin that adds weights of rows and classes to an `IncrementalClassifier`; it comes first."""

    _parameter_constraints = {"class_weight": CLASS_WEIGHT}  # noqa: RUF012

    @checked_fit
    @one_against_rest
    def fit(self, X, y, sample_weight=None, callback=None):
        """Forget an earlier fit and learn from all rows, in their order; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows; each multiplies the weight of the loss in the step of its row.
        callback : callable, default=None
            ``callback(estimator, t)`` is called after each block of examples; returning True ends the fit.
        """
        return self._fit(X, y, sample_weight, callback)

    @checked_fit
    @one_against_rest
    def partial_fit(self, X, y, classes=None, sample_weight=None, callback=None):
        """Continue learning from the rows of X, in their order; return self.

        Parameters
        ----------
        X, y, sample_weight, callback
            As for `fit`; class_weight="balanced" needs all rows, and is refused.
        classes : array of shape (n_classes,), default=None
            All classes; required in the first call if y does not contain all of them.
        """
        refuse_balanced(self)
        return self._partial_fit(X, y, classes, sample_weight, callback)


def check_memory(estimator, d, dtype, instead):
    """Raise a ValueError if a full covariance of d features takes more than `memory_limit`."""
    needed = d * d * dtype.itemsize / 1e6
    if needed > estimator.memory_limit:
        message = (
            f"{type(estimator).__name__}: a full covariance of {d:,} features takes {needed:,.0f} MB in {dtype}, more "
            f"than memory_limit={estimator.memory_limit:g}. Use {instead}, or raise memory_limit if there is room."
        )
        raise ValueError(message)


def per_row(values, n):
    """Return a scalar, or one value per row, as an array (n,), float64."""
    return np.full(n, values, dtype=np.float64)


def box(C, q):
    """Return bound and softness (n,) of dual variables for C (n,) times the hinge loss^q."""
    return (C, np.zeros(len(C))) if q == 1 else (np.full(len(C), np.inf), 0.5 / C)

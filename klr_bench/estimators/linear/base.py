"""Base classes of the linear classifiers: validation, `fit`, `partial_fit` and prediction."""

from __future__ import annotations

from dataclasses import KW_ONLY
from itertools import repeat

import numpy as np
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import LearningFailed, checked_decision, checked_fit, cleared_by_errors
from klr_bench.estimators.core.classifier import Classifier
from klr_bench.estimators.core.multiclass import fitted_learners, one_vs_rest, spread
from klr_bench.estimators.core.parameters import CLASS_WEIGHT, VERBOSE, estimator, parameter
from klr_bench.estimators.online.passes import run_passes
from klr_bench.protocols import FIRST

PREDICTED_ROWS = 4096


class LinearClassifier(Classifier):
    """Base class of linear classifiers without an intercept.

    A subclass has `fit`, which calls `_first_rows` and sets `coef_`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order, in the dtype of y.
    coef_ : ndarray of shape (n_features,), or (n_classes, n_features) for more than two classes, float64
        The weights, or the mean of their distribution: f(x) = coef_'x, without an intercept; append a constant feature
        if you need one.  With more than two classes, one classifier per class separates it from the rest
        (``estimators_``), and every other attribute of the fit has one entry per class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.
    """

    @checked_decision
    def decision_function(self, X):
        """Return the decision values of the rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        f : ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes, float64
        """
        check_is_fitted(self, "coef_")
        X, coef = self._validate(X, dtype=self._dtypes()), self.coef_.T
        values = np.empty((X.shape[0], *coef.shape[1:]))
        for start in range(0, len(values), PREDICTED_ROWS):  # blocks limit the memory for float64 copies
            values[start : start + PREDICTED_ROWS] = X[start : start + PREDICTED_ROWS] @ coef
        return spread(self, values)

    def progress(self):
        """Return the fraction of non-zero weights, as a dict to be stored at a checkpoint."""
        return {"nonzero_fraction": float(np.mean(self.coef_ != 0))}

    def selected_features(self):
        """Return the sorted indices of the features that the classifier uses."""
        selected = getattr(self, "selected_features_", None)
        if selected is None:
            return np.flatnonzero(np.atleast_2d(self.coef_).any(axis=0))
        return np.unique(np.concatenate(selected) if self._has_many() else selected)

    def _gather(self):
        """Collect the fitted attributes of the one-vs-rest classifiers, with one entry per class."""
        learners = fitted_learners(self)
        shared = {"classes_", "n_features_in_", "feature_names_in_", "t_"}
        fitted = [name for name in vars(learners[0]) if name.endswith("_") and not name.startswith("_")]
        for name in [name for name in fitted if name not in shared]:
            values = [getattr(learner, name) for learner in learners]
            setattr(self, name, np.array(values) if name == "coef_" or np.isscalar(values[0]) else values)
        if hasattr(learners[0], "t_"):
            self.t_ = learners[0].t_


@estimator
class WeightedSolver(LinearClassifier):
    """Base class of linear classifiers that minimize a weighted loss over all rows.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, which multiply the weights of their rows; "balanced" is n_samples / (n_classes n_k)
        for the n_k rows of class k.
    verbose : int or bool, default=False
        Whether ``fit`` prints its progress, about once per second; above 1 it prints a line at each iteration.
    """

    _: KW_ONLY
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)
    verbose: int | bool = parameter(*VERBOSE, default=False)

    def summary(self):
        """Return the values of `progress` and the number of iterations, as a dict."""
        return self.progress() | {"n_iter": int(np.max(self.n_iter_))}

    def _begin_weighted(self, X, y, sample_weight):
        """Reset the estimator; return the rows, their labels, and the weight of each row times C."""
        X, y, weights = self._first_rows(X, y, sample_weight)
        return X, self._signs(y), self._row_costs(len(y), weights)

    def _row_costs(self, n, weights):
        return per_row(self.C, n) if weights is None else self.C * weights


class IncrementalClassifier(LinearClassifier):
    """Base class of linear classifiers with `partial_fit`.

    A subclass has `_engine(X, weights)`, which returns its `Engine`: a new one for rows like X, or the one that it has;
    and `_update()`, or `_update(weights)` with row weights, which returns what the engine needs of the parameters.
    `run_passes` does the rest.  The row weights (n,) are all positive, or None.

    Attributes
    ----------
    n_updates_ : int
        Number of rows that changed the weights or their covariance.
    n_mistakes_ : int
        Number of rows that were misclassified, y f(x) <= 0, before the classifier learned from them.
    t_ : int
        Number of rows seen, without those of weight 0.
    """

    n_epochs = 1
    """Number of passes of `fit` in subclasses that do not have this parameter."""
    _state = None
    """The engine, or None before the first row."""

    @one_vs_rest
    @checked_fit
    def fit(self, X, y, callback=None):
        """Fit the classifier to the rows in the given order; return self.

        Parameters
        ----------
        X, y, callback
            As for `Weighted.fit`, without weights.
        """
        return self._fit(X, y, None, callback)

    @one_vs_rest
    @checked_fit
    def partial_fit(self, X, y, classes=None, callback=None):
        """Continue learning from the rows in the given order; return self.

        Parameters
        ----------
        X, y, classes, callback
            As for `AROW.partial_fit`.
        """
        return self._partial_fit(X, y, classes, None, callback)

    def _fit(self, X, y, sample_weight, callback):
        X, y, weights = self._first_rows(X, y, sample_weight)
        self._learn(X, self._signs(y), callback, weights, self.n_epochs)
        return self

    def _partial_fit(self, X, y, classes, sample_weight, callback):
        first = "coef_" not in vars(self)
        X, y, weights = self._next_rows(X, y, classes, sample_weight, first=first)
        if len(y):
            self._learn(X, self._signs(y), callback, weights, 1)
        return self

    def _learn(self, X, signs, callback, weights, n_passes):
        def report(t):
            self._publish()
            return callback(self, t)

        engine = self._state = self._engine(X, weights)
        engine.update = self._update
        with cleared_by_errors(self):
            run_passes(
                engine, X, signs, None, (None, weights), self._check, None if callback is None else report,
                repeat(None, n_passes), merging=False, enough=lambda: False,
            )  # fmt: skip
            engine.update = None  # so that nothing refers to itself
            self._publish()

    def _check(self):
        """Raise LearningFailed if the engine has refused an example."""
        refused, _ = self._state.failure()
        if refused:
            message = (
                f"{type(self).__name__}: the margin, variance or update at example number {refused} is not finite; "
                "scale the features, for example to [0, 1], or choose parameters that give smaller steps."
            )
            raise LearningFailed(message)
        if self._decided is not None:
            self._decided.append(self._state.decided)

    def _publish(self):
        engine = self._state
        self.coef_, self.t_ = engine.mean, engine.t
        self.n_mistakes_, self.n_updates_ = engine.n_mistakes, engine.states["updates"].item()

    def steps(self, n_samples):
        """Return the number of rows that `fit` processes and the row number of the first checkpoint."""
        return n_samples * self.n_epochs, FIRST

    def summary(self):
        """Return the fraction of non-zero weights and the number of updates, as a dict."""
        return self.progress() | {"n_updates": int(np.sum(self.n_updates_))}


@estimator
class Weighted:
    """Mixin that adds sample weights and class weights to an `IncrementalClassifier`.

    In a class statement it comes before the `IncrementalClassifier`.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, which multiply the weights of their rows; "balanced" is n_samples / (n_classes n_k)
        for the n_k rows of class k, and works with ``fit`` only, because ``partial_fit`` does not have all rows.  The
        published comparisons use None.
    """

    _: KW_ONLY
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)

    @one_vs_rest
    @checked_fit
    def fit(self, X, y, sample_weight=None, callback=None):
        """Fit the classifier to the rows in the given order; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Class labels of any type; with two classes, positive decision values mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, which multiply their losses.
        callback : callable, default=None
            ``callback(estimator, t)`` is called after each block of rows, t rows in all; returning True ends the fit.
        """
        return self._fit(X, y, sample_weight, callback)

    @one_vs_rest
    @checked_fit
    def partial_fit(self, X, y, classes=None, sample_weight=None, callback=None):
        """Continue learning from the rows in the given order; return self.

        Parameters
        ----------
        X, y, sample_weight, callback
            As for `fit`; class_weight="balanced" raises an error, because it needs all rows.
        classes : array of shape (n_classes,), default=None
            All classes; required in the first call if y does not contain all of them.
        """
        return self._partial_fit(X, y, classes, sample_weight, callback)


def check_memory(estimator, d, dtype, instead):
    """Raise ValueError if the full covariance matrix of d features exceeds `memory_limit`."""
    needed = d * d * dtype.itemsize / 1e6
    if needed > estimator.memory_limit:
        message = (
            f"{type(estimator).__name__}: a full covariance of {d:,} features needs {needed:,.0f} MB in {dtype}, more "
            f"than memory_limit={estimator.memory_limit:g}. Use {instead}, or increase memory_limit."
        )
        raise ValueError(message)


def per_row(values, n):
    """Broadcast a scalar or an array of n values to a float64 array of shape (n,)."""
    return np.full(n, values, dtype=np.float64)


def box(C, q):
    """Return the upper bound and the quadratic coefficient of each dual variable of an SVM.

    C (n,) multiplies the hinge loss in the primal objective if q is 1, and its square if q is 2.
    """
    return (C, np.zeros(len(C))) if q == 1 else (np.full(len(C), np.inf), 0.5 / C)

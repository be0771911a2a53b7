"""The scikit-learn interface of the online learners that accept more than two classes."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.classifier import decides
from klr_bench.estimators.core.parameters import COUNT
from klr_bench.estimators.online import engine
from klr_bench.estimators.online.base import OnlineKernelClassifier
from klr_bench.estimators.online.softmax import SoftmaxState

ENOUGH = 100_000
"""Steps after which a further pass gains little."""


class SoftmaxKernelClassifier(OnlineKernelClassifier):
    """A learner with the logistic loss for any number of classes.

    With two classes it is an `OnlineKernelClassifier`.  With more, f(x) has one value per class, which sum to 0, and
    the probabilities are their softmax: `dual_coef_` has shape (n_classes, n_support_), `decision_function` and
    `predict_proba` return (n_samples, n_classes), and an example is a mistake if the value of its class is not the
    largest.  The scaling is such that two classes would give the binary learner; see
    `klr_bench.estimators.online.softmax`.

    A subclass sets a second rule, `_rule_of_many`, and `_most_passes`.

    Parameters
    ----------
    n_epochs : int or None, default=None
        Passes of `fit` over the rows; the papers make one.  None is a number that suits the class, 10 for `OSKL` and 5
        for the others, less where there are many rows: 100,000 / n_samples, but at least 2.  A row that is inserted in
        several passes is one support vector, and the average is that of the last pass.
    average, kernel, gamma, degree, coef0, random_state, dtype, shuffle, class_weight
        See `OnlineKernelClassifier`.

    Attributes
    ----------
    classes_, support_vectors_, dual_coef_, n_support_, n_updates_, n_mistakes_, t_, n_features_in_
        See `OnlineKernelClassifier`; with more than two classes, classes_ and dual_coef_ as above.
    """

    _most_passes = 5
    _parameter_constraints = OnlineKernelClassifier._parameter_constraints | {"n_epochs": [COUNT, None]}

    @decides
    def decision_function(self, X):
        """Return f(x) for the rows of X (n_samples, n_features), as float64 (n_samples,) or (n_samples, n_classes)."""
        if not self._has_many():
            return super().decision_function(X)
        check_is_fitted(self, ["dual_coef_", "_state"])
        X = self._validate(X, dtype=self.support_vectors_.dtype)
        return np.ascontiguousarray(self._state.decide(self.dual_coef_.astype(X.dtype), X).T)

    def predict(self, X):
        """Return the predicted classes of the rows of X, (n_samples,); of equal values the first class wins."""
        if not self._has_many():
            return super().predict(X)
        return self.classes_[np.argmax(self.decision_function(X), axis=1)]

    def _probabilities(self, X):
        return softmax(self.decision_function(X), axis=1) if self._has_many() else super()._probabilities(X)

    def _passes(self, n):
        return max(2, min(self._most_passes, round(ENOUGH / n))) if self.n_epochs is None else self.n_epochs

    def _has_many(self):
        return len(getattr(self, "classes_", ())) > 2

    def _allowed(self, classes):
        if len(classes) <= 2:
            return super()._allowed(classes)
        if not self._is_logistic():
            message = f"{type(self).__name__}: loss={self.loss!r} is for two classes, got {len(classes)}; use 'logit'."
            raise ValueError(message)
        return classes

    def _signs(self, y):
        """Return the labels as -1.0 and +1.0; with more than two classes as 0, 1, ..."""
        signs = super()._signs(y)
        return np.searchsorted(self.classes_, y) if self._has_many() else signs

    def _new_state(self, X):
        return SoftmaxState(self._kernel(X), X, len(self.classes_)) if self._has_many() else super()._new_state(X)

    def _learning(self):
        if not self._has_many():
            return super()._learning()
        parameters, radius = self._rule_arguments()
        update = engine.Update(type(self)._rule_of_many, parameters, radius)

        def learn(X, codes, draws, numbers, weights):
            draws, factors = self._weighted(draws, weights)
            self._state.learn_block(update, X, codes, draws, numbers, factors)

        return learn

    def _is_logistic(self):
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._is_logistic()
        return tags

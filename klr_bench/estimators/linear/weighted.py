"""Linear learners that go through the rows, with weights of the rows."""

from __future__ import annotations

import numpy as np

from klr_bench.estimators.core.classifier import learns
from klr_bench.estimators.core.one_against_rest import one_against_rest
from klr_bench.estimators.core.parameters import CLASS_WEIGHT
from klr_bench.estimators.core.weights import refuse_balanced


class Weighted:
    """The ``fit`` and ``partial_fit`` of an `IncrementalClassifier` that takes weights; it stands before that class.

    A subclass has the parameter ``class_weight``, and its ``_learn(X, signs, callback, weights)`` gets the weights (n,)
    of the rows, all above 0, or None.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, by which those of the rows are multiplied; "balanced" is n_samples / (n_classes
        n_k) for n_k rows of class k, and is for ``fit`` only: ``partial_fit`` does not have all rows.  The published
        comparisons have None.
    """

    _parameter_constraints = {"class_weight": CLASS_WEIGHT}  # noqa: RUF012

    @learns
    @one_against_rest
    def fit(self, X, y, sample_weight=None, callback=None):
        """Forget an earlier fit and learn from all rows, in their order.

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

        Returns
        -------
        self
        """
        X, signs = self._begin(X, y)
        X, signs, weights = self._weighted(X, signs, sample_weight)
        self._start(X)
        for _ in range(self.n_epochs):
            if self._learn(X, signs, callback, weights):
                break
        return self

    @learns
    @one_against_rest
    def partial_fit(self, X, y, classes=None, sample_weight=None, callback=None):
        """Continue learning from the rows of X, in their order.

        Parameters
        ----------
        X, y, sample_weight, callback
            As for `fit`; class_weight="balanced" needs all rows, and is refused.
        classes : array of shape (n_classes,), default=None
            All classes; required in the first call if y does not contain all of them.

        Returns
        -------
        self
        """
        refuse_balanced(self)
        first = "coef_" not in vars(self)
        X, y = self._next_rows(X, y, classes, first=first)
        X, signs, weights = self._weighted(X, self._signs(y), sample_weight)
        if first:
            self._start(X)
        self._learn(X, signs, callback, weights)
        return self


def weights_or_1(weights):
    """Return weights (n,), or 1.0 where there are none."""
    return 1.0 if weights is None else weights


def of_rows(numbers, n):
    """Return a number for all rows, or one for each, as an array (n,), float64."""
    return np.full(n, numbers, dtype=np.float64)

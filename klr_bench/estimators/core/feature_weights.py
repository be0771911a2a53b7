"""Weights of the features, a parameter of several kernel classifiers: `WeightedFeatures`."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import InvalidParameterError, StrOptions

from klr_bench.estimators.core.kernels import PRECOMPUTED
from klr_bench.estimators.core.parameters import estimator, parameter
from klr_bench.estimators.core.rows import with_scaled_columns


@estimator
class WeightedFeatures:
    """Mixin for kernel classifiers that first multiply the features by weights.

    Parameters
    ----------
    feature_weights : array of shape (n_features,), "auto" or None, default=None
        Weights >= 0 by which the columns of X are multiplied in the fit and in predictions; None leaves X as it is.
        ``support_vectors_`` are weighted, and gamma="scale" and "median" are computed from the weighted features whose
        weight is not 0, "scale" after their means are subtracted, unlike without weights. "auto" is for `fit`, which
        then learns them as `KLR` does: with the rbf kernel, from dense rows, in more time than the fit itself takes.
        They include the division by the standard deviations.

    Attributes
    ----------
    feature_weights_ : ndarray of shape (n_features,)
        Weights of the columns of X; only there if `feature_weights` is not None.
    """

    _: KW_ONLY
    feature_weights: ArrayLike | str | None = parameter("array-like", StrOptions({"auto"}), None, default=None)

    def _learns_weights(self):
        return isinstance(self.feature_weights, str)

    def _first_rows(self, X, y, sample_weight=None):
        X, y, weights = super()._first_rows(X, y, sample_weight)
        if not self._learns_weights():
            return X, y, weights
        from klr_bench import KLR  # imported here to avoid a circular import

        learner = KLR(random_state=self.random_state)
        learner._choose(X, y, weights)
        self.feature_weights_ = learner.feature_weights_ / learner.scale_
        return self._weighted_features(X), y, weights

    def _next_rows(self, X, y, classes, sample_weight=None, *, first):
        if first and self._learns_weights():
            why = "needs all rows; call fit before partial_fit, or give an array"
            message = f"{type(self).__name__}: feature_weights='auto' {why}."
            raise ValueError(message)
        return super()._next_rows(X, y, classes, sample_weight, first=first)

    def _kernel(self, X, weights=None):
        """Return the kernel, with gamma computed from the centered features whose weight is not 0."""
        if self.feature_weights is None:
            return super()._kernel(X, weights)
        X = X if self.feature_weights_.all() else X[:, np.flatnonzero(self.feature_weights_)]
        shares = np.full(X.shape[0], 1 / X.shape[0]) if weights is None else weights / weights.sum()
        center = shares @ X
        return super()._kernel(X, weights, center) if sp.issparse(X) else super()._kernel(X - center, weights)

    def _validate(self, *data, dtype, reset=False):
        validated = super()._validate(*data, dtype=dtype, reset=reset)
        X, *y = validated if len(data) == 2 else [validated]
        if reset and self.feature_weights is not None:
            self._check_weights(X.shape[1])
        X = self._weighted_features(X)
        return (X, *y) if y else X

    def _check_weights(self, d):
        """Set `feature_weights_` if the weights of the d features are given.

        Raises ValueError if they are invalid, or if there are no features.
        """
        if self.kernel == PRECOMPUTED:
            message = f"{type(self).__name__}: feature_weights requires features, but kernel='precomputed' has none."
            raise ValueError(message)
        if self._learns_weights():
            return
        weights = np.array(self.feature_weights, dtype=np.float64)
        if weights.shape != (d,) or not ((weights >= 0) & (weights < np.inf)).all():
            message = (
                f"The 'feature_weights' parameter of {type(self).__name__} must be {d} finite numbers >= 0, one for "
                f"each feature of X. Got {self.feature_weights!r} instead."
            )
            raise InvalidParameterError(message)
        self.feature_weights_ = weights

    def _weighted_features(self, X):
        weights = vars(self).get("feature_weights_")
        return X if weights is None else with_scaled_columns(X, weights)

"""Weights of the features, the parameter `feature_weights` of several kernel classifiers."""

from __future__ import annotations

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError, StrOptions

from klr_bench.estimators.core.parameters import PRECOMPUTED
from klr_bench.estimators.core.rows import with_scaled_columns

FEATURE_WEIGHTS = ["array-like", StrOptions({"auto"}), None]
"""Constraints of `feature_weights`."""


def refuse_auto(estimator):
    """Raise ValueError if the weights are to be learned, which `partial_fit` cannot do."""
    if isinstance(getattr(estimator, "feature_weights", None), str):
        why = "needs all rows; call fit before partial_fit, or give an array"
        message = f"{type(estimator).__name__}: feature_weights='auto' {why}."
        raise ValueError(message)


def given_weights(estimator):
    """Set `feature_weights_` of an estimator if its weights are given as an array.

    Raises ValueError if they are invalid, or if there are no features.
    """
    name, given, d = type(estimator).__name__, estimator.feature_weights, estimator.n_features_in_
    if estimator.kernel == PRECOMPUTED:
        message = f"{name}: feature_weights requires features, but kernel='precomputed' has none."
        raise ValueError(message)
    if isinstance(given, str):  # "auto"
        return
    weights = np.array(given, dtype=np.float64)
    if weights.shape != (d,) or not ((weights >= 0) & (weights < np.inf)).all() or not weights.any():
        message = (
            f"The 'feature_weights' parameter of {name} must be {d} finite numbers >= 0, one for each feature of X, "
            f"and not all 0. Got {given!r} instead."
        )
        raise InvalidParameterError(message)
    estimator.feature_weights_ = weights


def weighted(estimator, X):
    """Multiply the columns of X by the weights of the features, if the estimator has any."""
    weights = vars(estimator).get("feature_weights_")
    return X if weights is None else with_scaled_columns(X, weights)

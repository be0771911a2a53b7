"""Base classes of linear classifiers that learn online, one row at a time."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.parameters import COUNT, POSITIVE, Interval, estimator, parameter
from klr_bench.estimators.linear.base import IncrementalClassifier, check_memory
from klr_bench.estimators.linear.engine import LIMITS, Blocked, Diagonal, Full

CONFIDENCE = Interval(Real, 0.5, 1, closed="neither")
"""Constraint of a probability between 0.5 and 1, both excluded."""
IN_CACHE = 256
"""Largest number of features whose full covariance fits in the cache; larger ones are updated in blocks."""


@estimator
class OnlineLinearClassifier(IncrementalClassifier):
    """Base class of linear classifiers that learn one row at a time by an update rule.

    In a subclass `_update` returns the compiled rule and its parameters, which are scalars or arrays with one value per
    row.

    Parameters
    ----------
    n_epochs : int, default=1
        Number of passes of ``fit`` over the rows, >= 1.  The published comparisons make one.
    """

    _: KW_ONLY
    n_epochs: int = parameter(COUNT, default=1)

    def _engine(self, X, weights):
        return self._state or Diagonal(X.shape[1], math.inf, 1.0)


@estimator
class ConfidenceLearner(OnlineLinearClassifier):
    """Base class of online linear classifiers with a Gaussian distribution over the weights.

    Parameters
    ----------
    covariance : {"full", "diagonal"}, default="full"
        "full": time and memory grow with the square of the number of features.  The covariance is stored in float64 for
        up to 256 features, otherwise in the precision of X.  "diagonal": they grow with the number of non-zero
        features, so it suits text data.  The comparisons with Tan et al. (2016, table 2) use "full".
    memory_limit : float, default=4000.0
        Largest size in MB of a full covariance, > 0; ``fit`` raises an error if it needs more.  The default is enough
        for 22,000 features in float64 and 31,000 in float32.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features), or (n_features,) if diagonal
        Covariance of the weights, computed when it is accessed.  One row adds at most 1e8, or 1e4 if it is stored in
        float32, to an eigenvalue of its inverse: with more, rounding would make it indefinite.
    """

    _fixed = ("covariance",)
    _: KW_ONLY
    covariance: str = parameter(StrOptions({"full", "diagonal"}), default="full")
    memory_limit: float = parameter(POSITIVE, default=4000.0)

    @property
    def covariance_(self):
        """Copy of the covariance of the weights; a list of arrays for more than two classes."""
        check_is_fitted(self, "coef_")
        if self._has_many():
            return [learner.covariance_ for learner in self.estimators_]
        return self._state.covariance()

    def _engine(self, X, weights, variance=1.0, limits=LIMITS):
        """Return the engine; a row adds at most `limits[dtype]` to 1 / variance."""
        if self._state is not None:
            return self._state
        d = X.shape[1]
        dtype = np.dtype(np.float64 if d <= IN_CACHE or self.covariance == "diagonal" else X.dtype)
        arguments = d, limits[dtype.name], variance
        if self.covariance == "diagonal":
            return Diagonal(*arguments)
        instead = 'covariance="diagonal"' if "covariance" in self.get_params() else "fewer features"
        check_memory(self, d, dtype, instead)
        return Full(*arguments) if d <= IN_CACHE else Blocked(*arguments, dtype)

"""scikit-learn's gradient boosting classifier, extended to sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from klr_bench.estimators.kernel_values.operands import DENSE_AT_MOST

LARGEST = 500_000_000
"""Maximum number of elements for which sparse rows are converted to dense rows."""


class GradientBoosting(HistGradientBoostingClassifier):
    """scikit-learn's `HistGradientBoostingClassifier`, with sparse rows converted to dense rows.

    Of sparse rows with more than 8,192 features it gets the columns that occur in the fit: it cannot split at others.
    Parameters, attributes and results are those of the base class, but for `n_features_in_` of such rows.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GradientBoosting:
        """Fit the classifier to the dense or sparse rows of X and their classes y; return self."""
        wide = sp.issparse(X) and X.shape[1] > DENSE_AT_MOST
        self._columns: Any = np.unique(sp.csr_matrix(X).indices) if wide else None
        self._width = X.shape[1] if wide else None
        return super().fit(self._dense(X), y, sample_weight)  # type: ignore[no-any-return]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row of X."""
        return super().predict(self._dense(X))  # type: ignore[no-any-return]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class for each row of X, of shape (n_samples, n_classes)."""
        return super().predict_proba(self._dense(X))  # type: ignore[no-any-return]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the raw score of each row of X, or one per class if there are more than two."""
        return super().decision_function(self._dense(X))  # type: ignore[no-any-return]

    def _dense(self, X: Any) -> Any:
        """Convert sparse rows to a dense array, without the columns that `fit` dropped."""
        if getattr(self, "_columns", None) is not None:
            if X.shape[1] != self._width:
                message = f"GradientBoosting: X has {X.shape[1]} features, but the model was fitted with {self._width}."
                raise ValueError(message)
            X = X[:, self._columns]
        if not sp.issparse(X):
            return X
        if X.shape[0] * X.shape[1] > LARGEST:
            size = f"{X.shape[0]} sparse rows of {X.shape[1]} features"
            message = f"GradientBoosting: {size} are too many to convert to a dense array; use another estimator."
            raise ValueError(message)
        return X.toarray()

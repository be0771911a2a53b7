"""The scikit-learn side of the linear learners: validation, one pass over the rows, prediction."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from klr_bench.binary import POSITIVE as POSITIVE
from klr_bench.binary import BinaryClassifier

COUNT = Interval(Integral, 1, None, closed="left")
CONFIDENCE = Interval(Real, 0.5, 1, closed="neither")
"""The constraint of a probability that is more than a guess."""
PREDICTED_ROWS = 4096


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

    def _begin(self, X, y):
        """Forget an earlier fit; return X, validated, and y as signs, (n_samples,) -1.0 or +1.0."""
        self._forget()
        X, y = self._validate(X, y, dtype=self._dtypes(), reset=True)
        self._set_classes(y)
        return X, self._signs(y)

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

"""The weights of rows: their own times those of their classes."""

from __future__ import annotations

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight


def row_weights(sample_weight, class_weight, X, y, classes):
    """Return the weights of the rows (n,), float64: their own times those of their classes; None where all are 1.

    Raises ValueError for negative weights, and for weights of the wrong shape.
    """
    if sample_weight is None and class_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if class_weight is None:
        return weights
    of_classes = compute_class_weight(class_weight, classes=classes, y=y)
    return weights * of_classes[np.searchsorted(classes, y)]


def refuse_balanced(estimator):
    """Raise a ValueError if the weights of an estimator's classes depend on rows that `partial_fit` does not have."""
    if estimator.class_weight == "balanced":
        message = (
            f"{type(estimator).__name__}: class_weight='balanced' needs the numbers of all rows, which partial_fit "
            "does not have; give a dict, or sample_weight."
        )
        raise ValueError(message)


def refuse_weightless(estimator, weights, y):
    """Raise a ValueError if the weights (n,) of a class in y (n,) are all 0."""
    for label in np.unique(y[weights == 0]).tolist():
        if not weights[y == label].any():
            name = type(estimator).__name__
            message = f"{name}: expected a weight above 0 in each class; those of {label!r} are all 0."
            raise ValueError(message)

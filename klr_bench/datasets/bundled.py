"""Real data sets that are bundled with scikit-learn and need no download."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine


def digits() -> tuple[Any, NDArray[np.str_]]:
    """Return 1797 images (64 pixels) of handwritten digits, labeled "even" or "odd"."""
    X, y = load_digits(return_X_y=True)
    return X, np.where(y % 2 == 0, "even", "odd")


def ten_digits() -> tuple[Any, NDArray[np.int64]]:
    """Return 1797 images (64 pixels) of handwritten digits, labeled with the digit (0 to 9)."""
    X, y = load_digits(return_X_y=True)
    return X, y


def breast_cancer() -> tuple[Any, NDArray[np.str_]]:
    """Return 569 tumors with 30 features (Wisconsin data), labeled "malignant" or "benign"."""
    data = load_breast_cancer()
    return data.data, data.target_names[data.target]


def wine() -> tuple[Any, NDArray[np.int64]]:
    """Return chemical analyses of 178 wines (13 features), labeled with the grape cultivar."""
    X, y = load_wine(return_X_y=True)
    return X, y


def iris() -> tuple[Any, NDArray[np.str_]]:
    """Return measurements of 150 irises (4 features, in cm), labeled with the species."""
    data = load_iris()
    return data.data, data.target_names[data.target]

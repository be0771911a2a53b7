"""Real data sets that come with scikit-learn and need no download."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine


def digits() -> tuple[Any, NDArray[np.str_]]:
    """Return 8 x 8 images of handwritten digits (1797, 64), and the labels odd or even.

    Pixel values are 0 to 16.
    """
    X, y = load_digits(return_X_y=True)
    return X, np.where(y % 2 == 0, "even", "odd")


def ten_digits() -> tuple[Any, NDArray[np.int64]]:
    """Return 8 x 8 images of handwritten digits (1797, 64), with values 0 to 16, and the digits."""
    X, y = load_digits(return_X_y=True)
    return X, y


def breast_cancer() -> tuple[Any, NDArray[np.str_]]:
    """Return the Wisconsin diagnostic measurements (569, 30) and the kind of each tumor."""
    data = load_breast_cancer()
    return data.data, data.target_names[data.target]


def wine() -> tuple[Any, NDArray[np.int64]]:
    """Return chemical measurements of wines (178, 13) and their three cultivars."""
    X, y = load_wine(return_X_y=True)
    return X, y


def iris() -> tuple[Any, NDArray[np.str_]]:
    """Return sepal and petal lengths and widths in cm (150, 4), and the species of each iris."""
    data = load_iris()
    return data.data, data.target_names[data.target]

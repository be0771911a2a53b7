"""Features scaled by what their training rows tell: to a range, or to mean 0 and deviation 1, long tails by ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LONG_TAIL = 12.0
"""Fourth standardised moment above which a feature has a long tail; a normal distribution has 3."""
MOST_QUANTILES = 1000


def long_tailed(X: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the columns of X (n, d) with a long tail; none that has two values only."""
    lowest, highest = X.min(axis=0), X.max(axis=0)
    away = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    variance = np.mean(away**2, axis=0)
    constant = variance <= np.finfo(np.float32).eps ** 2 * np.maximum(np.abs(lowest), np.abs(highest)) ** 2
    moment = np.mean(away**4, axis=0) / np.where(constant, 1.0, variance) ** 2
    two_values = ((lowest == X) | (highest == X)).all(axis=0)
    return np.flatnonzero((moment > LONG_TAIL) & ~constant & ~two_values)


def scaled(kind: str, X_train: Any, X_test: Any) -> tuple[Any, Any]:
    """Return training and test rows, dense float32, scaled by the training rows.

    `kind` is "minmax": to [0, 1]; "standard": to mean 0 and deviation 1; "auto": the same, after a feature with a long
    tail has been replaced by the ranks of its values.
    """
    from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

    if kind == "auto" and len(columns := long_tailed(X_train)):
        ranks = QuantileTransformer(n_quantiles=min(MOST_QUANTILES, len(X_train)), random_state=0)
        X_train, X_test = X_train.copy(), X_test.copy()
        X_train[:, columns] = ranks.fit_transform(X_train[:, columns])
        X_test[:, columns] = ranks.transform(X_test[:, columns])
    scaler = (MinMaxScaler if kind == "minmax" else StandardScaler)().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test)

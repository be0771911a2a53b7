"""Impute and scale features with statistics computed from the training rows only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONG_TAIL = 12.0
"""Kurtosis above which a feature has a long tail; a normal distribution has 3."""
MOST_QUANTILES = 1000


def long_tailed(X: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the indices of the features that have a long tail and more than two values.

    A feature has a long tail if its kurtosis exceeds `LONG_TAIL`.  X has shape (n, d).
    """
    lowest, highest = X.min(axis=0), X.max(axis=0)
    centered = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    variance = np.mean(centered**2, axis=0)
    constant = variance <= np.finfo(np.float32).eps ** 2 * np.maximum(np.abs(lowest), np.abs(highest)) ** 2
    moment = np.mean(centered**4, axis=0) / np.where(constant, 1.0, variance) ** 2
    two_values = ((lowest == X) | (highest == X)).all(axis=0)
    return np.flatnonzero((moment > LONG_TAIL) & ~constant & ~two_values)


@dataclass(frozen=True)
class Scaling:
    """Imputation and scaling of features, whose parameters were computed from training rows."""

    columns: NDArray[np.intp]
    """Indices of the features whose values are replaced by ranks."""
    imputer: Any = None
    ranks: Any = None
    scaler: Any = None
    """Fitted scikit-learn transformers, or None."""

    def transform(self, X: Any) -> Any:
        """Return a scaled copy of X (n, d), or X itself if nothing was requested."""
        if self.imputer is not None:
            X = self.imputer.transform(X).astype(np.float32)
        if len(self.columns):
            X = X.copy()
            X[:, self.columns] = self.ranks.transform(X[:, self.columns])
        return X if self.scaler is None else self.scaler.transform(X)


def scaling_by(X: Any, kind: str | None, *, impute: bool = False) -> Scaling:
    """Compute the parameters of a feature scaling from the dense float32 array X (n, d).

    `kind` is "minmax" (scale to [0, 1]), "standard" (mean 0 and standard deviation 1), "auto" (like "standard", after
    features with a long tail have been replaced by ranks) or None (no scaling; X may be sparse).  With `impute`, a
    missing value (NaN) is replaced by the median of its feature, and an indicator is added to the features.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

    columns, imputer, ranks = np.zeros(0, dtype=np.intp), None, None
    if impute:
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True).fit(X)
        X = Scaling(columns, imputer).transform(X)
    if kind is None:
        return Scaling(columns, imputer)
    if kind == "auto":
        columns = long_tailed(X)
    if len(columns):
        ranks = QuantileTransformer(n_quantiles=min(MOST_QUANTILES, len(X)), random_state=0).fit(X[:, columns])
    ranked = Scaling(columns, None, ranks).transform(X)
    return Scaling(columns, imputer, ranks, (MinMaxScaler if kind == "minmax" else StandardScaler)().fit(ranked))

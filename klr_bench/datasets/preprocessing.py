"""Impute and scale features with statistics computed from the training rows only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

LONG_TAIL = 12.0
"""Kurtosis above which a feature has a long tail; a normal distribution has 3."""
MOST_QUANTILES = 1000
NARROW = 1e-6
"""Range of a feature, relative to its largest absolute value, below which the smallest value is subtracted first."""
LAST_DIGITS = 8
"""Largest range of a constant feature, in rounding errors of its largest value."""
RESOLUTION = 1e-5
"""Largest rounding error of a value, relative to its distance from the median or the typical such distance."""


def needs_float64(X: Any) -> bool:
    """Return True if float32 has too few digits for the spread of a feature of X (n, d).

    Examples are times in seconds since 1970 that lie within an hour.  NaN is ignored, and so are features of a sparse
    matrix that are 0 in more than half of the rows.
    """
    return X.dtype == np.float64 and any(map(_loses_digits, (_full_columns(X) if sp.issparse(X) else X).T))


def _full_columns(X: Any) -> NDArray[np.float64]:
    """Return as an array the features of a CSR matrix that at least half of the rows store."""
    features, counts = np.unique(X.indices, return_counts=True)
    features = features[2 * counts >= X.shape[0]]
    stored = np.isin(X.indices, features)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    full = np.zeros((X.shape[0], len(features)))  # the whole matrix may have a hundred million columns
    full[rows[stored], np.searchsorted(features, X.indices[stored])] = X.data[stored]
    return full


def _loses_digits(x: NDArray[np.float64]) -> bool:
    error = np.abs(x - x.astype(np.float32))
    if not (error > 0).any():
        return False
    distance = np.abs(x - np.nanmedian(x))
    typical = np.nanmedian(distance) or np.nanmean(distance)  # more than half of the values may be equal
    varies = typical > LAST_DIGITS * np.finfo(np.float64).eps * np.nanmax(np.abs(x))
    return bool(varies and (error > RESOLUTION * np.maximum(distance, typical)).any())


def long_tailed(X: NDArray[Any]) -> NDArray[np.intp]:
    """Return the indices of the features that have a long tail and more than two values.

    A feature has a long tail if its kurtosis exceeds `LONG_TAIL`.  X has shape (n, d).
    """
    lowest, highest = X.min(axis=0), X.max(axis=0)
    centered = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    variance = np.mean(centered**2, axis=0)
    rounding = np.finfo(X.dtype).eps * np.maximum(np.abs(lowest), np.abs(highest))
    constant = (lowest == highest) | (variance <= rounding.astype(np.float64) ** 2)
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
    origin: Any = 0.0
    """Number that is subtracted from each feature before it is multiplied by its unit."""
    units: Any = 1.0
    """Power of two by which each feature is multiplied before it is scaled."""

    def transform(self, X: Any) -> Any:
        """Return a scaled copy of X (n, d) in float32.

        If no scaling was requested, return imputed values in the type of X, or X itself.
        """
        from sklearn import config_context

        with config_context(transform_output="default"):
            if self.imputer is not None:
                X = self.imputer.transform(X).astype(X.dtype)
            if self.scaler is None:
                return X
            X = (X - self.origin) * self.units
            if len(self.columns):
                X[:, self.columns] = self.ranks.transform(X[:, self.columns])
            return self.scaler.transform(X).astype(np.float32, copy=False)


def _origin(X: NDArray[Any]) -> NDArray[Any]:
    """Return the lowest value of each feature that varies little around a large number, or 0.

    The difference is exact.  StandardScaler takes such a feature for a constant.  Differences in the last digits, by
    which a constant may vary, are left as they are.
    """
    lowest, highest = X.min(axis=0), X.max(axis=0)
    size, spread = np.maximum(-lowest, highest), highest - lowest
    far = (spread > LAST_DIGITS * np.finfo(X.dtype).eps * size) & (spread < NARROW * size)
    return np.where(far, lowest, 0)


def _units(X: NDArray[Any]) -> NDArray[Any]:
    """Return powers of two by which features are multiplied so that their unit does not matter.

    A constant has 1.  MinMaxScaler takes a range below 10 eps for 0.  This becomes 10 eps of the largest absolute value
    in float64, and less than its last digit in float32.  Squares neither overflow nor underflow.
    """
    limits, lowest, highest = np.finfo(X.dtype), X.min(axis=0), X.max(axis=0)
    exponents = np.frexp(np.maximum(-lowest, highest))[1] - (4 if X.dtype == np.float32 else 0)
    exponents = np.where(lowest == highest, 0, np.clip(exponents, 2 - limits.maxexp, limits.maxexp - 2))
    units: NDArray[Any] = np.ldexp(limits.dtype.type(1), -exponents)
    return units


def scaling_by(X: Any, kind: str | None, *, impute: bool = False) -> Scaling:
    """Compute the parameters of a feature scaling from the dense array X (n, d).

    X is float32 or float64.  `kind` is "minmax" (scale to [0, 1]), "standard" (mean 0 and standard deviation 1), "auto"
    (like "standard", after features with a long tail have been replaced by ranks) or None (no scaling; X may be
    sparse).  With `impute`, a missing value (NaN) is replaced by the median of its feature, and an indicator is added
    to the features, and features that are constant, also among new rows, become 0.
    """
    from sklearn import config_context
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

    columns, imputer, ranks = np.zeros(0, dtype=np.intp), None, None
    with config_context(transform_output="default"):
        if impute:
            imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True).fit(X)
            X = Scaling(columns, imputer).transform(X)
        if kind is None:
            return Scaling(columns, imputer)
        origin = _origin(X)
        X = X - origin
        units = np.where(impute & (X.min(axis=0) == X.max(axis=0)), 0, _units(X))
        X = X * units
        if kind == "auto":
            columns = long_tailed(X)
        if len(columns):
            ranks = QuantileTransformer(n_quantiles=min(MOST_QUANTILES, len(X)), random_state=0).fit(X[:, columns])
            X[:, columns] = ranks.transform(X[:, columns])
        scaler = (MinMaxScaler if kind == "minmax" else StandardScaler)(copy=False).fit(X)
    return Scaling(columns, imputer, ranks, scaler, origin, units)

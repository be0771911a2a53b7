"""Feature scaling fitted on training rows: to a range, standardized, or by ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONG_TAIL = 12.0
"""Fourth standardized moment above which a feature counts as long-tailed; it is 3 for a normal distribution."""
MOST_QUANTILES = 1000


def long_tailed(X: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the columns of X (n, d) that are long-tailed and have more than two values."""
    lowest, highest = X.min(axis=0), X.max(axis=0)
    away = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    variance = np.mean(away**2, axis=0)
    constant = variance <= np.finfo(np.float32).eps ** 2 * np.maximum(np.abs(lowest), np.abs(highest)) ** 2
    moment = np.mean(away**4, axis=0) / np.where(constant, 1.0, variance) ** 2
    two_values = ((lowest == X) | (highest == X)).all(axis=0)
    return np.flatnonzero((moment > LONG_TAIL) & ~constant & ~two_values)


@dataclass(frozen=True)
class Scaling:
    """Feature scaling fitted to some rows."""

    columns: NDArray[np.intp]
    """Features that are replaced by ranks."""
    ranks: Any = None
    scaler: Any = None
    """Fitted scikit-learn transformer, or None."""

    def transform(self, X: Any) -> Any:
        """Return the scaled rows of dense X (n, d), float32; sparse rows are returned unchanged."""
        if len(self.columns):
            X = X.copy()
            X[:, self.columns] = self.ranks.transform(X[:, self.columns])
        return X if self.scaler is None else self.scaler.transform(X)


def scaling_by(X: Any, kind: str | None) -> Scaling:
    """Fit the scaling to dense rows X (n, d), float32.

    `kind` is "minmax": to [0, 1]; "standard": to mean 0 and deviation 1; "auto": the same, after a feature with a long
    tail has been replaced by the ranks of its values; None: no scaling, also of sparse rows.
    """
    from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

    columns, ranks = long_tailed(X) if kind == "auto" else np.zeros(0, dtype=np.intp), None
    if kind is None:
        return Scaling(columns)
    if len(columns):
        ranks = QuantileTransformer(n_quantiles=min(MOST_QUANTILES, len(X)), random_state=0).fit(X[:, columns])
    scaler = (MinMaxScaler if kind == "minmax" else StandardScaler)().fit(Scaling(columns, ranks).transform(X))
    return Scaling(columns, ranks, scaler)

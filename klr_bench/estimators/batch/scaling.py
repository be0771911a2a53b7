"""Standardization without an effect of outliers and constant features: `Scaling`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler
from sklearn.utils.sparsefuncs import min_max_axis

from klr_bench.estimators.core.rows import ROUNDING, in_layout, weighted_sample

LIMIT = 10.0
"""Distance of the limits of a feature from its median, in typical deviations."""
SPREAD_ROWS = 5000
"""Number of rows, a `weighted_sample`, from which medians and typical deviations are computed."""


@dataclass(frozen=True)
class Scaling:
    """Limits, origin and standard deviations of d features, computed from training rows.

    A feature is limited to `LIMIT` typical deviations from its median.  The typical deviation is the median distance
    from the median, over the values that differ from the median.  A feature counts as constant if its standard
    deviation is too small for float64.
    """

    columns: np.ndarray
    """Indices of the features that are not constant, or the first one; `transform` drops the others."""
    limits: np.ndarray
    """Lowest and highest value of each feature, (2, d); a value beyond is replaced by the limit."""
    mean: np.ndarray
    deviation: np.ndarray
    """Weighted mean and standard deviation (d,) of the limited values; the latter is 1 for a constant feature."""
    origin: np.ndarray
    """Values (d,) that are subtracted: the mean, or for sparse rows 0, if it is within the limits."""

    @classmethod
    def of(cls, X, weights):
        """Compute the scaling from the rows X (n, d), dense or CSR, with weights (n,) > 0 or None."""
        n, d = X.shape
        weights = np.ones(n) if weights is None else weights
        extremes = min_max_axis(X, axis=0) if sp.issparse(X) else (X.min(axis=0), X.max(axis=0))
        lowest, highest = np.asarray(extremes, dtype=np.float64)
        is_constant = highest - lowest <= ROUNDING * np.maximum(np.abs(lowest), np.abs(highest))
        rows, of_rows = weighted_sample(n, SPREAD_ROWS, weights, np.random.RandomState(0))
        median, spread = _medians_and_spreads(X[rows], of_rows)
        largest = np.maximum(highest - median, median - lowest)
        spread = np.where(is_constant, 1.0, np.where(spread > 0, spread, largest))
        width = np.where(is_constant, 0.0, LIMIT * spread)  # if all are constant, new values have no effect
        limits = np.array([median - width, median + width])
        origin = np.clip(0.0, *limits) if sp.issparse(X) else median
        relative = cls(np.arange(d), limits, origin, spread, origin).transform(X, np.float64)
        scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(relative, sample_weight=weights)
        deviation = spread * np.sqrt(scaler.var_)
        is_constant |= deviation == 0
        mean = np.where(is_constant, origin, origin + spread * scaler.mean_)
        deviation = np.where(is_constant, 1.0, deviation)
        columns = np.flatnonzero(~is_constant)
        return cls(
            columns if len(columns) else np.arange(1), limits, mean, deviation, origin if sp.issparse(X) else mean
        )

    def transform(self, X, dtype):
        """Return the features of X that are not constant, limited and divided by their deviations.

        CSR rows stay sparse if the scaling was computed from CSR rows.
        """
        keeps_zeros = sp.issparse(X) and np.array_equal(self.origin, np.clip(0.0, *self.limits))
        X = X if keeps_zeros else in_layout(X, sparse=False)
        limits, origin, deviation = self.limits, self.origin, self.deviation
        if len(self.columns) < len(origin):
            X = X[:, self.columns]
            limits, origin, deviation = limits[:, self.columns], origin[self.columns], deviation[self.columns]
        if not keeps_zeros:
            values = np.clip(X, *limits, dtype=np.float64)
            values -= origin
            values /= deviation
            return values.astype(dtype, copy=False)
        data = (np.clip(X.data, *limits[:, X.indices]) - origin[X.indices]) / deviation[X.indices]
        return sp.csr_matrix((data.astype(dtype), X.indices, X.indptr), X.shape)


def _medians_and_spreads(X, weights):
    """Return each column's weighted median and typical deviation, which is 0 if it is constant."""
    n, d = X.shape
    if sp.issparse(X):
        values, columns, counts = X.data.astype(np.float64), X.indices, np.repeat(weights, np.diff(X.indptr))
        zeros = np.maximum(weights.sum() - np.bincount(columns, counts, d), 0)  # weight of the values 0 of each column
        values, columns = np.append(values, np.zeros(d)), np.append(columns, np.arange(d))
        counts = np.append(counts, zeros)
    else:
        values, columns, counts = X.astype(np.float64).ravel(), np.tile(np.arange(d), n), np.repeat(weights, d)
    median = _medians(values, columns, counts, d)
    distances, sizes = np.abs(values - median[columns]), np.maximum(np.abs(values), np.abs(median[columns]))
    differ = (distances > ROUNDING * sizes) & (counts > 0)
    return median, _medians(distances[differ], columns[differ], counts[differ], d)


def _medians(values, groups, weights, n_groups):
    """Return the weighted median of the values in each group, or 0 for a group without values."""
    order, totals = np.lexsort((values, groups)), np.bincount(groups, weights, n_groups)
    below, ends = np.cumsum(weights[order]), np.cumsum(totals)
    halves = ends - totals / 2 - 1e-12 * ends[-1]  # a tie by rounding counts as reached
    places = np.minimum(np.searchsorted(below, halves), max(len(values) - 1, 0))
    return np.where(totals > 0, values[order][places], 0.0) if len(values) else np.zeros(n_groups)

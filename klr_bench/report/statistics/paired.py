"""Paired differences of two methods on one data set: intervals, p-values, probabilities.

Repeats that split the same set again share rows, so that their differences are correlated, and the variance of their
mean is larger than that of independent ones: Nadeau and Bengio (Machine Learning 52, 2003) replace s^2 / n by
s^2 (1 / n + n_test / n_train).  Corani and Benavoli (Machine Learning 100, 2015) have the same factor, written with the
correlation rho = n_test / (n_train + n_test) of two repeats, in the posterior of the mean difference.

Differences are arrays (..., n), one comparison along the last axis.  `ratio` is n_test / n_train if repeats split the
same set again, else 0.  A NaN is a missing repeat, and is left out.  Fewer than two repeats, or an infinite difference,
give NaN for everything except the mean.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

Array = NDArray[np.float64]


class Interval(NamedTuple):
    """Repeats, mean difference, interval ends and two-sided p-value, as arrays with one entry per comparison."""

    n: NDArray[np.int64]
    mean: Array
    low: Array
    high: Array
    p: Array


class Shares(NamedTuple):
    """Probabilities that the mean difference is below, in and above the region of equivalence."""

    worse: Array
    equivalent: Array
    better: Array


def corrected_interval(differences: ArrayLike, ratio: ArrayLike = 0.0, level: float = 0.95) -> Interval:
    """Return the corrected resampled t interval of mean differences and the p-value.

    If all differences are equal, the interval has no width; p is then 1 if they are 0, and otherwise 0.
    """
    n, mean, scale = _moments(differences, ratio)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(n - 1.0, -np.abs(mean / scale))
        half = np.where(scale == 0, 0.0, stdtrit(n - 1.0, (1 + level) / 2) * scale)
    return Interval(n, mean, mean - half, mean + half, np.where((scale == 0) & (mean == 0), 1.0, p))


def correlated_t(differences: ArrayLike, ratio: ArrayLike = 0.0, rope: float = 0.01) -> Shares:
    """Return the probabilities of the Bayesian correlated t test; positive means better.

    Mean differences of at most `rope` count as equivalent.  The posterior of the mean difference, from a flat prior, is
    Student's t with n - 1 degrees of freedom.  If all differences are equal it is that one value; a value of 0 without
    a region is half worse and half better.
    """
    n, mean, scale = _moments(differences, ratio)
    with np.errstate(divide="ignore", invalid="ignore"):
        worse = stdtr(n - 1.0, (-rope - mean) / scale)
        better = stdtr(n - 1.0, (mean - rope) / scale)
    tie = 0.5 * ((mean == 0) & (rope == 0))
    worse = np.where(scale == 0, (mean < -rope) + tie, worse)
    better = np.where(scale == 0, (mean > rope) + tie, better)
    return Shares(worse, np.clip(1 - worse - better, 0.0, 1.0), better)


def holm(p_values: ArrayLike) -> Array:
    """Return the p-values (m,), adjusted by Holm's step-down method.

    S. Holm, Scandinavian Journal of Statistics 6, 1979.

    The k-th smallest of m is multiplied by m - k + 1; none is below that of a smaller one, nor above 1.  A NaN is a
    missing comparison: it stays, and is not counted.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")[: np.count_nonzero(~np.isnan(p))]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(p.shape, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _moments(differences: ArrayLike, ratio: ArrayLike) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the number of repeats, their mean, and the standard deviation of the mean (or NaN)."""
    d = np.asarray(differences, dtype=float)
    n = np.count_nonzero(~np.isnan(d), axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # too few or infinite values
        lowest = np.nanmin(d, axis=-1)
        equal = (lowest == np.nanmax(d, axis=-1)) & (n > 1)
        mean = np.where(equal, lowest, np.nanmean(d, axis=-1))  # the mean of equal values, without rounding error
        scale = np.sqrt(np.nanvar(d, axis=-1, ddof=1) * (1 / n + np.asarray(ratio)))
    scale = np.where(equal, 0.0, scale)
    return np.asarray(n), mean, np.where((n > 1) & np.isfinite(mean) & np.isfinite(scale), scale, np.nan)

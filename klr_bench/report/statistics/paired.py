"""Paired differences of two methods on one data set: an interval, a p-value, and Bayesian probabilities.

Repeats that split one set again share rows, so that their differences are correlated, and the variance of their mean is
larger than that of independent ones: Nadeau and Bengio (Machine Learning 52, 2003) replace s^2 / n by
s^2 (1 / n + n_test / n_train).  Corani and Benavoli (Machine Learning 100, 2015) have the same factor, written with the
correlation rho = n_test / (n_train + n_test) of two repeats, in the posterior of the mean difference.

Differences are arrays (..., n), one comparison along the last axis.  A NaN is a repeat that is not there, and is left
out.  Fewer than two repeats, or an infinite difference, give NaN for all but the mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import stdtr, stdtrit

Array = NDArray[np.float64]


class Interval(NamedTuple):
    """For each comparison, arrays (...): repeats, mean difference, the ends of its interval, two-sided p-value."""

    n: NDArray[np.int64]
    mean: Array
    low: Array
    high: Array
    p: Array


class Shares(NamedTuple):
    """For each comparison, arrays (...): the probability that the mean difference is below, in and above the region."""

    worse: Array
    equivalent: Array
    better: Array


def corrected_interval(differences: ArrayLike, test_share_ratio: ArrayLike = 0.0, level: float = 0.95) -> Interval:
    """Return the corrected resampled t interval of mean differences, and the p-value of the mean being 0.

    Parameters
    ----------
    differences : (..., n)
    test_share_ratio : float or (...)
        n_test / n_train where repeats split one set again; 0, the ordinary paired t, where they do not.
    level : float in (0, 1)
        Coverage of the interval.

    Where all differences are equal the interval has no width; p is then 1 if they are 0, and otherwise 0.
    """
    if not 0 < level < 1:
        message = f"level: expected a number between 0 and 1, got {level!r}"
        raise ValueError(message)
    n, mean, scale = _moments(differences, test_share_ratio)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(n - 1.0, -np.abs(mean / scale))
        half = np.where(scale == 0, 0.0, stdtrit(n - 1.0, (1 + level) / 2) * scale)
        low, high = mean - half, mean + half
    p = np.where((scale == 0) & (mean == 0), 1.0, p)
    unknown = ~np.isfinite(scale)
    return Interval(n, mean, *(np.where(unknown, np.nan, values) for values in (low, high, p)))


def correlated_t(differences: ArrayLike, correlation: ArrayLike = 0.0, rope: float = 0.01) -> Shares:
    """Return the probabilities of the Bayesian correlated t test.

    Parameters
    ----------
    differences : (..., n)
        A positive one means that the method is better.
    correlation : float or (...), at least 0 and below 1
        Of two repeats: n_test / (n_train + n_test) where they split one set again, else 0.
    rope : float, at least 0
        Mean differences of at most this size count as equivalent.

    The posterior of the mean difference, from a flat prior, is Student's t with n - 1 degrees of freedom.  Where all
    differences are equal it is that one value; a value of 0 without a region is half worse and half better.
    """
    rho = np.asarray(correlation, dtype=float)
    if not np.all((rho >= 0) & (rho < 1)):
        message = f"correlation: expected at least 0 and below 1, got {correlation!r}"
        raise ValueError(message)
    if not rope >= 0:
        message = f"rope: expected a number of at least 0, got {rope!r}"
        raise ValueError(message)
    n, mean, scale = _moments(differences, rho / (1 - rho))
    with np.errstate(divide="ignore", invalid="ignore"):
        worse = stdtr(n - 1.0, (-rope - mean) / scale)
        better = stdtr(n - 1.0, (mean - rope) / scale)
    sure, tie = scale == 0, 0.5 * ((mean == 0) & (rope == 0))
    worse = np.where(sure, (mean < -rope) + tie, worse)
    better = np.where(sure, (mean > rope) + tie, better)
    unknown = ~np.isfinite(scale)
    worse, better = (np.where(unknown, np.nan, values) for values in (worse, better))
    return Shares(worse, np.clip(1 - worse - better, 0.0, 1.0), better)


def holm(p_values: ArrayLike) -> Array:
    """Return the p-values, (m,), adjusted by Holm's step-down method (Scandinavian Journal of Statistics 6, 1979).

    The k-th smallest of m is multiplied by m - k + 1; none is below that of a smaller one, nor above 1.  A NaN stands
    for no comparison: it stays, and is not counted.
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _moments(differences: ArrayLike, ratio: ArrayLike) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the number of repeats, their mean, and the standard deviation of the mean, NaN where it is unknown."""
    d, factor = np.asarray(differences, dtype=float), np.asarray(ratio, dtype=float)
    if not np.all(factor >= 0):
        message = f"test_share_ratio: expected numbers of at least 0, got {ratio!r}"
        raise ValueError(message)
    known = ~np.isnan(d)
    n = known.sum(axis=-1)
    filled = np.where(known, d, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = filled.sum(axis=-1) / n
        lowest = np.where(known, d, np.inf).min(axis=-1, initial=np.inf)
        highest = np.where(known, d, -np.inf).max(axis=-1, initial=-np.inf)
        equal = (lowest == highest) & (n > 1)
        mean = np.where(equal, lowest, mean)  # without the rounding of the sum
        squares = np.where(known, (d - mean[..., None]) ** 2, 0.0).sum(axis=-1)
        scale = np.sqrt(squares / (n - 1) * (1 / n + factor))
    scale = np.where(equal & np.isfinite(lowest), 0.0, scale)
    return n, mean, np.where((n > 1) & np.isfinite(mean), scale, np.nan)


def welch_interval(first: Array, second: Array, level: float = 0.95) -> Interval:
    """Return Welch's t interval of mean(first) - mean(second), which need not be of one length or one spread."""
    found = stats.ttest_ind(first, second, equal_var=False)
    low, high = found.confidence_interval(level)
    n = np.array(min(len(first), len(second)))
    return Interval(n, np.asarray(first.mean() - second.mean()), low, high, found.pvalue)

"""Compare two methods on one data set by their paired differences.

If each repeat splits the same data again, the repeats share rows, so their differences are correlated and the variance
of the mean is larger than for independent differences: Nadeau and Bengio (Machine Learning 52, 2003) replace s^2 / n by
s^2 (1 / n + n_test / n_train).  Corani and Benavoli (Machine Learning 100, 2015) use the same factor, written with the
correlation rho = n_test / (n_train + n_test) of two repeats, in the posterior of the mean difference.

Differences are arrays (..., n) with one comparison along the last axis.  `ratio` is n_test / n_train if each repeat
splits the same data again, otherwise 0.  Missing repeats (NaN) are ignored.  With fewer than two repeats or an infinite
difference, all results except the mean are NaN.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

Array = NDArray[np.float64]


class Interval(NamedTuple):
    """Confidence intervals and two-sided p-values of mean differences, one per comparison."""

    n: NDArray[np.int64]
    mean: Array
    low: Array
    high: Array
    p: Array


class Shares(NamedTuple):
    """Probabilities that the mean difference is negative, negligible or positive."""

    worse: Array
    equivalent: Array
    better: Array


def corrected_interval(differences: ArrayLike, ratio: ArrayLike = 0.0, level: float = 0.95) -> Interval:
    """Return the corrected resampled t-test of mean differences, with confidence intervals.

    If all differences are equal, the interval has width 0, and p is 1 if they are 0 and otherwise 0.
    """
    n, mean, scale = _moments(differences, ratio)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(n - 1.0, -np.abs(mean / scale))
        half = np.where(scale == 0, 0.0, stdtrit(n - 1.0, (1 + level) / 2) * scale)
    return Interval(n, mean, mean - half, mean + half, np.where((scale == 0) & (mean == 0), 1.0, p))


def correlated_t(differences: ArrayLike, ratio: ArrayLike = 0.0, rope: float = 0.01) -> Shares:
    """Return the probabilities of the Bayesian correlated t-test.

    Positive differences are better, and mean differences up to `rope` count as equivalent.  With a flat prior the
    posterior of the mean difference is Student's t with n - 1 degrees of freedom.  If all differences are equal, it is
    concentrated on that value; a value of 0 with rope=0 counts half as worse and half as better.
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
    """Return the p-values, of shape (m,), adjusted by Holm's step-down method.

    Holm (Scandinavian Journal of Statistics 6, 1979) multiplies the k-th smallest of m p-values by m - k + 1, and
    limits the results to an increasing sequence up to 1.  Missing comparisons (NaN) stay NaN and are not counted in m.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")[: np.count_nonzero(~np.isnan(p))]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(p.shape, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _moments(differences: ArrayLike, ratio: ArrayLike) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the number of differences, their mean, and the standard error of the mean."""
    d = np.asarray(differences, dtype=float)
    n = np.count_nonzero(~np.isnan(d), axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy warns about too few or infinite values
        lowest = np.nanmin(d, axis=-1)
        equal = (lowest == np.nanmax(d, axis=-1)) & (n > 1)
        mean = np.where(equal, lowest, np.nanmean(d, axis=-1))  # avoids rounding errors when all values are equal
        scale = np.sqrt(np.nanvar(d, axis=-1, ddof=1) * (1 / n + np.asarray(ratio)))
    scale = np.where(equal, 0.0, scale)
    return np.asarray(n), mean, np.where((n > 1) & np.isfinite(mean) & np.isfinite(scale), scale, np.nan)

"""Whether a difference between two runs is more than chance: t intervals, and Holm's correction over many of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.05
"""Of a test: a corrected p-value below it is called significant."""
FEWEST = 3
"""Repeats that a test needs; with two the interval is twelve times as wide as their distance."""


@dataclass(frozen=True)
class Interval:
    """A mean difference, its confidence interval, and the two-sided p-value of no difference."""

    mean: float
    low: float
    high: float
    p: float


def corrected_interval(differences: NDArray[Any], ratio: float, level: float = 0.95) -> Interval:
    """Return the corrected resampled t interval of paired differences, (n,), one per repeat, not all of them equal.

    The variance of the mean is (1/n + ratio) s^2, with n - 1 degrees of freedom.  `ratio` is n_test / n_train where
    the repeats split one set of rows again, so that their training rows overlap, and 0 where the test rows are fixed.
    See Nadeau and Bengio, Inference for the generalization error, Machine Learning 52 (2003).
    """
    n, mean = len(differences), float(np.mean(differences))
    error = math.sqrt((1 / n + ratio) * float(np.var(differences, ddof=1)))
    margin = float(stats.t.isf((1 - level) / 2, n - 1)) * error
    return Interval(mean, mean - margin, mean + margin, 2 * float(stats.t.sf(abs(mean) / error, n - 1)))


def welch_interval(first: NDArray[Any], second: NDArray[Any], level: float = 0.95) -> Interval:
    """Return Welch's t interval of mean(first) - mean(second), which need not be of one length or one spread."""
    found = stats.ttest_ind(first, second, equal_var=False)
    bounds = found.confidence_interval(level)
    return Interval(float(np.mean(first) - np.mean(second)), float(bounds.low), float(bounds.high), float(found.pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number by Holm's step-down procedure, in the given order."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = largest
    return corrected

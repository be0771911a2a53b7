"""Whether a difference between two runs is more than chance: t intervals, of pairs or of two runs of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from klr_bench.report.statistics import paired

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
    """Return the corrected resampled t interval of paired differences, (n,), as `paired.corrected_interval`."""
    found = paired.corrected_interval(differences, ratio, level)
    return Interval(*(float(value) for value in found[1:]))


def welch_interval(first: NDArray[Any], second: NDArray[Any], level: float = 0.95) -> Interval:
    """Return Welch's t interval of mean(first) - mean(second), which need not be of one length or one spread."""
    found = stats.ttest_ind(first, second, equal_var=False)
    bounds = found.confidence_interval(level)
    return Interval(float(np.mean(first) - np.mean(second)), float(bounds.low), float(bounds.high), float(found.pvalue))

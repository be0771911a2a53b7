"""Outcomes of comparisons: a relation holds, does not hold, or is undecided.

A relation holds if it is true for every difference in the 95 % confidence interval of the difference of the two means,
does not hold if it is false for every one, and is undecided otherwise.  The standard error is that of the differences
on the same splits if both results have the same splits, and Welch's otherwise; if each repeat splits the same rows
again, with the correction of Nadeau and Bengio.  The standard deviations over the repeats, if a statement compares
these, have the interval of the F test, or of the chi-square test for a constant.

Without a spread, as after one run, and if no repeat differs from another, the interval is that of the scatter that
repeats usually have: one percentage point for rates, and a factor of 1.5 for everything else.  Sizes of data sets do
not scatter.
"""

from __future__ import annotations

import math

from scipy import stats

from klr_bench.metrics.metric import Metric
from klr_bench.report.measured import SIZES, Entry
from klr_bench.report.papers.model import Statement
from klr_bench.report.papers.verdicts import NOT_RATES, POINT

LEVEL = 0.95
FACTOR = 1.5
"""Largest ratio of two results without a spread that is attributed to chance."""
TAIL = (1 + LEVEL) / 2
Interval = tuple[float, float]


def constant(value: float) -> Entry:
    """Return a number that is not measured, as the right-hand side of a comparison."""
    return Entry(0, value, None)


def outcome(statement: Statement, interval: Interval) -> bool | None:
    """Return True if a relation holds, False if it does not, and None if undecided."""
    low, high = interval
    within = statement.within * (1 + 1e-9)
    for_all, for_some = {
        "above": (low > -within, high > -within),
        "at least": (low >= -within, high >= -within),
        "below": (high < within, low < within),
        "at most": (high <= within, low <= within),
        "equal to": (low >= -within and high <= within, high >= -within and low <= within),
    }[statement.relation]
    return True if for_all else None if for_some else False


def interval(statement: Statement, left: Entry, right: Entry, metric: Metric) -> Interval:
    """Return the confidence interval of the left-hand minus the right-hand side."""
    if statement.spread:
        return _interval_of_spreads(statement, left, right)
    assert left.mean is not None
    assert right.mean is not None
    difference = left.mean - statement.times * right.mean
    if math.isnan(difference):  # both are infinite
        return -math.inf, math.inf
    error = _standard_error(left, right, statement.times)
    if error is not None:
        half = error[0] * float(stats.t.ppf(TAIL, error[1]))
    elif {statement.metric, statement.than_metric} & {*SIZES}:
        half = 0.0
    elif metric.unit == "percent" and metric.name not in NOT_RATES:
        half = POINT
    else:
        half = (FACTOR - 1) * min(abs(left.mean), abs(statement.times * right.mean))
    return difference - half, difference + half


def _standard_error(left: Entry, right: Entry, times: float) -> tuple[float, float] | None:
    """Return the standard error and its degrees of freedom, or None without a spread."""
    if left.std is not None and right.std is not None and left.values and left.values.keys() == right.values.keys():
        differences = [value - times * right.values[split] for split, value in left.values.items()]
        std = Entry.of(differences).std or 0.0
        error = std * math.sqrt(1 / len(differences) + max(left.ratio, right.ratio)) if std else 0.0
        return (error, len(differences) - 1) if left.std or right.std else None
    sides = [(entry, scale) for entry, scale in ((left, 1.0), (right, times)) if entry.n]
    if any(entry.n < 2 or entry.std is None for entry, _ in sides):
        return None
    parts = [
        ((scale * entry.std) ** 2 * (1 / entry.n + entry.ratio) if entry.std else 0.0, entry.n - 1)
        for entry, scale in sides
    ]
    variance = sum(part for part, _ in parts)
    if math.isinf(variance):  # the numbers of rows are not known
        return math.inf, 1
    return (math.sqrt(variance), variance**2 / sum(part**2 / df for part, df in parts)) if variance else None


def _interval_of_spreads(statement: Statement, left: Entry, right: Entry) -> Interval:
    """Return the interval of a difference of standard deviations, the right one as given."""
    ours, theirs = left.std, statement.times * ((right.std if right.n else right.mean) or 0.0)
    assert ours is not None
    if not (ours and theirs):
        return ours - theirs, ours - theirs
    ratio = stats.f(left.n - 1, right.n - 1) if right.n else stats.chi2(left.n - 1, scale=1 / (left.n - 1))
    low, high = (float(ratio.ppf(tail)) for tail in (TAIL, 1 - TAIL))
    return ours / math.sqrt(low) - theirs, ours / math.sqrt(high) - theirs

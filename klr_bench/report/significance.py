"""Which line of a table is the best of a column, and which lines cannot be told apart from it.

Two lines are compared over the repeats that both ended well: the same split and order of rows, so that differences are
paired.  The p-values of a column are adjusted by Holm over all its pairs, not over those with the best line alone: the
best is chosen by the same numbers, and is one of all pairs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from klr_bench.metrics.metric import Metric
from klr_bench.report.manifest import Column
from klr_bench.report.measured import Groups
from klr_bench.report.statistics.paired import Array, corrected_interval, holm

LEAST_REPEATS = 3
"""With a test share of 20 % the interval is 11 standard deviations of a difference to either side for two repeats, 3.3
for three, 1.9 for five: two say nothing."""
LEVEL = 0.95
MOST_LINES = 100
"""Lines of a column that are compared, every two of them."""
UNMARKED = {"load", "objective"}
"""Beside times and memory: what others do, and what lines may minimise with different penalties."""

Place = Literal["best", "alike", ""]


@dataclass(frozen=True)
class Mark:
    """Where a line stands beside the best of its column, in the unit of records.csv.

    `place` is "best", "alike" where it is not distinguishable from the best, "" where it is, or is not compared.  The
    mean difference (line minus best) and the ends of its interval are over the `n` repeats that both have; None where
    there is none.
    """

    place: Place
    n: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class Marks:
    """The marks of one metric on one data set; lines without a value have none, nor has a column that is constant.

    `missing` says why some lines, or all, were not compared with the best, "" where all were.  `corrected`: whether the
    test takes into account that the repeats split one set again.
    """

    lines: Mapping[Column, Mark] = field(default_factory=dict)
    missing: str = ""
    corrected: bool = True


@dataclass(frozen=True)
class Sample:
    """A metric of lines that are compared: `values` (lines, repeats), NaN where there is none.

    `ratio`, (lines,), is n_test / n_train where each repeat splits one set again, 0 where it does not, and infinite
    where the numbers of rows are not known.
    """

    columns: Sequence[Column]
    values: Array
    ratio: Array


class Pair(NamedTuple):
    """Two lines of a sample by number: their mean paired difference, first minus second, its interval and p-values.

    The ends of the interval and the p-values are NaN if the two cannot be compared.
    """

    first: int
    second: int
    n: int
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


def is_marked(metric: Metric) -> bool:
    """Say whether the best of a metric is marked: one with a direction, that is neither a time nor memory."""
    stored = metric.stored and not metric.compares
    return bool(metric.better) and stored and metric.unit not in ("s", "min", "MB") and metric.name not in UNMARKED


def marks(
    groups: Groups, columns: Iterable[Column], metrics: Iterable[Metric], *, resampled: bool, by: str | None
) -> dict[str, Marks]:
    """Return the marks of the metrics on one data set, by name; those that have none are left out.

    `groups` are its records by line, `columns` the lines in their order.  `resampled`: whether each repeat splits one
    set again.  `by` is a parameter whose values are columns of the table: only lines with the same value are compared.
    """
    order = list(columns)
    found = {}
    for metric in filter(is_marked, metrics):
        parts = [_marks(sample, metric) for sample in samples(groups, order, metric.name, resampled=resampled, by=by)]
        lines = {column: mark for part in parts for column, mark in part.lines.items()}
        if lines:
            found[metric.name] = Marks(lines, next(filter(None, (part.missing for part in parts)), ""), resampled)
    return found


def samples(
    groups: Groups, columns: Sequence[Column], name: str, *, resampled: bool, by: str | None = None
) -> list[Sample]:
    """Return the values of a metric, a sample for each value of the parameter `by`, of the lines that have one."""
    found: dict[Any, list[Column]] = {}
    for column in columns:
        if any(not math.isnan(row.get(name, math.nan)) for row in _ok(groups, column)):
            found.setdefault(column[1].get(by) if by else None, []).append(column)
    return [_sample(groups, columns, name, resampled=resampled) for columns in found.values()]


def _ok(groups: Groups, column: Column) -> list[Mapping[Any, Any]]:
    return [row for row in groups.get(column, ()) if row["status"] == "ok"]


def _sample(groups: Groups, columns: Sequence[Column], name: str, *, resampled: bool) -> Sample:
    def repeat(row: Mapping[Any, Any]) -> tuple[Any, Any]:
        seed = row.get("seed")
        return (None if seed is None or math.isnan(seed) else seed), row["repeat"]

    places: dict[tuple[Any, Any], int] = {}
    for column in columns:
        for row in _ok(groups, column):
            places.setdefault(repeat(row), len(places))
    values = np.full((len(columns), len(places)), np.nan)
    ratio = np.zeros(len(columns))
    for number, column in enumerate(columns):
        rows = _ok(groups, column)
        for row in rows:
            values[number, places[repeat(row)]] = row.get(name, math.nan)
        if resampled:
            ratio[number] = max(map(split_ratio, rows))
    return Sample(columns, values, ratio)


def split_ratio(row: Mapping[Any, Any]) -> float:
    """Return n_test / n_train of a record, infinite if it does not name them."""
    n_train, n_test = (row.get(name, math.nan) for name in ("n_train", "n_test"))
    return n_test / n_train if n_train > 0 and n_test >= 0 else math.inf


def pairs(sample: Sample) -> list[Pair]:
    """Compare every two lines of a sample."""
    k = len(sample.columns)
    parts = []
    for number in range(k - 1):  # one line at a time, so that memory holds
        others = sample.values[number + 1 :]
        infinite = np.isinf(sample.values[number]) | np.isinf(others)
        with np.errstate(invalid="ignore", over="ignore"):
            differences = np.where(infinite, np.inf, sample.values[number] - others)
        ratio = np.maximum(sample.ratio[number], sample.ratio[number + 1 :])
        parts.append(corrected_interval(differences, ratio, LEVEL))
    n, mean, low, high, p = (np.concatenate(values) for values in zip(*parts, strict=True))
    low, high, p = (np.where(n < LEAST_REPEATS, np.nan, values) for values in (low, high, p))
    columns = (*np.triu_indices(k, 1), n, mean, low, high, p, holm(p))
    return [Pair(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]


def _marks(sample: Sample, metric: Metric) -> Marks:
    with np.errstate(invalid="ignore", over="ignore"):
        means = np.nanmean(sample.values, axis=1)
    best_mean = means.max() if metric.better == "higher" else means.min()
    if len(means) < 2 or np.isnan(means).any() or (means == best_mean).all():
        return Marks()
    best = int(np.flatnonzero(means == best_mean)[0])
    found = {
        column: Mark("best" if mean == best_mean else "") for column, mean in zip(sample.columns, means, strict=True)
    }
    if len(means) > MOST_LINES:
        return Marks(found, f"{len(means):,} lines; at most {MOST_LINES} are compared")
    reasons = []
    for pair in pairs(sample):
        if best not in (pair.first, pair.second):
            continue
        other, ends, difference = pair.first, (pair.low, pair.high), pair.difference
        if pair.first == best:
            other, ends, difference = pair.second, (0.0 - pair.high, 0.0 - pair.low), 0.0 - difference  # never -0.0
        if not math.isfinite(pair.p):
            reasons.append(_reason(pair.n, sample, (best, other)))
        alike: Place = "alike" if pair.p_holm >= 1 - LEVEL else ""
        known = [value if math.isfinite(value) else None for value in (difference, *ends, pair.p, pair.p_holm)]
        found[sample.columns[other]] = Mark("best" if means[other] == best_mean else alike, pair.n, *known)
    return Marks(found, _missing(reasons, len(means) - 1))


def _reason(n: int, sample: Sample, two: tuple[int, int]) -> str:
    if n < LEAST_REPEATS:
        repeats = "1 repeat" if n == 1 else f"{n} repeats" if n else "no repeat in common"
        return f"{repeats}; a comparison needs at least {LEAST_REPEATS}"
    if np.isinf(sample.values[list(two)]).any():
        return "some values are infinite"
    return "the numbers of training and test rows are not known"


def _missing(reasons: Sequence[str], n_others: int) -> str:
    """Return the reason that most of the lines have that were not compared, and how many lines they are."""
    if not reasons:
        return ""
    ((reason, _),) = Counter(reasons).most_common(1)
    return reason if len(reasons) == n_others else f"{len(reasons)} of {n_others} lines ({reason})"

"""Find the best method for each metric, and those not significantly different from it.

Two methods are compared over the repeats that succeeded for both: the same split and order of rows, so that differences
are paired.  p-values are adjusted by Holm over all pairs of methods, not over those with the best alone: the best
method is selected by the same values, and its pairs are among all pairs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats

from klr_bench.metrics.metric import Metric
from klr_bench.report.labels import pluralize
from klr_bench.report.manifest import Column
from klr_bench.report.measured import Groups, Row, split_ratio
from klr_bench.report.statistics.across import DIGITS
from klr_bench.report.statistics.paired import Array, corrected_interval, correlated_t, holm
from klr_bench.results.variants import value_text

LEAST_REPEATS = 3
"""Minimum number of repeats: with a test share of 20 % the interval extends 11 standard deviations of a difference to
either side for two repeats, 3.3 for three and 1.9 for five.
"""
LEVEL = 0.95
MOST_DEVIATIONS = 10
"""A test has power if a difference of at most this many standard deviations is significant after the adjustment."""
CONSTANT = 0.5
"""The balanced accuracy of a constant predictor; other predictors do not have exactly this value in each repeat."""
ROPE = 0.01
"""Mean differences of rates up to one percentage point count as equivalent; other metrics have no such region."""
MOST_LINES = 100
"""Maximum number of methods that are compared pairwise."""


@dataclass(frozen=True)
class Mark:
    """Comparison of a method with the best one, in the unit of records.csv.

    The mean difference (method minus best) and the ends of its interval are over the `n` repeats that both have; None
    if they are not known.
    """

    place: Literal["best", "alike", ""]
    """"alike" if the method is not distinguishable from the best, empty if it is or was not compared."""
    n: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class Marks:
    """Significance marks for one metric on one data set; methods without a value get no mark."""

    lines: Mapping[Column, Mark] = field(default_factory=dict)
    missing: str = ""
    """Why some or all methods were not compared with the best; empty if all were."""
    no_power: str = ""
    """The numbers of pairs and repeats if only huge differences would be significant; no method is then "alike"."""


class Sample(NamedTuple):
    """Values of a metric, shape (methods, repeats), with NaN for missing values.

    `ratio`, (methods,), is n_test / n_train if each repeat splits the same set again, 0 if it does not, and infinite if
    the numbers of rows are not known.
    """

    columns: Sequence[Column]
    values: Array
    ratio: Array


class Pair(NamedTuple):
    """Comparison of two methods: mean paired difference, confidence interval and p-values.

    `worse`, `equivalent` and `better` are the probabilities that the first method is, in the direction of the metric.
    Everything but the difference is NaN if the two cannot be compared.
    """

    first: Column
    second: Column
    n: int
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    worse: float
    equivalent: float
    better: float


def is_marked(metric: Metric) -> bool:
    """Return True if the best value of a metric is marked in tables.

    This excludes metrics of the machine or without a better direction, and the objective, because methods may minimize
    objectives with different penalties.
    """
    stored = metric.stored and not metric.compares
    return bool(metric.better) and stored and not metric.of_machine and metric.name != "objective"


def marks(
    groups: Groups, columns: Sequence[Column], metrics: Iterable[Metric], *, resampled: bool, by: str | None
) -> dict[str, Marks]:
    """Return the significance marks for one data set, keyed by metric.

    `groups` are its records by method.  `resampled`: whether each repeat splits the same set again.  `by` is a
    parameter whose values are columns of the table: only methods with the same value are compared.
    """
    by_metric = {}
    columns = [column for column in columns if not is_constant(groups.get(column, ()))]
    for metric in filter(is_marked, metrics):
        parts = [_marks(sample, metric) for sample in samples(groups, columns, metric.name, resampled=resampled, by=by)]
        lines = {column: mark for part in parts for column, mark in part.lines.items()}
        if lines:
            reasons = (
                "; ".join(dict.fromkeys(filter(None, texts)))
                for texts in zip(*((marked.missing, marked.no_power) for marked in parts), strict=True)
            )
            by_metric[metric.name] = Marks(lines, *reasons)
    return by_metric


def is_constant(rows: Sequence[Row]) -> bool:
    """Return True if all successful repeats are those of a constant predictor of two classes."""
    values = [row.get("balanced_accuracy") for row in rows if row["status"] == "ok"]
    return bool(values) and all(value == CONSTANT for value in values)


def samples(
    groups: Groups, columns: Sequence[Column], name: str, *, resampled: bool, by: str | None = None
) -> list[Sample]:
    """Return the samples of a metric, one for each value of the parameter `by`.

    Methods without values are left out.
    """
    groups_of: dict[Any, dict[Column, list[Row]]] = {}
    for column in columns:
        rows = [
            row for row in groups.get(column, ()) if row["status"] == "ok" and not math.isnan(row.get(name, math.nan))
        ]
        if rows:
            groups_of.setdefault(value_text(column[1].get(by)) if by else None, {})[column] = rows
    return [_sample(methods, name, resampled=resampled) for methods in groups_of.values()]


def _sample(methods: Mapping[Column, Sequence[Row]], name: str, *, resampled: bool) -> Sample:
    by_repeat = [{(str(row.get("seed")), row["repeat"]): row[name] for row in rows} for rows in methods.values()]
    repeats = dict.fromkeys(repeat for values in by_repeat for repeat in values)
    values = np.array([[values.get(repeat, math.nan) for repeat in repeats] for values in by_repeat])
    ratio = [max(map(split_ratio, rows)) if resampled else 0.0 for rows in methods.values()]
    return Sample(list(methods), values, np.array(ratio))


def pairs(sample: Sample, metric: Metric) -> list[Pair]:
    """Compare each pair of methods in a sample."""
    first, second = np.triu_indices(len(sample.columns), 1)
    values_a, values_b = sample.values[first], sample.values[second]
    ratio = np.maximum(sample.ratio[first], sample.ratio[second])
    with np.errstate(invalid="ignore", over="ignore"):
        differences = np.where(np.isinf(values_a) & np.isinf(values_b), np.inf, values_a - values_b)
    n, mean, *interval = corrected_interval(differences, ratio, LEVEL)
    low, high, p = (np.where(n < LEAST_REPEATS, np.nan, values) for values in interval)
    sign = 1 if metric.better == "higher" else -1
    shares = correlated_t(sign * differences, ratio, ROPE if metric.unit == "percent" else 0.0)
    numbers = (n, mean, low, high, p, holm(p), *np.where(np.isnan(p), np.nan, shares))
    names = ([sample.columns[place] for place in places.tolist()] for places in (first, second))
    return [Pair(*values) for values in zip(*names, *(part.tolist() for part in numbers), strict=True)]


def _marks(sample: Sample, metric: Metric) -> Marks:
    with np.errstate(invalid="ignore", over="ignore"):
        means = np.asarray(np.round(np.nanmean(sample.values, axis=1), DIGITS))
    best_mean = means.max() if metric.better == "higher" else means.min()
    if len(means) < 2 or np.isnan(means).any() or (means == best_mean).all():
        return Marks()
    is_best = dict(zip(sample.columns, means == best_mean, strict=True))
    by_method = {column: Mark("best" if is_best[column] else "") for column in sample.columns}
    if len(means) > MOST_LINES:
        return Marks(by_method, f"{len(means):,} methods are too many to compare (the limit is {MOST_LINES})")
    best = next(column for column in sample.columns if is_best[column])
    reasons = []
    all_pairs = pairs(sample, metric)
    needed = _needed_deviations(sample, all_pairs)
    for pair in all_pairs:
        if best not in (pair.first, pair.second):
            continue
        other, numbers = pair.first, [pair.difference, pair.low, pair.high, pair.p, pair.p_holm]
        if pair.first == best:
            ends = [0.0 - value for value in (pair.difference, pair.high, pair.low)]  # never -0.0
            other, numbers = pair.second, [*ends, pair.p, pair.p_holm]
        if not math.isfinite(pair.p):
            reasons.append(_reason(pair, sample))
        place: Literal["best", "alike", ""] = "alike" if pair.p_holm >= 1 - LEVEL and needed <= MOST_DEVIATIONS else ""
        finite = [value if math.isfinite(value) else None for value in numbers]
        by_method[other] = Mark("best" if is_best[other] else place, pair.n, *finite)
    n_others, missing, no_power = len(means) - 1, "", ""
    if needed > MOST_DEVIATIONS and len(reasons) < n_others:
        n = max(pair.n for pair in all_pairs)
        no_power = f"{len(all_pairs):,} pairs of methods, {pluralize(n, 'repeat')}"
    if reasons:
        ((reason, _),) = Counter(reasons).most_common(1)
        missing = reason if len(reasons) == n_others else f"{len(reasons)} of {n_others} methods ({reason})"
    return Marks(by_method, missing, no_power)


def _needed_deviations(sample: Sample, compared: Sequence[Pair]) -> float:
    """Return the smallest significant difference, in standard deviations of the difference."""
    n = max(pair.n for pair in compared)
    if n < LEAST_REPEATS:
        return 0.0
    critical = stats.t.isf((1 - LEVEL) / 2 / len(compared), n - 1)
    return float(critical * math.sqrt(1 / n + sample.ratio.min()))


def _reason(pair: Pair, sample: Sample) -> str:
    if pair.n < LEAST_REPEATS:
        return f"{pluralize(pair.n, 'repeat')} in common; a comparison needs at least {LEAST_REPEATS}"
    places = [sample.columns.index(column) for column in (pair.first, pair.second)]
    infinite = np.isinf(sample.values[places]).any()
    return "some values are infinite" if infinite else "the numbers of training and test rows are not known"

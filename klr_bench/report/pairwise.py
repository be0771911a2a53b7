"""Every two lines of an experiment compared: on each data set over the repeats, and over all data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from klr_bench.metrics.metric import Metric
from klr_bench.report.manifest import Column
from klr_bench.report.significance import LEVEL, MOST_LINES, Marks, Pair, Sample, is_marked, pairs, samples
from klr_bench.report.statistics import across
from klr_bench.report.statistics.paired import Array, correlated_t
from klr_bench.report.table import Block, Line, Table

ROPE = 0.01
"""Mean differences of rates of at most one percentage point count as equivalent; other metrics have no such region."""
MOST_METHODS = 30
"""Lines that are compared over data sets."""


@dataclass(frozen=True)
class Compared:
    """Two lines on one data set: the mean of first minus second, in the unit of records.csv; NaN for what is not known.

    `worse`, `equivalent` and `better` are the probabilities that the first is so, in the direction of the metric.
    """

    first: Column
    second: Column
    pair: Pair
    worse: float
    equivalent: float
    better: float


@dataclass(frozen=True)
class OnDataset:
    """All pairs on one data set for one metric, and the marks, which say what is missing."""

    block: Block
    metric: Metric
    pairs: Sequence[Compared]
    marks: Marks


@dataclass(frozen=True)
class OverDatasets:
    """Lines compared over data sets for one metric, the best average rank first; without them where `missing` says why.

    `groups` are numbers of lines that are not distinguishable from each other by Wilcoxon's test with Holm.
    """

    metric: Metric
    n: int
    lines: Sequence[Line] = ()
    ranks: Sequence[float] = ()
    friedman: across.Friedman | None = None
    wilcoxon: across.Pairwise | None = None
    groups: Sequence[Sequence[int]] = ()
    nemenyi: float = math.nan
    left_out: Sequence[Line] = ()
    missing: str = ""


def chosen_metrics(table: Table, asked: Sequence[str] | None) -> list[Metric]:
    """Return those of the asked metrics that have a best, else the first of the table that has one."""
    found = [metric for metric in table.shown.values() if is_marked(metric)]
    return found if asked else found[:1]


def on_data_sets(table: Table, metric: Metric) -> list[OnDataset]:
    """Return the pairs of each data set on which some line has the metric."""
    found = []
    for block in table.blocks:
        columns, resampled = [line.column for line in block.lines], block.resampled
        of_block = samples(block.groups, columns, metric.name, resampled=resampled, by=table.columns)
        made = [pair for sample in of_block if len(sample.columns) <= MOST_LINES for pair in _pairs(sample, metric)]
        if of_block:
            found.append(OnDataset(block, metric, made, block.marks.get(metric.name, Marks(corrected=resampled))))
    return found


def _pairs(sample: Sample, metric: Metric) -> list[Compared]:
    if len(sample.columns) < 2:
        return []
    found = pairs(sample)
    first, second = [pair.first for pair in found], [pair.second for pair in found]
    sign = 1 if metric.better == "higher" else -1
    ratio = np.maximum(sample.ratio[first], sample.ratio[second])
    with np.errstate(invalid="ignore", over="ignore"):
        differences: Array = sign * (sample.values[first] - sample.values[second])
        correlation = np.where(np.isfinite(ratio), ratio / (1 + ratio), 0.0)
    shares = correlated_t(differences, correlation, ROPE if metric.unit == "percent" else 0.0)
    known = np.where(np.isnan([pair.p for pair in found]), np.nan, shares)
    return [
        Compared(sample.columns[pair.first], sample.columns[pair.second], pair, *of_pair)
        for pair, of_pair in zip(found, known.T.tolist(), strict=True)
    ]


def over_data_sets(table: Table, metric: Metric) -> OverDatasets:
    """Compare the lines that have a mean of the metric on every data set, by these means."""
    means: dict[Column, dict[str, float]] = {}
    lines: dict[Column, Line] = {}
    for block in table.blocks:
        for line in block.lines:
            lines.setdefault(line.column, line)
            mean = line.entries[metric.name].mean if line.n_ok else None
            if mean is not None and math.isfinite(mean):
                means.setdefault(line.column, {})[block.dataset] = mean
    data_sets = {dataset for found in means.values() for dataset in found}
    compared = [column for column, found in means.items() if len(found) == len(data_sets)]
    left_out = [line for column, line in lines.items() if column not in compared]
    missing = across.missing(len(data_sets), len(compared))
    if not missing and len(compared) > MOST_METHODS:
        missing = f"{len(compared):,} lines; at most {MOST_METHODS} are compared over data sets"
    if missing:
        return OverDatasets(metric, len(data_sets), left_out=left_out, missing=missing)
    sign = 1 if metric.better == "higher" else -1
    scores = sign * np.array([[means[column][dataset] for column in compared] for dataset in sorted(data_sets)])
    order = np.argsort(across.ranks(scores), kind="stable")
    scores = scores[:, order]
    ranks, wilcoxon = across.ranks(scores), across.wilcoxon(scores)
    return OverDatasets(
        metric,
        len(data_sets),
        [lines[compared[place]] for place in order],
        ranks.tolist(),
        across.friedman(scores),
        wilcoxon,
        across.groups(ranks, wilcoxon.p_holm >= 1 - LEVEL),
        across.nemenyi(len(order), len(data_sets), LEVEL),
        left_out,
    )


def pairs_of(found: OverDatasets) -> list[tuple[int, int]]:
    """Return the numbers of every two lines that are compared over data sets."""
    return list(combinations(range(len(found.lines)), 2))

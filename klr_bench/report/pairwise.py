"""Compare pairs of methods: on one data set by its repeats, across data sets by mean values."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from string import ascii_lowercase

import numpy as np

from klr_bench.metrics.metric import Metric
from klr_bench.printing import no_formula
from klr_bench.report.labels import NONE, UNITS, line_label, pluralize
from klr_bench.report.manifest import Column
from klr_bench.report.render.document import Document, Grid, aligned
from klr_bench.report.significance import LEVEL, MOST_LINES, ROPE, Marks, Pair, is_constant, is_marked, pairs, samples
from klr_bench.report.statistics import across
from klr_bench.report.statistics.paired import corrected_interval
from klr_bench.report.table import Block, Line, Table

MOST_METHODS = 30
"""Maximum number of methods compared across data sets."""
LEAST_DATA_SETS = 6
"""Minimum number of data sets: on n data sets Wilcoxon's two-sided p-value is at least 2 / 2^n, which is 0.06 for n = 5
and 0.03 for n = 6.
"""
MOST_PAIRS = 120
"""Maximum number of listed pairs; if there are more, only pairs with the best method are listed."""
CSV_COLUMNS = (
    *("test", "dataset", "metric", "algorithm", "variant", "other_algorithm", "other_variant", "n", "difference"),
    *("low", "high", "p", "p_holm", "worse", "equivalent", "better", "rank", "other_rank", "statistic"),
)


@dataclass(frozen=True)
class OnDataset:
    """Pairwise comparisons on one data set for one metric."""

    block: Block
    metric: Metric
    pairs: Sequence[Pair]


@dataclass(frozen=True)
class OverDatasets:
    """Comparison of methods across data sets for one metric, best average rank first.

    It is empty if `missing` states why there is no comparison.

    `groups` are places of methods that are not distinguishable from each other by Wilcoxon's test with Holm.
    """

    metric: Metric
    n: int
    missing: str
    left_out: Sequence[Line]
    lines: Sequence[Line] = ()
    ranks: Sequence[float] = ()
    intervals: Sequence[tuple[float, float]] = ()
    """95 % intervals of the average ranks."""
    friedman: across.Friedman | None = None
    wilcoxon: across.Pairwise | None = None
    groups: Sequence[Sequence[int]] = ()


def chosen_metrics(table: Table, names: Sequence[str] | None) -> list[Metric]:
    """Return the metrics for which a best value is defined, or only the first without `names`."""
    marked = [metric for metric in table.metrics.values() if is_marked(metric)]
    return marked if names else marked[:1]


def on_data_sets(table: Table, metric: Metric) -> list[OnDataset]:
    """Return the pairwise comparisons on each data set that has values of the metric."""
    comparisons = []
    for block in table.blocks:
        columns = [line.column for line in block.lines if not is_constant(block.groups.get(line.column, ()))]
        of_block = samples(block.groups, columns, metric.name, resampled=block.resampled, by=table.columns)
        compared = [pair for sample in of_block if len(sample.columns) <= MOST_LINES for pair in pairs(sample, metric)]
        if of_block:
            comparisons.append(OnDataset(block, metric, compared))
    return comparisons


def means_by_method(table: Table, metric: Metric) -> dict[Column, dict[str, float]]:
    """Return the finite means of each method, keyed by data set."""
    means: dict[Column, dict[str, float]] = {}
    for block in table.blocks:
        for line in block.lines:
            mean = line.entries[metric.name].mean if line.n_ok else None
            if mean is not None and math.isfinite(mean):
                means.setdefault(line.column, {})[block.dataset] = mean
    return means


def over_data_sets(table: Table, metric: Metric) -> OverDatasets:
    """Compare methods by their means, using methods that have a value on every data set."""
    means = means_by_method(table, metric)
    lines: dict[Column, Line] = {}
    for line in (line for block in table.blocks for line in block.lines):
        lines.setdefault(line.column, line)
    data_sets = sorted({dataset for of_line in means.values() for dataset in of_line})
    compared = [column for column, of_line in means.items() if len(of_line) == len(data_sets)]
    left_out = [line for column, line in lines.items() if column not in compared]
    n, k, missing = len(data_sets), len(compared), ""
    if not 2 <= k <= MOST_METHODS:
        missing = f"{pluralize(k, 'method')} with a value on each data set; expected 2 to {MOST_METHODS}"
    elif n < LEAST_DATA_SETS:
        missing = f"{pluralize(n, 'data set')}; a comparison over data sets needs at least {LEAST_DATA_SETS}"
    if missing:
        return OverDatasets(metric, n, missing, left_out)
    sign = 1 if metric.better == "higher" else -1
    scores = sign * np.array([[means[column][dataset] for column in compared] for dataset in data_sets])
    order = np.argsort(across.ranks(scores), kind="stable")
    scores = scores[:, order]
    of_each, wilcoxon = across.ranks_on_each(scores), across.wilcoxon(scores)
    ranks, intervals = of_each.mean(axis=0), [corrected_interval(column, level=LEVEL) for column in of_each.T]
    return OverDatasets(
        metric,
        n,
        missing,
        left_out,
        [lines[compared[place]] for place in order],
        ranks.tolist(),
        [(max(1.0, float(found.low)), min(float(k), float(found.high))) for found in intervals],
        across.friedman(scores),
        wilcoxon,
        across.groups(ranks, wilcoxon.p_holm >= 1 - LEVEL),
    )


def statistics_document(table: Table, data_sets: Sequence[OnDataset], over: Sequence[OverDatasets]) -> Document:
    """Return a document with all pairwise comparisons of a table."""
    grids = [_pairs_grid(comparison) for comparison in data_sets] + [
        grid for comparison in over for grid in _over_grids(comparison)
    ]
    sentences = _caption(data_sets) + [sentence for comparison in over for sentence in _over_sentences(comparison)]
    nothing = "This table has no metric for which a best value is defined, so no methods are compared."
    return Document(f"{table.title or table.experiment}: comparisons", grids, sentences or [nothing])


def _pairs_grid(comparison: OnDataset) -> Grid:
    labels = {line.column: line_label(line) for line in comparison.block.lines}
    is_rate = comparison.metric.unit == "percent"
    points = " (points)" if is_rate else UNITS[comparison.metric.unit].head
    header = [f"{comparison.block.label}: {comparison.metric.title.lower()}", "repeats", f"difference{points}"]
    header += [f"interval ({100 * LEVEL:.0f} %)", "p", "p Holm", "P worse", *["P equivalent"] * is_rate, "P better"]
    listed, marks = list(comparison.pairs), comparison.block.marks.get(comparison.metric.name, Marks())
    notes = [f"not compared with the best: {marks.missing}"] if marks.missing else []
    if len(listed) > MOST_PAIRS:
        best = {column for column, mark in marks.lines.items() if mark.place == "best"}
        listed = [pair for pair in listed if pair.first in best or pair.second in best][:MOST_PAIRS]
        notes.append(
            f"{len(comparison.pairs):,} pairs; only those with the best method are listed. Use format=csv to write all"
        )
    rows = []
    for pair in listed:
        difference, low, high = (
            _difference(value, comparison.metric) for value in (pair.difference, pair.low, pair.high)
        )
        shares = [pair.worse, *[pair.equivalent] * is_rate, pair.better]
        row = [f"{labels[pair.first]} - {labels[pair.second]}", str(pair.n), difference]
        row += [NONE if NONE in (low, high) else f"{low} to {high}", _p(pair.p), _p(pair.p_holm)]
        rows.append(row + [NONE if math.isnan(share) else f"{share:.2f}" for share in shares])
    return aligned(Grid(header, rows, notes=notes))


def _difference(value: float, metric: Metric) -> str:
    if not math.isfinite(value):
        return NONE
    text = f"{value * UNITS[metric.unit].scale:{'+.2f' if metric.unit == 'percent' else '+.3g'}}"
    return text if float(text) else text[1:]  # no "-0.00"


def _p(value: float) -> str:
    return NONE if math.isnan(value) else "<0.0001" if value < 1e-4 else f"{value:.4f}"


def _over_grids(over: OverDatasets) -> list[Grid]:
    if over.wilcoxon is None:
        return []
    head, labels = f"{over.n} data sets: {over.metric.title.lower()}", [line_label(line) for line in over.lines]
    letters = [
        "".join(ascii_lowercase[n % 26] * (n // 26 + 1) for n, group in enumerate(over.groups) if place in group)
        for place in range(len(labels))
    ]
    ranks = [
        [label, f"{rank:.2f}", group or NONE] for label, rank, group in zip(labels, over.ranks, letters, strict=True)
    ]
    places = list(combinations(range(len(labels)), 2))
    rows = [[f"{labels[i]} - {labels[j]}", *(_p(part[i, j]) for part in over.wilcoxon)] for i, j in places[:MOST_PAIRS]]
    more = f"{len(places):,} pairs; only the first {MOST_PAIRS} are listed. Use format=csv to write all"
    notes = [more] if len(places) > MOST_PAIRS else []
    grids = Grid([head, "average rank", "group"], ranks), Grid([head, "p", "p Holm"], rows, notes=notes)
    return [*map(aligned, grids)]


def _caption(data_sets: Sequence[OnDataset]) -> list[str]:
    if not any(comparison.pairs for comparison in data_sets):
        return []
    is_tested = any(not math.isnan(pair.p) for comparison in data_sets for pair in comparison.pairs)
    sentences = [
        "difference: first method minus second, averaged over the repeats that both have.",
        "interval and p: from a paired t test, with the variance of Nadeau and Bengio if repeats split the same data "
        "again. If repeats differ only in the row order and the seed, the test does not generalize to other rows. p "
        "Holm: adjusted over all pairs of a data set, or of a column if columns are values of a parameter.",
        "P: the probability that the first method is worse than, equivalent to, or better than the second, by the "
        f"Bayesian correlated t test. Rates at most {100 * ROPE:g} percentage point apart are equivalent.",
    ]
    return sentences if is_tested else sentences[:1]


def _over_sentences(over: OverDatasets) -> list[str]:
    name, k = over.metric.title.lower(), len(over.lines)
    if over.missing:
        return [f"No comparison over data sets for {name}: {over.missing}."]
    assert over.friedman is not None
    sentences = [
        f"Across data sets, {name}: rank 1 is the best; methods that share a letter are not distinguishable at "
        f"{100 * (1 - LEVEL):.0f} % by Wilcoxon's signed-rank test of their means, with Holm's correction. "
        f"Nemenyi's critical difference between two average ranks is {across.nemenyi(k, over.n, LEVEL):.2f}."
    ]
    if not math.isnan(over.friedman.p):
        sentences.append(
            f"Friedman's test of equality of all methods: chi^2 = {over.friedman.statistic:.2f} with {k - 1} "
            f"degrees of freedom, p {'' if over.friedman.p < 1e-4 else '= '}{_p(over.friedman.p)}."
        )
    least = across.smallest_p(over.n, k)
    if least >= 1 - LEVEL:
        sentences.append(
            f"With {over.n} data sets and {pluralize(k * (k - 1) // 2, 'pair')} no p-value after Holm's correction can "
            f"be below {least:.2g}, so no pair is distinguishable. Add data sets or leave out methods."
        )
    if over.left_out:
        names = ", ".join(line_label(line) for line in over.left_out)
        sentences.append(f"Left out, because they have no value on at least one data set: {names}.")
    return sentences


def statistics_csv(data_sets: Sequence[OnDataset], over: Sequence[OverDatasets]) -> str:
    """Return all comparisons as CSV with full precision, in the units of records.csv."""
    import pandas as pd

    rows: list[dict[str, object]] = []
    for data_set in data_sets:
        where = {"test": "paired_t", "dataset": no_formula(data_set.block.dataset), "metric": data_set.metric.name}
        rows += [where | pair._asdict() | _names(pair.first, pair.second) for pair in data_set.pairs]
    for comparison in over:
        if comparison.friedman is None or comparison.wilcoxon is None:
            continue
        metric = {"metric": comparison.metric.name, "n": comparison.n}
        rows.append(
            {"test": "friedman", **metric, "p": comparison.friedman.p, "statistic": comparison.friedman.statistic}
        )
        for i, j in combinations(range(len(comparison.lines)), 2):
            values = {"p": comparison.wilcoxon.p[i, j], "p_holm": comparison.wilcoxon.p_holm[i, j]}
            values |= {"rank": comparison.ranks[i], "other_rank": comparison.ranks[j]}
            names = _names(comparison.lines[i].column, comparison.lines[j].column)
            rows.append({"test": "wilcoxon", **metric, **values, **names})
    return pd.DataFrame(rows, columns=list(CSV_COLUMNS)).to_csv(index=False)


def _names(first: Column, second: Column) -> dict[str, object]:
    sides = ("", first), ("other_", second)
    names: dict[str, object] = {f"{side}algorithm": no_formula(algorithm) for side, (algorithm, _) in sides}
    return names | {f"{side}variant": json.dumps(dict(variant)) for side, (_, variant) in sides}

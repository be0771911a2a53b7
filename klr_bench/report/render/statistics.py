"""The pairwise comparisons of an experiment as a document, and as CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from klr_bench.metrics.metric import Metric
from klr_bench.printing import no_formula
from klr_bench.report.labels import NONE, UNITS, line_label
from klr_bench.report.manifest import Column
from klr_bench.report.pairwise import ROPE, Compared, OnDataset, OverDatasets, pairs_of
from klr_bench.report.render.document import Document, Grid, right_aligned
from klr_bench.report.significance import LEVEL
from klr_bench.report.statistics.across import smallest_p
from klr_bench.report.table import Table
from klr_bench.report.writing import csv_text

MOST_PAIRS = 120
"""Pairs that a grid lists; of more those with the best line are listed."""
SMALLEST_P = 1e-4
CSV_COLUMNS = (
    *("test", "dataset", "metric", "algorithm", "variant", "other_algorithm", "other_variant", "n", "difference"),
    *("low", "high", "p", "p_holm", "worse", "equivalent", "better", "rank", "other_rank", "statistic"),
)


def statistics_document(table: Table, data_sets: Sequence[OnDataset], over: Sequence[OverDatasets]) -> Document:
    """Return the texts of all comparisons."""
    grids = [_pairs_grid(found) for found in data_sets]
    for found in over:
        if not found.missing:
            grids += [_ranks_grid(found), _wilcoxon_grid(found)]
    said = _caption(data_sets) + [sentence for found in over for sentence in _over_sentences(found)]
    if not said:
        said = ["No metric of this table has a direction, so that nothing is compared."]
    return Document(f"{table.title or table.experiment}: comparisons", grids, said)


def _pairs_grid(found: OnDataset) -> Grid:
    labels = {(line.algorithm, line.variant): line_label(line) for line in found.block.lines}
    points = " (points)" if found.metric.unit == "percent" else UNITS[found.metric.unit].head
    head = f"{found.block.label}: {found.metric.title.lower()}"
    header = [head, "repeats", f"difference{points}", f"interval ({100 * LEVEL:.0f} %)", "p", "p Holm"]
    header += ["P worse", "P equivalent", "P better"] if found.metric.unit == "percent" else ["P worse", "P better"]
    listed, notes = list(found.pairs), []
    if found.marks.missing:
        some = any(not math.isnan(pair.pair.p) for pair in found.pairs)
        notes.append(f"not compared with the best: {found.marks.missing}" if some else found.marks.missing)
    if len(listed) > MOST_PAIRS:
        best = {column for column, mark in found.marks.lines.items() if mark.place == "best"}
        listed = [pair for pair in listed if pair.first in best or pair.second in best][:MOST_PAIRS]
        notes.append(f"{len(found.pairs):,} pairs, of which those with the best line are listed; format=csv has all")
    return right_aligned(header, [_row(pair, labels, found.metric) for pair in listed], notes, break_heads=True)


def _row(one: Compared, labels: dict[Column, str], metric: Metric) -> list[str]:
    pair = one.pair
    low, high = (_difference(value, metric) for value in (pair.low, pair.high))
    shares = (one.worse, one.equivalent, one.better) if metric.unit == "percent" else (one.worse, one.better)
    return [
        f"{labels[one.first]} - {labels[one.second]}",
        str(pair.n),
        _difference(pair.difference, metric),
        NONE if NONE in (low, high) else f"{low} to {high}",
        *(_p(value) for value in (pair.p, pair.p_holm)),
        *(NONE if math.isnan(share) else f"{share:.2f}" for share in shares),
    ]


def _difference(value: float, metric: Metric) -> str:
    if not math.isfinite(value):
        return NONE
    text = (
        f"{value * UNITS[metric.unit].scale:+.2f}"
        if metric.unit == "percent"
        else f"{value * UNITS[metric.unit].scale:+.3g}"
    )
    return text if float(text) else text[1:]  # no "-0.00"


def _p(value: float) -> str:
    if math.isnan(value):
        return NONE
    return f"<{SMALLEST_P:.4f}" if value < SMALLEST_P else f"{value:.4f}"


def _p_is(value: float) -> str:
    return f"p < {SMALLEST_P:.4f}" if value < SMALLEST_P else f"p = {value:.4f}"


def _ranks_grid(found: OverDatasets) -> Grid:
    letters = {number: "" for number in range(len(found.lines))}
    for letter, group in enumerate(found.groups):
        for number in group:
            letters[number] += chr(ord("a") + letter % 26)
    rows = [
        [line_label(line), f"{rank:.2f}", letters[number] or NONE]
        for number, (line, rank) in enumerate(zip(found.lines, found.ranks, strict=True))
    ]
    return right_aligned(
        [f"{found.n} data sets: {found.metric.title.lower()}", "average rank", "group"], rows, break_heads=True
    )


def _wilcoxon_grid(found: OverDatasets) -> Grid:
    assert found.wilcoxon is not None
    rows = [
        [f"{line_label(found.lines[i])} - {line_label(found.lines[j])}", *(_p(part[i, j]) for part in found.wilcoxon)]
        for i, j in pairs_of(found)
    ]
    rows, notes = rows[:MOST_PAIRS], []
    if len(rows) < len(pairs_of(found)):
        notes.append(f"{len(pairs_of(found)):,} pairs, of which the first {MOST_PAIRS} are listed; format=csv has all")
    return right_aligned(
        [f"{found.n} data sets: {found.metric.title.lower()}", "p", "p Holm"], rows, notes, break_heads=True
    )


def _caption(data_sets: Sequence[OnDataset]) -> list[str]:
    if not any(found.pairs for found in data_sets):
        return []
    mean = "difference: the mean over the repeats that both lines have, first minus second"
    if all(math.isnan(pair.pair.p) for found in data_sets for pair in found.pairs):
        return [f"{mean}."]
    corrected = {found.marks.corrected for found in data_sets}
    said = {
        frozenset({True}): "The variance is that of Nadeau and Bengio: repeats split one set again and are dependent.",
        frozenset({False}): "The repeats differ in the order of the rows and the seed alone: nothing is said of other "
        "rows.",
    }.get(
        frozenset(corrected),
        "On data sets that each repeat splits again the variance is that of Nadeau and Bengio; on the others the "
        "repeats differ in the order of the rows and the seed alone.",
    )
    lines = [
        f"{mean}, with its interval and the two-sided p-value of a paired t test; p Holm: adjusted over all "
        f"pairs of a data set"
        f"{' and column' if _crossed(data_sets) else ''}. {said}"
    ]
    if any(found.metric.unit == "percent" for found in data_sets):
        lines.append(
            "P: the probability that the first line is worse than, equivalent to, or better than the second, by the "
            f"Bayesian correlated t test; equivalent: at most {100 * ROPE:g} percentage point apart."
        )
    return lines


def _crossed(data_sets: Sequence[OnDataset]) -> bool:
    """Say whether pairs are missing because lines of different columns are not compared."""
    return any(
        len(found.pairs) < n * (n - 1) / 2
        for found in data_sets
        if (n := len({column for pair in found.pairs for column in (pair.first, pair.second)}))
    )


def _over_sentences(found: OverDatasets) -> list[str]:
    name = found.metric.title.lower()
    if found.missing:
        return [f"Over data sets nothing is compared for {name}: {found.missing}."]
    assert found.friedman is not None
    said = [
        f"Over data sets, {name}: rank 1 is the best; lines that share a letter are not distinguishable at "
        f"{100 * (1 - LEVEL):.0f} % by Wilcoxon's signed-rank test of their means, adjusted by Holm over all pairs. "
        f"Nemenyi's critical difference of two average ranks is {found.nemenyi:.2f}."
    ]
    if not math.isnan(found.friedman.p):
        said.append(
            f"Friedman's test that all lines are the same: chi^2 = {found.friedman.statistic:.2f} with "
            f"{len(found.lines) - 1} degrees of freedom, {_p_is(found.friedman.p)}."
        )
    least = smallest_p(found.n, len(found.lines))
    if least >= 1 - LEVEL:
        said.append(
            f"With {found.n} data sets and {len(pairs_of(found))} pairs no p-value after Holm can be below "
            f"{least:.2g}: no pair can be told apart, whatever the results are; add data sets or leave lines out."
        )
    if found.left_out:
        names = ", ".join(line_label(line) for line in found.left_out)
        said.append(f"Left out, because they have no value on some data set: {names}.")
    return said


def statistics_csv(data_sets: Sequence[OnDataset], over: Sequence[OverDatasets]) -> str:
    """Return all comparisons as CSV, with all digits, in the units of records.csv."""
    rows: list[dict[str, object]] = []
    for data_set in data_sets:
        place = {"test": "paired_t", "dataset": no_formula(data_set.block.dataset), "metric": data_set.metric.name}
        for one in data_set.pairs:
            numbers = one.pair._asdict() | {name: getattr(one, name) for name in ("worse", "equivalent", "better")}
            rows.append({**place, **numbers, **_names(one.first, one.second)})
    for found in over:
        if found.friedman is None or found.wilcoxon is None:
            continue
        metric = {"metric": found.metric.name, "n": found.n}
        rows.append({"test": "friedman", **metric, "p": found.friedman.p, "statistic": found.friedman.statistic})
        for i, j in pairs_of(found):
            p = {"p": found.wilcoxon.p[i, j], "p_holm": found.wilcoxon.p_holm[i, j]}
            ranks = {"rank": found.ranks[i], "other_rank": found.ranks[j]}
            names = _names(found.lines[i].column, found.lines[j].column)
            rows.append({"test": "wilcoxon", **metric, **names, **p, **ranks})
    return csv_text(CSV_COLUMNS, [[_stored(row.get(name)) for name in CSV_COLUMNS] for row in rows])


def _stored(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def _names(first: Column, second: Column) -> dict[str, str]:
    names = ("algorithm", "variant", "other_algorithm", "other_variant")
    parts = [part for name, variant in (first, second) for part in (no_formula(name), json.dumps(dict(variant)))]
    return dict(zip(names, parts, strict=True))

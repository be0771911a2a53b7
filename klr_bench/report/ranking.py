"""Rank the methods of an experiment over its data sets: a table with intervals and times."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from klr_bench.metrics.labels import METRICS
from klr_bench.report.labels import NONE, join_names, line_label, number, pluralize, title_of
from klr_bench.report.manifest import Column
from klr_bench.report.pairwise import OverDatasets, chosen_metrics, over_data_sets
from klr_bench.report.render.document import Document, Grid, aligned
from klr_bench.report.significance import LEVEL
from klr_bench.report.statistics.across import smallest_p
from klr_bench.report.table import Line, Table

TIME = "fit_time_s"


def ranked(table: Table) -> OverDatasets | None:
    """Return the comparison over data sets by the first metric with a best value, if any."""
    metrics = [] if table.columns else chosen_metrics(table, None)
    over = over_data_sets(table, metrics[0]) if metrics else None
    return over if over and not over.missing else None


def median_seconds(table: Table, lines: Sequence[Line]) -> tuple[dict[Column, float], int]:
    """Return the median over data sets of the training time of each method, and their number.

    These are the data sets on which the times of all methods can be compared.
    """
    columns, times = [line.column for line in lines], []
    for block in table.blocks:
        entries = {line.column: line.entries.get(TIME) for line in block.lines}
        values = [entry.mean for column in columns if (entry := entries.get(column)) and entry.alike]
        if len(values) == len(columns) and None not in values:
            times.append(values)
    return dict(zip(columns, map(statistics.median, zip(*times, strict=True)), strict=False)), len(times)


def ranking_document(table: Table) -> Document | None:
    """Return a table of the average ranks, the best first, or None if methods cannot be ranked."""
    over = ranked(table)
    if over is None or over.wilcoxon is None:
        return None
    (seconds, n_timed), k = median_seconds(table, over.lines), len(over.lines)
    is_possible = smallest_p(over.n, k) < 1 - LEVEL
    rows = [
        [
            line_label(line),
            f"{over.ranks[place]:.2f}",
            f"{low:.2f} to {high:.2f}",
            ("yes" if over.wilcoxon.p_holm[0, place] < 1 - LEVEL else "no") if is_possible else NONE,
            number(seconds.get(line.column), None, METRICS[TIME]),
        ]
        for place, (line, (low, high)) in enumerate(zip(over.lines, over.intervals, strict=True))
    ]
    head = [f"{over.n} data sets", f"rank of {over.metric.title.lower()}", f"interval ({100 * LEVEL:.0f} %)"]
    caption = [
        "Average rank over the data sets, with the interval of the mean; 1 is the best. Whether a method differs from "
        "the first is decided by Wilcoxon's signed-rank test, with Holm's adjustment for all pairs."
    ]
    if n_timed:
        some = f"{pluralize(n_timed, 'data set')} on which those of all methods can be compared"
        caption[0] += f" Times are medians over {'the data sets' if n_timed == over.n else some}."
    if not is_possible:
        caption.append(f"{pluralize(over.n, 'data set')} are too few to distinguish {k} methods in this way.")
    if over.left_out:
        names = join_names([line_label(line) for line in over.left_out])
        caption.append(f"Left out, because they have no value on at least one data set: {names}.")
    grid = Grid([*head, "differs from the first", title_of(METRICS[TIME])], rows)
    return Document(f"{table.title or table.experiment}: ranks", [aligned(grid)], caption)

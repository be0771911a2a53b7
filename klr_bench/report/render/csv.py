"""The table of an experiment as CSV."""

from __future__ import annotations

import json

from klr_bench.printing import no_formula
from klr_bench.report.table import Table
from klr_bench.report.writing import csv_text

CSV_COLUMNS = (
    *("dataset", "algorithm", "variant", "metric", "n_ok", "n_repeats", "n", "mean", "std"),
    *("published_mean", "published_std", "difference", "ratio", "outside", "verdict"),
    *("best", "difference_to_best", "low", "high", "p_holm"),
)


def comma_separated(table: Table) -> str:
    """Return a table as CSV: a row a metric of a line, in the units of records.csv, with all digits."""
    rows = []
    for block in table.blocks:
        for line in block.lines:
            name = [no_formula(block.dataset), no_formula(line.algorithm), json.dumps(dict(line.variant))]
            for metric in block.metrics:
                entry, match = line.entries[metric.name], line.matches.get(metric.name)
                paper: list[object] = [None] * 6
                if match:
                    difference = match.difference if metric.compared != "ratio" else None
                    ratio = match.ratio if metric.compared == "ratio" else None
                    outside = match.outside if metric.compared == "difference" else None
                    printed = [match.printed.value, match.printed.spread]
                    paper = [*printed, difference, ratio, outside, match.verdict.value]
                marks = block.marks.get(metric.name)
                mark = marks.lines.get(line.column) if marks else None
                best = [mark.place, mark.difference, mark.low, mark.high, mark.p_holm] if mark else [None] * 5
                ours = [metric.name, line.n_ok, line.n_repeats, entry.n, entry.mean, entry.std]
                rows.append([*name, *ours, *paper, *best])
    return csv_text(CSV_COLUMNS, rows)

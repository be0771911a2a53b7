"""A table as CSV."""

from __future__ import annotations

import csv
import io
import json

from klr_bench.experiment.measure.metric import Metric
from klr_bench.printing import no_formula
from klr_bench.report.table import Block, Line, Table

CSV_COLUMNS = (
    *("dataset", "algorithm", "variant", "metric", "n_ok", "n_repeats", "n", "mean", "std"),
    *("published_mean", "published_std", "difference", "ratio", "outside"),
    *("best", "difference_to_best", "low", "high", "p_holm"),
)


def _beside_best(block: Block, line: Line, metric: Metric) -> tuple[str | float | None, ...]:
    marks = block.marks.get(metric.name)
    found = marks.lines.get((line.algorithm, line.variant)) if marks else None
    return (found.place, found.difference, found.low, found.high, found.p_holm) if found else (None,) * 5


def comma_separated(table: Table) -> str:
    """Return a table as CSV: a row a metric of a line, in the units of records.csv, with all digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for block in table.blocks:
        for line in block.lines:
            name = (no_formula(block.dataset), no_formula(line.algorithm), json.dumps(dict(line.variant)))
            for metric in block.metrics:
                entry = line.entries[metric.name]
                found = (entry.published.mean, entry.published.std) if entry.published else (None, None)
                difference = entry.difference if metric.compared != "ratio" else None
                ratio = entry.ratio if metric.compared == "ratio" else None
                outside = entry.outside if metric.compared == "difference" else None
                counts = (metric.name, line.n_ok, line.n_repeats, entry.n)
                paper = (*found, difference, ratio, outside)
                writer.writerow([*name, *counts, entry.mean, entry.std, *paper, *_beside_best(block, line, metric)])
    return text.getvalue()

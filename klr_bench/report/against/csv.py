"""The numbers of two runs as CSV."""

from __future__ import annotations

import csv
import io
import json

from klr_bench.printing import no_formula
from klr_bench.report.against.two_runs import TwoRuns

CSV_COLUMNS = (
    *("dataset", "algorithm", "variant", "metric", "n_a", "mean_a", "std_a", "n_b", "mean_b", "std_b"),
    *("difference", "ratio", "repeats", "low", "high", "p", "p_holm", "significant", "outcome"),
)


def comma_separated(two: TwoRuns) -> str:
    """Return a row for each number of each column that both have, in the units of records.csv, with all digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for block in two.blocks:
        for column in block.columns:
            name = [no_formula(block.dataset), no_formula(column.algorithm), json.dumps(dict(column.variant))]
            for one in column.numbers:
                sides = [value for side in (one.first, one.second) for value in (side.n, side.mean, side.std)]
                test = one.interval
                found = [test.low, test.high, test.p, one.p, one.significant] if test else [None] * 5
                row = [*name, one.metric.name, *sides, one.difference, one.ratio, block.pairing.kind]
                writer.writerow([*row, *found, one.outcome.value])
    return text.getvalue()

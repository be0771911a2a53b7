"""The columns of a table that a reader asks for, in place of those that its run names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config.parsing import check_choice
from klr_bench.report.load import Results
from klr_bench.report.table import Table


def asking_for(results: Results, names: Sequence[str] | None) -> Results:
    """Return results whose table has the metrics of these names, in this order; None: as the run has it.

    Raises KlrBenchError for a name of no metric.
    """
    if names is None:
        return results
    manifest = results.manifest
    for name in names:
        check_choice("columns", name, manifest.metrics)
    return replace(results, manifest=manifest.with_metrics(list(names)))


def check_shown(table: Table, names: Sequence[str] | None) -> None:
    """Raise KlrBenchError where a table has no value of a metric that is asked for."""
    for name in names or ():
        if name not in table.shown:
            has = ", ".join(table.shown) or "none of those that are asked for"
            message = f"columns: no record of {table.experiment} has {name}; it has {has}. Leave it out."
            raise KlrBenchError(message)

"""The columns of a table that a reader asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.report.table import Table


def with_columns(table: Table, names: Sequence[str] | None) -> Table:
    """Return a table with the metrics of these names alone, in this order; None: all that it has.

    Raises KlrBenchError for a metric that the table does not have.
    """
    if names is None:
        return table
    for name in names:
        if name not in table.shown:
            has = ", ".join(table.shown)
            message = f"columns: {name!r} is none of this table, which has {has}.{nearest(name, table.shown)}"
            raise KlrBenchError(message)
    blocks = [
        replace(block, metrics=[metric for name in names for metric in block.metrics if metric.name == name])
        for block in table.blocks
    ]
    return replace(table, blocks=blocks)

"""The layout of a table whose columns are the values of a parameter: a row for each metric of an algorithm.

MNIST 3                        lam=0.5      lam=0.2
CGD: Accuracy (%)           84.8 ± 0.5   88.9 ± 0.4
  paper                           84.8         89.4
  diff                             0.0        -0.5*
CGD: Training time (s)   0.175 ± 0.010        0.256
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.variants import as_number, value_text
from klr_bench.report.render.caption import failures_of
from klr_bench.report.render.labels import column_label
from klr_bench.report.render.layout import COMPARISONS, HEADS, NONE, Grid, comparison, grid, number, printed
from klr_bench.report.render.marks import mark_of
from klr_bench.report.table import Block, Entry, Line, Table

Cells = Sequence[Entry | None]
"""Of a metric of an algorithm, for each value of the parameter; None where there is no such column."""


def grids(table: Table) -> list[Grid]:
    """Return the texts of all blocks, with the values of a parameter as columns where the paper has it so."""
    return [crossed(block, table.columns) if table.columns else grid(block) for block in table.blocks]


def crossed(block: Block, parameter: str) -> Grid:
    """Lay out a block with a column for each value of `parameter`, a group of rows for all else of a line."""
    values: dict[Any, None] = {}
    groups: dict[str, dict[Any, Line]] = {}
    for line in block.lines:
        value = line.variant.get(parameter, NONE)
        values.setdefault(value)
        groups.setdefault(column_label(line.algorithm_label, line.variant.without(parameter)), {})[value] = line
    order = sorted(values, key=lambda value: -(as_number(value) or 0.0))
    header = [block.label, *(f"{parameter}={value_text(value)}" for value in order)]
    rows: list[list[str]] = []
    papers: list[int] = []
    for label, lines in groups.items():
        for metric, cells in _measured(block, lines, order):
            ours = [_ours(block, lines.get(value), metric) for value in order]
            rows.append([f"{label}: {metric.title}{HEADS[metric.unit]}", *ours])
            for beside in _theirs(metric, cells):
                papers.append(len(rows))
                rows.append(beside)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    padded = [[row[0], *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))] for row in rows]
    return Grid(header, padded, papers, failures_of(block))


def _measured(block: Block, lines: Mapping[Any, Line], order: Sequence[Any]) -> Iterator[tuple[Metric, Cells]]:
    """Yield the metrics that some column of an algorithm has, the first one in any case, with the cells."""
    for place, metric in enumerate(block.metrics):
        found = (lines.get(value) for value in order)
        cells = [line.entries[metric.name] if line else None for line in found]
        if place == 0 or any(entry and (entry.mean is not None or entry.published) for entry in cells):
            yield metric, cells


def _ours(block: Block, line: Line | None, metric: Metric) -> str:
    return number(line.entries[metric.name], metric) + mark_of(block, line, metric) if line else NONE


def _theirs(metric: Metric, cells: Cells) -> Iterator[list[str]]:
    """Yield the rows below ours: what is published, and how far ours is from it."""
    if any(entry and entry.published for entry in cells):
        yield ["  paper", *(printed(entry.published, metric) if entry else NONE for entry in cells)]
    if metric.compared and any(entry and entry.comparable for entry in cells):
        texts = (comparison(entry, metric).strip() if entry else NONE for entry in cells)
        yield [f"  {COMPARISONS[metric.compared]}", *texts]

"""The layout of a table whose columns are the values of a parameter, with several numbers in a cell.

MNIST 3              lam=0.5           lam=0.2
CGD         85.1 / 0.02 / 1.5  89.7 / 0.03 / 4.3
  paper       84.8 / 0.3 / 1.4   89.4 / 0.36 / 4.0
  diff         +0.3 / 15x / +0.1  +0.3 / 12x / +0.3
"""

from __future__ import annotations

from typing import Any

from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.variants import as_number, value_text
from klr_bench.report.render.caption import failures_of
from klr_bench.report.render.labels import column_label
from klr_bench.report.render.layout import NONE, Grid, comparison, grid, number, printed
from klr_bench.report.table import Block, Entry, Line, Table

SEPARATOR = " / "


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
    titles = SEPARATOR.join(metric.title for metric in block.metrics)
    header = [f"{block.label}: {titles}", *(f"{parameter}={value_text(value)}" for value in order)]
    rows: list[list[str]] = []
    papers: list[int] = []
    for label, lines in groups.items():
        cells = [lines.get(value) for value in order]
        rows.append([label, *(_joined(block, line, "ours") for line in cells)])
        entries = [line.entries[metric.name] for line in cells if line for metric in block.metrics]
        for name, which, shown in (
            ("  paper", "theirs", any(entry.published for entry in entries)),
            ("  diff", "difference", any(entry.comparable for entry in entries)),
        ):
            if shown:
                papers.append(len(rows))
                rows.append([name, *(_joined(block, line, which) for line in cells)])
    columns = [[row[place] for row in rows] for place in range(len(header))]
    widths = [max(map(len, [head, *column])) for head, column in zip(header, columns, strict=True)]
    padded = [[row[0], *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))] for row in rows]
    return Grid(header, padded, papers, failures_of(block))


def _joined(block: Block, line: Line | None, which: str) -> str:
    if line is None:
        return NONE
    return SEPARATOR.join(_text(line.entries[metric.name], metric, which) for metric in block.metrics)


def _text(entry: Entry, metric: Metric, which: str) -> str:
    if which == "ours":
        return number(entry, metric, spread=False)
    return printed(entry.published, metric) if which == "theirs" else comparison(entry, metric).strip(" *")

"""The layout of a table whose columns are the values of a parameter, with several numbers in a cell.

MNIST 3              lam=0.5           lam=0.2
CGD         85.1 / 0.02 / 1.5  89.7 / 0.03 / 4.3
  paper       84.8 / 0.3 / 1.4   89.4 / 0.36 / 4.0
  diff         +0.3 / 15x / +0.1  +0.3 / 12x / +0.3
"""

from __future__ import annotations

from typing import Any

from klr_bench.experiment.variants import as_number, value_text, variant_text
from klr_bench.report.layout import NONE, Grid, comparison, failures_of, number, printed
from klr_bench.report.tables import Block, Line

SEPARATOR = " / "


def crossed(block: Block, parameter: str) -> Grid:
    """Lay out a block with a column for each value of `parameter`, a group of rows for all else of a line."""
    values: dict[Any, None] = {}
    groups: dict[str, dict[Any, Line]] = {}
    for line in block.lines:
        value = line.variant.get(parameter, NONE)
        values.setdefault(value)
        groups.setdefault(_rest(line, parameter), {})[value] = line
    order = sorted(values, key=lambda value: -(as_number(value) or 0.0))
    titles = SEPARATOR.join(metric.title for metric in block.metrics)
    header = [f"{block.label}: {titles}", *(f"{parameter}={value_text(value)}" for value in order)]
    rows: list[list[str]] = []
    papers: list[int] = []
    for label, lines in groups.items():
        cells = [lines.get(value) for value in order]
        rows.append([label, *(_joined(block, line, "ours") for line in cells)])
        if any(line and any(line.cells[m.name].published for m in block.metrics) for line in cells):
            papers += [len(rows), len(rows) + 1]
            rows.append(["  paper", *(_joined(block, line, "theirs") for line in cells)])
            rows.append(["  diff", *(_joined(block, line, "difference") for line in cells)])
    columns = [[row[place] for row in rows] for place in range(len(header))]
    widths = [max(map(len, [head, *column])) for head, column in zip(header, columns, strict=True)]
    padded = [[row[0], *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))] for row in rows]
    return Grid(header, padded, papers, failures_of(block))


def _rest(line: Line, parameter: str) -> str:
    """Return the label of a line without the parameter that the columns have."""
    name = line.algorithm_label
    return f"{name} {variant_text(line.variant.without(parameter))}".strip()


def _joined(block: Block, line: Line | None, which: str) -> str:
    if line is None:
        return NONE
    texts = []
    for metric in block.metrics:
        cell = line.cells[metric.name]
        if which == "ours":
            texts.append(number(cell, metric, spread=False))
        else:
            texts.append(printed(cell.published, metric) if which == "theirs" else comparison(cell, metric).strip(" *"))
    return SEPARATOR.join(texts)

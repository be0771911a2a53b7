"""From the table of an experiment to texts: a grid a data set.

Under each line of ours stands the paper's, so that the two can be compared by the eye.  Where the published table has
the values of a parameter as its columns, so has the grid, with a row for each metric of an algorithm:

MNIST 3                        lam=0.5      lam=0.2
CGD: Accuracy (%)           84.8 ± 0.5   88.9 ± 0.4
  paper                           84.8         89.4
  diff                             0.0        -0.5*
CGD: Training time (s)   0.175 ± 0.010        0.256
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from klr_bench.metrics.metric import Metric
from klr_bench.printing import no_formula
from klr_bench.report.labels import NONE, PLUS_MINUS, UNITS, column_label, line_label, number, three_digits, title_of
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import Printed
from klr_bench.report.papers.verdicts import mark_of, marks_of
from klr_bench.report.render.caption import caption, failures_of
from klr_bench.report.render.document import ALIKE, BEST, Document, Grid, aligned, right_aligned
from klr_bench.report.table import Block, Line, Table
from klr_bench.report.writing import csv_text
from klr_bench.results.variants import as_number, value_text

CSV_COLUMNS = (
    *("dataset", "algorithm", "variant", "metric", "n_ok", "n_repeats", "n", "mean", "std"),
    *("published_mean", "published_std", "difference", "ratio", "outside", "verdict"),
    *("best", "difference_to_best", "low", "high", "p_holm"),
)
COMPARISONS = {"difference": "diff", "ratio": "ratio"}
SIGNS = {"best": BEST, "alike": ALIKE, "": ""}
Causes = Mapping[str, str]
"""The marks of numbers whose difference has a cause, by cause."""


def document(table: Table) -> Document:
    """Return the texts of the table of an experiment."""
    causes = marks_of(table.causes)
    by = table.columns
    grids = [crossed(block, by, causes) if by else grid(block, causes) for block in table.blocks]
    return Document(table.title or table.experiment, grids, caption(table))


def grid(block: Block, causes: Causes) -> Grid:
    """Lay out a block; the numbers of a column are aligned at their plus-minus signs."""
    compared = any(not one.stand_in for one in block.matches)
    columns: list[tuple[str, list[str], list[str]]] = [
        ("ok", [f"{line.n_ok}/{line.n_repeats}" for line in block.lines], [""] * len(block.lines))
    ]
    for metric in block.metrics:
        matches = [line.matches.get(metric.name) for line in block.lines]
        ours = [_measured(block, line, metric) for line in block.lines]
        columns.append((title_of(metric), ours, [_printed(one, metric) for one in matches]))
        if compared and metric.compared:
            texts = _with_marks([_comparison(one, metric, causes) for one in matches])
            columns.append((COMPARISONS[metric.compared], texts, [""] * len(texts)))
    names: list[str] = []
    papers: list[int] = []
    shown: list[tuple[int, bool]] = []
    for place, line in enumerate(block.lines):
        names.append(line_label(line))
        shown.append((place, False))
        if any(metric.name in line.matches for metric in block.metrics):
            papers.append(len(names))
            names.append("  paper")
            shown.append((place, True))
    cells = [
        aligned([(theirs if is_paper else ours)[place] for place, is_paper in shown], head)
        for head, ours, theirs in columns
    ]
    rows = [list(row) for row in zip(names, *cells, strict=True)]
    return Grid([block.label, *(head for head, _, _ in columns)], rows, papers, failures_of(block))


def crossed(block: Block, parameter: str, causes: Causes) -> Grid:
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
    for label, by_value in groups.items():
        lines = [by_value.get(value) for value in order]
        for place, metric in enumerate(block.metrics):
            if place and not any(_has(line, metric) for line in lines):
                continue
            ours = [_measured(block, line, metric) if line else NONE for line in lines]
            rows.append([f"{label}: {title_of(metric)}", *ours])
            matches = [line.matches.get(metric.name) if line else None for line in lines]
            for beside in _published(metric, matches, causes):
                papers.append(len(rows))
                rows.append(beside)
    return replace(right_aligned(header, rows, failures_of(block)), papers=papers)


def _has(line: Line | None, metric: Metric) -> bool:
    return line is not None and (line.entries[metric.name].mean is not None or metric.name in line.matches)


def _published(metric: Metric, matches: Sequence[Match | None], causes: Causes) -> Iterator[list[str]]:
    """Yield the rows below ours: what is published, and how far ours is from it."""
    if any(matches):
        yield ["  paper", *(_printed(one, metric) for one in matches)]
    if metric.compared and any(one and not one.stand_in for one in matches):
        texts = ("".join(_comparison(one, metric, causes)) for one in matches)
        yield [f"  {COMPARISONS[metric.compared]}", *texts]


def _measured(block: Block, line: Line, metric: Metric) -> str:
    entry, marks = line.entries[metric.name], block.marks.get(metric.name)
    found = marks.lines.get(line.column) if marks else None
    return number(entry.mean, entry.std, metric) + (SIGNS[found.place] if found else "")


def _printed(match: Match | None, metric: Metric) -> str:
    return NONE if match is None else as_published(match.printed, metric)


def as_published(line: Printed, metric: Metric) -> str:
    """Print a published number as the paper does; a fraction as percent where ours are percents."""
    numbers = [number for number in (line.mean, line.std) if number]
    if metric.unit == "count":
        numbers[0] = f"{Decimal(numbers[0]):,}"
    elif metric.unit == "percent" and line.unit == "fraction":
        numbers = [f"{Decimal(number).scaleb(2):f}" for number in numbers]
    return PLUS_MINUS.join(numbers)


def _comparison(match: Match | None, metric: Metric, causes: Causes) -> tuple[str, str]:
    """Return how far ours is from the published value, and the mark of the verdict; a ratio has none."""
    if match is not None and metric.compared == "ratio" and match.ratio is not None:
        return f"{match.ratio:,.{max(0, three_digits(match.ratio) - 1)}f}x", ""
    if match is None or metric.compared == "ratio" or match.difference is None:
        return NONE, ""
    decimals = 1 if metric.unit == "percent" else 3
    text = f"{match.difference * UNITS[metric.unit].scale:+.{decimals}f}"
    return text if float(text) else text[1:], mark_of(match, causes)  # no "-0.0"


def _with_marks(texts: Sequence[tuple[str, str]]) -> list[str]:
    """Append each mark to its number and pad the marks to one width, so that the digits align."""
    width = max([len(mark) for text, mark in texts if text != NONE and "x" not in text], default=0)
    return [text if text == NONE or text.endswith("x") else text + mark.ljust(max(1, width)) for text, mark in texts]


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

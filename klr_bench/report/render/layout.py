"""Arrange the results table of an experiment in grids of strings, one per data set.

Published values are below the measured ones.  If the columns of the published table are values of a parameter, so are
those of the grid, with one row per metric of an algorithm:

MNIST 3                        lam=0.5      lam=0.2
CGD: Accuracy (%)           84.8 ± 0.5   88.9 ± 0.4
  paper                           84.8         89.4
  diff                             0.0        -0.5*
CGD: Training time (s)   0.175 ± 0.010        0.256
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from klr_bench.metrics.metric import Metric
from klr_bench.printing import no_formula
from klr_bench.report.labels import NONE, PLUS_MINUS, UNITS, column_label, line_label, number, three_digits, title_of
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.verdicts import mark_of, marks_of
from klr_bench.report.render.caption import caption, failures_of
from klr_bench.report.render.document import ALIKE, BEST, Document, Grid, aligned
from klr_bench.report.significance import Mark
from klr_bench.report.table import Block, Line, Table
from klr_bench.results.row_cache import csv_text
from klr_bench.results.variants import to_number, value_text

CSV_COLUMNS = (
    *("dataset", "algorithm", "variant", "metric", "n_ok", "n_repeats", "n", "mean", "std"),
    *("published_mean", "published_std", "difference", "ratio", "verdict"),
    *("best", "difference_to_best", "low", "high", "p_holm"),
)
COMPARISONS = {"difference": "diff", "ratio": "ratio"}
SIGNS = {"best": BEST, "alike": ALIKE, "": ""}
KEPT = ("accuracy", "n_support")
"""Metrics that every table keeps, however narrow it is, in addition to times with published counterparts."""
LAST = ("sparsity", "fit_time_s")
"""Metrics that a narrow table omits last."""
CALIBRATION = ("log_loss", "brier", "ece")
"""Metrics of the predicted probabilities, which a narrow table omits first."""
Causes = Mapping[str, str]
"""Marks of values whose difference has a known cause, by cause."""


def document(table: Table) -> Document:
    """Return the results table of an experiment as a document."""
    causes, by = marks_of(table.causes), table.columns
    grids = [_crossed(block, by, causes) if by else _plain(block, causes) for block in table.blocks]
    papers = {source.name: source.paper for source in table.sources if any(block.matches for block in table.blocks)}
    title = table.title or table.experiment
    return Document(title, grids, caption(table), table.best, papers, has_results=True)


def _plain(block: Block, causes: Causes) -> Grid:
    header, rows, papers, times = [block.label, "ok"], list[list[str]](), list[int](), list[int]()
    is_compared = any(match.is_comparable for match in block.matches)
    differences = {
        metric.name: _with_marks([_comparison(line.matches.get(metric.name), metric, causes) for line in block.lines])
        for metric in block.metrics
        if is_compared and metric.compared
    }
    printed = {name for line in block.lines for name in line.matches}
    ranks = {1: 1} if all(line.n_ok == line.n_repeats for line in block.lines) else {}
    """The columns that a narrow table omits, and in which order."""
    for metric in block.metrics:
        columns = [title_of(metric), *([COMPARISONS[metric.compared]] if metric.name in differences else [])]
        places = range(len(header), len(header) + len(columns))
        header += columns
        is_time = metric.unit in ("s", "min")
        times += [places[0]] if is_time else []
        if (is_time and metric.name in printed) or metric.name == "n_support":
            ranks |= dict.fromkeys(places[1:], 2)
        elif metric.name in LAST:
            ranks |= {places[0]: 4, **dict.fromkeys(places[1:], 3)}
        elif metric.name not in KEPT:
            ranks |= dict.fromkeys(places, 0 if metric.name in CALIBRATION else 3)
    for place, line in enumerate(block.lines):
        ours, paper = [line_label(line), f"{line.n_ok}/{line.n_repeats}"], ["  paper", ""]
        for metric in block.metrics:
            ours.append(_measured(block, line, metric))
            paper.append(_published(line.matches.get(metric.name), metric))
            if metric.name in differences:
                ours.append(differences[metric.name][place])
                paper.append("")
        rows.append(ours)
        if any(metric.name in line.matches for metric in block.metrics):
            papers.append(len(rows))
            rows.append(paper)
    omissible = sorted(ranks, key=lambda place: (ranks[place], -place))
    return aligned(Grid(header, rows, papers, failures_of(block), omissible, times))


def _crossed(block: Block, parameter: str, causes: Causes) -> Grid:
    """Return a block as a grid with one column per value of a parameter.

    Methods that differ only in this parameter share a group of rows.
    """
    groups: dict[str, dict[Any, Line]] = {}
    for line in block.lines:
        label = column_label(line.presentation, line.variant.without(parameter))
        groups.setdefault(label, {})[line.variant.get(parameter, NONE)] = line
    values = dict.fromkeys(value for by_value in groups.values() for value in by_value)
    order = sorted(values, key=lambda value: -(to_number(value) or 0.0))
    rows: list[list[str]] = []
    papers: list[int] = []
    for label, by_value in groups.items():
        lines = [by_value.get(value) for value in order]
        for place, metric in enumerate(block.metrics):
            matches = [line.matches.get(metric.name) if line else None for line in lines]
            measured = any(line and line.entries[metric.name].mean is not None for line in lines)
            if place and not measured and not any(matches):
                continue
            ours = [_measured(block, line, metric) if line else NONE for line in lines]
            rows.append([f"{label}: {title_of(metric)}", *ours])
            below = [["  paper", *(_published(match, metric) for match in matches)]] if any(matches) else []
            if metric.compared and any(match and match.is_comparable for match in matches):
                texts = ("".join(_comparison(match, metric, causes)) for match in matches)
                below.append([f"  {COMPARISONS[metric.compared]}", *texts])
            papers += range(len(rows), len(rows) + len(below))
            rows += below
    header = [block.label, *(f"{parameter}={value_text(value)}" for value in order)]
    return aligned(Grid(header, rows, papers, failures_of(block), sortable=False))


def _mark(block: Block, line: Line, metric: Metric) -> Mark | None:
    marks = block.marks.get(metric.name)
    return marks.lines.get(line.column) if marks else None


def _measured(block: Block, line: Line, metric: Metric) -> str:
    entry, mark = line.entries[metric.name], _mark(block, line, metric)
    return number(entry.mean, entry.std, metric) + (SIGNS[mark.place] if mark else "")


def _published(match: Match | None, metric: Metric) -> str:
    if match is None:
        return NONE
    numbers = [number for number in (match.printed.mean, match.printed.std) if number]
    if metric.unit == "count":
        numbers[0] = f"{Decimal(numbers[0]):,}"
    elif metric.unit == "percent" and match.printed.unit == "fraction":
        numbers = [f"{Decimal(number).scaleb(2):f}" for number in numbers]
    elif metric.unit == "s" and match.printed.unit == "min":
        numbers = [f"{60 * Decimal(number):f}" for number in numbers]
    return PLUS_MINUS.join(numbers)


def _comparison(match: Match | None, metric: Metric, causes: Causes) -> tuple[str, str]:
    if match is not None and metric.compared == "ratio" and match.ratio is not None:
        return f"{match.ratio:,.{max(0, three_digits(match.ratio) - 1)}f}x", ""
    if match is None or metric.compared == "ratio" or match.difference is None:
        return NONE, ""
    decimals = {"percent": 1, "count": 0}.get(metric.unit, 3)
    text = f"{match.difference * UNITS[metric.unit].scale:+,.{decimals}f}"
    return text if text.strip("+-0.") else text[1:], mark_of(match, causes)  # no "-0.0"


def _with_marks(texts: Sequence[tuple[str, str]]) -> list[str]:
    width = max([len(mark) for text, mark in texts if text != NONE and "x" not in text], default=0)
    return [text if text == NONE or text.endswith("x") else text + mark.ljust(max(1, width)) for text, mark in texts]


def comma_separated(table: Table) -> str:
    """Return a table as CSV, with one row per method and metric, in full precision.

    Values have the units of records.csv.
    """
    rows = []
    for block in table.blocks:
        for line in block.lines:
            name = [no_formula(block.dataset), no_formula(line.algorithm), json.dumps(dict(line.variant))]
            for metric in block.metrics:
                entry, match = line.entries[metric.name], line.matches.get(metric.name)
                mark = _mark(block, line, metric)
                ours = [metric.name, line.n_ok, line.n_repeats, entry.n, entry.mean, entry.std]
                paper: list[object] = [None] * 5
                if match:
                    is_ratio = metric.compared == "ratio"
                    paper = [match.printed.value, match.printed.spread, None if is_ratio else match.difference]
                    paper += [match.ratio if is_ratio else None, match.verdict.value]
                best = [mark.place, mark.difference, mark.low, mark.high, mark.p_holm] if mark else [None] * 5
                rows.append([*name, *ours, *paper, *best])
    return csv_text([CSV_COLUMNS, *rows])

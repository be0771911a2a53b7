"""From a table to texts: the numbers as they are printed, a grid a data set.

Under each line of ours stands the paper's, so that the two can be compared by the eye, and the whole fits
into a hundred columns however many algorithms there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from klr_bench.experiment.measure.metric import Metric
from klr_bench.report.paper import Published
from klr_bench.report.render.caption import MARK, failures_of
from klr_bench.report.render.labels import line_label
from klr_bench.report.render.marks import is_alike, is_best, mark_of
from klr_bench.report.table import Block, Entry, Line

NONE = "-"
PLUS_MINUS = " ± "

# What one unit of records.csv is in print, and how the header says so.
SHOWN = {"percent": 100.0, "count": 1.0, "s": 1.0, "min": 1 / 60, "": 1.0, "small": 1.0, "MB": 1.0}
HEADS = {"percent": " (%)", "count": "", "s": " (s)", "min": " (min)", "": "", "small": "", "MB": " (MB)"}
COMPARISONS = {"difference": "diff", "ratio": "ratio"}


@dataclass(frozen=True)
class Grid:
    """A block as texts; `papers` are the numbers of the rows that hold published values."""

    header: list[str]
    """First the name of the data set."""
    rows: list[list[str]]
    papers: list[int]
    notes: list[str]


def grid(block: Block) -> Grid:
    """Lay out a block; the numbers of a column are aligned at their plus-minus signs."""
    compared = any(entry.comparable for line in block.lines for entry in line.entries.values())
    header = [block.label, "ok"]
    for metric in block.metrics:
        header.append(metric.title + HEADS[metric.unit])
        if compared and metric.compared:
            header.append(COMPARISONS[metric.compared])
    rows: list[list[str]] = []
    papers: list[int] = []
    for line in block.lines:
        rows.append(_ours(line, block, compared))
        if any(line.entries[metric.name].published for metric in block.metrics):
            papers.append(len(rows))
            rows.append(_theirs(line, block.metrics, compared))
    labels, *numbers = [list(column) for column in zip(*rows, strict=True)]
    columns = [labels, *map(_aligned, numbers, header[1:])]
    return Grid(header, [list(row) for row in zip(*columns, strict=True)], papers, failures_of(block))


def _ours(line: Line, block: Block, compared: bool) -> list[str]:
    texts = [line_label(line), f"{line.n_ok}/{line.n_repeats}"]
    for metric in block.metrics:
        entry = line.entries[metric.name]
        texts.append(number(entry, metric) + mark_of(block, line, metric))
        if compared and metric.compared:
            texts.append(comparison(entry, metric))
    return texts


def _theirs(line: Line, metrics: list[Metric], compared: bool) -> list[str]:
    texts = ["  paper", ""]
    for metric in metrics:
        texts.append(printed(line.entries[metric.name].published, metric))
        if compared and metric.compared:
            texts.append("")
    return texts


def number(entry: Entry, metric: Metric, *, spread: bool = True) -> str:
    """Print our mean and spread: percents with one decimal as the papers, times with three digits."""
    if entry.mean is None:
        return NONE
    mean = entry.mean * SHOWN[metric.unit]
    if metric.unit == "small":
        return f"{mean:.1e}"
    decimals = {"percent": 1, "count": 0, "": 3}.get(metric.unit, _three_digits(mean))
    text = f"{mean:,.{decimals}f}"
    if entry.std is None or not spread:
        return text
    return f"{text}{PLUS_MINUS}{entry.std * SHOWN[metric.unit]:,.{decimals}f}"


def printed(found: Published | None, metric: Metric) -> str:
    """Print a published number as the paper does; a fraction as percent where ours are percents."""
    if found is None:
        return NONE
    numbers = [number for number in (found.printed.mean, found.printed.std) if number]
    if metric.unit == "count":
        numbers[0] = f"{Decimal(numbers[0]):,}"
    elif metric.unit == "percent" and found.printed.unit == "fraction":
        numbers = [f"{Decimal(number).scaleb(2):f}" for number in numbers]
    return PLUS_MINUS.join(numbers)


def comparison(entry: Entry, metric: Metric) -> str:
    """Print how far ours is from the published value."""
    if metric.compared == "ratio":
        return NONE if entry.ratio is None else f"{entry.ratio:,.{max(0, _three_digits(entry.ratio) - 1)}f}x"
    if entry.difference is None:
        return NONE
    decimals = 1 if metric.unit == "percent" else 3
    text = f"{entry.difference * SHOWN[metric.unit]:+.{decimals}f}"
    return (text if float(text) else text[1:]) + (MARK if entry.outside else " ")  # no "-0.0"


def _three_digits(number: float) -> int:
    """Return the decimals that show three digits of a positive number, three at the most."""
    if not 0 < number < math.inf:
        return 1
    return min(3, max(0, 2 - math.floor(math.log10(number))))


def _aligned(column: list[str], head: str) -> list[str]:
    """Pad the texts of a column to one width, so that their plus-minus signs stand under each other."""
    if any(is_best(text) or is_alike(text) for text in column):
        column = [text if is_best(text) or is_alike(text) or PLUS_MINUS in text else f"{text} " for text in column]
    if any(PLUS_MINUS in text for text in column):
        means, signs, stds = zip(*(text.partition(PLUS_MINUS) for text in column), strict=True)
        left, right = max(map(len, means)), max(map(len, stds))
        parts = zip(means, signs, stds, strict=True)
        column = [f"{mean:>{left}}{sign or '   '}{std:<{right}}" for mean, sign, std in parts]
    width = max(map(len, [*column, *head.split(" ", 1)]))
    return [text.rjust(width) for text in column]

"""From a table to texts: the numbers as they are printed, a grid a data set.

Under each line of ours stands the paper's, so that the two can be compared by the eye, and the whole fits
into a hundred columns however many algorithms there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from klr_bench.experiment.measure.catalogue import CATALOGUE
from klr_bench.experiment.measure.metric import Metric
from klr_bench.report.figures.core.curves import verdicts
from klr_bench.report.published import Published
from klr_bench.report.tables import Block, Cell, Line, Table

MARK = "*"
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
    compared = any(cell.published for line in block.lines for cell in line.cells.values())
    header = [block.label, "ok"]
    for metric in block.metrics:
        header.append(metric.title + HEADS[metric.unit])
        if compared and metric.compared:
            header.append(COMPARISONS[metric.compared])
    rows: list[list[str]] = []
    papers: list[int] = []
    for line in block.lines:
        rows.append(_ours(line, block.metrics, compared))
        if any(line.cells[metric.name].published for metric in block.metrics):
            papers.append(len(rows))
            rows.append(_theirs(line, block.metrics))
    labels, *numbers = [list(column) for column in zip(*rows, strict=True)]
    columns = [labels, *map(_aligned, numbers, header[1:])]
    return Grid(header, [list(row) for row in zip(*columns, strict=True)], papers, failures_of(block))


def failures_of(block: Block) -> list[str]:
    """Return a sentence for each line of which a repeat did not end well."""
    return [
        f"{line.label}: {line.n_ok} of {line.n_repeats} ok; {line.failures}" for line in block.lines if line.failures
    ]


def caption(table: Table) -> list[str]:
    """Return the sentences that say what the numbers are."""
    repeated = any(line.n_ok > 1 for block in table.blocks for line in block.lines)
    spread = "Mean ± standard deviation over the repeats (ok: repeats that ended well of all)."
    lines = [spread if repeated else "One repeat, so no standard deviation."]
    if table.source:
        paper, numbers = table.source
        word = "table" if len(numbers) == 1 else "tables"
        rule = f"{MARK}: more than max(2 published standard deviations, half a unit of the last printed digit)."
        rule = "percents as such, of times the paper's over ours." if table.columns else rule
        where = "" if table.columns else ", in the unit of the column"
        lines.append(f"paper: {paper}, {word} {' and '.join(numbers)}. diff: ours less the paper's{where}; {rule}")
    if any(line.timed_out for block in table.blocks for line in block.lines):
        lines.append("Where no repeat ended within its time limit, the numbers are those at the limit.")
    lines += verdicts(table)
    if table.machine and table.shown & {"fit_time_s", "pass_time_s", "settled_s"}:
        ratio = "; ratio: the paper's time, on its own machine, over ours" if table.source else ""
        lines.append(f"Training times on {table.machine}{ratio}.")
    for metric in CATALOGUE:
        if metric.name in table.compared.keys() & table.shown:
            over = "over" if metric.name.endswith("_ratio") else "less"
            lines.append(f"{metric.title}: {over} that of {table.compared[metric.name]}, repeat by repeat.")
    if "settled_s" in table.shown:
        lines.append(
            "Settled after: seconds of training from which on the test accuracy is at most 0.5 point below its last."
        )
    if any(cell.published for cell in _cells(table, "pass_time_s")):
        lines.append("Pass alone: part of the training time; of the paper's two times that is the sum.")
    lines += [block.data for block in table.blocks if block.data]
    if table.absent:
        lines.append(f"No rows yet: {', '.join(table.absent)}.")
    return lines


def _cells(table: Table, metric: str) -> list[Cell]:
    return [line.cells[metric] for block in table.blocks for line in block.lines]


def _ours(line: Line, metrics: list[Metric], compared: bool) -> list[str]:
    texts = [line.label, f"{line.n_ok}/{line.n_repeats}"]
    for metric in metrics:
        cell = line.cells[metric.name]
        texts.append(number(cell, metric))
        if compared and metric.compared:
            texts.append(comparison(cell, metric))
    return texts


def _theirs(line: Line, metrics: list[Metric]) -> list[str]:
    texts = ["  paper", ""]
    for metric in metrics:
        texts.append(printed(line.cells[metric.name].published, metric))
        if metric.compared:
            texts.append("")
    return texts


def number(cell: Cell, metric: Metric, *, spread: bool = True) -> str:
    """Print our mean and spread: percents with one decimal as the papers, times with three digits."""
    if cell.mean is None:
        return NONE
    mean = cell.mean * SHOWN[metric.unit]
    if metric.unit == "small":
        return f"{mean:.1e}"
    decimals = {"percent": 1, "count": 0, "": 3}.get(metric.unit, _three_digits(mean))
    text = f"{mean:,.{decimals}f}"
    return (
        text if cell.std is None or not spread else f"{text}{PLUS_MINUS}{cell.std * SHOWN[metric.unit]:,.{decimals}f}"
    )


def printed(found: Published | None, metric: Metric) -> str:
    """Print a published number as the paper does; a fraction as percent where ours are percents."""
    if found is None:
        return NONE
    numbers = [number for number in (found.row.mean, found.row.std) if number]
    if metric.unit == "count":
        numbers[0] = f"{int(numbers[0]):,}"
    elif metric.unit == "percent" and found.row.unit == "fraction":
        numbers = [f"{Decimal(number).scaleb(2):f}" for number in numbers]
    return PLUS_MINUS.join(numbers)


def comparison(cell: Cell, metric: Metric) -> str:
    """Print how far ours is from the published value."""
    if metric.compared == "ratio":
        return NONE if cell.ratio is None else f"{cell.ratio:,.{max(0, _three_digits(cell.ratio) - 1)}f}x"
    if cell.difference is None:
        return NONE
    decimals = 1 if metric.unit == "percent" else 3
    text = f"{cell.difference * SHOWN[metric.unit]:+.{decimals}f}"
    return (text if float(text) else text[1:]) + (MARK if cell.outside else " ")  # no "-0.0"


def _three_digits(number: float) -> int:
    """Return the decimals that show three digits of a positive number, three at the most."""
    if not 0 < number < math.inf:
        return 1
    return min(3, max(0, 2 - math.floor(math.log10(number))))


def _aligned(column: list[str], head: str) -> list[str]:
    """Pad the texts of a column to one width, so that their plus-minus signs stand under each other."""
    if any(PLUS_MINUS in text for text in column):
        means, signs, stds = zip(*(text.partition(PLUS_MINUS) for text in column), strict=True)
        left, right = max(map(len, means)), max(map(len, stds))
        parts = zip(means, signs, stds, strict=True)
        column = [f"{mean:>{left}}{sign or '   '}{std:<{right}}" for mean, sign, std in parts]
    width = max(map(len, [*column, *head.split(" ", 1)]))
    return [text.rjust(width) for text in column]

"""A table of a paper as the paper prints it: ours, with as many digits, above the printed numbers.

Forgetron      budget=3443  budget=1821      a block a data set, as `Layout` says
Accuracy (%)   78.9 ± 2.1   77.3 ± 3.0 ~     a mark says what the difference means
  paper        78.2 ± 3.9   76.7 ± 5.4
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from klr_bench.metrics.labels import METRICS
from klr_bench.report.labels import NONE, PLUS_MINUS
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import SCALES, Cause, Layout, Printed
from klr_bench.report.papers.verdicts import Verdict, mark_of, marks_of
from klr_bench.report.render.document import SEPARATOR, Grid
from klr_bench.results.variants import value_text, variant_text

UNIT_HEADS = {"percent": " (%)", "s": " (s)", "min": " (min)"}
FACT_TITLES = {
    "n_train": "Training rows",
    "n_test": "Test rows",
    "n_examples": "Rows",
    "n_features": "Features",
    "nnz_per_instance": "Non-zero per row",
    "lam": "lambda / lambda_max",
}
Key = tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A block of a printed table: its title, the titles of its columns, and for each row its title and its cells.

    A cell holds numbers that differ in nothing but their metric.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Sequence[Match]]]]


def blocks_of(judged: Sequence[Match], layout: Layout) -> list[Block]:
    """Return the blocks of a table as the paper prints it."""
    blocks: dict[Key, list[Match]] = {}
    for one in judged:
        blocks.setdefault(_key(one.printed, layout.blocks), []).append(one)
    return [_block(" ".join(key), numbers, layout) for key, numbers in blocks.items()]


def as_printed(judged: Sequence[Match], layout: Layout, causes: Sequence[Cause]) -> list[Grid]:
    """Return the blocks of a table; a number that is off for a cause has the number of the cause in brackets."""
    return [_grid(block, marks_of(causes)) for block in blocks_of(judged, layout)]


def _block(title: str, judged: Sequence[Match], layout: Layout) -> Block:
    cells: dict[Key, dict[Key, list[Match]]] = {}
    columns: dict[Key, None] = {}
    for one in judged:
        row, column = _key(one.printed, layout.rows), _key(one.printed, layout.columns)
        columns.setdefault(column)
        cells.setdefault(row, {}).setdefault(column, []).append(one)
    rows = [(" ".join(row), [found.get(column, []) for column in columns]) for row, found in cells.items()]
    return Block(_with_cell_titles(title, judged, layout), [" ".join(column) for column in columns], rows)


def _grid(block: Block, marks: Mapping[str, str]) -> Grid:
    rows: list[list[str]] = []
    papers = []
    for title, cells in block.rows:
        rows.append([title, *(SEPARATOR.join(ours(one, marks) for one in cell) or NONE for cell in cells)])
        papers.append(len(rows))
        rows.append(["  paper", *(SEPARATOR.join(theirs(one.printed) for one in cell) or NONE for cell in cells)])
    return Grid([block.title, *block.columns], rows, papers)


def _with_cell_titles(title: str, judged: Sequence[Match], layout: Layout) -> str:
    """Return the title of a block; where a cell holds several metrics, with their names."""
    if "metric" in {*layout.blocks, *layout.rows, *layout.columns}:
        return title
    titles = SEPARATOR.join(dict.fromkeys(_part(one.printed, "metric") for one in judged))
    return f"{title}: {titles}" if title else titles


def _key(line: Printed, parts: Sequence[str]) -> Key:
    return tuple(filter(None, (_part(line, part) for part in parts)))


def _part(line: Printed, part: str) -> str:
    """Return what a row or a column says of a line, as the paper names it where it does."""
    if part == "label":
        return line.label
    if part == "algorithm":
        return line.label.partition(", ")[0]
    if part == "dataset":
        return line.dataset
    if part == "metric":
        title = METRICS[line.metric].title if line.algorithm else FACT_TITLES[line.metric]
        return title + UNIT_HEADS.get(line.unit, "")
    if part == "params":
        return variant_text(line.params)
    return f"{part}={value_text(line.params[part])}" if part in line.params else ""


def ours(match: Match, causes: Mapping[str, str]) -> str:
    """Print the measured number with the digits of the printed one, and the mark of the verdict."""
    text = measured_text(match)
    return text if text == NONE else text + mark_of(match, causes)


def measured_text(match: Match) -> str:
    """Print the measured number with the digits of the printed one."""
    line, entry = match.printed, match.entry
    if entry is None or entry.mean is None:
        return NONE
    scale = float(SCALES[line.unit])
    mean = entry.mean / scale
    least = 0
    if match.verdict is Verdict.TIME and 0 < mean < 1:  # at least two digits
        least = next((digits for digits in range(1, 6) if mean >= 10.0 ** (1 - digits)), 5)
    text = f"{mean:,.{max(_decimals(line.mean), least)}f}"
    if line.std and entry.std is not None:
        text += f"{PLUS_MINUS}{entry.std / scale:,.{max(_decimals(line.std), least)}f}"
    return text


def _decimals(number: str) -> int:
    return max(0, -int(Decimal(number).as_tuple().exponent))


def theirs(line: Printed) -> str:
    """Print a published number as the paper does, with commas in large counts."""
    mean = f"{Decimal(line.mean):,}" if line.unit == "count" else line.mean
    return mean + (f"{PLUS_MINUS}{line.std}" if line.std else "")


def described(match: Match) -> str:
    """Return which number of a table it is, in words: "magic, OSKL, G 10, Support vectors"."""
    line = match.printed
    return ", ".join(dict.fromkeys([line.dataset, line.label, _part(line, "metric")]))

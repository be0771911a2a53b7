"""Published tables in their original layout, with measured numbers above published ones.

Forgetron      budget=3443  budget=1821      blocks, rows and columns as in `Layout`
Accuracy (%)   78.9 ± 2.1   77.3 ± 3.0 ~     the mark of a verdict
  paper        78.2 ± 3.9   76.7 ± 5.4
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from klr_bench.metrics.labels import METRICS
from klr_bench.report.labels import NONE, PLUS_MINUS
from klr_bench.report.measured import Entry
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import SCALES, Cause, Layout, Printed
from klr_bench.report.papers.verdicts import CALIBRATED_MARK, mark_of, marks_of
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


@dataclass(frozen=True)
class Block:
    """Block of a published table; each cell holds one or more metrics of the same result."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Sequence[Match]]]]
    """Title and cells of each row."""


def blocks_of(judged: Sequence[Match], layout: Layout) -> list[Block]:
    """Arrange the numbers of a table in blocks according to its layout.

    The titles of published data sets name the substitutes on which they were measured.
    """
    substitutes = {match.printed.dataset: match.dataset_label for match in judged if match.stand_in}
    blocks = []
    for title, matches in _grouped(judged, layout.blocks, substitutes).items():
        if "metric" not in {*layout.blocks, *layout.rows, *layout.columns}:  # a cell holds several metrics
            metrics = SEPARATOR.join(dict.fromkeys(_part(match.printed, "metric") for match in matches))
            title = f"{title}: {metrics}" if title else metrics
        columns = list(_grouped(matches, layout.columns, substitutes))
        by_row = {
            row: _grouped(cells, layout.columns, substitutes)
            for row, cells in _grouped(matches, layout.rows, substitutes).items()
        }
        rows = [(row, [cells.get(column, []) for column in columns]) for row, cells in by_row.items()]
        blocks.append(Block(title, columns, rows))
    return blocks


def published_layout(judged: Sequence[Match], layout: Layout, causes: Sequence[Cause]) -> list[Grid]:
    """Return the blocks of a table as grids.

    `causes` are numbered, and these numbers mark explained differences.
    """
    marks, grids = marks_of(causes), []
    for block in blocks_of(judged, layout):
        rows = []
        for title, cells in block.rows:
            rows.append(
                [title, *(SEPARATOR.join(measured_cell(match, marks) for match in cell) or NONE for cell in cells)]
            )
            published = [SEPARATOR.join(published_text(match.printed) for match in cell) or NONE for cell in cells]
            rows.append(["  paper", *published])
        papers, sortable = [*range(1, len(rows), 2)], "metric" not in layout.rows
        grids.append(Grid([block.title, *block.columns], rows, papers, sortable=sortable))
    return grids


def _grouped(matches: Sequence[Match], parts: Sequence[str], substitutes: Mapping[str, str]) -> dict[str, list[Match]]:
    groups: dict[str, list[Match]] = {}
    for match in matches:
        texts = (_part(match.printed, part) for part in parts)
        titles = (
            f"{text} (measured data: {substitutes[text]})" if part == "dataset" and text in substitutes else text
            for part, text in zip(parts, texts, strict=True)
        )
        title = " ".join(filter(None, titles))
        groups.setdefault(title, []).append(match)
    return groups


def _part(line: Printed, part: str) -> str:
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


def measured_cell(match: Match, causes: Mapping[str, str]) -> str:
    """Return the measured value, rounded like the published one, and the symbol of its verdict."""
    text = measured_text(match)
    return text if text == NONE else text + mark_of(match, causes)


def calibration_sentences(matches: Iterable[Match]) -> list[str]:
    """Return one sentence for each calibrated setting that affects the given numbers.

    It includes the results without this setting, if there are any.
    """
    groups: dict[str, list[Match]] = {}
    for match in matches:
        if match.calibration:
            groups.setdefault(match.calibration.setting, []).append(match)
    sentences = []
    for setting, group in groups.items():
        others = [
            f"{position_text(match)}: {measured_text(match, match.uncalibrated)}"
            for match in group
            if match.uncalibrated
        ]
        instead = variant_text(group[0].calibration.instead) if group[0].calibration else ""
        sentences.append(f"{CALIBRATED_MARK} {setting}" + (f" With {instead}: {'; '.join(others)}." if others else ""))
    return sentences


def measured_text(match: Match, entry: Entry | None = None) -> str:
    """Return `entry`, by default the measured value, rounded like the published number.

    It has at least two significant digits.
    """
    line, entry = match.printed, entry or match.entry
    if entry is None or entry.mean is None:
        return NONE
    scale = float(SCALES[line.unit])
    mean = entry.mean / scale
    least = 0 if line.unit == "count" or not mean else max(0, min(5, 1 - math.floor(math.log10(abs(mean)))))
    text = f"{mean:,.{max(_decimals(line.mean), least)}f}"
    if entry.std is not None and (line.std or match.not_compared is None):
        text += f"{PLUS_MINUS}{entry.std / scale:,.{max(_decimals(line.std or line.mean), least)}f}"
    return text


def _decimals(number: str) -> int:
    return max(0, -int(Decimal(number).as_tuple().exponent))


def published_text(line: Printed) -> str:
    """Return a published number as printed, with commas in large counts."""
    mean = f"{Decimal(line.mean):,}" if line.unit == "count" else line.mean
    return mean + (f"{PLUS_MINUS}{line.std}" if line.std else "")


def position_text(match: Match) -> str:
    """Return the position of a number in words, such as "magic, OSKL, G 10, Support vectors"."""
    line = match.printed
    return ", ".join(dict.fromkeys([line.dataset, line.label, _part(line, "metric")]))

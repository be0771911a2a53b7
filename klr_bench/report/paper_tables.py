"""Published tables in their original layout, with measured numbers above published ones.

Forgetron      budget=3443  budget=1821      blocks, rows and columns as in `Layout`
Accuracy (%)   78.9 ± 2.1   77.3 ± 3.0 ~     the mark of a verdict
  paper        78.2 ± 3.9   76.7 ± 5.4
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klr_bench.report.labels import NONE
from klr_bench.report.paper_texts import measured_text, part_text, published_text
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import Cause, Layout
from klr_bench.report.papers.verdicts import mark_of, marks_of
from klr_bench.report.render.document import SEPARATOR, Grid


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
            metrics = SEPARATOR.join(dict.fromkeys(part_text(match.printed, "metric") for match in matches))
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
        texts = (part_text(match.printed, part) for part in parts)
        titles = (
            f"{text} (measured data: {substitutes[text]})" if part == "dataset" and text in substitutes else text
            for part, text in zip(parts, texts, strict=True)
        )
        title = " ".join(filter(None, titles))
        groups.setdefault(title, []).append(match)
    return groups


def measured_cell(match: Match, causes: Mapping[str, str]) -> str:
    """Return the measured value, rounded like the published one, and the symbol of its verdict."""
    text = measured_text(match)
    return text if text == NONE else text + mark_of(match, causes)

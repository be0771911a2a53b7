"""What is printed: a title, grids of texts, sentences below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klr_bench.report.render.caption import caption
from klr_bench.report.render.crossed import grids
from klr_bench.report.render.layout import Grid
from klr_bench.report.table import Table


@dataclass(frozen=True)
class Document:
    """Texts, before they are spelled for the terminal, Markdown or LaTeX."""

    title: str
    grids: Sequence[Grid]
    caption: Sequence[str]


def document(table: Table) -> Document:
    """Return the texts of the table of an experiment."""
    return Document(table.title or table.experiment, grids(table), caption(table))

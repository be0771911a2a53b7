"""What is printed: a title, grids of texts, and sentences below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from klr_bench.report.labels import PLUS_MINUS

BEST, ALIKE = "‡", "†"
"""Marks of the best number of a column, and of those that are not distinguishable from it."""
SEPARATOR = " / "
"""Between several numbers in one cell."""


@dataclass(frozen=True)
class Grid:
    """A table of texts; `papers` are the numbers of the rows that hold published values."""

    header: list[str]
    rows: Sequence[list[str]]
    papers: Sequence[int] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Document:
    """Texts, before they are written for the terminal, Markdown or LaTeX."""

    title: str
    grids: Sequence[Grid]
    caption: Sequence[str]


def right_aligned(
    header: list[str], rows: Sequence[list[str]], notes: Sequence[str] = (), *, break_heads: bool = False
) -> Grid:
    """Return a grid whose numbers stand on the right of their columns; `break_heads`: on two lines."""
    heads = [[header[0]], *(head.split(" ", 1) if break_heads else [head] for head in header[1:])]
    widths = [max(map(len, [*texts, *head])) for head, *texts in zip(heads, *rows, strict=True)]
    padded = [[row[0], *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))] for row in rows]
    return Grid(header, padded, notes=notes)


def aligned(column: Sequence[str], head: str) -> list[str]:
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


def is_best(text: str) -> bool:
    """Return True if a printed number carries the mark of the best."""
    return text.rstrip().endswith(BEST)


def is_alike(text: str) -> bool:
    """Return True if a printed number carries the mark of what is not distinguishable from the best."""
    return text.rstrip().endswith(ALIKE)

"""Documents with a title, tables and a caption, and their conversion to Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from klr_bench.report.best_model import Code
from klr_bench.report.labels import PLUS_MINUS
from klr_bench.report.papers.model import Paper

BEST, ALIKE = "‡", "†"
"""Marks of the best value in a column and of values not significantly different from it."""
SEPARATOR = " / "
"""Separator of several values in one table cell."""


@dataclass(frozen=True)
class Grid:
    """Table of strings.

    `papers` are the indices of the rows with published values, and `notes` are sentences on failed repeats.
    `omissible` are the columns that are left out where a table is too wide, the least important first; the spreads of
    the columns in `times` are left out before them.  `sortable` is False if the rows have values of different metrics.
    """

    header: list[str]
    rows: Sequence[list[str]]
    papers: Sequence[int] = ()
    notes: Sequence[str] = ()
    omissible: Sequence[int] = ()
    times: Sequence[int] = ()
    sortable: bool = True

    def with_columns(self, places: Sequence[int]) -> Grid:
        """Return the grid with only the given columns."""
        rows = [[row[place] for place in places] for row in self.rows]
        return Grid([self.header[place] for place in places], rows, self.papers, self.notes)


@dataclass(frozen=True)
class Document:
    """Title, tables, caption and code, independent of the output format; LaTeX has no code.

    `papers` are the papers whose numbers the tables have, by key.  `has_results` is True if the tables have results,
    which the first sentence of the caption explains.
    """

    title: str
    grids: Sequence[Grid]
    caption: Sequence[str]
    code: Sequence[Code] = ()
    papers: Mapping[str, Paper] = field(default_factory=dict)
    has_results: bool = False


def aligned(grid: Grid) -> Grid:
    """Return a grid whose value columns are padded so that the plus-minus signs align."""
    columns = [_padded(texts, head) for head, *texts in list(zip(grid.header, *grid.rows, strict=True))[1:]]
    rows = [[row[0], *texts] for row, *texts in zip(grid.rows, *columns, strict=True)]
    return replace(grid, rows=rows)


def fitting(grid: Grid, fits: Callable[[Grid], bool]) -> tuple[list[Grid], list[str]]:
    """Divide a grid into parts that fit the width; return them and the omitted headings.

    Spreads of times are left out first, then columns in the order of `omissible`; what remains is divided.
    """
    if fits(grid):
        return [grid], []
    omitted = []
    if any(PLUS_MINUS in row[place] for row in grid.rows for place in grid.times):
        rows = [
            [text.partition(PLUS_MINUS)[0].rstrip() if place in grid.times else text for place, text in enumerate(row)]
            for row in grid.rows
        ]
        grid, omitted = replace(grid, rows=rows), ["spread of times"]
    places = [*range(len(grid.header))]
    for place in grid.omissible:
        if fits(grid.with_columns(places)):
            break
        places.remove(place)
        omitted.append(heading(grid.header, place))
    parts, part = [], [places[0]]
    for place in places[1:]:
        if len(part) > 1 and not fits(grid.with_columns([*part, place])):
            parts.append(part)
            part = [places[0]]
        part.append(place)
    return [grid.with_columns(part) for part in [*parts, part]], omitted


def heading(header: Sequence[str], place: int) -> str:
    """Return the heading of a column; if not unique, with that of the column that it describes."""
    if header.count(header[place]) == 1:
        return header[place]
    described = next((head for head in reversed(header[:place]) if header.count(head) == 1), header[0])
    return f"{header[place]} of {described}"


def _padded(column: Sequence[str], head: str) -> list[str]:
    if any(PLUS_MINUS in text for text in column):
        means, signs, stds = zip(*(text.partition(PLUS_MINUS) for text in column), strict=True)
        left, right = max(map(len, means)), max(map(len, stds))
        parts = zip(means, signs, stds, strict=True)
        column = [f"{mean:>{left}}{sign or '   '}{std:<{right}}" for mean, sign, std in parts]
    elif any(marked := [text.rstrip().endswith((BEST, ALIKE)) for text in column]):
        column = [text if is_marked else f"{text} " for text, is_marked in zip(column, marked, strict=True)]
    width = max(map(len, [*column, *head.split(" ", 1)]))
    return [text.rjust(width) for text in column]


def is_best(text: str) -> bool:
    """Return True if a printed value is marked as the best."""
    return text.rstrip().endswith(BEST)


def markdown(document: Document) -> str:
    """Return a document as Markdown, with one pipe table per grid."""
    parts = [f"# {_md(document.title)}"]
    for grid in document.grids:
        parts += [pipe_table(grid), *(f"- {_md(note)}" for note in grid.notes)]
    parts.append("\n".join(f"- {_md(line)}" for line in document.caption))
    parts += [f"{_md(code.sentence)}\n\n```{code.language}\n{code.text}\n```" for code in document.code]
    return "\n\n".join(parts) + "\n"


def pipe_table(grid: Grid) -> str:
    """Return a grid as a Markdown pipe table."""
    from tabulate import tabulate

    rows = [[f"**{_md(text.strip())}**" if is_best(text) else _md(text.strip()) for text in row] for row in grid.rows]
    for place in grid.papers:
        rows[place][0] = f"&emsp;{rows[place][0]}"
    align = ("left", *("right" for _ in grid.header[1:]))
    return tabulate(rows, [_md(head) for head in grid.header], tablefmt="pipe", colalign=align, disable_numparse=True)


def _md(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]#&~$!])", r"\\\1", text)

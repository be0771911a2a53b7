"""Convert documents to LaTeX tables that fit on the pages of an article.

A table is a float of its own.  If it does not fit on a page, it is divided into several floats by columns and rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from klr_bench.parsing import check_choice
from klr_bench.report.papers.model import Paper
from klr_bench.report.render.document import Document, Grid, fitting, is_best
from klr_bench.report.writing import ORIENTATIONS, Page

PREAMBLE = r"\usepackage{booktabs}\usepackage{array}\usepackage{rotating}\usepackage[T1]{fontenc}"
"""LaTeX packages that a table needs."""
FONT = r"\fontsize{8}{9.5}\selectfont"
LINE, CAPTION_LINE, RULE = 9.5, 14.5, 5.0
"""Heights in points: of a line in a table, of a line in a caption in a document of 12 pt, and of a rule."""
WIDTHS = {
    character: points
    for points, characters in {
        2.5: " il.,;:[]!'|",
        3.5: "frtsIj()-",
        4.8: "bdhknpquvxyS",
        6.7: "ABCDEFGHKLNOPQRTUVXYZw+=_<>~±",
        8.8: "m%MW",
    }.items()
    for character in characters
}
"""Widths of characters of Computer Modern Roman at 8 pt, in points; all others have the width of a digit."""
DIGIT, BOLD, LABEL, GAP = 4.3, 1.16, 95, 6
"""Widths in points: of a digit, of bold relative to regular type, of a broken label, and between two columns."""
ESCAPES = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"°": r"$^\circ$", "†": r"$^\dagger$", "‡": r"$^\ddagger$"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
        **{'"': r"\textquotedbl{}", "`": r"\textasciigrave{}"},
    }
)


@dataclass(frozen=True)
class Placing:
    r"""Caption, label, note and orientation of a LaTeX table.

    `caption` and `note`, a line below the table, are LaTeX code; without a caption the table gets the caption of the
    report; the note of the report is omitted if both are given.  `label` is the target of \\ref,
    with the suffix -2 for the second float of a report, and so on.
    `orientation` is one of ORIENTATIONS.
    """

    caption: str | None = None
    label: str | None = None
    note: str | None = None
    orientation: str = "page"

    def __post_init__(self) -> None:
        check_choice("orientation", self.orientation, ORIENTATIONS)


class Float(NamedTuple):
    """Caption, tables and notes of one float."""

    caption: str
    tables: Sequence[Grid]
    notes: Sequence[str]

    def height(self, page: Page) -> float:
        """Return an upper bound of the height in points."""
        lines = ceil(1.35 * _width(self.caption) / page.width) + 1
        notes = sum(LINE * (ceil(1.1 * _width(note) / page.width) + 1) for note in self.notes)
        return CAPTION_LINE * lines + sum(map(_height, self.tables)) + notes + 10


def latex(document: Document, placing: Placing | None = None) -> str:
    """Return a document as LaTeX: floats for each grid, without columns that do not fit."""
    placing = placing or Placing()
    page = ORIENTATIONS[placing.orientation]
    rest = " ".join(document.caption[document.has_results :])
    floats, following = list[Float](), list[str]()
    for place, grid in enumerate(document.grids, 1):
        grids, omitted = fitting(grid, lambda part: sum(_widths(part)) <= page.width)
        notes = [*([rest] if rest and place == len(document.grids) else []), *(f"{note}." for note in grid.notes)]
        notes += [f"Omitted for lack of space: {', '.join(omitted)}."] if omitted else []
        parts = _floats(grids, partial(_caption, document, grid, placing), placing.note, page)
        note = "" if placing.caption and placing.note else _tex(" ".join(notes))
        with_note = parts[-1]._replace(notes=[" ".join(filter(None, [note, placing.note]))])
        if with_note.height(page) <= page.height:
            parts[-1] = with_note
        else:  # too long for a float: a paragraph, which LaTeX may break over pages
            following.append(
                rf"\par\noindent{{{FONT}\raggedright Notes on {_tex(grid.header[0] or document.title)}: {note}\par}}"
            )
        floats += parts
    if rest and not document.grids:
        following.append(rf"\par\noindent {_tex(rest)}\par")
    texts = [_environment(part, number, placing.label, page) for number, part in enumerate(floats, 1)]
    return "\n\n".join([f"% needs {PREAMBLE}", *texts, *following]) + "\n"


def bibliography(papers: Mapping[str, Paper]) -> str:
    """Return BibTeX entries of papers, by key."""
    entries = (
        f"@misc{{{key},\n  title = {{{{{_tex(paper.title)}}}}},\n"
        f"  author = {{{_tex(paper.authors).replace(', ', ' and ')}}},\n"
        f"  howpublished = {{{_tex(paper.venue)}}},\n  year = {{{paper.year}}},\n}}\n"
        for key, paper in papers.items()
    )
    return "\n".join(entries)


def _caption(document: Document, grid: Grid, placing: Placing, part: str) -> str:
    name, is_named = _tex(grid.header[0]), len(document.grids) > 1
    if placing.caption:
        return placing.caption + (f" ({name})" if name and is_named else "") + part
    cited = rf" Published values: \cite{{{','.join(document.papers)}}}." if document.papers else ""
    first = f" {_tex(document.caption[0])}" if document.has_results else ""
    return f"{': '.join(filter(None, [_tex(document.title), name]))}{part}.{first}{cited}"


def _floats(grids: Sequence[Grid], caption: Callable[[str], str], note: str | None, page: Page) -> list[Float]:
    """Distribute the parts of a grid over as few floats as possible; number several floats."""
    empty = Float(caption(" (part 10 of 10)"), [], [note] if note else [])
    floats = [empty]
    for table in (part for grid in grids for part in _divided(grid, page.height - empty.height(page))):
        wider = floats[-1]._replace(tables=[*floats[-1].tables, table])
        if floats[-1].tables and wider.height(page) > page.height:
            floats.append(empty._replace(tables=[table]))
        else:
            floats[-1] = wider
    several = len(floats) > 1
    return [
        part._replace(caption=caption(f" (part {number} of {len(floats)})" if several else ""))
        for number, part in enumerate(floats, 1)
    ]


def _divided(grid: Grid, height: float) -> Iterator[Grid]:
    """Yield the rows of a grid in parts of at most this height.

    Published values stay below the measured ones.
    """
    starts = [place for place in range(len(grid.rows)) if place not in grid.papers] + [len(grid.rows)]
    first = 0
    for start, end in pairwise(starts):
        if start > first and _height(_rows(grid, first, end)) > height:
            yield _rows(grid, first, start)
            first = start
    yield _rows(grid, first, len(grid.rows))


def _rows(grid: Grid, first: int, end: int) -> Grid:
    papers = [place - first for place in grid.papers if first <= place < end]
    return replace(grid, rows=grid.rows[first:end], papers=papers)


def _environment(part: Float, number: int, label: str | None, page: Page) -> str:
    lines = [
        rf"\begin{{{page.environment}}}",
        r"\centering\sloppy",
        rf"\caption{{{part.caption}}}",
        *([rf"\label{{{label}{f'-{number}' if number > 1 else ''}}}"] if label else []),
        rf"\smallskip{FONT}\setlength{{\tabcolsep}}{{{GAP / 2:g}pt}}",
        "\n\\par\\medskip\n".join(map(_tabular, part.tables)),
        *(rf"\par\smallskip\parbox{{\linewidth}}{{\raggedright {note}}}" for note in part.notes if note),
        rf"\end{{{page.environment}}}",
    ]
    return "\n".join(lines)


def _tabular(grid: Grid) -> str:
    """Return a grid as a tabular environment, with a rule before each algorithm."""
    widths = [width - GAP for width in _widths(grid)]
    head = map(_tex_row, _heads(grid, widths))
    lines, previous = list[str](), ""
    for place, row in enumerate(grid.rows):
        algorithm = row[0].partition(" ")[0]
        if place not in grid.papers:
            lines += [r"\midrule"] if algorithm != previous or not place else []
            previous = algorithm
        lines.append(_tex_row(row))
    label = rf">{{\raggedright\arraybackslash}}p{{{widths[0]:.0f}pt}}"
    begin, end = rf"\begin{{tabular}}{{{label}{'r' * (len(grid.header) - 1)}}}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", *head, *lines, r"\bottomrule", end])


def _heads(grid: Grid, widths: Sequence[float]) -> list[list[str]]:
    """Return the header as rows of strings, none of which is wider than its column."""
    columns = [_broken(head, width) for head, width in zip(grid.header, widths, strict=True)]
    height = max(map(len, columns))
    return [list(row) for row in zip(*([""] * (height - len(lines)) + lines for lines in columns), strict=True)]


def _broken(text: str, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        lines = [*lines[:-1], longer] if not lines[-1] or _width(longer) <= width else [*lines, word]
    return lines


def _widths(grid: Grid) -> list[float]:
    """Return the widths of the columns in points, with the gaps between them."""
    columns = [[head, *texts] for head, *texts in zip(grid.header, *grid.rows, strict=True)]
    label = max(_width(word) + 10 * text.startswith(" ") for text in columns[0] for word in text.split() or [""])
    longest = max(map(_width, columns[0]))
    widths = [max(label, min(longest + 2, LABEL))]
    for head, *texts in columns[1:]:
        widths.append(max(*map(_width, head.split()), *map(_width, texts), 0.0))
    return [width + GAP for width in widths]


def _height(grid: Grid) -> float:
    """Return an upper bound of the height of a table in points."""
    widths = [width - GAP for width in _widths(grid)]
    lines = len(_heads(grid, widths)) + sum(len(_broken(row[0], widths[0] - 3)) for row in grid.rows)
    return LINE * lines + RULE * (len(grid.rows) - len(grid.papers) + 2) + 12


def _width(text: str) -> float:
    width = sum(WIDTHS.get(character, DIGIT) for character in text.strip())
    return BOLD * width if is_best(text) else width


def _tex_row(row: Sequence[str]) -> str:
    first = _tex(row[0])
    if first.startswith(("[", "*")):  # without {}, TeX reads the label as an argument of the preceding \\
        first = "{}" + first
    numbers = [rf"\textbf{{{_tex(text)}}}" if is_best(text) else _tex(text) for text in row[1:]]
    return " & ".join([(r"\quad " if row[0].startswith(" ") else "") + first, *numbers]) + r" \\"


def _tex(text: str) -> str:
    """Escape the special characters of LaTeX, and put the sign of a number in math mode."""
    return re.sub(r"^([+-])(?=\d)", r"$\1$", text.strip().translate(ESCAPES))

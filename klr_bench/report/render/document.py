"""Documents with a title, tables and a caption, and their conversion to Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from klr_bench.parsing import check_choice
from klr_bench.report.best_model import Code
from klr_bench.report.labels import PLUS_MINUS
from klr_bench.report.writing import ORIENTATIONS

BEST, ALIKE = "‡", "†"
"""Marks of the best value in a column and of values not significantly different from it."""
PREAMBLE = r"\usepackage{booktabs}\usepackage{array}\usepackage{rotating}\usepackage[T1]{fontenc}"
"""LaTeX packages that a table needs."""
LINE_WIDTHS = {"column": 229, "page": 469, "landscape": 550}
"""Lengths of a line in points, by orientation, in an article of two columns."""
TEX_CHARACTER, TEX_LABEL = 4.9, 22
"""Width of a character of a small font in points, and the longest label, in characters, that is not broken."""
TEX_ESCAPES = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"°": r"$^\circ$", "†": r"$^\dagger$", "‡": r"$^\ddagger$"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
        **{'"': r"\textquotedbl{}", "`": r"\textasciigrave{}"},
    }
)
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
    """Title, tables, caption and code, independent of the output format; LaTeX has no code."""

    title: str
    grids: Sequence[Grid]
    caption: Sequence[str]
    code: Sequence[Code] = ()
    cites: Sequence[str] = ()
    """Keys of the papers whose numbers the tables have, for LaTeX."""


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
        omitted.append(grid.header[place])
    parts, part = [], [places[0]]
    for place in places[1:]:
        if len(part) > 1 and not fits(grid.with_columns([*part, place])):
            parts.append(part)
            part = [places[0]]
        part.append(place)
    return [grid.with_columns(part) for part in [*parts, part]], omitted


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


@dataclass(frozen=True)
class Placing:
    r"""Caption, label, note and orientation of a LaTeX table.

    `caption` and `note`, a line below the table, are LaTeX code; without a caption the table gets the caption of the
    report; the note of the report is omitted if both are given.  `label` is the target of \\ref,
    with the suffix -2 for the second table of a report, and so on.
    `orientation` is one of ORIENTATIONS.
    """

    caption: str | None = None
    label: str | None = None
    note: str | None = None
    orientation: str = "column"

    def __post_init__(self) -> None:
        check_choice("orientation", self.orientation, ORIENTATIONS)


def latex(document: Document, placing: Placing | None = None) -> str:
    """Return a document as LaTeX, with one table per grid, without columns that do not fit."""
    placing = placing or Placing()
    environment = ORIENTATIONS[placing.orientation]
    first, *others = document.caption or [""]
    cited = rf" Published values: \cite{{{','.join(document.cites)}}}." if document.cites else ""
    parts = [f"% needs {PREAMBLE}"]
    for number, grid in enumerate(document.grids, 1):
        name, of_several = grid.header[0], len(document.grids) > 1
        caption = _tex(f"{document.title}: {name}. {first}") + cited
        if placing.caption:
            caption = placing.caption + (f" ({_tex(name)})" if of_several else "")
        grids, omitted = fitting(grid, lambda part: _tex_width(part) <= LINE_WIDTHS[placing.orientation])
        sentences = [*others, *(f"{note}." for note in grid.notes)]
        sentences += [f"Omitted for lack of space: {', '.join(omitted)}."] if omitted else []
        note = "" if placing.caption and placing.note else _tex(" ".join(sentences))
        note = " ".join(filter(None, [note, placing.note]))
        lines = [
            rf"\begin{{{environment}}}",
            r"\centering\small\setlength{\tabcolsep}{4pt}",
            rf"\caption{{{caption}}}",
            *([rf"\label{{{placing.label}{f'-{number}' if number > 1 else ''}}}"] if placing.label else []),
            "\n\\par\\medskip\n".join(map(_tabular, grids)),
            *([rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {note}}}"] if note else []),
            rf"\end{{{environment}}}",
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _tabular(grid: Grid) -> str:
    """Return a grid as a tabular environment, with a rule before each algorithm."""
    label = rf">{{\raggedright\arraybackslash}}p{{{TEX_LABEL * TEX_CHARACTER:.0f}pt}}" if _is_long(grid) else "l"
    lines = []
    previous = ""
    for place, row in enumerate(grid.rows):
        algorithm = row[0].partition(" ")[0]
        if place not in grid.papers:
            lines += [r"\midrule"] if algorithm != previous else []
            previous = algorithm
        lines.append(_tex_row(row))
    begin, end = rf"\begin{{tabular}}{{{label}{'r' * (len(grid.header) - 1)}}}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", _tex_row(grid.header), *lines, r"\bottomrule", end])


def _is_long(grid: Grid) -> bool:
    return max(len(row[0]) for row in [grid.header, *grid.rows]) > TEX_LABEL


def _tex_width(grid: Grid) -> float:
    """Return the approximate width of a grid in points."""
    label, *columns = zip(grid.header, *grid.rows, strict=True)
    characters = min(TEX_LABEL, max(map(len, label))) + sum(max(len(t.strip()) for t in column) for column in columns)
    return TEX_CHARACTER * characters + 8 * len(grid.header)


def _tex_row(row: list[str]) -> str:
    first = _tex(row[0])
    first = (
        "{}" + first if first.startswith(("[", "*")) else first
    )  # without {}, TeX reads the label as an argument of the preceding \\
    numbers = [rf"\textbf{{{_tex(text)}}}" if is_best(text) else _tex(text) for text in row[1:]]
    return " & ".join([(r"\quad " if row[0].startswith(" ") else "") + first, *numbers]) + r" \\"


def _tex(text: str) -> str:
    """Escape the special characters of LaTeX, and put the sign of a number in math mode."""
    return re.sub(r"^([+-])(?=\d)", r"$\1$", text.strip().translate(TEX_ESCAPES))

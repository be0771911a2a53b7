"""What is printed: a title, grids of texts, and sentences below them; and how Markdown and LaTeX have it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from klr_bench.errors import KlrBenchError
from klr_bench.parsing import check_choice
from klr_bench.report.labels import PLUS_MINUS
from klr_bench.report.writing import ORIENTATIONS

BEST, ALIKE = "‡", "†"
"""Marks of the best number of a column, and of those that are not distinguishable from it."""
PACKAGES = ("booktabs", "graphicx", "rotating")
LABEL = re.compile(r"[A-Za-z0-9:._-]+")
TEX_ESCAPES = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"†": r"$^\dagger$", "‡": r"$^\ddagger$"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    **{'"': r"\textquotedbl{}", "`": r"\textasciigrave{}"},
}
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


def markdown(document: Document) -> str:
    """Return a document as Markdown, a pipe table a grid."""
    parts = [f"# {_md(document.title)}"]
    for block in document.grids:
        parts += [pipe_table(block), *(f"- {_md(note)}" for note in block.notes)]
    parts.append("\n".join(f"- {_md(line)}" for line in document.caption))
    return "\n\n".join(parts) + "\n"


def pipe_table(block: Grid) -> str:
    """Return a grid as a pipe table."""
    from tabulate import tabulate

    rows = [[f"**{_md(text.strip())}**" if is_best(text) else _md(text.strip()) for text in row] for row in block.rows]
    for number in block.papers:
        rows[number][0] = f"&emsp;{rows[number][0]}"
    align = ("left", *("right" for _ in block.header[1:]))
    return tabulate(rows, [_md(head) for head in block.header], tablefmt="pipe", colalign=align, disable_numparse=True)


def _md(text: str) -> str:
    """Escape what Markdown takes for markup."""
    return re.sub(r"([\\`*_|<>\[\]#&~$!])", r"\\\1", text)


@dataclass(frozen=True)
class Placing:
    """What an author says of a table in a paper.

    `caption` and `note`, a line below the table, are LaTeX; without a caption the table has the sentences of the
    report.  `label` is what the text refers to; a second table of the same report has -2 behind it.  `orientation` is
    one of ORIENTATIONS.
    """

    caption: str | None = None
    label: str | None = None
    note: str | None = None
    orientation: str = "column"

    def __post_init__(self) -> None:
        check_choice("orientation", self.orientation, ORIENTATIONS)
        if self.label is not None and not LABEL.fullmatch(self.label):
            message = f"label: expected letters, digits, and : . _ - as in tab:magic, got {self.label!r}."
            raise KlrBenchError(message)


def latex(document: Document, placing: Placing | None = None) -> str:
    """Return a document as LaTeX, a table a grid, which shrinks where it is wider than its place."""
    placing = placing or Placing()
    environment = ORIENTATIONS[placing.orientation]
    needed = "".join(rf"\usepackage{{{package}}}" for package in PACKAGES)
    parts = [rf"% needs {needed}\usepackage[T1]{{fontenc}}"]
    for number, block in enumerate(document.grids, 1):
        name = block.header[0]
        caption = placing.caption or _tex(" ".join([f"{name}.", *document.caption, *(f"{n}." for n in block.notes)]))
        if placing.caption and len(document.grids) > 1:
            caption += f" ({_tex(name)})"
        lines = [
            rf"\begin{{{environment}}}",
            r"\centering\small\setlength{\tabcolsep}{4pt}",
            rf"\caption{{{caption}}}",
            *([rf"\label{{{placing.label}{f'-{number}' if number > 1 else ''}}}"] if placing.label else []),
            r"\sbox0{%",
            rf"\begin{{tabular}}{{l{'r' * (len(block.header) - 1)}}}",
            r"\toprule",
            _tex_row(block.header),
            r"\midrule",
            *map(_tex_row, block.rows),
            r"\bottomrule",
            r"\end{tabular}}%",
            r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
            *([rf"\par\smallskip{{\footnotesize {placing.note}}}"] if placing.note else []),
            rf"\end{{{environment}}}",
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _tex_row(row: list[str]) -> str:
    first = _tex(row[0])
    first = "{}" + first if first.startswith(("[", "*")) else first  # else an argument of the \\ above
    return " & ".join([(r"\quad " if row[0].startswith(" ") else "") + first, *map(_tex_number, row[1:])]) + r" \\"


def _tex_number(text: str) -> str:
    return rf"\textbf{{{_tex(text)}}}" if is_best(text) else _tex(text)


def _tex(text: str) -> str:
    """Escape what LaTeX takes for markup; signs of numbers become mathematics."""
    escaped = "".join(TEX_ESCAPES.get(character, character) for character in text.strip())
    return re.sub(r"^([+-])(?=\d)", r"$\1$", escaped)

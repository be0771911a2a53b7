"""A table on the terminal, as Markdown, as LaTeX and as CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING

from klr_bench.report.crossed import crossed
from klr_bench.report.layout import MARK, Grid, caption, grid
from klr_bench.report.tables import Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

PLAIN_WIDTH = 120  # of what is no terminal, at least: numbers are never cut off there

TEX_ESCAPES = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"},
}
CSV_COLUMNS = (
    *("dataset", "algorithm", "variant", "metric", "n_ok", "n_repeats", "n", "mean", "std"),
    *("published_mean", "published_std", "difference", "ratio", "outside"),
)


def _grids(table: Table) -> list[Grid]:
    """Return the texts of all blocks, in the layout that the experiment asks for."""
    return [crossed(block, table.columns) if table.columns else grid(block) for block in table.blocks]


def show(table: Table, console: Console) -> None:
    """Print a table; plain text, wide enough for all numbers, where the console is no terminal."""
    from rich.text import Text

    grids = _grids(table)
    width, left_out = console.width, dict[str, None]()
    if not console.is_terminal:
        console.width = max(PLAIN_WIDTH, width)
    try:
        console.print(Text(_for(console, table.title or table.experiment), style="bold"))
        for block in grids:
            console.print()
            narrow = _fitting(block, console.width)
            console.print(_rich_table(narrow, console))
            left_out |= dict.fromkeys(head for head in block.header[1:] if head not in narrow.header)
            for note in block.notes:
                console.print(Text(_for(console, f"! {note}"), style="yellow"))
        console.print()
        for line in caption(table):
            console.print(Text(_for(console, line), style="dim"))
        if left_out:
            message = f"Left out, for want of width: {', '.join(left_out)}. format=md has all columns."
            console.print(Text(message, style="dim"))
    finally:
        console.width = width


def _fitting(block: Grid, width: int) -> Grid:
    """Leave out columns that others imply until a block fits into a width: no number is broken in two."""

    def columns(head: str) -> int:
        position = block.header.index(head)
        words = head.split(" ", 1) if position else [head]
        return max(len(text) for text in [*words, *(row[position] for row in block.rows)]) + 1

    kept = list(block.header)
    for name in ("ok", "Support vectors", "ratio"):
        incomplete = name == "ok" and block.notes
        if sum(map(columns, kept)) > width and name in kept and not incomplete:
            kept.remove(name)
    places = [place for place, head in enumerate(block.header) if head in kept]
    rows = [[row[place] for place in places] for row in block.rows]
    return Grid([block.header[place] for place in places], rows, block.papers, block.notes)


def _rich_table(block: Grid, console: Console) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, head in enumerate(block.header):
        # Two lines for a head of two words: the numbers decide how wide a column is.
        text = "\n".join(head.split(" ", 1)) if " " in head and number else f"\n{head}"
        title = Text(_for(console, text), style="bold", justify="right" if number else "left")
        shown.add_column(title, overflow="fold")
    for number, row in enumerate(block.rows):
        texts = [Text(_for(console, text), style="bold red" if text.endswith(MARK) else "") for text in row]
        shown.add_row(*texts, style="dim" if number in block.papers else "")
    return shown


def _for(console: Console, text: str) -> str:
    """Spell a text in what the console can write."""
    if console.encoding.startswith("utf"):
        return text
    return text.replace("±", "+-").encode(console.encoding, "backslashreplace").decode(console.encoding)


def markdown(table: Table) -> str:
    """Return a table as Markdown, a pipe table a data set."""
    from tabulate import tabulate

    parts = [f"# {_md(table.title or table.experiment)}"]
    for block in _grids(table):
        rows = [[_md(text.strip()) for text in row] for row in block.rows]
        for number in block.papers:
            rows[number][0] = f"&emsp;{rows[number][0]}"
        align = ("left", *("right" for _ in block.header[1:]))
        header = [_md(head) for head in block.header]
        parts.append(tabulate(rows, header, tablefmt="pipe", colalign=align, disable_numparse=True))
        parts += [f"- {_md(note)}" for note in block.notes]
    parts.append("\n".join(f"- {_md(line)}" for line in caption(table)))
    return "\n\n".join(parts) + "\n"


def _md(text: str) -> str:
    """Escape what Markdown takes for markup."""
    return re.sub(r"([\\`*_|<>\[\]#])", r"\\\1", text)


def latex(table: Table) -> str:
    """Return a table as LaTeX, a ``table`` a data set, for the booktabs package."""
    parts = [r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}"]
    for block in _grids(table):
        sentences = [f"{block.header[0]}.", *caption(table), *(f"{note}." for note in block.notes)]
        lines = [
            r"\begin{table}",
            r"\centering\small\setlength{\tabcolsep}{4pt}",
            rf"\caption{{{_tex(' '.join(sentences))}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(block.header) - 1)}}}",
            r"\toprule",
            _tex_row(block.header),
            r"\midrule",
            *map(_tex_row, block.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _tex_row(row: list[str]) -> str:
    return " & ".join([(r"\quad " if row[0].startswith(" ") else "") + _tex(row[0]), *map(_tex, row[1:])]) + r" \\"


def _tex(text: str) -> str:
    """Escape what LaTeX takes for markup; signs of numbers become mathematics."""
    escaped = "".join(TEX_ESCAPES.get(character, character) for character in text.strip())
    return re.sub(r"^([+-])(?=\d)", r"$\1$", escaped)


def comma_separated(table: Table) -> str:
    """Return a table as CSV: a row a metric of a line, in the units of records.csv, with all digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for block in table.blocks:
        for line in block.lines:
            name = (block.dataset, line.algorithm, json.dumps(dict(line.variant)))
            for metric in block.metrics:
                cell = line.cells[metric.name]
                found = (cell.published.mean, cell.published.std) if cell.published else (None, None)
                difference = cell.difference if metric.compared != "ratio" else None
                ratio = cell.ratio if metric.compared == "ratio" else None
                outside = cell.outside if metric.compared == "difference" else None
                counts = (metric.name, line.n_ok, line.n_repeats, cell.n)
                writer.writerow([*name, *counts, cell.mean, cell.std, *found, difference, ratio, outside])
    return text.getvalue()

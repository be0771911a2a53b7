"""A table on the terminal, as wide as it is, or as plain text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klr_bench.console import is_unlimited
from klr_bench.report.render.document import ALIKE, BEST, SEPARATOR, Document, Grid

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

PLAIN = {"±": "+-", BEST: "^", ALIKE: "="}
"""Signs for an encoding that does not have them."""
MOST_GRIDS = 200
"""Grids that are printed: rich takes some milliseconds for each, and nobody reads thousands."""
PLAIN_WIDTH = 120  # of what is no terminal, at least: numbers are never cut off there
MOST_WIDE = 2 * PLAIN_WIDTH


def show_all(documents: Iterable[Document], console: Console) -> None:
    """Print documents, each followed by an empty line."""
    for document in documents:
        show(document, console)
        console.print()


def show(document: Document, console: Console) -> None:
    """Print a document; wide enough for all numbers where the width is not limited."""
    from rich.text import Text

    width, left_out, unlimited = console.width, dict[str, None](), is_unlimited(console)
    if unlimited:
        console.width = max(PLAIN_WIDTH, width)
    try:
        console.print(Text(_for(console, document.title), style="bold"))
        for block in document.grids[:MOST_GRIDS]:
            console.print()
            narrow = _fitting(block, console.width)
            wide = console.width
            if unlimited:
                console.width = max(wide, min(sum(_widths(narrow)), MOST_WIDE))
            console.print(_rich_table(narrow, console))
            console.width = wide
            left_out |= dict.fromkeys(head for head in block.header[1:] if head not in narrow.header)
            for note in block.notes:
                console.print(Text(_for(console, f"! {note}"), style="yellow"))
        console.print()
        if len(document.grids) > MOST_GRIDS:
            rest = len(document.grids) - MOST_GRIDS
            console.print(f"{rest:,} more tables are left out here. format=md writes all.")
        for line in document.caption:
            console.print(Text(_for(console, line), style="dim"))
        if left_out:
            message = (
                f"Left out, because the terminal is too narrow: {', '.join(left_out)}. format=md shows all columns."
            )
            console.print(Text(message, style="dim"))
    finally:
        console.width = width


def _fitting(block: Grid, width: int) -> Grid:
    """Leave out columns that others imply until a block fits into a width: no number is broken in two."""

    widths = _widths(block)
    kept = list(block.header)
    for name in ("ok", "Support vectors", "ratio"):
        incomplete = name == "ok" and block.notes
        total = sum(size for size, head in zip(widths, block.header, strict=True) if head in kept)
        if total > width and name in kept and not incomplete:
            kept.remove(name)
    places = [place for place, head in enumerate(block.header) if head in kept]
    rows = [[row[place] for place in places] for row in block.rows]
    return Grid([block.header[place] for place in places], rows, block.papers, block.notes)


def _widths(block: Grid) -> list[int]:
    """Return how wide the columns are, with the two spaces behind each."""
    heads = [[block.header[0]], *(head.split(" ", 1) for head in block.header[1:])]
    columns = zip(*block.rows, strict=True) if block.rows else [()] * len(heads)
    return [max(map(len, [*words, *texts])) + 2 for words, texts in zip(heads, columns, strict=True)]


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
        texts = [Text(_for(console, row[0])), *(_styled(console, text) for text in row[1:])]
        shown.add_row(*texts, style="dim" if number in block.papers else "")
    return shown


def _styled(console: Console, text: str) -> Text:
    """Return a cell whose numbers are styled by their marks: the best, not distinguishable from it, or a verdict."""
    from rich.text import Text

    styles = {BEST: "bold", ALIKE: "underline", "*": "bold red", "]": "yellow", "~": "cyan"}
    parts = text.split(SEPARATOR)
    return Text(SEPARATOR).join(Text(_for(console, part), styles.get(part.rstrip()[-1:], "")) for part in parts)


def _for(console: Console, text: str) -> str:
    """Return a text in what the console can write."""
    if console.encoding.startswith("utf"):
        return text
    for sign, plain in PLAIN.items():
        text = text.replace(sign, plain)
    return text.encode(console.encoding, "backslashreplace").decode(console.encoding)

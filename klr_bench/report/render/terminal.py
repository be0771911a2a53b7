"""Print documents on a terminal or as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from klr_bench.console import is_unlimited
from klr_bench.report.labels import pluralize
from klr_bench.report.papers.verdicts import BY_SIGN, WEAK_MARK, Verdict
from klr_bench.report.render.document import ALIKE, BEST, SEPARATOR, Document, Grid, fitting

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

PLAIN = {"±": "+-", BEST: "^", ALIKE: "=", WEAK_MARK: "o"}
"""Replacements for characters that the encoding of the console lacks."""
COLORS = {
    **{Verdict.EXACT: "green", Verdict.STATISTICAL: "cyan", Verdict.EXPLAINED: "yellow"},
    **{Verdict.UNEXPLAINED: "bold red", Verdict.NOT_COMPARED: "dim"},
}
STYLES = {BEST: "bold", ALIKE: "underline", WEAK_MARK: "dim cyan"} | {
    sign: COLORS[verdict] for sign, verdict in BY_SIGN.items()
}
"""Styles of values, by their last character, the mark of the best or of a verdict."""
HEADS = {verdict.value: color for verdict, color in COLORS.items()}
"""Additional styles of the headings of a scoreboard."""
COUNT = re.compile(r"[\d,]+|-")
"""Entries of a column that is aligned on the right; others are aligned already."""
MOST_GRIDS = 200
"""Largest number of printed grids, because rich takes some milliseconds per grid."""
LEAST_NOTES = 10
"""Number of lines that the notes below small tables may have on a terminal."""
MIN_PLAIN_WIDTH = 120
"""Minimum width of plain text, in which values are never truncated."""


def show_all(documents: Iterable[Document], console: Console) -> None:
    """Print documents, separated by empty lines."""
    for document in documents:
        show(document, console)
        console.print()


def show(document: Document, console: Console) -> None:
    """Print a document; if the output has no width limit, it is wide enough for all values."""
    width, omitted, unlimited = console.width, dict[str, None](), is_unlimited(console)
    page_width = max(MIN_PLAIN_WIDTH, width) if unlimited else width
    try:
        console.width = page_width
        console.print(_text(document.title, console, "bold"))
        for full_grid in document.grids[:MOST_GRIDS]:
            console.print()
            if unlimited:
                console.width = max(page_width, min(_natural_width(full_grid), 2 * MIN_PLAIN_WIDTH))
            grids, heads = fitting(full_grid, lambda grid: _least_width(grid) <= console.width)
            for number, grid in enumerate(grids):
                console.print(*[""] * (number > 0), _rich_table(grid, console), sep="\n")
            console.width = page_width
            omitted |= dict.fromkeys(heads)
            for note in full_grid.notes:
                console.print(_text(f"! {note}", console, "yellow"))
        console.print()
        more = len(document.grids) - MOST_GRIDS
        if more > 0:
            console.print(f"{more:,} more tables are omitted. Use format=md to write all tables.")
        narrow = f"Omitted at this width: {', '.join(omitted)}; format=md shows all."
        caption = document.caption if unlimited else _notes(document, page_width)
        for line in [*([narrow] if omitted else []), *caption]:
            console.print(_text(line, console, "dim"))
        for code in document.code:
            console.print(_text(f"\n{code.sentence}", console))
            console.print(_text(f"\n{code.text}", console), soft_wrap=True)
    finally:
        console.width = width


def _notes(document: Document, width: int) -> list[str]:
    """Return the caption without its longest sentences if it has more lines than the tables."""
    lines = {sentence: -(-len(sentence) // width) for sentence in document.caption}
    most = max(LEAST_NOTES, sum(len(grid.rows) + 2 for grid in document.grids[:MOST_GRIDS]))
    left_out = set[str]()
    for sentence in sorted(lines, key=lines.__getitem__, reverse=True):
        if sum(lines.values()) - sum(lines[long] for long in left_out) + bool(left_out) <= most:
            break
        left_out.add(sentence)
    more = [f"Omitted: {pluralize(len(left_out), 'longer note')}; format=md shows all."] if left_out else []
    return [*(sentence for sentence in document.caption if sentence not in left_out), *more]


def _natural_width(grid: Grid) -> int:
    return max(len(row[0]) for row in [grid.header, *grid.rows]) + 1 + _values_width(grid)


def _values_width(grid: Grid) -> int:
    columns = list(zip(grid.header, *grid.rows, strict=True))[1:]
    return sum(max(map(len, [*head.split(" ", 1), *texts])) + 2 for head, *texts in columns)


def _least_width(grid: Grid) -> int:
    """Return the width of a grid if its labels are broken after each word."""
    return max(len(word) for row in [grid.header, *grid.rows] for word in row[0].split() or [""]) + _values_width(grid)


def _rich_table(grid: Grid, console: Console) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable

    table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, head in enumerate(grid.header):
        # Two-word headings are split over two lines, so that the values determine the column width.
        text = head.replace(" ", "\n", 1) if number else head
        title = _text(text, console, f"bold {HEADS.get(head, '')}".strip())
        title.justify = "right" if number else "left"
        counts = number > 0 and all(COUNT.fullmatch(row[number]) for row in grid.rows)
        table.add_column(title, justify="right" if counts else "left", overflow="fold", no_wrap=number > 0)
    for number, row in enumerate(grid.rows):
        texts = [_text(row[0], console), *(_styled(text, console) for text in row[1:])]
        table.add_row(*texts, style="dim" if number in grid.papers else "")
    return table


def _styled(text: str, console: Console) -> Text:
    parts = [_text(part, console, STYLES.get(part.rstrip()[-1:], "")) for part in text.split(SEPARATOR)]
    return _text(SEPARATOR, console).join(parts)


def _text(text: str, console: Console, style: str = "") -> Text:
    from rich.text import Text

    if not console.encoding.startswith("utf"):
        for sign, plain in PLAIN.items():
            text = text.replace(sign, plain)
        text = text.encode(console.encoding, "backslashreplace").decode(console.encoding)
    return Text(text, style)

"""A document as Markdown."""

from __future__ import annotations

import re

from klr_bench.report.render.document import Document
from klr_bench.report.render.layout import Grid
from klr_bench.report.render.marks import is_best


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

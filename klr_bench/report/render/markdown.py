"""A table as Markdown."""

from __future__ import annotations

import re

from klr_bench.report.render.caption import caption
from klr_bench.report.render.crossed import grids
from klr_bench.report.table import Table


def markdown(table: Table) -> str:
    """Return a table as Markdown, a pipe table a data set."""
    from tabulate import tabulate

    parts = [f"# {_md(table.title or table.experiment)}"]
    for block in grids(table):
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
    return re.sub(r"([\\`*_|<>\[\]#&~$!])", r"\\\1", text)

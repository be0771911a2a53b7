"""A document as Markdown."""

from __future__ import annotations

import re

from klr_bench.report.render.document import Document


def markdown(document: Document) -> str:
    """Return a document as Markdown, a pipe table a grid."""
    from tabulate import tabulate

    parts = [f"# {_md(document.title)}"]
    for block in document.grids:
        rows = [[_md(text.strip()) for text in row] for row in block.rows]
        for number in block.papers:
            rows[number][0] = f"&emsp;{rows[number][0]}"
        align = ("left", *("right" for _ in block.header[1:]))
        header = [_md(head) for head in block.header]
        parts.append(tabulate(rows, header, tablefmt="pipe", colalign=align, disable_numparse=True))
        parts += [f"- {_md(note)}" for note in block.notes]
    parts.append("\n".join(f"- {_md(line)}" for line in document.caption))
    return "\n\n".join(parts) + "\n"


def _md(text: str) -> str:
    """Escape what Markdown takes for markup."""
    return re.sub(r"([\\`*_|<>\[\]#&~$!])", r"\\\1", text)

"""The table of an experiment as HTML; every text is escaped, whoever wrote it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.files import open_regular

if TYPE_CHECKING:  # the server is to answer at once: what makes tables is imported with the first one
    from klr_bench.report.render.document import Document
    from klr_bench.report.render.layout import Grid

LONGEST_LINE = 10**6
"""Bytes that are read of a line."""
OFF = ' class="off"'
"""Of a number that is marked, because it is far from the published one."""
WAITING = '<p class="waiting">Waiting for the first result.</p>\n'


def fragment(folder: Path) -> str:
    """Return the table of a results folder; raises KlrBenchError where it cannot be read."""
    from klr_bench.report.load import read_results
    from klr_bench.report.render import document
    from klr_bench.report.table import beside_papers

    if not os.path.lexists(folder / "records.csv") or _is_empty(folder / "records.csv"):
        return WAITING
    return as_html(document(beside_papers(read_results(folder))))


def _is_empty(path: Path) -> bool:
    """Say whether a file of records has no row yet, as that of a run which was stopped before its first cell."""
    try:
        with open_regular(path) as file:
            return not (file.readline(LONGEST_LINE) and file.readline(LONGEST_LINE))
    except OSError:
        return False  # the reader says what is wrong


def as_html(document: Document) -> str:
    """Return a document as HTML, a section for each grid."""
    grids = "".join(_section(block) for block in document.grids)
    lines = "".join(f"<li>{escape(line)}</li>\n" for line in document.caption)
    return f'<h2>{escape(document.title)}</h2>\n{grids}<ul class="caption">\n{lines}</ul>\n'


def _section(block: Grid) -> str:
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(block.header[0])}">'
    return f"<section>\n{region}\n{_table(block)}</div>\n{_notes(block.notes)}</section>\n"


def _notes(notes: Sequence[str]) -> str:
    """Return the notes below a grid, folded: during a run there is one for each line with repeats to come."""
    if not notes:
        return ""
    lines = "".join(f"<li>{escape(note)}</li>\n" for note in notes)
    return f"<details><summary>Failed or still missing ({len(notes)})</summary>\n<ul>\n{lines}</ul></details>\n"


def _table(block: Grid) -> str:
    from klr_bench.report.render.caption import MARK

    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in block.header)
    rows = []
    for number, (label, *texts) in enumerate(block.rows):
        of_paper = ' class="paper"' if number in block.papers else ""
        cells = "".join(f"<td{OFF if text.endswith(MARK) else ''}>{escape(text)}</td>" for text in texts)
        rows.append(f'<tr{of_paper}><th scope="row">{escape(label.strip())}</th>{cells}</tr>\n')
    return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody>\n</table>\n"

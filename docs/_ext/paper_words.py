"""Helpers for the pages of papers: escaping, tables, links, durations and lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

PAGES = "../../pages"
"""Path of the interactive pages, relative to a generated page."""
MINUTE, HOUR = 60.0, 3600.0


def plain(text: str) -> str:
    """Return text on one line with the special characters of Markdown escaped."""
    return re.sub(r"([\\`*_|<>\[\]#&~${}!])", r"\\\1", " ".join(text.split()))


def html(text: str) -> str:
    """Return HTML as a raw block of a Markdown page."""
    return f"```{{raw}} html\n{text}\n```"


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], name: str, *, numbers: bool = False, paper: bool = False
) -> str:
    """Return an HTML table from cells of HTML, which scrolls on a narrow page.

    `name` is the label for screen readers.  With `numbers` all columns except the first are right-aligned; with `paper`
    every second row has published values.
    """
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    lines = []
    for place, (first, *rest) in enumerate(rows):
        cells = "".join(f"<td>{cell}</td>" for cell in rest)
        kind = ' class="paper"' if paper and place % 2 else ""
        lines.append(f'<tr{kind}><th scope="row">{first}</th>{cells}</tr>')
    kind = "printed" if numbers else "texts"
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(name)}"><table class="{kind}">\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody></table></div>"
    )


def experiment_link(name: str, *, run: bool) -> str:
    """Return the name of an experiment, as a link to its page if it was run."""
    code = f"<code>{escape(name)}</code>"
    return f'<a href="{PAGES}/experiments/{escape(name)}.html">{code}</a>' if run else code


def first_upper(text: str) -> str:
    """Return a text with its first letter capitalized."""
    return text[:1].upper() + text[1:]


def duration(seconds: float) -> str:
    """Return a duration with suitable units, such as 2 h 5 min, 12 min, 42 s or 0.3 s."""
    if seconds >= HOUR:
        return f"{seconds // HOUR:.0f} h {seconds % HOUR // MINUTE:.0f} min"
    if seconds >= 10 * MINUTE:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"

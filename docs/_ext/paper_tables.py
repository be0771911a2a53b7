"""A table of a paper as it prints it, ours above each number, with the verdict on each."""

from __future__ import annotations

from html import escape

from paper_words import experiment_link, html, html_table, plain

from klr_bench.report.render.layout import NONE
from klr_bench.report.whole import pages
from klr_bench.report.whole.join import WholePaper
from klr_bench.report.whole.printed import SEPARATOR, blocks_of, described, marks_of, ours, theirs
from klr_bench.report.whole.verdict import Judged, Verdict

CLASSES = {
    Verdict.WITHIN: "within",
    Verdict.COMPATIBLE: "compatible",
    Verdict.EXPLAINED: "explained",
    Verdict.OFF: "off",
}
"""How numbers are shown; others are not judged."""
SAID_ONCE = ("Ours, with as many digits", "~ ", "* ", "[", "Times are of other machines")
"""How sentences below a table begin that the page says once for all tables, or in a list of its own."""


def table_section(whole: WholePaper, number: str) -> str:
    """Return a table with its title, and what is to be said of it."""
    judged, table = whole.judged[number], whole.table(number)
    causes = [cause for cause in whole.paper.causes if any(one.reason == cause.because for one in judged)]
    marks = marks_of(causes)
    parts = [f"### {plain(f'Table {number}: {table.title}')}"]
    tables = []
    for block in blocks_of(judged, table.layout):
        rows = []
        for title, cells in block.rows:
            rows.append([escape(title), *(SEPARATOR.join(_ours(one, marks) for one in cell) or NONE for cell in cells)])
            printed = (SEPARATOR.join(theirs(one.printed) for one in cell) or NONE for cell in cells)
            rows.append(["paper", *map(escape, printed)])
        header = [escape(text) for text in (block.title, *block.columns)]
        tables.append(html_table(header, rows, f"Table {number} {block.title}".strip(), numbers=True, paper=True))
    parts.append(html("\n".join(tables)))
    notes = []
    for place, cause in enumerate(causes, 1):
        numbers = [one for one in judged if one.verdict is Verdict.EXPLAINED and one.reason == cause.because]
        shown = ", ".join(experiment_link(name, run=True) for name in cause.shown_by)
        notes.append(f"- \\[{place}\\] {plain(cause.because)} Shown by {shown}. {plain(_pairs(numbers))}")
    said = [sentence for sentence in pages.table_page(whole, number).caption if not sentence.startswith(SAID_ONCE)]
    notes += [f"- {plain(sentence)}" for sentence in said]
    if notes:
        parts.append(":::{container} notes\n" + "\n".join(notes) + "\n:::")
    return "\n\n".join(parts)


def _ours(one: Judged, marks: dict[str, str]) -> str:
    """Return ours as HTML; its verdict is a class and a title."""
    text = escape(ours(one, marks))
    if one.entry is None or one.entry.mean is None:
        said = f"{one.verdict.value}: {one.reason}" if one.reason else one.verdict.value
        return f'<span title="{escape(said)}">{text}</span>'
    said = "a time, not judged" if one.verdict is Verdict.TIME else one.verdict.value
    return f'<span class="{CLASSES.get(one.verdict, "apart")}" title="{escape(said)}">{text}</span>'


def _pairs(judged: list[Judged]) -> str:
    """Return numbers with ours and theirs."""
    mark = {one.reason: "" for one in judged}
    return "; ".join(f"{described(one)}: {ours(one, mark)} against {theirs(one.printed)}" for one in judged) + "."

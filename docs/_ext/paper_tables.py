"""Tables of a paper in its own layout, with our values above the published ones."""

from __future__ import annotations

from html import escape

from paper_words import experiment_link, html, html_table, plain

from klr_bench.report import paper_remarks as remarks
from klr_bench.report.labels import NONE
from klr_bench.report.paper_tables import blocks_of, measured_cell
from klr_bench.report.paper_texts import published_text
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import marks_of
from klr_bench.report.render.document import SEPARATOR


def table_section(reproduction: Reproduction, number: str) -> str:
    """Return a table with its title and notes."""
    judged, table = reproduction.matches_by_table[number], reproduction.paper.tables[number]
    causes = remarks.causes_of(reproduction, number)
    marks = marks_of([cause for cause, _ in causes])
    parts = [f"### {plain(f'Table {number}: {table.title}')}"]
    tables = []
    for block in blocks_of(judged, table.layout):
        rows = []
        for title, cells in block.rows:
            rows.append(
                [escape(title), *(SEPARATOR.join(_ours(match, marks) for match in cell) or NONE for cell in cells)]
            )
            printed = (SEPARATOR.join(published_text(match.printed) for match in cell) or NONE for cell in cells)
            rows.append(["paper", *map(escape, printed)])
        header = [escape(text) for text in (block.title, *block.columns)]
        tables.append(html_table(header, rows, f"Table {number} {block.title}".strip(), numbers=True, paper=True))
    parts.append(html("\n".join(tables)))
    notes = []
    for place, (cause, numbers) in enumerate(causes, 1):
        shown = ", ".join(experiment_link(name, run=True) for name in cause.shown_by)
        evidence = plain(f"{remarks.evidence_of(numbers)} {remarks.pairs(numbers)}")
        notes.append(f"- \\[{place}\\] {plain(cause.because)} Shown by {shown}. {evidence}")
    sentences = remarks.remarks(reproduction, number)
    notes += [f"- {plain(sentence)}" for sentence in sentences if sentence != remarks.TIMES]
    if notes:
        parts.append(":::{container} notes\n" + "\n".join(notes) + "\n:::")
    return "\n\n".join(parts)


def _ours(match: Match, marks: dict[str, str]) -> str:
    """Return our value as HTML, with its verdict as class and title."""
    text = escape(measured_cell(match, marks))
    why = ": ".join(filter(None, [match.not_compared.value if match.not_compared else "", match.reason]))
    title = f"{match.verdict.value} ({why})" if why else match.verdict.value
    title += ", without power" if match.is_common else ""
    title += ", with few repeats" if match.has_few_repeats else ""
    classes = f"{match.verdict.name.lower()}{' weak' if match.is_weak else ''}"
    return f'<span class="{classes}" title="{escape(title)}">{text}</span>'

"""Parts of the first page of *Reproduce a paper*: cards and contents."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from paper_words import first_upper, html, plain

from klr_bench.report.conclusions import on_claims
from klr_bench.report.page.html import ENVIRONMENT
from klr_bench.report.papers import scoreboard
from klr_bench.report.papers.reproduction import Reproduction


def verdict_counts(reproduction: Reproduction) -> str:
    """Return the verdicts on the results of a paper as a bar chart and a list, or ""."""
    counts = scoreboard.verdict_counts(reproduction.matches)
    return html(ENVIRONMENT.get_template("verdicts.html").render(counts=counts)) if counts else ""


def cards(papers: Sequence[Reproduction]) -> str:
    """Return a grid of cards, one per paper, that link to the pages of the papers."""
    parts = ["::::{grid} 1 1 2 2\n:gutter: 3\n"]
    for reproduction in papers:
        paper = reproduction.paper
        texts = [f"**{plain(paper.title)}**", plain(paper.about or ""), verdict_counts(reproduction)]
        content = "\n\n".join(filter(None, [*texts, *on_claims(reproduction.claims)]))
        parts.append(
            f":::{{grid-item-card}} {plain(first_upper(paper.reference))}\n"
            f":link: generated/{reproduction.name}\n:link-type: doc\n\n"
            f"{content}\n:::\n"
        )
    return "\n".join([*parts, "::::\n"])


def terms(names: Sequence[str]) -> str:
    """Return the definitions of the columns of a scoreboard as HTML."""
    meanings = scoreboard.MEANINGS
    definitions = "".join(f"<dt>{name}</dt><dd>{escape(meanings[name])}.</dd>" for name in names if name in meanings)
    return f'<dl class="terms">{definitions}</dl>'


def contents(papers: Sequence[Reproduction]) -> str:
    """Return the table of contents of the section."""
    entries = [
        f"{first_upper(reproduction.paper.reference)} <generated/{reproduction.name}>" for reproduction in papers
    ]
    return "\n".join(["```{toctree}", ":hidden:", "", *entries, "generated/experiments", "```", ""])

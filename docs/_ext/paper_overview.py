"""Parts of the first page of *Reproduce a paper*: cards, scoreboards and contents."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from paper_words import counted, first_upper, html, html_table, listed, plain

from klr_bench.report.paper_pages import numbers_and_claims
from klr_bench.report.papers.claims import CLAIM_VERDICTS, FAILS, HOLDS, NOT_JUDGED, OWN_TABLE
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import CALIBRATED, Verdict, counts, not_compared_sentence
from klr_bench.report.render.document import Grid

MEANINGS = {
    "numbers": "values printed in the paper's tables",
    Verdict.EXACT.value: "the measured mean differs from the printed one by at most half a unit of its last digit",
    Verdict.STATISTICAL.value: "the difference is at most two published standard deviations or two standard "
    "errors; without a published spread, at most one percentage point or, for other values, 4 %",
    Verdict.EXPLAINED.value: "a larger difference, with a cause that an experiment demonstrates",
    Verdict.UNEXPLAINED.value: "a larger difference without a known cause",
    Verdict.NOT_COMPARED.value: "training times, values for substitute data, and values that were not measured",
    CALIBRATED: "compared values, marked by §, for which a setting that the paper leaves open was chosen to agree with "
    "the printed ones",
}
"""Definitions of the columns of a scoreboard."""


def numbers_sentence(reproduction: Reproduction) -> str:
    """Return a sentence that summarizes the verdicts on the published values of a paper."""
    n = counts(reproduction.matches)
    if not n["numbers"]:
        return "The paper prints no tables of numbers."
    compared = n["numbers"] - n[Verdict.NOT_COMPARED.value]
    reasons = not_compared_sentence(reproduction.matches)
    if not compared:
        return f"None of its {n['numbers']:,} printed values can be compared. {reasons}"
    words = {
        Verdict.EXACT: ("agrees exactly", "agree exactly"),
        Verdict.STATISTICAL: ("agrees statistically", "agree statistically"),
        Verdict.EXPLAINED: ("differs with a demonstrated cause", "differ with a demonstrated cause"),
        Verdict.UNEXPLAINED: ("differs without a known cause", "differ without a known cause"),
    }
    parts = [
        f"{n[verdict.value]} {words[verdict][n[verdict.value] != 1]}"
        for verdict in words
        if n[verdict.value] or verdict is Verdict.UNEXPLAINED
    ]
    return f"Of its {n['numbers']:,} printed values, {compared:,} are compared: {listed(parts)}. {reasons}".strip()


def claims_sentence(reproduction: Reproduction) -> str:
    """Return a sentence that summarizes the verdicts on the claims of a paper."""
    verdicts = [claim.verdict for claim in reproduction.claims]
    if not verdicts:
        return ""
    words = {HOLDS: ("holds", "hold"), FAILS: ("does not hold here", "do not hold here")}
    words |= {OWN_TABLE: ("fails on the paper's own table", "fail on the paper's own tables")}
    words |= {NOT_JUDGED: ("is not judged", "are not judged")}
    parts = [
        f"{number} {words[verdict][number != 1]}" for verdict in CLAIM_VERDICTS if (number := verdicts.count(verdict))
    ]
    return f"Of {counted(len(verdicts), 'claim')} in the text, {listed(parts)}."


def bar(reproduction: Reproduction) -> str:
    """Return the verdicts on the values of a paper as an HTML bar chart."""
    n = counts(reproduction.matches)
    spans = "".join(
        f'<span class="{verdict.name.lower()}" style="flex-grow: {count}" title="{count} {verdict.value}"></span>'
        for verdict in Verdict
        if (count := n[verdict.value])
    )
    return f'<div class="bar" aria-hidden="true">{spans}</div>' if spans else ""


def cards(papers: Sequence[Reproduction]) -> str:
    """Return a grid of cards, one per paper, that link to the pages of the papers."""
    parts = ["::::{grid} 1 1 2 2\n:gutter: 3\n"]
    for reproduction in papers:
        paper = reproduction.paper
        about = f"\n\n{plain(paper.about)}" if paper.about else ""
        chart = f"{html(bar(reproduction))}\n\n" if reproduction.lines else ""
        parts.append(
            f":::{{grid-item-card}} {plain(first_upper(paper.reference))}\n"
            f":link: generated/{reproduction.name}\n:link-type: doc\n\n"
            f"**{plain(paper.title)}**{about}\n\n{chart}{_summary(reproduction)}\n:::\n"
        )
    return "\n".join([*parts, "::::\n"])


def _summary(reproduction: Reproduction) -> str:
    """Return the counts of the verdicts on values and claims."""
    n = counts(reproduction.matches)
    lines = []
    if compared := n["numbers"] - n[Verdict.NOT_COMPARED.value]:
        text = "; ".join(f"{n[one.value]} {one.value}" for one in Verdict if one is not Verdict.NOT_COMPARED)
        lines.append(f"**{counted(compared, 'value')} compared:** {text}")
    verdicts = [claim.verdict for claim in reproduction.claims]
    if verdicts:
        names = {
            HOLDS: "hold",
            FAILS: "do not hold here",
            OWN_TABLE: "fail on the paper's own table",
            NOT_JUDGED: "not judged",
        }
        text = ", ".join(f"{verdicts.count(key)} {name}" for key, name in names.items())
        lines.append(f"**{counted(len(verdicts), 'claim')}:** {text}")
    return "\\\n".join(lines)


def scoreboard(papers: Sequence[Reproduction]) -> str:
    """Return tables of values and of claims with one row per paper, and the terms."""
    numbers, claims = numbers_and_claims(papers)
    by_name = {reproduction.name: reproduction for reproduction in papers}

    def table(grid: Grid, name: str) -> str:
        rows = [[_link(row[0], by_name), *map(escape, row[1:])] for row in grid.rows]
        return html_table([escape(head) for head in grid.header], rows, name, numbers=True)

    parts = [
        table(numbers, "Published values by paper"),
        terms(numbers.header[1:]),
        table(claims, "Claims by paper"),
    ]
    return "\n".join([html("\n".join(parts)), ""])


def failing(papers: Sequence[Reproduction]) -> str:
    """Return a table of the claims that do not hold in our records."""
    rows = [
        [
            escape(claim.claim.says),
            f"{_link(reproduction.name, {reproduction.name: reproduction})}, {escape(claim.claim.where)}",
            escape(claim.count()),
        ]
        for reproduction in papers
        for claim in reproduction.claims
        if claim.verdict == FAILS
    ]
    header = ["claim", "source", "comparisons that hold"]
    return html(html_table(header, rows, "Claims that do not hold here")) if rows else "None."


def terms(names: Sequence[str]) -> str:
    """Return the definitions of the columns of a scoreboard as HTML."""
    definitions = "".join(f"<dt>{name}</dt><dd>{escape(MEANINGS[name])}.</dd>" for name in names)
    return f'<dl class="terms">{definitions}</dl>'


def _link(name: str, by_name: dict[str, Reproduction]) -> str:
    if name not in by_name:
        return escape(name)
    return f'<a href="generated/{escape(name)}.html">{escape(first_upper(by_name[name].paper.reference))}</a>'


def contents(papers: Sequence[Reproduction]) -> str:
    """Return the table of contents of the section."""
    entries = [
        f"{first_upper(reproduction.paper.reference)} <generated/{reproduction.name}>" for reproduction in papers
    ]
    return "\n".join(["```{toctree}", ":hidden:", "", "running", *entries, "generated/experiments", "```", ""])

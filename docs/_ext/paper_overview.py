"""Parts of the first page of *Reproduce a paper*: cards, scoreboards and contents."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from paper_words import counted, first_upper, html, html_table, listed, plain

from klr_bench.report.paper_pages import numbers_and_claims
from klr_bench.report.papers.claims import FAILS, HOLDS, OPEN
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import counts
from klr_bench.report.render.document import Grid

MEANINGS = {
    "numbers": "values printed in the paper's tables",
    "measured": "published values for which one of our runs has a value",
    "within": "our mean differs from the printed mean by at most two published standard deviations, or at most half a "
    "unit of the last printed digit",
    "compatible": "not within, but the means differ by at most twice the standard error of their difference",
    "explained": "a larger difference, with a cause that an experiment demonstrates",
    "off": "a larger difference without a known cause",
    "times": "training times, which are not judged because the machines differ",
    "other data": "values for replacements of unavailable data, which are not judged",
    "absent": "published values that we do not have, for a stated reason",
    "not run": "published values whose experiment was not run",
    "near": "our mean is within two published standard deviations, one percentage point, or, for values that are not "
    "percentages, 4 %: a simple rule in addition to the two statistical ones",
    "compared": "values that are judged: no times, and no values for other data",
}
"""Definitions of the columns of a scoreboard."""


def numbers_sentence(reproduction: Reproduction) -> str:
    """Return a sentence that summarizes the verdicts on the published values of a paper."""
    n = counts(reproduction.matches)
    if not n["numbers"]:
        return "The paper prints no tables of numbers."
    compared = n["compared"]
    text = f"We have values for {n['measured']:,} of its {n['numbers']:,} printed values"
    if not compared:
        return f"{text}; none of them can be compared."
    parts = [
        f"{n['within']} {'is' if n['within'] == 1 else 'are'} within the published spread",
        f"{n['compatible']} {'is' if n['compatible'] == 1 else 'are'} statistically compatible",
        f"{n['explained']} {'differs' if n['explained'] == 1 else 'differ'} with a demonstrated cause",
        f"{n['off']} {'differs' if n['off'] == 1 else 'differ'} without a known cause",
    ]
    keys = ("within", "compatible", "explained", "off")
    parts = [part for part, key in zip(parts, keys, strict=True) if n[key] or key == "off"]
    return f"{text}. Of the {compared:,} that can be compared, {listed(parts)}."


def claims_sentence(reproduction: Reproduction) -> str:
    """Return a sentence that summarizes the verdicts on the claims of a paper."""
    verdicts = [claim.verdict for claim in reproduction.claims]
    if not verdicts:
        return ""
    words = {HOLDS: ("holds", "hold"), FAILS: ("does not hold here", "do not hold here")}
    words[OPEN] = ("cannot be judged here", "cannot be judged here")
    parts = [
        f"{number} {words[verdict][number != 1]}"
        for verdict in (HOLDS, FAILS, OPEN)
        if (number := verdicts.count(verdict))
    ]
    return f"Of {counted(len(verdicts), 'claim')} in the text, {listed(parts)}."


def bar(reproduction: Reproduction) -> str:
    """Return the verdicts on the values of a paper as an HTML bar chart."""
    n = counts(reproduction.matches)
    not_judged = n["numbers"] - n["compared"]
    parts = {name: n[name] for name in ("within", "compatible", "explained", "off")} | {"not judged": not_judged}
    spans = "".join(
        f'<span class="bar-{name.replace(" ", "-")}" style="flex-grow: {count}" title="{count} {name}"></span>'
        for name, count in parts.items()
        if count
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
    if n["compared"]:
        names = {
            "within": "within",
            "compatible": "compatible",
            "explained": "different with a cause",
            "off": "different without a known cause",
        }
        text = ", ".join(f"{n[key]} {name}" for key, name in names.items())
        lines.append(f"**{counted(n['compared'], 'value')} compared:** {text}")
    verdicts = [claim.verdict for claim in reproduction.claims]
    if verdicts:
        names = {HOLDS: "hold", FAILS: "do not hold here", OPEN: "cannot be judged here"}
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

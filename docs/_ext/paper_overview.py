"""What the first page of *Reproduce a paper* includes: cards, the scoreboard of all papers, the list of pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from paper_words import counted, first_upper, html, html_table, listed, plain

from klr_bench.report.paper_pages import numbers_and_claims
from klr_bench.report.papers.claims import FAILS, HOLDS, OPEN
from klr_bench.report.papers.reproduction import WholePaper
from klr_bench.report.papers.verdicts import counts
from klr_bench.report.render.document import Grid

MEANINGS = {
    "numbers": "printed in the paper's tables",
    "beside ours": "of these, those for which one of our runs has a number",
    "within": "ours differs from the printed mean by at most two published standard deviations, or by at most half a "
    "unit of its last printed digit",
    "compatible": "not within, but the two means differ by at most twice the standard error of their difference",
    "explained": "further off, for a cause that an experiment shows",
    "off": "further off, without a cause that we could show",
    "times": "training times, which were measured on other machines and are not judged",
    "other data": "ours were measured on data that stand in for data that we could not get; they are not judged",
    "absent": "we have no number, for a reason that is given",
    "not run": "we have no number, because the experiment was not run",
    "near": "ours is within two published standard deviations, one percentage point, or 4 % of a number that is no "
    "percentage: a plain rule beside the two statistical ones",
    "compared": "numbers that were compared at all: not times, and not numbers of other data",
}
"""Each term of a scoreboard."""


def numbers_sentence(whole: WholePaper) -> str:
    """Return what became of the numbers of a paper."""
    found = counts(whole.numbers)
    if not found["numbers"]:
        return "It prints no tables of numbers."
    compared = found["compared"]
    said = f"Of its {found['numbers']:,} printed numbers {found['beside ours']:,} stand beside ours"
    if not compared:
        return f"{said}; none of them can be compared."
    out = [
        f"{found['within']} {'is' if found['within'] == 1 else 'are'} within the published spread",
        f"{found['compatible']} {'is' if found['compatible'] == 1 else 'are'} statistically compatible",
        f"{found['explained']} {'is' if found['explained'] == 1 else 'are'} off for a cause that an experiment shows",
        f"{found['off']} {'is' if found['off'] == 1 else 'are'} off without one",
    ]
    keys = ("within", "compatible", "explained", "off")
    out = [text for text, key in zip(out, keys, strict=True) if found[key] or key == "off"]
    return f"{said}. Of the {compared:,} that can be compared {listed(out)}."


def claims_sentence(whole: WholePaper) -> str:
    """Return what became of the claims of a paper."""
    verdicts = [claim.verdict for claim in whole.claims]
    if not verdicts:
        return ""
    words = {HOLDS: ("holds", "hold"), FAILS: ("does not hold here", "do not hold here")}
    words[OPEN] = ("cannot be judged here", "cannot be judged here")
    said = [
        f"{number} {words[verdict][number != 1]}"
        for verdict in (HOLDS, FAILS, OPEN)
        if (number := verdicts.count(verdict))
    ]
    return f"Of {counted(len(verdicts), 'claim')} that it makes in words {listed(said)}."


def bar(whole: WholePaper) -> str:
    """Return what became of the numbers of a paper as a bar, as HTML; the sentence beside it says the same."""
    found = counts(whole.numbers)
    apart = found["numbers"] - found["compared"]
    parts = {name: found[name] for name in ("within", "compatible", "explained", "off")} | {"not judged": apart}
    spans = "".join(
        f'<span class="bar-{name.replace(" ", "-")}" style="flex-grow: {count}" title="{count} {name}"></span>'
        for name, count in parts.items()
        if count
    )
    return f'<div class="bar" aria-hidden="true">{spans}</div>' if spans else ""


def cards(papers: Sequence[WholePaper]) -> str:
    """Return a card a paper, which leads to its page."""
    parts = ["::::{grid} 1 1 2 2\n:gutter: 3\n"]
    for whole in papers:
        paper = whole.paper
        about = f"\n\n{plain(paper.about)}" if paper.about else ""
        drawn = f"{html(bar(whole))}\n\n" if whole.lines else ""
        parts.append(
            f":::{{grid-item-card}} {plain(first_upper(paper.reference))}\n"
            f":link: generated/{whole.name}\n:link-type: doc\n\n"
            f"**{plain(paper.title)}**{about}\n\n{drawn}{_in_short(whole)}\n:::\n"
        )
    return "\n".join([*parts, "::::\n"])


def _in_short(whole: WholePaper) -> str:
    """Return the counts of verdicts on numbers and claims."""
    found = counts(whole.numbers)
    lines = []
    if found["compared"]:
        names = {
            "within": "within",
            "compatible": "compatible",
            "explained": "off with a cause",
            "off": "off without one",
        }
        said = ", ".join(f"{found[key]} {name}" for key, name in names.items())
        lines.append(f"**{counted(found['compared'], 'number')} compared:** {said}")
    verdicts = [claim.verdict for claim in whole.claims]
    if verdicts:
        names = {HOLDS: "hold", FAILS: "do not hold here", OPEN: "cannot be judged here"}
        said = ", ".join(f"{verdicts.count(key)} {name}" for key, name in names.items())
        lines.append(f"**{counted(len(verdicts), 'claim')}:** {said}")
    return "\\\n".join(lines)


def scoreboard(papers: Sequence[WholePaper]) -> str:
    """Return two tables with a line a paper, of numbers and of claims, and what their words mean."""
    numbers, claims = numbers_and_claims(papers)
    known = {whole.name: whole for whole in papers}

    def table(grid: Grid, name: str) -> str:
        rows = [[_link(row[0], known), *map(escape, row[1:])] for row in grid.rows]
        return html_table([escape(head) for head in grid.header], rows, name, numbers=True)

    both = [
        table(numbers, "Numbers, paper by paper"),
        terms(numbers.header[1:]),
        table(claims, "Claims, paper by paper"),
    ]
    return "\n".join([html("\n".join(both)), ""])


def failing(papers: Sequence[WholePaper]) -> str:
    """Return the claims that do not hold by our records."""
    rows = [
        [
            escape(claim.claim.says),
            f"{_link(whole.name, {whole.name: whole})}, {escape(claim.claim.where)}",
            escape(claim.count()),
        ]
        for whole in papers
        for claim in whole.claims
        if claim.verdict == FAILS
    ]
    header = ["claim", "of", "comparisons that hold"]
    return html(html_table(header, rows, "Claims that do not hold here")) if rows else "None."


def terms(names: Sequence[str]) -> str:
    """Return what the columns of a scoreboard mean, as HTML."""
    said = "".join(f"<dt>{name}</dt><dd>{escape(MEANINGS[name])}.</dd>" for name in names)
    return f'<dl class="terms">{said}</dl>'


def _link(name: str, known: dict[str, WholePaper]) -> str:
    if name not in known:
        return escape(name)
    return f'<a href="generated/{escape(name)}.html">{escape(first_upper(known[name].paper.reference))}</a>'


def contents(papers: Sequence[WholePaper]) -> str:
    """Return the table of contents of the section."""
    entries = [f"{first_upper(whole.paper.reference)} <generated/{whole.name}>" for whole in papers]
    return "\n".join(["```{toctree}", ":hidden:", "", "running", *entries, "generated/experiments", "```", ""])

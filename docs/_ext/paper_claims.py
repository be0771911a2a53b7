"""What a paper asserts, each claim with its verdict and the comparisons that decide it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from paper_words import experiment_link, first_upper, html, html_table

from klr_bench.report.load import was_run
from klr_bench.report.papers.claims import FAILS, HOLDS, OPEN, Compared, JudgedClaim
from klr_bench.report.papers.reproduction import WholePaper

MOST_SHOWN = 6
"""Comparisons that stand below a claim; all of them are behind a line that opens."""
CLASSES = {HOLDS: "within", FAILS: "off", OPEN: "apart"}


def claims_section(whole: WholePaper, results_dir: Path) -> str:
    """Return all claims of a paper."""
    if not whole.claims:
        return ""
    said = (
        "What the paper asserts in words is judged by our records: a claim is a set of comparisons, each of two "
        "numbers on one data set. It holds if all of them do, or at least the share that is given with it; otherwise "
        "it does not hold here, with these data and settings. A margin, where there is one, is part of the claim."
    )
    claims = "\n".join(f"<li>{_claim(claim, results_dir)}</li>" for claim in whole.claims)
    return f"## Claims\n\n{said}\n\n{html(f'<ol class={chr(34)}claims{chr(34)}>{claims}</ol>')}"


def _claim(judged: JudgedClaim, results_dir: Path) -> str:
    claim = judged.claim
    verdict = f'<strong class="{CLASSES[judged.verdict]}">{escape(first_upper(judged.verdict))}</strong>'
    parts = [f"<p>{escape(claim.says)} <small>({escape(claim.where)})</small><br>{verdict}. {_why(judged)}</p>"]
    if judged.compared:
        right = [one for one in judged.compared if one.holds]
        wrong = [one for one in judged.compared if not one.holds]
        deciding, word = (wrong, "Against it") if wrong else (right, "For it")
        shown = [deciding[place] for place in _spread(len(deciding))]
        more = f", {len(shown)} of {len(deciding)}" if len(deciding) > len(shown) else ""
        parts.append(f"<p>{word}{more}:</p>{_comparisons(shown, word)}")
        if len(judged.compared) > len(shown):
            every = _comparisons(judged.compared, "All comparisons", verdicts=True)
            parts.append(f"<details><summary>All {len(judged.compared)} comparisons</summary>{every}</details>")
    links = [experiment_link(name, run=was_run(results_dir / name)) for name in claim.experiments]
    if links:
        parts.append(f"<p><small>Records of {', '.join(links)}.</small></p>")
    return "\n".join(parts)


def _why(judged: JudgedClaim) -> str:
    """Return how many comparisons hold, how many must, and what is left out."""
    if not judged.compared:
        return escape(judged.sentence().split(f"{judged.verdict[0].upper()}{judged.verdict[1:]}. ", 1)[-1])
    said = f"{judged.count()} comparisons hold"
    said += f"; the claim holds if {judged.claim.share:.0%} of them do." if judged.claim.share < 1 else "."
    if judged.missing:
        said += f" Not run: {', '.join(judged.missing)}."
    if judged.n_unlike:
        said += f" Left out: {judged.n_unlike} comparisons of times of different machines, or of a busy one."
    return escape(said)


def _spread(count: int) -> list[int]:
    """Return the places of a few of so many comparisons, evenly spaced: those of all statements of a claim."""
    return sorted({round(place * (count - 1) / (MOST_SHOWN - 1)) for place in range(MOST_SHOWN)})


def _comparisons(compared: Sequence[Compared], name: str, *, verdicts: bool = False) -> str:
    rows = []
    for one in compared:
        word = [f'<span class="{"within" if one.holds else "off"}">{"yes" if one.holds else "no"}</span>']
        texts = (one.dataset, one.metric, one.left, one.relation, one.right)
        rows.append([*map(escape, texts), *(word if verdicts else [])])
    header = ["data set", "number", "this", "should be", "than this", *(["is it"] if verdicts else [])]
    return html_table(header, rows, name)

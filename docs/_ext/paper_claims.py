"""Section of a paper page on its claims, with their verdicts and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from paper_words import experiment_link, first_upper, html, html_table

from klr_bench.report.labels import pluralize
from klr_bench.report.page.html import VERDICTS
from klr_bench.report.paper_remarks import selections
from klr_bench.report.papers.claims import BY_OUTCOME, WHY_SKIPPED, ClaimComparison, JudgedClaim
from klr_bench.report.papers.model import BENCHMARK
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.results.store import was_run

MAX_SHOWN = 6
"""Largest number of contradicting or undecided comparisons listed below a claim; the complete list can be opened."""


def claims_section(reproduction: Reproduction, results_dir: Path) -> str:
    """Return the section on the claims of a paper, or an empty string."""
    if not reproduction.claims:
        return ""
    text = (
        "We judge the statements of the paper by our records. A claim is a set of comparisons, each of two values on "
        "one data set, which holds, does not hold, or is undecided within its 95 % confidence interval. A claim holds "
        "if all comparisons hold, or at least the share stated with it; it does not hold here, with these data and "
        "settings, if too many do not hold, and is undecided otherwise. If a margin is stated, it is part of the claim."
    )
    claims = "\n".join(f"<li>{_claim(claim, results_dir)}</li>" for claim in reproduction.claims)
    cited = dict.fromkeys(name for claim in reproduction.claims for name in claim.claim.experiments)
    notes = "".join(f"<p>{escape(sentence)}</p>" for sentence in selections(reproduction, cited))
    return f"## Claims\n\n{text}\n\n{html(f'<ol class={chr(34)}claims{chr(34)}>{claims}</ol>{notes}')}"


def _claim(judged: JudgedClaim, results_dir: Path) -> str:
    claim = judged.claim
    verdict = f'<strong class="{VERDICTS[judged.verdict]}">{escape(first_upper(judged.verdict))}</strong>'
    parts = [f"<p>{escape(claim.says)} <small>({escape(claim.where)})</small><br>{verdict}. {_reason(judged)}</p>"]
    if claim.note:
        parts.append(f"<p>{escape(claim.note)}</p>")
    if judged.comparisons:
        for holds, name in ((False, "Contradicting"), (None, "Undecided")):
            found = [comparison for comparison in judged.comparisons if comparison.holds is holds]
            if found:
                examples = [found[index] for index in _evenly_spaced(len(found))]
                count = f", {len(examples)} of {len(found)}" if len(found) > len(examples) else ""
                parts.append(f"<p>{name} comparisons{count}:</p>{_comparisons(examples, name)}")
        full = _comparisons(judged.comparisons, "All comparisons", verdicts=True)
        parts.append(f"<details><summary>{pluralize(len(judged.comparisons), 'comparison')}</summary>{full}</details>")
    experiments = [name for name in claim.experiments if name != BENCHMARK]
    links = [experiment_link(name, run=was_run(results_dir / name)) for name in experiments]
    if links:
        parts.append(f"<p><small>Records: {', '.join(links)}.</small></p>")
    return "\n".join(parts)


def _reason(judged: JudgedClaim) -> str:
    """Return how many comparisons hold, how many are required, and which were omitted."""
    if not judged.comparisons:
        return escape(judged.sentence().split(f"{first_upper(judged.verdict)}. ", 1)[-1])
    count, *undecided = judged.count().split(", ")
    text = ", ".join([f"{count} comparisons hold", *undecided])
    text += f"; the claim holds if {judged.claim.share:.0%} of them hold." if judged.claim.share < 1 else "."
    if judged.missing:
        text += f" Not run: {', '.join(judged.missing)}."
    if judged.n_incomparable:
        omitted = pluralize(judged.n_incomparable, "comparison")
        text += f" Omitted: {omitted} {WHY_SKIPPED}."
    return escape(text)


def _evenly_spaced(count: int) -> list[int]:
    """Return at most MAX_SHOWN evenly spaced indices, to represent all statements of a claim."""
    return sorted({round(i * (count - 1) / (MAX_SHOWN - 1)) for i in range(MAX_SHOWN)})


def _comparisons(compared: Sequence[ClaimComparison], name: str, *, verdicts: bool = False) -> str:
    rows = []
    for comparison in compared:
        word = {True: "yes", None: "undecided", False: "no"}[comparison.holds]
        verdict = [f'<span class="{VERDICTS[BY_OUTCOME[comparison.holds]]}">{word}</span>']
        texts = (comparison.dataset, comparison.metric, comparison.left, comparison.relation, comparison.right)
        rows.append([*map(escape, texts), *(verdict if verdicts else [])])
    header = ["data set", "metric", "first", "relation", "second", *(["holds"] if verdicts else [])]
    return html_table(header, rows, name)

"""Conclusions of reports: how many published numbers agree, and which methods are best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from klr_bench.report.labels import MOST_NAMED, join_names, line_label, number, pluralize, title_of
from klr_bench.report.paper_remarks import pairs
from klr_bench.report.papers.claims import CLAIM_VERDICTS, JudgedClaim
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.scoreboard import (
    AGREE,
    AS_STATED,
    CALIBRATED,
    COMPARED,
    POWER,
    PROTOCOL,
    apart,
    counts,
    not_compared_sentence,
    results,
)
from klr_bench.report.papers.verdicts import Verdict
from klr_bench.report.table import Block, Table

MOST_DATASETS = 4
"""Number of data sets up to which the best method of each is named."""


def on_numbers(matches: Sequence[Match]) -> list[str]:
    """Return sentences on results that agree or differ, and on the other numbers."""
    n = counts(matches)
    by_verdict = {verdict: [match for match in results(matches) if match.verdict is verdict] for verdict in Verdict}
    sentences = ["No published result is compared with a measured one."] if matches else []
    if n[COMPARED]:
        agree = f"{n[AGREE]:,}" if n[AGREE] else "None"
        power = f", {n[POWER]:,} of these with power" if n[AGREE] else ""
        verb = "agree" if n[AGREE] > 1 else "agrees"
        sentences = [f"{agree} of {pluralize(n[COMPARED], 'compared result')} {verb} with the published number{power}."]
        sentences += [_on_settings(n)] if n[CALIBRATED] else []
    if unexplained := by_verdict[Verdict.UNEXPLAINED]:
        more = f" And {len(unexplained) - MOST_NAMED:,} more." if len(unexplained) > MOST_NAMED else ""
        sentences.append(f"{_differ(len(unexplained))}, unexplained: {pairs(unexplained[:MOST_NAMED])}{more}")
    causes = Counter(match.reason for match in by_verdict[Verdict.EXPLAINED])
    sentences += [f"{_differ(count)}, explained: {because}" for because, count in causes.most_common()]
    counted = [
        f"{name} {count}" for name, count in apart(matches).items() if count and name != Verdict.NOT_COMPARED.value
    ]
    sentences += [f"Counted apart: {'; '.join(counted)}."] if counted else []
    return [*sentences, *filter(None, [not_compared_sentence(matches)])]


def _on_settings(n: Mapping[str, int]) -> str:
    protocol = (
        f"; {n[PROTOCOL]:,} were also computed with the paper's own protocol, and {n[AS_STATED]:,} of these agree"
    )
    return f"{n[CALIBRATED]:,} of {n[COMPARED]:,} have a calibrated setting (§){protocol if n[PROTOCOL] else ''}."


def _differ(count: int) -> str:
    return f"{count:,} differ{'s' if count == 1 else ''}"


def on_claims(claims: Sequence[JudgedClaim]) -> list[str]:
    """Return a sentence with the number of claims for each verdict, or [] without claims."""
    verdicts = Counter(claim.verdict for claim in claims)
    parts = [f"{verdict} {verdicts[verdict]}" for verdict in CLAIM_VERDICTS if verdicts[verdict]]
    return [f"{pluralize(len(claims), 'claim')} by verdict: {'; '.join(parts)}."] if claims else []


def on_methods(table: Table) -> list[str]:
    """Return which methods are best on each data set, by the first metric that has marks."""
    if table.columns:
        return []
    found = list(_best(table))
    if len(found) <= MOST_DATASETS:
        return [sentence for _, _, sentence in found]
    titles = {title for title, _, _ in found}
    wins = Counter(name for _, names, _ in found for name in names)
    named = join_names([f"{name} on {count}" for name, count in wins.most_common()])
    return [f"{_word(table.blocks)} on {len(found)} data sets, {' or '.join(sorted(titles))}: {named}."]


def _word(blocks: Sequence[Block]) -> str:
    return "Best so far" if any(line.n_missing for block in blocks for line in block.lines) else "Best"


def _best(table: Table) -> Iterator[tuple[str, list[str], str]]:
    """Yield the metric, the algorithms with the best mean, and a sentence for each data set."""
    for block in table.blocks:
        metric = next((candidate for candidate in block.metrics if candidate.name in block.marks), None)
        if metric is None or len(block.lines) == 1:
            continue
        of_metric = block.marks[metric.name]
        marks = of_metric.lines
        best, alike = (
            [line for line in block.lines if line.column in marks and marks[line.column].place == place]
            for place in ("best", "alike")
        )
        title, entry = title_of(metric), best[0].entries[metric.name]
        value = number(entry.mean, entry.std if len(best) == 1 else None, metric)
        names = join_names([*map(line_label, best)])
        sentence = f"{_word([block])} on {block.label}, {title}: {names}, {value}"
        if alike:
            sentence += f"; not significantly different: {join_names([*map(line_label, alike)], most=3)}"
        elif of_metric.no_power or all(mark.p is None for mark in marks.values()):
            sentence += "; differences were not tested"
        yield title, [*dict.fromkeys(line.algorithm_label for line in best)], f"{sentence}."

"""The pages of a paper: each of its tables as printed, the scoreboard, and every number as a row of CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from klr_bench.report.numbers import Cause
from klr_bench.report.paper import Published
from klr_bench.report.render import Document
from klr_bench.report.render.layout import Grid
from klr_bench.report.whole.claims import CLAIM_VERDICTS
from klr_bench.report.whole.join import WholePaper
from klr_bench.report.whole.origin import origin
from klr_bench.report.whole.printed import as_printed, described, ours, theirs
from klr_bench.report.whole.scoreboard import COMPATIBLE, MEANINGS, scoreboard
from klr_bench.report.whole.verdict import Judged, Verdict

CSV_COLUMNS = (
    *("paper", "table", "dataset", "algorithm", "params", "metric", "label", "printed_mean", "printed_std", "unit"),
    *("experiment", "our_dataset", "n", "mean", "std", "published_mean", "published_std", "difference"),
    *("verdict", "near", "reason", "shown_by"),
)
TIMES = "Times are of other machines and are not judged."


def table_page(whole: WholePaper, number: str) -> Document:
    """Return a table of a paper as it prints it, ours above each of its numbers."""
    judged, table = whole.judged[number], whole.table(number)
    causes = causes_of(whole, number)
    said = ["Ours, with as many digits as the paper prints, stand above the paper's numbers."]
    said += _marks(judged)
    for place, (cause, numbers) in enumerate(causes, 1):
        said.append(f"[{place}] {cause.because} Shown by {', '.join(cause.shown_by)}. {pairs(numbers)}")
    said += remarks(whole, number)
    printed = as_printed(judged, table.layout, [cause for cause, _ in causes])
    return Document(f"{whole.paper.reference}, table {number}: {table.title}", printed, said)


def causes_of(whole: WholePaper, number: str) -> list[tuple[Cause, list[Judged]]]:
    """Return the causes that explain numbers of a table, each with these numbers."""
    explained = [one for one in whole.judged[number] if one.verdict is Verdict.EXPLAINED]
    found = [(cause, [one for one in explained if one.reason == cause.because]) for cause in whole.paper.causes]
    return [(cause, numbers) for cause, numbers in found if numbers]


def remarks(whole: WholePaper, number: str) -> list[str]:
    """Return sentences about the numbers of a table that are off without a cause, and those that are not compared."""
    judged = whole.judged[number]
    off = [one for one in judged if one.verdict is Verdict.OFF]
    said = [f"Off, without a cause: {pairs(off)}"] if off else []
    for tried in whole.paper.tried:
        if numbers := [one for one in off if one.reason == tried.because]:
            what = "; ".join(map(described, numbers))
            said.append(f"Tried, for {what}: {tried.because} See {', '.join(tried.shown_by)}.")
    return said + _left_open(whole, judged)


def scoreboard_page(whole: WholePaper) -> Document:
    """Return how many numbers of a paper came out how."""
    lines = {f"table {number}": judged for number, judged in whole.judged.items()}
    title = f"{whole.paper.reference}: what became of its numbers"
    said = [f"{meaning}." for meaning in MEANINGS] + origin(whole.behind)
    return Document(title, [scoreboard(whole.name, lines, "all")], said)


def claims_page(whole: WholePaper) -> Document:
    """Return what a paper asserts, and what became of it."""
    rows = [[claim.claim.where, claim.verdict, claim.count()] for claim in whole.claims]
    numbered = [[str(number), *row] for number, row in enumerate(rows, 1)]
    said = [f"{number}. {claim.sentence()}" for number, claim in enumerate(whole.claims, 1)]
    return Document(
        f"{whole.paper.reference}: what became of its claims",
        [Grid(["claim", "where", "verdict", "comparisons that hold"], numbered, [], [])],
        said,
    )


def all_papers_page(papers: Sequence[WholePaper]) -> Document:
    """Return a line a paper: what became of its numbers, and of its claims."""
    behind = {name: results for whole in papers for name, results in whole.behind.items()}
    said = [f"{meaning}." for meaning in MEANINGS] + origin(behind)
    return Document("What became of the published numbers and claims", [*numbers_and_claims(papers)], said)


def numbers_and_claims(papers: Sequence[WholePaper]) -> tuple[Grid, Grid]:
    """Return two grids with a line a paper: verdicts on numbers, and verdicts on claims."""
    lines = {whole.name: [one for judged in whole.judged.values() for one in judged] for whole in papers if whole.lines}
    claims = {whole.name: [claim.verdict for claim in whole.claims] for whole in papers if whole.claims}
    every = [verdict for verdicts in claims.values() for verdict in verdicts]
    rows = [
        [name, str(len(verdicts)), *(str(verdicts.count(verdict) or "-") for verdict in CLAIM_VERDICTS)]
        for name, verdicts in (claims | {"all": every}).items()
    ]
    return scoreboard("paper", lines, "all"), Grid(["paper", "claims", *CLAIM_VERDICTS], rows, [], [])


def numbers_csv(papers: Iterable[WholePaper], table: str | None = None) -> str:
    """Return every number of some papers, or of one table, with its verdict, in the units of records.csv."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows(row for row, _ in number_rows(papers, table))
    return text.getvalue()


def number_rows(papers: Iterable[WholePaper], table: str | None = None) -> Iterator[tuple[list[object], Judged]]:
    """Yield every number of some papers, or of one table, as the values of CSV_COLUMNS, and its verdict."""
    for whole in papers:
        for number, judged in whole.judged.items():
            if table in (None, number):
                for one in judged:
                    yield [whole.name, number, *_row(one)], one


def _row(judged: Judged) -> list[object]:
    line, entry = judged.printed, judged.entry
    printed = [line.dataset, line.algorithm, json.dumps(line.params) if line.params else "", line.metric, line.label]
    printed += [line.mean, line.std, line.unit]
    found = [judged.ours.experiment, judged.ours.dataset] if judged.ours else [None, None]
    values = [entry.n, entry.mean, entry.std] if entry else [None, None, None]
    published = Published.of(line)
    compared = judged.near is not None and entry is not None
    difference = entry.difference if compared and entry else None
    verdict = [judged.verdict.value, judged.near, judged.reason, " ".join(judged.shown_by)]
    return [*printed, *found, *values, published.mean, published.std, difference, *verdict]


def _marks(judged: Sequence[Judged]) -> list[str]:
    there = {one.verdict for one in judged}
    said = []
    if Verdict.COMPATIBLE in there:
        said.append(f"~ statistically compatible: {COMPATIBLE}.")
    if there & {Verdict.OFF, Verdict.EXPLAINED}:
        said.append("* off: neither within the published spread nor statistically compatible; [1] with its cause.")
    return said


def _left_open(whole: WholePaper, judged: Sequence[Judged]) -> list[str]:
    """Return sentences about the numbers that are not compared."""
    said = []
    stand_ins: Mapping[tuple[str, str], None] = dict.fromkeys(
        (one.ours.dataset, one.printed.dataset) for one in judged if one.verdict is Verdict.STAND_IN and one.ours
    )
    for stand_in, dataset in stand_ins:
        named = "generated rows" if stand_in == dataset else stand_in
        said.append(f"{dataset}: ours are of {named}, which stand in for it: neither difference nor mark.")
    if any(one.verdict is Verdict.TIME for one in judged):
        said.append(TIMES)
    unlike = [one for one in judged if one.verdict is Verdict.TIME and one.entry and not one.entry.alike]
    if unlike:
        said.append(f"Ours of a busy machine, or of another than most of the experiment's: {_named(unlike)}.")
    for reason in dict.fromkeys(one.reason for one in judged if one.verdict is Verdict.ABSENT):
        numbers = [one for one in judged if one.verdict is Verdict.ABSENT and one.reason == reason]
        said.append(f"Not to be had: {_named(numbers)}. {reason}")
    open_ = [one for one in judged if one.verdict is Verdict.OPEN]
    if open_:
        said.append(f"Not run: {_named(open_)}.")
    return said


def pairs(judged: Sequence[Judged]) -> str:
    """Return numbers with ours and theirs."""
    found = (
        f"{described(one)}: {ours(one, {one.reason: ''}).rstrip('*')} against {theirs(one.printed)}" for one in judged
    )
    return "; ".join(found) + "."


def _named(judged: Sequence[Judged]) -> str:
    """Return which numbers are meant, by data set and label, without listing each metric."""
    names = dict.fromkeys(", ".join(dict.fromkeys([one.printed.dataset, one.printed.label])) for one in judged)
    return f"{len(judged)} number{'s' if len(judged) > 1 else ''} ({'; '.join(names)})"

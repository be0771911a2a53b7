"""The report of a paper: its tables as printed, the scoreboard, its claims, and every number as a row of CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.report import render
from klr_bench.report.figures import Drawn, Inputs, draw_all
from klr_bench.report.paper_tables import as_printed, described, measured_text, theirs
from klr_bench.report.papers.claims import CLAIM_VERDICTS
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import Cause
from klr_bench.report.papers.reading import ALL, chosen_papers
from klr_bench.report.papers.reproduction import WholePaper, origin
from klr_bench.report.papers.verdicts import MEANINGS, SCOREBOARD, Verdict, counts, mark_sentences
from klr_bench.report.render import Document, Grid
from klr_bench.report.table import build
from klr_bench.report.writing import as_files, check_formats, csv_text, write_changed

if TYPE_CHECKING:
    from rich.console import Console

CSV_COLUMNS = (
    *("paper", "table", "dataset", "algorithm", "params", "metric", "label", "printed_mean", "printed_std", "unit"),
    *("experiment", "our_dataset", "n", "mean", "std", "published_mean", "published_std", "difference"),
    *("verdict", "near", "reason", "shown_by"),
)
TIMES = "Times are of other machines and are not judged."


def report_papers(
    names: Sequence[str],
    results_dir: Path,
    *,
    console: Console,
    table: str | None = None,
    formats: Sequence[str] = ("terminal",),
    output: Path | None = None,
) -> list[Path]:
    """Show papers, or with the name "all" one line a paper, and write their files; return the paths.

    `table` is the one table to show, with its numbers and figures alone.  Files go to `output`, <results_dir>/papers/
    <name> if that is None: tables.md, tables.tex, numbers.csv, and the figures of the experiments of a paper.  Raises
    KlrBenchError for an unknown paper or table.
    """
    check_formats(formats)
    chosen = {name: chosen_papers(name) for name in names}
    written = []
    for name, folders in chosen.items():
        papers = [WholePaper(one, folder, results_dir) for one, folder in folders.items()]
        documents = [all_papers_page(papers)] if name == ALL else documents_of(papers[0], table)
        if "terminal" in formats:
            render.show_all(documents, console)
        texts = render.texts_of(documents, "tables", formats)
        if "csv" in formats:
            texts["numbers.csv"] = numbers_csv(papers, table)
        drawn = Drawn() if name == ALL else draw_figures(papers[0], table, as_files(formats))
        for note in drawn.notes:
            console.print(note, soft_wrap=True)
        files = {file: text.encode() for file, text in texts.items()} | drawn.files
        written += write_changed(output or results_dir / "papers" / name, files)
    return written


def documents_of(whole: WholePaper, table: str | None = None) -> list[Document]:
    """Return the tables of a paper as printed, its scoreboard and its claims; or one table alone."""
    known = [str(number) for number in whole.paper.tables]
    if table is not None:
        if table not in known:
            message = f"table={table}: expected a table of {whole.name}.{nearest(table, known)}"
            raise KlrBenchError(message)
        return [table_page(whole, table)]
    documents = [table_page(whole, number) for number in known]
    documents += [scoreboard_page(whole)] if whole.lines else []
    return documents + ([claims_page(whole)] if whole.claims else [])


def draw_figures(whole: WholePaper, table: str | None = None, also: Sequence[str] = ()) -> Drawn:
    """Draw the figures of each experiment of a paper's tables and figures that was run, or of one of its tables.

    A file is called <experiment>_<figure>; `also` are formats beside the usual ones.
    """
    drawn = Drawn()
    for experiment in whole.results if table is None else whole.experiments(table):
        results = whole.results[experiment]
        tables = [str(number) for number, entry in whole.paper.tables.items() if experiment in entry.experiments]
        built = build(whole.measured[experiment], [whole.source(tables)] if tables else [])
        inputs = Inputs(built, results.records, results.traces, results.reliability, results.rows)
        found = draw_all(inputs, built.figures, also=also)
        drawn.files.update({f"{experiment}_{name}": content for name, content in found.files.items()})
        drawn.notes.extend(f"{experiment}: {note}" for note in found.notes)
    return drawn


def table_page(whole: WholePaper, number: str) -> Document:
    """Return a table of a paper as it prints it, ours above each of its numbers."""
    judged, table = whole.judged[number], whole.paper.tables[number]
    causes = causes_of(whole, number)
    said = ["Ours, with as many digits as the paper prints, stand above the paper's numbers."]
    said += mark_sentences(one.verdict for one in judged)
    for place, (cause, numbers) in enumerate(causes, 1):
        said.append(f"[{place}] {cause.because} Shown by {', '.join(cause.shown_by)}. {pairs(numbers)}")
    said += remarks(whole, number)
    printed = as_printed(judged, table.layout, [cause for cause, _ in causes])
    return Document(f"{whole.paper.reference}, table {number}: {table.title}", printed, said)


def causes_of(whole: WholePaper, number: str) -> list[tuple[Cause, list[Match]]]:
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
        [Grid(["claim", "where", "verdict", "comparisons that hold"], numbered)],
        said,
    )


def all_papers_page(papers: Sequence[WholePaper]) -> Document:
    """Return a line a paper: what became of its numbers, and of its claims."""
    behind = {name: results for whole in papers for name, results in whole.behind.items()}
    said = [f"{meaning}." for meaning in MEANINGS] + origin(behind)
    return Document("What became of the published numbers and claims", [*numbers_and_claims(papers)], said)


def scoreboard(title: str, lines: Mapping[str, Sequence[Match]], last: str) -> Grid:
    """Return a line for each entry and one for all of them, called `last`; columns of zeros are left out."""
    rows = {name: counts(judged) for name, judged in lines.items()}
    rows[last] = counts([one for judged in lines.values() for one in judged])
    shown = [column for column in SCOREBOARD if rows[last][column] or column == "numbers"]
    texts = [[name, *(f"{row[column]:,}" if row[column] else "-" for column in shown)] for name, row in rows.items()]
    return Grid([title, *shown], texts)


def numbers_and_claims(papers: Sequence[WholePaper]) -> tuple[Grid, Grid]:
    """Return two grids with a line a paper: verdicts on numbers, and verdicts on claims."""
    lines = {whole.name: whole.numbers for whole in papers if whole.lines}
    claims = {whole.name: [claim.verdict for claim in whole.claims] for whole in papers if whole.claims}
    every = [verdict for verdicts in claims.values() for verdict in verdicts]
    rows = [
        [name, str(len(verdicts)), *(str(verdicts.count(verdict) or "-") for verdict in CLAIM_VERDICTS)]
        for name, verdicts in (claims | {"all": every}).items()
    ]
    return scoreboard("paper", lines, "all"), Grid(["paper", "claims", *CLAIM_VERDICTS], rows)


def numbers_csv(papers: Iterable[WholePaper], table: str | None = None) -> str:
    """Return every number of some papers, or of one table, with its verdict, in the units of records.csv."""
    return csv_text(CSV_COLUMNS, [row for row, _ in number_rows(papers, table)])


def number_rows(papers: Iterable[WholePaper], table: str | None = None) -> Iterator[tuple[list[object], Match]]:
    """Yield every number of some papers, or of one table, as the values of CSV_COLUMNS, and its verdict."""
    for whole in papers:
        for number, judged in whole.judged.items():
            if table in (None, number):
                for one in judged:
                    yield [whole.name, number, *_row(one)], one


def _row(match: Match) -> list[object]:
    line, entry = match.printed, match.entry
    printed = [line.dataset, line.algorithm, json.dumps(line.params) if line.params else "", line.metric, line.label]
    printed += [line.mean, line.std, line.unit]
    values = [match.experiment, match.dataset, entry.n, entry.mean, entry.std] if entry else [None] * 5
    difference = match.difference if match.near is not None else None
    verdict = [match.verdict.value, match.near, match.reason, " ".join(match.shown_by)]
    return [*printed, *values, line.value, line.spread, difference, *verdict]


def _left_open(whole: WholePaper, judged: Sequence[Match]) -> list[str]:
    """Return sentences about the numbers that are not compared."""
    said = []
    stand_ins: Mapping[tuple[str, str], None] = dict.fromkeys(
        (one.dataset, one.printed.dataset) for one in judged if one.verdict is Verdict.STAND_IN
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


def pairs(judged: Sequence[Match]) -> str:
    """Return measured and printed numbers."""
    found = (f"{described(one)}: {measured_text(one)} against {theirs(one.printed)}" for one in judged)
    return "; ".join(found) + "."


def _named(judged: Sequence[Match]) -> str:
    """Return which numbers are meant, by data set and label, without listing each metric."""
    names = dict.fromkeys(", ".join(dict.fromkeys([one.printed.dataset, one.printed.label])) for one in judged)
    return f"{len(judged)} number{'s' if len(judged) > 1 else ''} ({'; '.join(names)})"

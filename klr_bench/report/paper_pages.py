"""Report on a paper: published tables, scoreboard, claims, and a CSV file of all numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.errors import fail, nearest
from klr_bench.report import render
from klr_bench.report.figures import DrawnFigures, Inputs, draw_all
from klr_bench.report.labels import NONE
from klr_bench.report.paper_picture import paper_picture
from klr_bench.report.paper_remarks import causes_of, evidence_of, pairs, remarks, selections
from klr_bench.report.paper_tables import published_layout
from klr_bench.report.papers.claims import CLAIM_VERDICTS
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.reading import ALL, find_papers
from klr_bench.report.papers.reproduction import Reproduction, provenance
from klr_bench.report.papers.scoreboard import (
    AGREE,
    APART,
    AS_STATED,
    CALIBRATED,
    HEADLINE,
    MEANINGS,
    NUMBERS,
    PROTOCOL,
    apart,
    counts,
    mark_sentences,
)
from klr_bench.report.papers.verdicts import CALIBRATED_MARK, Verdict
from klr_bench.report.render import Document, Grid
from klr_bench.report.table import build
from klr_bench.report.writing import check_formats, write_changed
from klr_bench.results.row_cache import csv_text

if TYPE_CHECKING:
    from rich.console import Console

CSV_COLUMNS = (
    *("paper", "table", "dataset", "algorithm", "params", "metric", "label", "printed_mean", "printed_std", "unit"),
    *("experiment", "our_dataset", "n", "mean", "std", "published_mean", "published_std", "difference"),
    *("verdict", "not_compared", "reason", "shown_by", "calibrated", "kind", "power", "spread"),
)


def report_papers(
    names: Sequence[str],
    results_dir: Path,
    *,
    console: Console,
    table: str | None = None,
    formats: Sequence[str] = ("terminal",),
    output: Path | None = None,
    reports_dir: Path | None = None,
) -> list[Path]:
    """Print the report of each paper, write its files, and return their paths.

    The name "all" prints one row per paper.

    `table` restricts the report to one table of a paper.  The files in `output` (<output>/<name> for several papers),
    or <reports_dir>/papers/<name>, are tables.md, tables.tex, numbers.csv, a picture of all compared numbers, and the
    figures of the experiments of a paper; `reports_dir` is `results_dir` by default.  Raises KlrBenchError for an
    unknown paper or table.
    """
    check_formats(formats)
    written = []
    for name, folders in {name: find_papers(name) for name in names}.items():
        papers = [Reproduction(paper, folder, results_dir) for paper, folder in folders.items()]
        documents = [all_papers_page(papers)] if name == ALL else documents_of(papers[0], table)
        if "terminal" in formats:
            render.show_all(documents, console)
        texts = render.texts_of(documents, "tables", formats)
        if "csv" in formats:
            texts["numbers.csv"] = numbers_csv(papers, table)
        pdf = [name for name in formats if name == "pdf"]
        drawn = DrawnFigures() if name == ALL else draw_figures(papers[0], table, pdf)
        for note in drawn.notes:
            console.print(note, soft_wrap=True)
        files = {file: text.encode() for file, text in texts.items()} | drawn.files
        of_all = output or (reports_dir or results_dir) / "papers"
        written += write_changed(output if output and len(names) == 1 else of_all / name, files)
    return written


def documents_of(reproduction: Reproduction, table: str | None = None) -> list[Document]:
    """Return a paper's tables, scoreboard and claims as documents, or only one table."""
    if table is not None:
        if table not in reproduction.matches_by_table:
            advice = nearest(table, reproduction.matches_by_table)
            fail(f"table={table}: expected a table of {reproduction.name}.{advice}")
        return [table_page(reproduction, table)]
    documents = [table_page(reproduction, number) for number in reproduction.matches_by_table]
    documents += [scoreboard_page(reproduction)] if reproduction.lines else []
    return documents + ([claims_page(reproduction)] if reproduction.claims else [])


def draw_figures(reproduction: Reproduction, table: str | None = None, also: Sequence[str] = ()) -> DrawnFigures:
    """Draw the figures of the experiments of a paper or table, named <experiment>_<figure>.

    The picture of all numbers is drawn, too, for a whole paper.  `also` has formats in addition to the usual ones.
    """
    drawn = DrawnFigures(paper_picture(reproduction, also) if table is None else {})
    for experiment in reproduction.results if table is None else reproduction.experiments(table):
        results = reproduction.results[experiment]
        tables = [str(number) for number, entry in reproduction.paper.tables.items() if experiment in entry.experiments]
        sources = [reproduction.source(tables)] if tables else []
        rows = {reproduction.name: reproduction.rows(tables, experiment)}
        built = build(reproduction.measured[experiment], sources, rows)
        inputs = Inputs(built, results.records, results.traces, results.reliability, results.rows)
        figures = draw_all(inputs, built.figures, also=also)
        drawn.files.update({f"{experiment}_{name}": content for name, content in figures.files.items()})
        drawn.notes.extend(f"{experiment}: {note}" for note in figures.notes)
    return drawn


def table_page(reproduction: Reproduction, number: str) -> Document:
    """Return a table in the published layout, with each measured number above the published one."""
    judged, table = reproduction.matches_by_table[number], reproduction.paper.tables[number]
    causes = causes_of(reproduction, number)
    caption = ["Measured values, rounded like the published ones, are above the published values."]
    caption += mark_sentences(judged)
    for place, (cause, matches) in enumerate(causes, 1):
        shown_by = ", ".join(cause.shown_by)
        caption.append(f"[{place}] {cause.because} Shown by {shown_by}. {evidence_of(matches)} {pairs(matches)}")
    caption += remarks(reproduction, number)
    grids = published_layout(judged, table.layout, [cause for cause, _ in causes])
    title = f"{reproduction.paper.reference}, table {number}: {table.title}"
    return Document(title, grids, caption, papers={reproduction.name: reproduction.paper}, has_results=True)


def scoreboard_page(reproduction: Reproduction) -> Document:
    """Return the number of verdicts of each kind per table."""
    lines = {f"table {number}": judged for number, judged in reproduction.matches_by_table.items()}
    title = f"{reproduction.paper.reference}: reproduced numbers"
    grids = scoreboards(reproduction.name, lines)
    return Document(title, grids, _meanings(grids) + _records([reproduction]))


def claims_page(reproduction: Reproduction) -> Document:
    """Return the claims of a paper with their verdicts."""
    rows = [
        [str(number), claim.claim.where, claim.verdict + CALIBRATED_MARK * claim.is_calibrated, claim.count()]
        for number, claim in enumerate(reproduction.claims, 1)
    ]
    caption = [f"{number}. {claim.sentence()}" for number, claim in enumerate(reproduction.claims, 1)]
    cited = dict.fromkeys(name for claim in reproduction.claims for name in claim.claim.experiments)
    caption += selections(reproduction, cited)
    grid = Grid(["claim", "where", "verdict", "comparisons that hold"], rows)
    return Document(f"{reproduction.paper.reference}: claims", [grid], caption)


def all_papers_page(papers: Sequence[Reproduction]) -> Document:
    """Return one row per paper with verdicts on its numbers and claims."""
    grids = numbers_and_claims(papers)
    return Document("Reproduction results", [*grids], _meanings(grids) + _records(papers))


def _meanings(grids: Iterable[Grid]) -> list[str]:
    """Return the definitions of the columns of scoreboards, and of the agreeing verdicts."""
    shown = {word for grid in grids for word in grid.header}
    if AGREE in shown:
        shown |= {Verdict.EXACT.value, Verdict.STATISTICAL.value}
    return [f"{word}: {meaning}." for word, meaning in MEANINGS.items() if word in shown]


def _records(papers: Sequence[Reproduction]) -> list[str]:
    """Return sentences on the runs that count, and on those whose settings are changed."""
    results = {name: results for reproduction in papers for name, results in reproduction.all_results.items()}
    changed = {name: settings for reproduction in papers for name, settings in reproduction.changed.items()}
    left_out = "; ".join(f"{name} ({', '.join(settings)})" for name, settings in changed.items())
    return provenance(results) + ([f"Left out because of changed settings: {left_out}."] if changed else [])


def scoreboards(title: str, lines: Mapping[str, Sequence[Match]]) -> tuple[Grid, Grid]:
    """Return the results per verdict, and what is counted apart; omit empty columns."""
    groups = {**lines, "all": [match for judged in lines.values() for match in judged]}
    rows = {}
    for name, judged in groups.items():
        n = counts(judged)
        shown = {AS_STATED} if n[PROTOCOL] else set()  # none of these results may agree
        rows[name] = {column: f"{count:,}" if count or column in shown else "" for column, count in n.items()}
    headline = _board(title, (NUMBERS, *HEADLINE), rows)
    return headline, _board("counted apart", APART, {name: apart(judged) for name, judged in groups.items()})


def _board(title: str, columns: Sequence[str], rows: Mapping[str, Mapping[str, str]]) -> Grid:
    present = [column for column in columns if rows["all"][column]]
    return Grid([title, *present], [[name, *(row[column] or NONE for column in present)] for name, row in rows.items()])


def numbers_and_claims(papers: Sequence[Reproduction]) -> tuple[Grid, Grid, Grid]:
    """Return grids with one row per paper: results, what is counted apart, and claims."""
    lines = {reproduction.name: reproduction.matches for reproduction in papers if reproduction.lines}
    claims = {reproduction.name: reproduction.claims for reproduction in papers if reproduction.claims}
    rows = []
    for name, of_paper in (claims | {"all": [claim for some in claims.values() for claim in some]}).items():
        verdicts = [claim.verdict for claim in of_paper]
        numbers = [len(of_paper), *map(verdicts.count, CLAIM_VERDICTS), sum(claim.is_calibrated for claim in of_paper)]
        rows.append([name, *(str(number or "-") for number in numbers)])
    return *scoreboards("paper", lines), Grid(["paper", "claims", *CLAIM_VERDICTS, CALIBRATED], rows)


def numbers_csv(papers: Iterable[Reproduction], table: str | None = None) -> str:
    """Return all numbers with their verdicts as CSV, in the units of records.csv."""
    return csv_text([CSV_COLUMNS, *(row for row, _ in number_rows(papers, table))])


def number_rows(papers: Iterable[Reproduction], table: str | None = None) -> Iterator[tuple[list[object], Match]]:
    """Yield the values of `CSV_COLUMNS` for each published number, together with its match."""
    for reproduction in papers:
        for number, judged in reproduction.matches_by_table.items():
            for match in judged if table in (None, number) else ():
                line, entry = match.printed, match.entry
                params = json.dumps(line.params) if line.params else ""
                row: list[object] = [reproduction.name, number, line.dataset, line.algorithm, params]
                row += [line.metric, line.label, line.mean, line.std, line.unit]
                row += [match.experiment, match.dataset, entry.n, entry.mean, entry.std] if entry else [None] * 5
                row += [line.value, line.spread, match.difference if match.not_compared is None else None]
                why = match.not_compared.value if match.not_compared else None
                setting = match.calibration.setting if match.calibration else ""
                shown_by = match.cause.cause.shown_by if match.cause and match.cause.is_shown else ()
                row += [match.verdict.value, why, match.reason, " ".join(shown_by), setting]
                power = "" if not match.agrees or match.others is None else "yes" if match.has_power else "no"
                spread = {None: "", True: "compatible", False: "differs"}[match.spread_agrees]
                yield [*row, match.kind.value, power, spread], match

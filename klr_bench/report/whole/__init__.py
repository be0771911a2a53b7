"""A paper as a whole: all of its tables as printed, ours beside, and a verdict on each number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.report.writing import as_files, check_formats, write_changed

if TYPE_CHECKING:
    from rich.console import Console

    from klr_bench.report.whole.join import WholePaper

ALL = "all"


def report_papers(
    names: Sequence[str],
    results_dir: Path,
    *,
    console: Console,
    table: str | None = None,
    formats: Sequence[str] = ("terminal",),
    output: Path | None = None,
) -> list[Path]:
    """Show whole papers, or with the name "all" one line a paper, and write their files; return the paths.

    `table` is the one table to show, with its numbers and figures alone.  Files go to `output`, <results_dir>/papers/
    <name> if that is None: tables.md, tables.tex, numbers.csv, and the figures of the experiments of a paper.  Raises
    KlrBenchError for a paper or table that there is not.
    """
    check_formats(formats)

    from klr_bench.experiment.config.files import folders
    from klr_bench.report import render
    from klr_bench.report.paper import paper_files
    from klr_bench.report.whole import pages
    from klr_bench.report.whole.join import WholePaper
    from klr_bench.report.whole.pictures import draw_figures

    found = paper_files(folders())
    for name in names:
        _check_name(name, found)
    written = []
    for name in names:
        papers = [WholePaper(one, found[one], results_dir) for one in (found if name == ALL else [name])]
        if name == ALL:
            documents = [pages.all_papers_page(papers)]
        else:
            numbers = _tables(papers[0], table)
            documents = [pages.table_page(papers[0], number) for number in numbers]
            if table is None:
                documents += [pages.scoreboard_page(papers[0])] if papers[0].lines else []
                documents += [pages.claims_page(papers[0])] if papers[0].claims else []
        if "terminal" in formats:
            for document in documents:
                render.show(document, console)
                console.print()
        files = {
            f"tables.{kind}": "\n".join(spell(document) for document in documents)
            for kind, spell in render.WRITERS.items()
            if kind in formats
        }
        if "csv" in formats:
            files["numbers.csv"] = pages.numbers_csv(papers, table)
        drawn = {}
        if name != ALL:
            pictures = draw_figures(papers[0], table, as_files(formats))
            drawn = pictures.files
            for note in pictures.notes:
                console.print(note, soft_wrap=True)
        target = output or results_dir / "papers" / name
        written += write_changed(target, {name: text.encode() for name, text in files.items()} | drawn)
    return written


def experiments_of(name: str) -> list[str]:
    """Return all experiments that a paper names, such as those of its tables; with "all" those of all papers."""
    from klr_bench.experiment.config.files import folders
    from klr_bench.report.paper import paper_files, read_paper

    found = paper_files(folders())
    _check_name(name, found)
    papers = [read_paper(folder, folders()) for one, folder in found.items() if name in (one, ALL)]
    return list(dict.fromkeys(one for paper in papers for one in paper.named()))


def _check_name(name: str, found: Iterable[str]) -> None:
    if name not in (*found, ALL):
        message = f"paper={name}: expected a paper of configs/paper, or all.{nearest(name, found)}"
        raise KlrBenchError(message)


def _tables(whole: WholePaper, asked: str | None) -> list[str]:
    """Return the numbers of the tables to show."""
    known = [str(number) for number in whole.paper.tables]
    if asked is not None and asked not in known:
        message = f"table={asked}: expected a table of {whole.name}.{nearest(asked, known)}"
        raise KlrBenchError(message)
    return [asked] if asked else known

"""The report of an experiment, from the files of its results folder and the papers' numbers; it runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.report.writing import FORMATS, as_files, check_formats, write_changed

if TYPE_CHECKING:
    from rich.console import Console

    from klr_bench.report.render import Document, Placing
    from klr_bench.report.table import Table

__all__ = ["FORMATS", "report"]


def report(
    folder: Path,
    *,
    console: Console,
    table: str | None = None,
    formats: Sequence[str] = ("terminal",),
    columns: Sequence[str] | None = None,
    placing: Placing | None = None,
    output: Path | None = None,
    own_figures: bool = False,
    statistics: bool = False,
) -> list[Path]:
    """Show the table of results/<experiment> and write its files and figures; return their paths.

    `table` is a table of the paper the experiment is compared with (all that name the experiment by default),
    `formats` some of FORMATS, `columns` the metrics that are shown (by default all that the table has), `placing` what
    an author says of the LaTeX table, `output` the folder of table.md, table.tex, table.csv and the figures
    (<folder>/report).  With `own_figures` the user's own ones, Python files of ./configs/figure, are run and drawn,
    else a note says how.  With `statistics` every two lines are compared, too, in statistics.md, .tex and .csv.
    A file is written only if its content changes.  Raises KlrBenchError for an unknown format or table, where there
    are no records, and where a file does not hold what it should.
    """
    check_formats(formats)

    from klr_bench.report import render
    from klr_bench.report.figures import Inputs, draw_all
    from klr_bench.report.load import read_results
    from klr_bench.report.table import beside_papers, check_shown, with_columns

    results = with_columns(read_results(folder), columns)
    built = beside_papers(results, table)
    check_shown(built, columns)
    said = render.document(built)
    if "terminal" in formats:
        render.show(said, console)
    texts = render.table_files(built, said, formats, placing)
    if statistics:
        document, table_of_all = compared(built, columns)
        if "terminal" in formats:
            console.print()
            render.show(document, console)
        texts |= render.texts_of([document], "statistics", formats)
        texts |= {"statistics.csv": table_of_all} if "csv" in formats else {}
    files = {name: text.encode() for name, text in texts.items()}
    inputs = Inputs(built, results.records, results.traces, results.reliability, results.rows)
    drawn = draw_all(inputs, built.figures, own=own_figures, also=as_files(formats))
    for note in drawn.notes:
        console.print(note, soft_wrap=True)
    return write_changed(output or folder / "report", files | drawn.files)


def compared(table: Table, columns: Sequence[str] | None) -> tuple[Document, str]:
    """Return the comparisons of every two lines of a table, as a document and as CSV."""
    from klr_bench.report import pairwise

    metrics = pairwise.chosen_metrics(table, columns)
    data_sets = [found for metric in metrics for found in pairwise.on_data_sets(table, metric)]
    over = [pairwise.over_data_sets(table, metric) for metric in metrics]
    return pairwise.statistics_document(table, data_sets, over), pairwise.statistics_csv(data_sets, over)

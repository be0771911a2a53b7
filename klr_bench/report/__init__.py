"""Reports on experiments, created from results folders and published numbers.

A report never runs an experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.report.writing import FORMATS, check_formats, write_changed

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
    over: Sequence[str] = (),
) -> list[Path]:
    """Print the table of a results folder, write its files and figures, and return their paths.

    `table` is a table of a paper to compare with (None: all that name the experiment), `formats` a subset of FORMATS,
    `columns` the metrics of the table (None: those of the run), `placing` is for the LaTeX table, and `output` is the
    folder of the files (None: <folder>/report).  `own_figures` draws figures from the user's own code in
    ./configs/figure, and `statistics` compares each pair of methods.  `over` are settings of a sweep: one table and
    one figure show the runs <folder> and <folder>-..., without published numbers.  A file is written only if its
    content changes.  Raises KlrBenchError for an unknown format or table, and for results that are missing or damaged.
    """
    check_formats(formats)

    from klr_bench.report import render
    from klr_bench.report.figures import Inputs, draw_all, draw_over
    from klr_bench.report.load import read_results
    from klr_bench.report.sweeps import read_sweep
    from klr_bench.report.table import results_table

    results = read_sweep(folder, over) if over else read_results(folder)
    built = results_table(results, table, columns)
    document = render.document(built)
    texts = render.table_files(built, document, formats, placing)
    if "terminal" in formats:
        render.show(document, console)
    if statistics:
        document, comparisons = comparison_texts(built, columns)
        if "terminal" in formats:
            console.print()
            render.show(document, console)
        texts |= render.texts_of([document], "statistics", formats)
        texts |= {"statistics.csv": comparisons} if "csv" in formats else {}
    inputs = Inputs(built, results.records, results.traces, results.reliability, results.rows)
    pdf = [name for name in formats if name == "pdf"]
    drawn = draw_over(inputs, over, pdf) if over else draw_all(inputs, built.figures, user_files=own_figures, also=pdf)
    for note in drawn.notes:
        console.print(note, soft_wrap=True)
    files = {name: text.encode() for name, text in texts.items()} | drawn.files
    return write_changed(output or folder / "report", files)


def comparison_texts(table: Table, columns: Sequence[str] | None) -> tuple[Document, str]:
    """Return pairwise comparisons of the methods in a table, as a document and as CSV text."""
    from klr_bench.report import pairwise

    metrics = pairwise.chosen_metrics(table, columns)
    data_sets = [pairs for metric in metrics for pairs in pairwise.on_data_sets(table, metric)]
    over = [pairwise.over_data_sets(table, metric) for metric in metrics]
    return pairwise.statistics_document(table, data_sets, over), pairwise.statistics_csv(data_sets, over)

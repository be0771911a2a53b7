"""The figures of a paper from our results, with the published points where a table has them."""

from __future__ import annotations

from collections.abc import Sequence

from klr_bench.report.comparison import Comparison, Source
from klr_bench.report.figures import Drawn, Inputs, draw_all
from klr_bench.report.whole.join import WholePaper, table_beside


def draw_figures(whole: WholePaper, table: str | None = None, also: Sequence[str] = ()) -> Drawn:
    """Draw the figures of each experiment of a paper's tables and figures that was run, or of one of its tables.

    A file is called <experiment>_<figure>; `also` are formats beside the usual ones.
    """
    drawn = Drawn()
    for experiment in whole.results if table is None else whole.experiments(table):
        results = whole.results[experiment]
        tables = [str(number) for number, entry in whole.paper.tables.items() if experiment in entry.experiments]
        source = Source(whole.name, whole.paper, whole.lines, tables)
        built = table_beside(results, Comparison([source] if tables else []))
        inputs = Inputs(built, results.records, results.traces, results.reliability, results.rows)
        found = draw_all(inputs, built.figures, also=also)
        drawn.files.update({f"{experiment}_{name}": content for name, content in found.files.items()})
        drawn.notes.extend(f"{experiment}: {note}" for note in found.notes)
    return drawn

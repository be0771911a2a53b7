"""Average rank of each method over the data sets against its median training time."""

from __future__ import annotations

from klr_bench.errors import fail
from klr_bench.metrics.labels import METRICS
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import Axis, Facet, Plot, Series, curve_of, looks_of
from klr_bench.report.labels import line_label, title_of
from klr_bench.report.ranking import TIME, median_seconds, ranked


def _plot(inputs: Inputs) -> Plot | None:
    over = ranked(inputs.table)
    if over is None:
        fail("the methods have no values on enough data sets to be ranked.")
    seconds, n_timed = median_seconds(inputs.table, over.lines)
    looks = looks_of(over.lines, curve_of)
    series = {line.column: Series(curve_of(line), looks[curve_of(line)]) for line in over.lines}
    for line, rank in zip(over.lines, over.ranks, strict=True):
        series[line.column].add(seconds.get(line.column), rank, (), line_label(line))
    of_some = "" if n_timed == over.n else f" over {n_timed} data sets"
    x = Axis(TIME, f"{title_of(METRICS[TIME])}, median{of_some}", logarithmic=True)
    y = Axis("rank", f"Average rank of {over.metric.title.lower()}")
    drawn = [points for points in series.values() if points.x]
    return Plot(x, [Facet(f"{over.n} data sets", y, drawn)]) if drawn else None


FIGURE = Figure(
    needs=Needs(metrics=(TIME,)),
    plot=_plot,
    title="The average rank of each method over the data sets against its median training time",
)

"""Box plot of each method over the data sets: how far its mean is from the best one.

A box ends at the quartiles and has a bar at the median; its line ends at the extremes.  With a single data set, a box
shows the values of the repeats instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from klr_bench.errors import fail
from klr_bench.metrics.metric import Metric
from klr_bench.report.figures.core.drawing import plain
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import Curve, curve_of, looks_of
from klr_bench.report.labels import UNITS, pluralize, title_of
from klr_bench.report.pairwise import MOST_METHODS, chosen_metrics, means_by_method
from klr_bench.report.statistics.paired import Array
from klr_bench.report.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

ROW = 0.2
"""Height of a box with its margins in inches."""


class Scores(NamedTuple):
    """Values of a metric, of shape (n_problems, n_methods), NaN if missing.

    A problem is a data set or a repeat.
    """

    metric: Metric
    methods: list[Curve]
    values: Array
    problems: str
    """The number of problems in words, such as "29 data sets"."""


def scores_of(table: Table) -> Scores | None:
    """Return the values of the first metric that has a best value.

    There is one value per data set, or per repeat of a single data set.  Raises KlrBenchError with more than
    MOST_METHODS methods or fewer than two problems.
    """
    metrics = chosen_metrics(table, None)
    if not metrics:
        return None
    noun = "data set" if len(table.blocks) > 1 else "repeat"
    by_method: Mapping[Curve, Mapping[Any, float]] = means_by_method(table, metrics[0])
    if noun == "repeat":
        entries = {line.column: line.entries[metrics[0].name] for line in table.blocks[0].lines}
        by_method = {column: entries[column].values for column in by_method}
    problems = list(dict.fromkeys(problem for values in by_method.values() for problem in values))
    if not 2 <= len(by_method) <= MOST_METHODS or len(problems) < 2:
        got = f"{pluralize(len(by_method), 'method')} and {pluralize(len(problems), noun)}"
        fail(f"expected 2 to {MOST_METHODS} methods with values and at least 2 {noun}s, got {got}.")
    values = np.array([[of.get(problem, np.nan) for of in by_method.values()] for problem in problems])
    return Scores(metrics[0], [*by_method], values, pluralize(len(problems), noun))


def _draw(inputs: Inputs) -> Drawing | None:
    """Draw a row per method, the one with the best median at the top."""
    from matplotlib.figure import Figure as Drawing

    scores = scores_of(inputs.table)
    if scores is None:
        return None
    metric, sign = scores.metric, 1 if scores.metric.better == "higher" else -1
    values, label = UNITS[metric.unit].scale * scores.values, title_of(metric)
    if len(inputs.table.blocks) > 1:
        values = np.nanmax(sign * values, axis=1, keepdims=True) - sign * values
        sign = -1
        side = "below" if metric.better == "higher" else "above"
        name = f"Points of {metric.title.lower()}" if metric.unit == "percent" else metric.title
        label = f"{name} {side} the best"
    looks = looks_of((line for block in inputs.table.blocks for line in block.lines), curve_of)
    order = np.argsort(-sign * np.nanmedian(values, axis=0), kind="stable")
    counts = np.count_nonzero(~np.isnan(values), axis=0)
    names = [
        plain(looks[scores.methods[place]].label) + (f" ({counts[place]})" if counts[place] < len(values) else "")
        for place in order
    ]
    drawing = Drawing(figsize=(2.6 + 0.066 * max(map(len, names)), ROW * len(names) + 0.7), layout="constrained")
    axes = drawing.add_subplot(xlabel=f"{plain(label)}, {scores.problems}")
    for row, place in enumerate(order):
        color, column = looks[scores.methods[place]].color, values[:, place]
        lowest, lower, median, upper, highest = np.nanpercentile(column, [0, 25, 50, 75, 100])
        axes.hlines(row, lowest, highest, color, linewidth=0.9, zorder=1)
        axes.barh(row, upper - lower, 0.6, lower, facecolor="white", edgecolor=color, linewidth=0.9, zorder=2)
        axes.vlines(median, row - 0.3, row + 0.3, color, linewidth=2.0, zorder=3)
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)
    return drawing


FIGURE = Figure(
    needs=Needs(metrics=("accuracy",)),
    draw=_draw,
    title="Distance of each method from the best over the data sets, or the values of the repeats on a single one",
)

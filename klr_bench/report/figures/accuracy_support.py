"""Test accuracy against the number of support vectors, with a label for each variant."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from matplotlib.transforms import Bbox

from klr_bench.report.figures.core.drawing import draw_plot, plain
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.labels import Label, shared, write_labels
from klr_bench.report.figures.core.plot import ACCURACY, SUPPORT, Facet, Plot, Series, algorithm_of, means
from klr_bench.report.labels import line_label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from klr_bench.results.variants import Variant


def _plot(inputs: Inputs) -> Plot | None:
    return means(inputs, SUPPORT, [ACCURACY], algorithm_of, lambda line: line.algorithm_label, connected=False)


def _draw(inputs: Inputs) -> Drawing | None:
    plot = _plot(inputs)
    lines = [line for block in inputs.table.blocks for line in block.lines]
    variants = {(line.algorithm, line_label(line)): line.variant for line in lines}
    return draw_plot(plot, partial(_label, variants=variants)) if plot is not None else None


def _label(axes: Axes, facet: Facet, variants: Mapping[tuple[str, str], Variant]) -> None:
    """Write the variants beside the points of each algorithm that has some, the most accurate first."""
    means = sorted((one for one in facet.series if one.kind == "mean"), key=lambda one: -max(one.y))
    everywhere = [(math.log10(x), y) for one in means for x, y in zip(one.x, one.y, strict=True)]
    labels = []
    for series in means:
        algorithm = series.curve[0]
        points = zip(series.y, series.x, (variants[algorithm, name] for name in series.names), strict=True)
        named = sorted(
            ((y, x, variant) for y, x, variant in points if variant), key=lambda point: (-point[0], -point[1])
        )
        places = [(math.log10(x), y) for y, x, _ in named]
        for number, text in shared(places, [variant for *_, variant in named], everywhere):
            y, x, _ = named[number]
            labels.append(Label(x, y, plain(text)))
    markers = [at for one in facet.series if one.kind != "repeat" for at in zip(one.x, one.y, strict=True)]
    write_labels(axes, labels, markers, [bar for one in means for bar in _bars(one)])


def _bars(series: Series) -> list[Bbox]:
    """Return the error bars of the points; across only as far as a logarithmic axis can show."""
    bars = []
    for x, y, across, up in zip(series.x, series.y, series.x_spread, series.spread, strict=True):
        bars += [Bbox([[x, y - up], [x, y + up]]), Bbox([[max(x - across, x / 10), y], [x + across, y]])]
    return bars


FIGURE = Figure(
    needs=Needs(metrics=("n_support", "accuracy")),
    draw=_draw,
    plot=_plot,
    title="Test accuracy against the number of support vectors, beside the published values",
    usual=True,
)

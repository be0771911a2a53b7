"""Test accuracy against the number of support vectors, as a curve per method.

A line joins variants that differ in one parameter, whose values are labels of the points if there are few.

Labels are placed where they cover nothing, if there is such a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.transforms import Bbox

from klr_bench.report.figures.core.drawing import draw_plot, plain
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import ACCURACY, SUPPORT, Curve, Plot, Series, curves_of, in_parts, means
from klr_bench.report.labels import line_label, variant_label
from klr_bench.report.table import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing
    from matplotlib.text import Annotation
    from matplotlib.transforms import BboxBase

Point = tuple[float, float]
Label = tuple[float, float, str]
SIZE, MARKER = 6.5, 3.0
"""Font size of a label and half the width of a marker, in points."""
PLACES = [
    (sign * across, rise * (up if sign else up + 5.0), side, edge)
    for across, up in ((5.0, 2.0), (6.0, 8.0), (6.0, 14.0), (14.0, 2.0))
    for side, sign in (("left", 1), ("right", -1), ("center", 0))
    for edge, rise in (("bottom", 1), ("top", -1))
]
"""Label offsets in points and alignments, best first."""
MOST_LABELS = 12
"""A panel with more labels has none."""
PARTS = 30
"""Number of places of a line segment that labels should not cover."""
OUTSIDE = 10.0
"""Penalty of a label outside the axes, relative to the area that a label covers."""


def _plot(inputs: Inputs) -> Plot | None:
    return means(inputs, SUPPORT, [ACCURACY], curves_of(inputs), repeats=True)


def _draw(inputs: Inputs) -> Drawing | None:
    if (whole := _plot(inputs)) is None or (drawing := draw_plot(plot := in_parts(whole))) is None:
        return None
    curve = curves_of(inputs)
    texts = {line_label(line): _label(line, curve(line)) for block in inputs.table.blocks for line in block.lines}
    drawing.draw_without_rendering()  # gives the axes their size
    for axes, facet in zip(drawing.axes, plot.facets, strict=True):
        series = [mean for mean in facet.series if mean.kind == "mean"]
        points = [point for mean in series for point in zip(mean.y, mean.x, mean.names, strict=True)]
        labels = [(x, y, plain(texts[name])) for y, x, name in sorted(points, reverse=True) if texts[name]]
        if len(labels) > MOST_LABELS:
            continue
        markers = [at for mean in facet.series if mean.kind != "repeat" for at in zip(mean.x, mean.y, strict=True)]
        lines = [[*zip(mean.x, mean.y, strict=True)] for mean in series]
        write_labels(axes, labels, markers, [bar for mean in series for bar in _bars(mean)], lines)
    return drawing


def _label(line: Line, curve: Curve) -> str:
    """Return the part of a method's name that the legend does not have."""
    return variant_label(line.variant.without(*curve[1]), line.presentation.labels)


def write_labels(
    axes: Axes,
    labels: Sequence[Label],
    points: Iterable[Point],
    bars: Iterable[Bbox],
    lines: Iterable[Sequence[Point]] = (),
) -> None:
    """Write labels next to their points, if possible without covering anything.

    `points`, `bars` and `lines` are in the coordinates of the data.  The axes must have their final size.
    """
    to_pixels = axes.transData.transform
    half = MARKER * axes.figure.dpi / 72
    taken = [Bbox([at - half, at + half]) for at in map(to_pixels, points)]
    for start, end in chain.from_iterable(pairwise(map(to_pixels, line)) for line in lines):
        taken += [Bbox([at - half / 4, at + half / 4]) for at in np.linspace(start, end, PARTS)]
    taken += [Bbox(to_pixels(bar.get_points())).padded(half / 4) for bar in bars]
    for x, y, label in labels:
        text = axes.annotate(label, (x, y), (0.0, 0.0), textcoords="offset points", fontsize=SIZE)
        text.set_in_layout(False)
        boxes = [_moved(text, place) for place in PLACES]
        covered = [_covered(box, taken, axes.bbox) for box in boxes]
        taken.append(_moved(text, PLACES[int(np.argmin(covered))]))


def _moved(text: Annotation, place: tuple[float, float, str, str]) -> Bbox:
    """Move a label to a position, and return its bounding box in pixels."""
    across, up, side, edge = place
    text.set(position=(across, up), ha=side, va=edge)
    return text.get_window_extent()


def _covered(box: Bbox, taken: Sequence[Bbox], inside: BboxBase) -> float:
    """Return a penalty for a label position, based on covered area and area outside the axes."""

    def common(other: BboxBase) -> float:
        overlap = Bbox.intersection(box, other)
        return overlap.width * overlap.height if overlap else 0.0

    return OUTSIDE * (box.width * box.height - common(inside)) + sum(map(common, taken))


def _bars(series: Series) -> Iterator[Bbox]:
    """Yield the bounding boxes of error bars, clipped to what a logarithmic axis can show."""
    for x, y, across, up in zip(series.x, series.y, series.x_spread, series.spread, strict=True):
        yield Bbox([[x, y - up], [x, y + up]])
        yield Bbox([[max(x - across, x / 10), y], [x + across, y]])


FIGURE = Figure(
    needs=Needs(metrics=("n_support", "accuracy")),
    draw=_draw,
    plot=_plot,
    title="Test accuracy against the number of support vectors; a line joins variants that differ in one parameter",
    usual=True,
)

"""Test accuracy against the number of support vectors, beside the published values.

One marker a variant, with error bars of one standard deviation over the repeats; a hollow one for the published value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.transforms import Bbox

from klr_bench.report.figures.core.drawing import (
    ACCURACY,
    PUBLISHED,
    SUPPORT,
    Look,
    count_axis,
    looks_of,
    panel_each,
    plain,
    side_by_side,
)
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.labels import Label, Position, shared, write_labels
from klr_bench.report.figures.core.lines import (
    Block,
    Curve,
    Line,
    algorithm_name,
    curve_of,
    mean,
    published,
    spread,
)
from klr_bench.report.figures.core.plot import Plot, means

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


class Ours(NamedTuple):
    """Support vectors and accuracy (%), each with its spread."""

    support: float
    support_spread: float
    accuracy: float
    accuracy_spread: float


def _curve(line: Line) -> Curve:
    return curve_of(line, *line.variant)


def _looks(lines: Sequence[Line]) -> dict[Curve, Look]:
    return looks_of({_curve(line): algorithm_name(line) for line in lines})


def _plot(inputs: Inputs) -> Plot | None:
    return means(inputs, SUPPORT, [ACCURACY], _curve, _looks, connected=False)


def _draw(inputs: Inputs) -> Drawing | None:
    blocks = [block for block in inputs.table.blocks if any(map(_ours, block.lines))]
    lines = [line for block in blocks for line in block.lines if _ours(line)]
    looks = _looks(lines)

    def draw(axes: Axes, block: Block) -> None:
        for (algorithm, _), look in looks.items():
            _draw_algorithm(axes, [line for line in block.lines if line.algorithm == algorithm], look)
        count_axis(axes.xaxis, SUPPORT)

    handles = [look.handle(dashes="none") for look in looks.values()]
    if any(_theirs(line) for line in lines):
        handles.append(PUBLISHED)
    return side_by_side(panel_each(blocks, draw, _label), handles, SUPPORT.label, ACCURACY.label)


def _ours(line: Line) -> Ours | None:
    """Return what is drawn of a line, None where there is nothing."""
    support, accuracy = mean(line, "n_support"), mean(line, "accuracy")
    if not support or accuracy is None:  # zero has no place on a logarithmic axis
        return None
    return Ours(support, spread(line, "n_support"), 100 * accuracy, 100 * spread(line, "accuracy"))


def _theirs(line: Line) -> Position | None:
    """Return the published support vectors and accuracy (%), None where one is not published."""
    support, accuracy = published(line, "n_support"), published(line, "accuracy")
    return None if support is None or accuracy is None else (support, 100 * accuracy)


def _draw_algorithm(axes: Axes, lines: list[Line], look: Look) -> None:
    for line in lines:
        ours, theirs = _ours(line), _theirs(line)
        if ours is None:
            continue
        if theirs:
            axes.plot(*theirs, marker=look.marker, markersize=8, mfc="none", color=look.colour)
        x, x_spread, y, y_spread = ours
        drawn = axes.errorbar(x, y, y_spread, x_spread, fmt=look.marker, color=look.colour, markersize=5)
        for part in (*drawn.lines[1], *drawn.lines[2]):
            part.set(linewidth=0.9)


def _label(axes: Axes, block: Block) -> None:
    """Write the variants beside the points of each algorithm that has some."""
    found = [(line, ours) for line in block.lines if (ours := _ours(line))]
    found.sort(key=lambda pair: -pair[1].accuracy)
    labels = []
    for algorithm in dict.fromkeys(line.algorithm for line, _ in found):
        named = [(line, ours) for line, ours in found if line.algorithm == algorithm and line.variant]
        places, everywhere = [_place(ours) for _, ours in named], [_place(ours) for _, ours in found]
        for number, text in shared(places, [line.variant for line, _ in named], everywhere):
            ours = named[number][1]
            labels.append(Label(ours.support, ours.accuracy, plain(text)))
    points = [(ours.support, ours.accuracy) for _, ours in found]
    points += [theirs for line, _ in found if (theirs := _theirs(line))]
    write_labels(axes, labels, points, [bar for _, ours in found for bar in _bars(ours)])


def _bars(ours: Ours) -> list[Bbox]:
    """Return the error bars of a point; across only as far as a logarithmic axis can show."""
    x, x_spread, y, y_spread = ours
    return [Bbox([[x, y - y_spread], [x, y + y_spread]]), Bbox([[max(x - x_spread, x / 10), y], [x + x_spread, y]])]


def _place(ours: Ours) -> Position:
    return math.log10(ours.support), ours.accuracy


FIGURE = Figure(needs=Needs(metrics=("n_support", "accuracy")), draw=_draw, usual=True, plot=_plot)

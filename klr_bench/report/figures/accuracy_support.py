"""Test accuracy against the number of support vectors, beside the published values.

One marker a variant, with error bars of one standard deviation over the repeats; a hollow one for the published value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.lines import Line2D

from klr_bench.report.figures.core.drawing import (
    ACCURACY,
    SUPPORT,
    Look,
    count_axis,
    looks_of,
    panel_each,
    plain,
    side_by_side,
)
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.labels import Position, placed
from klr_bench.report.figures.core.lines import (
    Block,
    Line,
    algorithm_name,
    curve_of,
    mean,
    published,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


class Ours(NamedTuple):
    """Support vectors and accuracy (%), each with its spread."""

    support: float
    support_spread: float
    accuracy: float
    accuracy_spread: float


def _draw(inputs: Inputs) -> Drawing | None:
    blocks = [block for block in inputs.table.blocks if any(map(_ours, block.lines))]
    lines = [line for block in blocks for line in block.lines if _ours(line)]
    looks = looks_of({curve_of(line, *line.variant): algorithm_name(line) for line in lines})

    def draw(axes: Axes, block: Block) -> None:
        for (algorithm, _), look in looks.items():
            _draw_algorithm(axes, [line for line in block.lines if line.algorithm == algorithm], look, block.lines)
        count_axis(axes.xaxis, SUPPORT)

    handles = [look.handle(dashes="none") for look in looks.values()]
    if any(_theirs(line) for line in lines):
        handles.append(Line2D([], [], marker="o", linestyle="none", mfc="none", color="#666666", label="published"))
    return side_by_side(panel_each(blocks, draw), handles, SUPPORT.label, ACCURACY.label)


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


def _draw_algorithm(axes: Axes, lines: list[Line], look: Look, panel: list[Line]) -> None:
    """Draw the lines of an algorithm, of all lines of a panel; labels stand above and below by turns."""
    points = sorted(((ours, line) for line in lines if (ours := _ours(line))), key=lambda point: -point[0].accuracy)
    for ours, line in points:
        theirs = _theirs(line)
        if theirs:
            axes.plot(*theirs, marker=look.marker, markersize=8, mfc="none", color=look.colour)
        x, x_spread, y, y_spread = ours
        drawn = axes.errorbar(x, y, y_spread, x_spread, fmt=look.marker, color=look.colour, markersize=5)
        for part in (*drawn.lines[1], *drawn.lines[2]):
            part.set(linewidth=0.9)
    named = [(ours, line) for ours, line in points if line.variant]
    if not named:
        return
    everywhere = [_place(ours) for line in panel if (ours := _ours(line))]
    labels = placed([_place(ours) for ours, _ in named], [line.variant for _, line in named], everywhere)
    for rank, (number, text, to_the_left) in enumerate(labels):
        offset = (-5 if to_the_left else 5, -10 if rank % 2 else 4)
        side = "right" if to_the_left else "left"
        at = named[number][0].support, named[number][0].accuracy
        axes.annotate(plain(text), at, offset, textcoords="offset points", fontsize=7, ha=side)


def _place(ours: Ours) -> Position:
    return math.log10(ours.support), ours.accuracy


FIGURE = Figure(needs=Needs(metrics=("n_support", "accuracy")), draw=_draw, usual=True)

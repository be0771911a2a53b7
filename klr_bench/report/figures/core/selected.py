"""Figures against the number of selected features, a curve a method, as figure 1 of Tan et al. (AAAI 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from klr_bench.report.figures.core.drawing import Axis, Look, count_axis, looks_of, panel_each, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import Block, Curve, Line, drawable
from klr_bench.report.figures.core.plot import Plot, means
from klr_bench.report.labels import Selected, along_path, path_label, path_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SELECTED = Axis("n_selected", "Selected features", counted=True)


def against_selected(y: Axis) -> Figure:
    """Return the figure of y against the number of selected features."""
    return Figure(needs=Needs(metrics=(SELECTED.metric, y.metric)), draw=partial(_draw, y=y), plot=partial(_plot, y=y))


def _points(lines: list[Line], y: Axis) -> list[Selected]:
    return [point for point in along_path(lines, y.metric, y.factor) if None not in map(drawable, point)]


def _looks(lines: Sequence[Line]) -> dict[Curve, Look]:
    return looks_of({path_of(line): path_label(line) for line in lines})


def _plot(inputs: Inputs, y: Axis) -> Plot | None:
    return means(inputs, SELECTED, [y], path_of, _looks, connected=True)


def _draw(inputs: Inputs, y: Axis) -> Drawing | None:
    blocks = [block for block in inputs.table.blocks if _points(block.lines, y)]
    looks = _looks([line for block in blocks for line in block.lines if _points([line], y)])

    def draw(axes: Axes, block: Block) -> None:
        for curve, look in looks.items():
            points = _points([line for line in block.lines if path_of(line) == curve], y)
            if points:
                style = {"color": look.colour, "marker": look.marker, "linestyle": look.dashes, "linewidth": 1.2}
                xs, ys, errors = zip(*points, strict=True)
                axes.errorbar(xs, ys, errors, markersize=4, elinewidth=0.7, **style)
        count_axis(axes.xaxis, SELECTED)
        count_axis(axes.yaxis, y)

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    return side_by_side(panel_each(blocks, draw), handles, SELECTED.label, y.label)

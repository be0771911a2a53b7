"""Figures of a metric against a swept parameter, with its spread; a curve for each other variation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from klr_bench.experiment.variants import variant_text
from klr_bench.report.figures.core.drawing import Axis, Look, count_axis, looks_of, panel_each, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import (
    Block,
    Curve,
    Line,
    algorithm_name,
    blocks_with,
    curve_of,
    mean,
    parameter,
    spread,
)
from klr_bench.report.figures.core.plot import Plot, means

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def swept(x: Axis, y: Axis) -> Figure:
    """Return the figure of y, on a logarithmic axis, against the parameter x."""
    return Figure(
        needs=Needs(metrics=(y.metric,), parameter=x.metric),
        draw=partial(_draw, x=x, y=y),
        plot=partial(_plot, x=x, y=y),
    )


def _looks(lines: Sequence[Line], x: Axis) -> dict[Curve, Look]:
    names = {line.algorithm: algorithm_name(line) for line in lines}
    curves = [curve_of(line, x.metric) for line in lines if x.metric in line.variant]
    return looks_of({curve: f"{names[curve[0]]} {variant_text(curve[1])}".strip() for curve in curves})


def _plot(inputs: Inputs, x: Axis, y: Axis) -> Plot | None:
    sides = [replace(y, logarithmic=True)]
    return means(inputs, x, sides, lambda line: curve_of(line, x.metric), partial(_looks, x=x), connected=True)


def _draw(inputs: Inputs, x: Axis, y: Axis) -> Drawing | None:
    blocks = blocks_with(inputs.table, y.metric)
    looks = _looks([line for block in blocks for line in block.lines], x)

    def draw(axes: Axes, block: Block) -> None:
        for curve, look in looks.items():
            shown = _along(block, curve, x, y)
            if shown:
                style = {"marker": look.marker, "linestyle": look.dashes, "color": look.colour, "markersize": 4}
                xs, ys, errors = zip(*shown, strict=True)
                axes.errorbar(xs, ys, errors, **style, linewidth=1.1, elinewidth=0.7)
        count_axis(axes.xaxis, x)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    return side_by_side(panel_each(blocks, draw), handles, x.label, y.label)


def _along(block: Block, curve: Curve, x: Axis, y: Axis) -> list[tuple[float, float, float]]:
    """Return the parameter, the metric and its spread, in ascending order."""

    def found(line: Line) -> tuple[float, float, float] | None:
        value, number = parameter(line, x.metric), mean(line, y.metric)
        return None if value is None or number is None else (value, number, spread(line, y.metric))

    on_curve = [line for line in block.lines if x.metric in line.variant and curve_of(line, x.metric) == curve]
    return sorted(values for line in on_curve if (values := found(line)))

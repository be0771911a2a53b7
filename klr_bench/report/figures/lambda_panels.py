"""Accuracy, non-zero coefficients and training time against lambda, relative to lambda_max.

A hollow marker is a published value.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, NullFormatter

from klr_bench.report.figures.core.drawing import (
    ACCURACY,
    FIT_TIME,
    NONZERO,
    PUBLISHED,
    Axis,
    Look,
    Panel,
    count_axis,
    dashed,
    looks_of,
    side_by_side,
)
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import (
    Block,
    Curve,
    Line,
    algorithm_name,
    curve_of,
    dataset_name,
    mean,
    parameter,
    published,
)
from klr_bench.report.figures.core.plot import Plot, means

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

PARAMETER = "lam"
SIDES = (ACCURACY, NONZERO, FIT_TIME)


def _curve(line: Line) -> Curve:
    return curve_of(line, *line.variant)


def _looks(lines: Sequence[Line]) -> dict[Curve, Look]:
    return dashed(looks_of({_curve(line): algorithm_name(line) for line in lines}))  # they overlap


def _plot(inputs: Inputs) -> Plot | None:
    lam = Axis(PARAMETER, "lambda / lambda_max", logarithmic=True)
    return means(inputs, lam, SIDES, _curve, _looks, connected=True)


def _draw(inputs: Inputs) -> Drawing | None:
    blocks = [block for block in inputs.table.blocks if any(_along(block.lines, side) for side in SIDES)]
    lines = [line for block in blocks for line in block.lines]
    looks = _looks(lines)
    panels = [
        Panel(dataset_name(block), partial(_draw_panel, block=block, side=side, looks=looks), y=side.label)
        for block in blocks
        for side in SIDES
        if _along(block.lines, side)
    ]
    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    if any(_along(lines, side, published) for side in SIDES):
        handles.append(PUBLISHED)
    return side_by_side(panels, handles, "lambda / lambda_max", "")


def _draw_panel(axes: Axes, block: Block, side: Axis, looks: Mapping[Curve, Look]) -> None:
    for (algorithm, _), look in looks.items():
        lines = [line for line in block.lines if line.algorithm == algorithm]
        shown, theirs = _along(lines, side), _along(lines, side, published)
        if shown:
            axes.plot(*zip(*shown, strict=True), marker=look.marker, linestyle=look.dashes, color=look.colour)
        if theirs:
            (hollow,) = axes.plot(*zip(*theirs, strict=True), marker=look.marker, linestyle="none", color=look.colour)
            hollow.set(markersize=8, mfc="none")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(sorted({lam for line in block.lines if (lam := parameter(line, PARAMETER)) and lam > 0}))
    count_axis(axes.yaxis, side)


def _along(
    lines: list[Line], side: Axis, value_of: Callable[[Line, str], float | None] = mean
) -> list[tuple[float, float]]:
    """Return lambda and the value of one side, in ascending order; `value_of` is `mean` or `published`."""
    found = [(parameter(line, PARAMETER), value_of(line, side.metric)) for line in lines]
    return sorted((lam, side.factor * value) for lam, value in found if lam and lam > 0 and value is not None)


FIGURE = Figure(needs=Needs(metrics=(ACCURACY.metric,), parameter=PARAMETER), draw=_draw, plot=_plot)

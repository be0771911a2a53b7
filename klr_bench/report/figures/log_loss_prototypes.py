"""Log loss against the number of prototypes, with its spread; a curve for each other variation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from klr_bench.experiment.variants import variant_text
from klr_bench.report.figures.core.drawing import LOG_LOSS, PROTOTYPES, count_axis, looks_of, panel_each, side_by_side
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

PARAMETER = PROTOTYPES.metric


def _draw(inputs: Inputs) -> Drawing | None:
    blocks = blocks_with(inputs.table, LOG_LOSS.metric)
    lines = [line for block in blocks for line in block.lines if PARAMETER in line.variant]
    names = {line.algorithm: algorithm_name(line) for line in lines}
    curves = [curve_of(line, PARAMETER) for line in lines]
    looks = looks_of({curve: f"{names[curve[0]]} {variant_text(curve[1])}".strip() for curve in curves})

    def draw(axes: Axes, block: Block) -> None:
        for curve, look in looks.items():
            shown = _along(block, curve)
            if shown:
                style = {"marker": look.marker, "linestyle": look.dashes, "color": look.colour, "markersize": 4}
                xs, ys, errors = zip(*shown, strict=True)
                axes.errorbar(xs, ys, errors, **style, linewidth=1.1, elinewidth=0.7)
        count_axis(axes.xaxis, PROTOTYPES)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    return side_by_side(panel_each(blocks, draw), handles, PROTOTYPES.label, LOG_LOSS.label)


def _along(block: Block, curve: Curve) -> list[tuple[float, float, float]]:
    """Return prototypes, log loss and its spread, in ascending order."""

    def found(line: Line) -> tuple[float, float, float] | None:
        number, loss = parameter(line, PARAMETER), mean(line, LOG_LOSS.metric)
        return None if number is None or loss is None else (number, loss, spread(line, LOG_LOSS.metric))

    on_curve = [line for line in block.lines if PARAMETER in line.variant and curve_of(line, PARAMETER) == curve]
    return sorted(values for line in on_curve if (values := found(line)))


FIGURE = Figure(needs=Needs(metrics=(LOG_LOSS.metric,), parameter=PARAMETER), draw=_draw)

"""Sparsity, and accuracy relative to that at gamma = 1, against gamma - 1 of the auxiliary function.

Error bars are one standard deviation over the repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from klr_bench.report.figures.core.drawing import COLOURS, Look, panel_each, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import Block, mean, parameter, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

PARAMETER = "aux_gamma"
LOOKS = (Look("Sparsity", "o", "-", COLOURS[1]), Look("Relative accuracy", "s", "--", COLOURS[2]))


class Point(NamedTuple):
    """A variant: gamma - 1, and means with their spreads."""

    beyond: float
    sparsity: float
    sparsity_spread: float
    accuracy: float
    accuracy_spread: float


def _draw(inputs: Inputs) -> Drawing | None:
    blocks = [block for block in inputs.table.blocks if any(point.beyond > 0 for point in _along(block))]
    handles = [look.handle(dashes=look.dashes) for look in LOOKS]
    return side_by_side(panel_each(blocks, _draw_panel), handles, "gamma - 1", "%")


def _along(block: Block) -> list[Point]:
    """Return the variants in ascending order of gamma."""
    found = []
    for line in block.lines:
        gamma, accuracy = parameter(line, PARAMETER), mean(line, "accuracy")
        if gamma and accuracy:
            sparsity = mean(line, "sparsity") or 0.0, spread(line, "sparsity")
            found.append(Point(gamma - 1, *sparsity, accuracy, spread(line, "accuracy")))
    return sorted(found)


def _draw_panel(axes: Axes, block: Block) -> None:
    points = _along(block)
    base = next((point for point in points if point.beyond == 0), points[0]).accuracy
    shown = [point for point in points if point.beyond > 0]
    x = [point.beyond for point in shown]
    sparsities = [(100 * point.sparsity, 100 * point.sparsity_spread) for point in shown]
    accuracies = [(100 * point.accuracy / base, 100 * point.accuracy_spread / base) for point in shown]
    for look, values in zip(LOOKS, (sparsities, accuracies), strict=True):
        means, spreads = zip(*values, strict=True)
        axes.errorbar(x, means, spreads, marker=look.marker, linestyle=look.dashes, color=look.colour)
    axes.set_xscale("log")


FIGURE = Figure(needs=Needs(metrics=("accuracy", "sparsity"), parameter=PARAMETER), draw=_draw)

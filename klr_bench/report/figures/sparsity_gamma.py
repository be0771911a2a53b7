"""Sparsity, and accuracy relative to that at gamma = 1, against gamma - 1 of the auxiliary function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klr_bench.report.figures.core.drawing import COLOURS, Look, panel_each, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import Block, mean, parameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

PARAMETER = "aux_gamma"
LOOKS = (Look("Sparsity", "o", "-", COLOURS[1]), Look("Relative accuracy", "s", "--", COLOURS[2]))


def _draw(inputs: Inputs) -> Drawing | None:
    blocks = [block for block in inputs.table.blocks if any(beyond > 0 for beyond, _, _ in _along(block))]
    handles = [look.handle(dashes=look.dashes) for look in LOOKS]
    return side_by_side(panel_each(blocks, _draw_panel), handles, "gamma - 1", "%")


def _along(block: Block) -> list[tuple[float, float, float]]:
    """Return gamma - 1, sparsity and accuracy, in ascending order."""
    found = []
    for line in block.lines:
        gamma, accuracy = parameter(line, PARAMETER), mean(line, "accuracy")
        if gamma and accuracy:
            found.append((gamma - 1, mean(line, "sparsity") or 0.0, accuracy))
    return sorted(found)


def _draw_panel(axes: Axes, block: Block) -> None:
    values = _along(block)
    (_, _, base), *_ = [row for row in values if row[0] == 0] or values
    shown = [(beyond, 100 * sparsity, 100 * accuracy / base) for beyond, sparsity, accuracy in values if beyond > 0]
    x, *sides = zip(*shown, strict=True)
    for look, side in zip(LOOKS, sides, strict=True):
        axes.plot(x, side, marker=look.marker, linestyle=look.dashes, color=look.colour)
    axes.set_xscale("log")


FIGURE = Figure(needs=Needs(metrics=("accuracy", "sparsity"), parameter=PARAMETER), draw=_draw)

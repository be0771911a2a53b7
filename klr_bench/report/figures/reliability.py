"""The share of positive test rows against the predicted probability, bin by bin.

The rows of all repeats are counted together; the area of a marker is their share of the test rows, and bins with fewer
than LEAST of them are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from klr_bench.report.figures.core.drawing import dashed, looks_of, panel_each, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import Block, curve_of, line_name, mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

LEAST = 20
"""Rows in a bin from which on their share of positives is shown."""


def _draw(inputs: Inputs) -> Drawing | None:
    records = inputs.records[inputs.records["status"] == "ok"]
    counted = inputs.reliability.merge(records[["key", "dataset", "algorithm", "variant"]], on="key")
    counted["predicted"] *= counted["n"]
    counted["positive"] *= counted["n"]
    groups = counted.groupby(["dataset", "algorithm", "variant"], sort=False)
    curves = {column: group.groupby("bin")[["n", "predicted", "positive"]].sum() for column, group in groups}
    blocks = [block for block in inputs.table.blocks if any(block.dataset == column[0] for column in curves)]
    lines = [line for block in blocks for line in block.lines if mean(line, "ece") is not None]
    looks = dashed(looks_of({curve_of(line): line_name(line) for line in lines}))

    def draw(axes: Axes, block: Block) -> None:
        axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
        for column, look in looks.items():
            curve = curves.get((block.dataset, *column))
            if curve is not None:
                curve = curve[curve["n"] >= LEAST]
                x, y, share = curve["predicted"] / curve["n"], curve["positive"] / curve["n"], curve["n"]
                axes.plot(x, y, color=look.colour, linewidth=0.9, linestyle=look.dashes)
                axes.scatter(x, y, 14 + 70 * share / share.sum(), color=look.colour, marker=look.marker, linewidths=0)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    handles.append(Line2D([], [], color="#999999", linewidth=0.8, label="calibrated"))
    return side_by_side(panel_each(blocks, draw), handles, "Predicted probability", "Observed share")


FIGURE = Figure(needs=Needs(metrics=("ece",), bins=True), draw=_draw, comes_with="ece")

"""Figures against the number of selected features, a curve a method: accuracy, training time, relevant features found.

As figure 1 of Tan et al. (AAAI 2016).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klr_bench.report.curves import curve_of, label_of, points_of
from klr_bench.report.drawing import ACCURACY, TIME, Axis, count_axis, looks_of, panels_of
from klr_bench.report.tables import Block, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SELECTED = Axis("n_selected", "Selected features", counted=True)
DRAWN = {
    "accuracy_selected": ACCURACY,
    "time_selected": Axis("fit_time_s", TIME.label, counted=True),
    "relevant_selected": Axis("relevant_found", "Relevant features found (%)", 100.0),
}


def against_selected(name: str, table: Table) -> dict[str, bytes]:
    """Draw the figure of DRAWN with this name; return file names and contents, empty where there are no rows for it."""
    y = DRAWN[name]
    blocks = [block for block in table.blocks if points_of(block.lines, y.metric)]
    labels = {curve_of(line): label_of(line) for block in blocks for line in block.lines if points_of([line], y.metric)}
    looks = looks_of(labels)

    def draw(axes: Axes, block: Block) -> None:
        for curve, look in looks.items():
            points = points_of([line for line in block.lines if curve_of(line) == curve], y.metric, y.factor)
            if points:
                style = {"color": look.colour, "marker": look.marker, "linestyle": look.dashes, "linewidth": 1.2}
                xs, ys, errors = zip(*points, strict=True)
                axes.errorbar(xs, ys, errors, markersize=4, elinewidth=0.7, **style)
        count_axis(axes.xaxis, SELECTED)
        count_axis(axes.yaxis, y)

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    return panels_of(name, blocks, handles, draw, SELECTED.label, y.label)

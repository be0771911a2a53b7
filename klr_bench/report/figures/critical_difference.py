"""The average rank of each line over the data sets; a bar joins lines that are not distinguishable.

Wilcoxon's signed-rank test with Holm's adjustment decides, as in klr_bench.report.pairwise.  A dot on a bar is a line
of its group: one between two dots that has none is distinguishable from some of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.figure import Figure as Drawing
from matplotlib.transforms import blended_transform_factory

from klr_bench.errors import KlrBenchError
from klr_bench.report.figures.core.drawing import plain
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import COLOURS
from klr_bench.report.labels import line_label
from klr_bench.report.pairwise import OverDatasets, chosen_metrics, over_data_sets
from klr_bench.report.significance import LEVEL
from klr_bench.report.statistics.across import smallest_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 0.24
"""Inches between two rows of labels, or two bars."""


def _draw(inputs: Inputs) -> Drawing | None:
    metrics = chosen_metrics(inputs.table, None)
    if not metrics:
        return None
    found = over_data_sets(inputs.table, metrics[0])
    if found.missing:
        message = f"{found.missing}."
        raise KlrBenchError(message)
    return _drawn(found)


def _drawn(found: OverDatasets) -> Drawing:
    """Draw the ranks on a line from 1 to the number of lines, the better half labelled on the left."""
    k = len(found.lines)
    left = math.ceil(k / 2)
    names = [plain(line_label(line)) for line in found.lines]
    side = 0.07 * max(map(len, names)) + 0.6  # inches, for a label
    across = min(max(4.2, 0.5 * (k - 1)), 9.0)
    width = across + 2 * side
    above, below = 0.95, ROW * (len(found.groups) + left + 1.2)
    drawing = Drawing(figsize=(width, above + below))
    axes = drawing.add_axes((side / width, 0.0, across / width, below / (above + below)))
    axes.set(xlim=(1, k), ylim=(-below, 0.0))
    for place in ("left", "right", "bottom"):
        axes.spines[place].set_visible(False)
    axes.spines["top"].set_visible(True)
    axes.grid(visible=False)
    axes.xaxis.tick_top()
    axes.set_xticks(range(1, k + 1))
    axes.set_yticks([])
    title = f"Average rank over {found.n} data sets, {found.metric.title.lower()} (1 is the best)"
    drawing.text(0.5, 1 - 0.12 / (above + below), f"{plain(title)}\n{_meaning(found)}", ha="center", va="top")
    for number, group in enumerate(found.groups):
        _bar(axes, [found.ranks[place] for place in group], -ROW * (number + 1))
    lowest = -ROW * (len(found.groups) + 1)
    for number, (name, rank) in enumerate(zip(names, found.ranks, strict=True)):
        on_left = number < left
        row = number if on_left else k - 1 - number
        _label(axes, name, rank, lowest - ROW * (row + 0.3), left=on_left, gap=0.06 / across)
    return drawing


def _meaning(found: OverDatasets) -> str:
    if smallest_p(found.n, len(found.lines)) >= 1 - LEVEL:
        return "too few data sets for so many lines: none can be distinguished"
    return f"bar: its dots are not distinguishable (Wilcoxon, Holm, {100 * (1 - LEVEL):.0f} %)"


def _bar(axes: Axes, ranks: list[float], y: float) -> None:
    (line,) = axes.plot(ranks, [y] * len(ranks), color=COLOURS[1], linewidth=3, solid_capstyle="round")
    line.set(marker="o", markersize=6, clip_on=False)


def _label(axes: Axes, name: str, rank: float, y: float, *, left: bool, gap: float) -> None:
    """Write a name at the side, `gap` widths of the axes from it, with a line from its rank down and across to it."""
    end = 0.0 if left else 1.0
    across = blended_transform_factory(axes.transAxes, axes.transData)
    x = axes.transAxes.inverted().transform(axes.transData.transform((rank, y)))[0]
    axes.plot([rank, rank], [0, y], color="#666666", linewidth=0.8, clip_on=False, zorder=0)
    axes.plot([x, end], [y, y], color="#666666", linewidth=0.8, clip_on=False, zorder=0, transform=across)
    text = f"{name} {rank:.2f}" if left else f"{rank:.2f} {name}"
    axes.text(end + (-gap if left else gap), y, text, ha="right" if left else "left", va="center", transform=across)


FIGURE = Figure(
    needs=Needs(metrics=("accuracy",)),
    draw=_draw,
    title="The average rank of each line over the data sets; a bar joins lines that are not distinguishable",
)

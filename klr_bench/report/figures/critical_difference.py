"""Average rank of each method over the data sets; bars join indistinguishable methods.

Wilcoxon's signed-rank test with Holm's adjustment decides, as in klr_bench.report.pairwise.  The methods of a group
have a dot on its bar; a method between two dots without a dot is distinguishable from some of the group.
"""

from __future__ import annotations

import math

from matplotlib.figure import Figure as Drawing

from klr_bench.errors import fail
from klr_bench.report.figures.core.drawing import plain
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import COLORS
from klr_bench.report.labels import line_label
from klr_bench.report.pairwise import chosen_metrics, over_data_sets
from klr_bench.report.significance import LEVEL
from klr_bench.report.statistics.across import smallest_p

ROW = 0.24
"""Distance in inches between two rows of labels or two bars."""


def _draw(inputs: Inputs) -> Drawing | None:
    """Draw the ranks on a line from 1 to the number of methods; the better half is on the left."""
    metrics = chosen_metrics(inputs.table, None)
    if not metrics:
        return None
    ranking = over_data_sets(inputs.table, metrics[0])
    if ranking.missing:
        fail(f"{ranking.missing}.")
    k = len(ranking.lines)
    left = math.ceil(k / 2)
    names = [plain(line_label(line)) for line in ranking.lines]
    side = 0.07 * max(map(len, names)) + 0.6  # inches, for a label
    across = min(max(4.2, 0.5 * (k - 1)), 9.0)
    width = across + 2 * side
    above, below = 0.95, ROW * (len(ranking.groups) + left + 1.2)
    drawing = Drawing(figsize=(width, above + below))
    axes = drawing.add_axes((side / width, 0.0, across / width, below / (above + below)))
    axes.set(xlim=(1, k), ylim=(-below, 0.0), xticks=range(1, k + 1), yticks=[])
    axes.spines[["left", "right", "bottom"]].set_visible(False)
    axes.spines["top"].set_visible(True)
    axes.grid(visible=False)
    axes.xaxis.tick_top()
    meaning = f"bar: methods that do not differ significantly (Wilcoxon, Holm, {100 * (1 - LEVEL):.0f} %)"
    if smallest_p(ranking.n, k) >= 1 - LEVEL:
        meaning = "too few data sets for so many lines: none can be distinguished"
    title = f"Average rank over {ranking.n} data sets, {ranking.metric.title.lower()} (1 is the best)"
    drawing.text(0.5, 1 - 0.12 / (above + below), f"{plain(title)}\n{meaning}", ha="center", va="top")
    for number, group in enumerate(ranking.groups):
        y = -ROW * (number + 1)
        ranks = [ranking.ranks[place] for place in group]
        axes.plot(ranks, [y] * len(ranks), "o-", color=COLORS[1], lw=3, ms=6, solid_capstyle="round", clip_on=False)
    gap, lowest = 0.06 * (k - 1) / across, -ROW * (len(ranking.groups) + 1)
    for number, (name, rank) in enumerate(zip(names, ranking.ranks, strict=True)):
        on_left = number < left
        y = lowest - ROW * ((number if on_left else k - 1 - number) + 0.3)
        end = 1 if on_left else k
        axes.plot([rank, rank, end], [0, y, y], color="#666666", linewidth=0.8, clip_on=False, zorder=0)
        if on_left:
            axes.text(end - gap, y, f"{name} {rank:.2f}", ha="right", va="center")
        else:
            axes.text(end + gap, y, f"{rank:.2f} {name}", ha="left", va="center")
    return drawing


FIGURE = Figure(
    needs=Needs(metrics=("accuracy",)),
    draw=_draw,
    title="The average rank of each method over the data sets; a bar joins methods that are not distinguishable",
)

"""Average rank of each method over the data sets, and groups of indistinguishable methods.

Wilcoxon's signed-rank test with Holm's adjustment decides, as in klr_bench.report.pairwise.  A vertical bar is a group:
none of the methods that have a dot on it differ significantly; a method without a dot differs from some of them.
"""

from __future__ import annotations

from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from klr_bench.errors import fail
from klr_bench.report.figures.core.drawing import marker_style, plain
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import looks_of
from klr_bench.report.pairwise import chosen_metrics, over_data_sets
from klr_bench.report.significance import LEVEL
from klr_bench.report.statistics.across import smallest_p

ROW, GROUP = 0.16, 0.1
"""Distances in inches between two methods and between two bars."""


def _draw(inputs: Inputs) -> Drawing | None:
    """Draw a row per method, the best at the top."""
    metrics = chosen_metrics(inputs.table, None)
    if not metrics:
        return None
    ranking = over_data_sets(inputs.table, metrics[0])
    if ranking.missing:
        fail(f"{ranking.missing}.")
    looks = looks_of(ranking.lines, lambda line: line.column)
    names = [plain(looks[line.column].label) for line in ranking.lines]
    k, n_groups = len(names), len(ranking.groups)
    sides = [max(1.3, 2.5 - 0.066 * max(map(len, names))), GROUP * (n_groups + 1)]
    width = max(3.4, sum(sides) + 0.066 * max(map(len, names)) + 0.3)
    drawing = Drawing(figsize=(width, ROW * k + 0.8), layout="constrained")
    ranks, groups = drawing.subplots(1, 2, sharey=True, width_ratios=sides)
    for place, (line, rank) in enumerate(zip(ranking.lines, ranking.ranks, strict=True)):
        ranks.plot(rank, place, **marker_style(looks[line.column], connected=False))
    ranks.set(xlim=(0.5, k + 0.5), ylim=(k - 0.5, -0.5), yticks=range(k), yticklabels=names)
    ranks.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
    ranks.tick_params(axis="y", length=0)
    for number, group in enumerate(ranking.groups):
        groups.plot([number] * len(group), group, ".-", color="#555555", linewidth=0.8, markersize=4)
    groups.spines[:].set_visible(False)
    groups.tick_params(axis="y", length=0)
    note = f"bar: not distinguishable (Wilcoxon, Holm, {100 * (1 - LEVEL):.0f} %)"
    if smallest_p(ranking.n, k) >= 1 - LEVEL:
        note = "too few data sets to distinguish so many methods"
    groups.set(xlim=(-1, n_groups), xticks=[])
    title = f"Average rank over {ranking.n} data sets, {ranking.metric.title.lower()}"
    drawing.supxlabel(f"{plain(title)}\n{note}", fontsize="medium")
    return drawing


FIGURE = Figure(
    needs=Needs(metrics=("accuracy",)),
    draw=_draw,
    title="The average rank of each method over the data sets; a bar joins methods that are not distinguishable",
)

"""Regret and support vectors against the examples seen, beside what Zhang et al. (2012, 2013) prove of them.

Regret is the cumulative loss of the learner, each example before it is learned from, minus that of the best function
in hindsight.  A dotted line of a learner's colour is its bound, the grey line what needs no theorem: the regret of
f = 0, and every example a support vector.  A regret below 0 has no place on the logarithmic axis and is not shown.  The
legend of a panel says from how many examples on a bound is below the grey line.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from klr_bench.report.figures.core.bounded import COMPARATOR, DELTA, Bounded, bounded
from klr_bench.report.figures.core.drawing import (
    EXAMPLES,
    SUPPORT,
    Axis,
    Panel,
    count_axis,
    looks_of,
    plain,
    side_by_side,
)
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import curve_of, dataset_name, line_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from klr_bench.report.figures.core.drawing import Look

GREY = "#888888"
SMALL = 6.5
"""Points, of the letters of a panel's legend."""
TITLE = f"Bound below the grey line from\n(OSKL's: with probability {1 - 2 * DELTA:g})"
ROOM, SPAN = 0.45, 1e4
"""Part of the height of a panel for its legend, and the largest ratio of two values above it."""


class Side(NamedTuple):
    """What a panel shows: an axis, and the columns of a `Bounded`."""

    axis: Axis
    measured: str
    bound: str
    trivial: str
    """The column that needs no theorem."""
    starts: str
    """The attribute that says from where on the bound is below it."""


SIDES = (
    Side(Axis("regret", "Regret (log loss)", counted=True), "regret", "regret_bound", "regret_of_zero", "regret_from"),
    Side(SUPPORT, "n_support", "support_bound", "t", "support_from"),
)


def _draw(inputs: Inputs) -> Drawing | None:
    curves = bounded(inputs.traces, inputs.records)
    blocks = [block for block in inputs.table.blocks if any(block.dataset == place[0] for place in curves)]
    lines = [line for block in blocks for line in block.lines if line.algorithm != COMPARATOR]
    looks = looks_of({curve_of(line): line_name(line) for line in lines})
    panels = []
    for side in SIDES:
        for block in blocks:
            shown = {
                look: curves[block.dataset, *column]
                for column, look in looks.items()
                if (block.dataset, *column) in curves
            }
            if any((one.curve[side.measured] > 0).any() for one in shown.values()):
                draw = partial(_draw_panel, shown=shown, side=side)
                panels.append(Panel(dataset_name(block), draw, y=side.axis.label))
    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    handles.append(Line2D([], [], color=GREY, linestyle=":", label="bound"))
    handles.append(Line2D([], [], color=GREY, linewidth=0.8, label="f = 0; every example"))
    return side_by_side(panels, handles, EXAMPLES.label, "")


def _draw_panel(axes: Axes, shown: Mapping[Look, Bounded], side: Side) -> None:
    starts = []
    for look, one in shown.items():
        t, measured, bound = (one.curve[name] for name in ("t", side.measured, side.bound))
        (line,) = axes.plot(t, measured.where(measured > 0), color=look.colour, linestyle=look.dashes, linewidth=1.2)
        line.set(marker=look.marker, markersize=3)
        if one.has(side.bound):
            (line,) = axes.plot(t, bound.where(np.isfinite), color=look.colour, linestyle=":", linewidth=1.4)
            line.set(marker=look.marker, markersize=3, mfc="none", markevery=[-1])
            starts.append(look.handle(dashes=":"))
            label = plain(f"{look.label}: {_start(getattr(one, side.starts))}")
            starts[-1].set(label=label, markersize=3, mfc="none")
    longest = max((one.curve for one in shown.values()), key=len)
    trivial = longest[side.trivial]
    axes.plot(longest["t"], trivial.where(trivial > 0), color=GREY, linewidth=0.8, zorder=1)
    axes.set_yscale("log")
    if starts:
        low, high = axes.dataLim.intervaly
        axes.set_ylim(high * (max(low, high / SPAN) / high) ** (1 / (1 - ROOM)), 2 * high)
        legend = axes.legend(handles=starts, loc="lower right", fontsize=SMALL, handlelength=2, title=TITLE)
        legend.get_title().set_fontsize(SMALL)
    count_axis(axes.xaxis, EXAMPLES)
    count_axis(axes.yaxis, side.axis)


def _start(examples: int | None) -> str:
    """Return in words from where on a bound says something."""
    if examples is None:
        return "no T"
    return "every T" if examples == 1 else f"T = {examples:,}"


FIGURE = Figure(needs=Needs(traces=("cumulative_loss", "n_support")), draw=_draw)

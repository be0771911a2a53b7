"""Draw plots with matplotlib."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from klr_bench.printing import shortened
from klr_bench.report.figures.core.plot import MARKERS, Axis, Facet, Look, Plot, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis

STYLE = {
    **{"font.size": 8.0, "axes.titlesize": 8.0, "axes.spines.top": False, "axes.spines.right": False},
    **{"axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.minor.width": 0.4},
    **{"axes.grid": True, "grid.color": "#e8e8e8", "grid.linewidth": 0.5, "axes.axisbelow": True},
    **{"axes.xmargin": 0.08, "axes.ymargin": 0.08},  # leave space for the labels of the outermost points
    **{"errorbar.capsize": 0.0, "svg.hashsalt": "klr-bench", "legend.frameon": False},
}
PANELS = {1: (3.4, 2.5), 2: (3.4, 2.6), 3: (2.35, 2.1)}
"""Width and height of a panel in inches, by the number of panels per row: a column, or the width of a page."""
LONGEST_LABEL = 80
"""Maximum number of characters of a label."""
SIZES = {"star": 6.5, "pentagon": 4.5, "hexagon": 4.5}
"""Sizes of markers in points; others have SIZE."""
SIZE = 4.0
LIGHT_GREY = "#999999"
MARKED = 0.12
"""Distance between two markers of a long curve, as a share of the diagonal of the panel."""
MOST_MARKERS = 15
"""A curve with more points has markers at some of them."""
MOST_BANDS = 4
"""A panel with more curves has no bands."""
MOST_TICKS = 6
"""A logarithmic axis of a parameter with at most this number of values has ticks at them."""


def draw_plot(plot: Plot) -> Drawing | None:
    """Draw a plot with error bars and published values; return None if there are no means."""
    series = [curve for facet in plot.facets for curve in facet.series]
    looks = dict.fromkeys(curve.look for curve in series if curve.kind == "mean")
    if not looks:
        return None
    lines = {curve.look for curve in series if curve.kind == "mean" and len(curve.x) > 1}
    handles = [Line2D([], [], label=plain(look.label), **marker_style(look, connected=look in lines)) for look in looks]
    if any(curve.kind == "published" for curve in series):
        handles.append(
            Line2D([], [], marker="o", linestyle="none", mfc="none", ms=5, mew=0.8, color="#666666", label="published")
        )
    if plot.diagonal:
        handles.append(Line2D([], [], color=LIGHT_GREY, linewidth=0.8, label="calibrated"))
    n_columns = 2 if len(plot.facets) == 4 else min(max(PANELS), len(plot.facets))
    n_rows = math.ceil(len(plot.facets) / n_columns)
    across, up = PANELS[n_columns]
    n_across = legend_columns([str(handle.get_label()) for handle in handles], n_columns * across)
    legend_rows = math.ceil(len(handles) / n_across)
    size = n_columns * across, n_rows * up + 0.1 + 0.16 * legend_rows
    drawing = Drawing(figsize=size, layout="constrained")
    same = len({facet.y.label for facet in plot.facets}) == 1
    titles = {plain(facet.title) for facet in plot.facets}
    if one_title := len(titles) == 1:
        drawing.suptitle(*titles, fontsize="medium")
    for number, facet in enumerate(plot.facets):
        axes = drawing.add_subplot(n_rows, n_columns, number + 1, xlabel=plot.x.label)
        if not one_title:
            axes.set_title(plain(facet.title))
        if number % n_columns == 0 or not same:
            axes.set_ylabel(facet.y.label)
        _draw_facet(axes, plot, facet)
    drawing.legend(handles=handles, loc="outside lower center", ncols=n_across, columnspacing=1.2)
    return drawing


def legend_columns(labels: Sequence[str], width: float) -> int:
    """Return the number of columns of a legend that is at most `width` inches wide."""
    sizes = [0.45 + 0.066 * len(label) for label in labels]
    fitting = (n for n in range(len(sizes), 1, -1) if sum(map(max, np.array_split(sizes, n))) <= width)
    return next(fitting, 1)


def marker_style(look: Look, *, connected: bool) -> dict[str, Any]:
    """Return the properties of a matplotlib line with a certain look, or of its markers alone."""
    return {
        **{"color": look.color, "linestyle": look.dashes if connected else "none", "linewidth": 1.0},
        **{"marker": MARKERS[look.marker], "markersize": SIZES.get(look.marker, SIZE), "markeredgewidth": 0.0},
    }


def _draw_facet(axes: Axes, plot: Plot, facet: Facet) -> None:
    if plot.diagonal:
        axes.plot([0, 1], [0, 1], color=LIGHT_GREY, linewidth=0.8, zorder=2.1)
    n_means = sum(series.kind == "mean" for series in facet.series)
    for series in facet.series:
        if series.kind == "mean":
            _draw_means(axes, series, band=plot.band, shaded=plot.band and n_means <= MOST_BANDS)
        elif series.kind == "published":
            (hollow,) = axes.plot(series.x, series.y, color=series.look.color, linestyle="none")
            hollow.set(marker=MARKERS[series.look.marker], markersize=6, mew=0.8, mfc="none", clip_on=False)
    scale_axis(axes.xaxis, plot.x)
    if plot.x.logarithmic and (ticks := _swept_values(facet)):
        axes.set_xticks(ticks)
    scale_axis(axes.yaxis, facet.y)
    low, high = axes.get_ylim()
    if facet.y.is_share:
        axes.set_ylim(max(low, 0.0), min(high, 100.0))
    if facet.y.from_zero:
        axes.set_ylim(bottom=0.0)
    if plot.diagonal:
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))


def _swept_values(facet: Facet) -> list[float]:
    """Return the horizontal positions of a panel, if they are few, round and far apart."""
    values = sorted({x for series in facet.series for x in series.x})
    if not 2 < len(values) <= MOST_TICKS or any(float(f"{value:.2g}") != value for value in values):
        return []
    steps = np.diff(np.log(values))
    return values if steps.sum() < 9 * steps.min() else []


def _draw_means(axes: Axes, series: Series, *, band: bool, shaded: bool) -> None:
    look, has_spread = series.look, any(series.spread)
    style = marker_style(look, connected=series.connected) | ({"marker": ""} if series.sizes else {})
    y_errors = series.spread if has_spread and not band else None
    x_errors = series.x_spread if any(series.x_spread) and not series.connected else None
    line, _, _ = axes.errorbar(series.x, series.y, y_errors, x_errors, **style, elinewidth=0.6)
    line.set_markevery(MARKED if series.connected and len(series.x) > MOST_MARKERS else None)
    line.set_clip_on(False)  # a marker at an end of the axis is drawn whole; error bars end there
    if series.sizes:
        areas = axes.scatter(series.x, series.y, series.sizes, color=look.color, marker=MARKERS[look.marker])
        areas.set(linewidths=0, zorder=2.2, clip_on=False)  # above all lines
    if shaded and has_spread:
        up, spread = np.array(series.y), np.array(series.spread)
        axes.fill_between(series.x, up - spread, up + spread, color=look.color, alpha=0.15, linewidth=0)


def scale_axis(side: XAxis | YAxis, axis: Axis) -> None:
    """Set the scale of an axis; a logarithmic axis gets few ticks, written as plain numbers.

    An axis of less than 0.8 decades has evenly spaced ticks: powers of ten times 1, 2 and 5 would be too few.
    """
    if not axis.logarithmic:
        side.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        return
    (side.axes.set_xscale if side.axis_name == "x" else side.axes.set_yscale)("log")
    low, high = side.get_view_interval()
    decades = math.log10(high / low)
    if decades < 0.8:
        side.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    else:
        steps = (1.0, 2.0, 5.0) if decades < 1 else (1.0, 3.0) if decades < 2.0 else (1.0,)
        side.set_major_locator(LogLocator(subs=steps, numticks=6))
    side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    side.set_minor_formatter(NullFormatter())


def plain(text: str) -> str:
    """Shorten a string and escape its dollar signs for matplotlib."""
    return shortened(text, LONGEST_LABEL).replace("$", r"\$")


def saved(drawing: Drawing, kind: str, dpi: float) -> bytes:
    """Return a drawing as the content of a file; identical drawings give identical bytes."""
    content = io.BytesIO()
    undated = {"png": {"Software": None}, "pdf": {"CreationDate": None}}.get(kind, {"Date": None})
    drawing.savefig(content, format=kind, dpi=dpi, metadata=undated)
    return content.getvalue()

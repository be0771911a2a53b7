"""Draw plots with matplotlib."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from klr_bench.printing import shortened
from klr_bench.report.figures.core.plot import Axis, Facet, Plot, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis

STYLE = {
    **{"font.size": 9.0, "axes.titlesize": 10.0, "axes.spines.top": False, "axes.spines.right": False},
    **{"axes.grid": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.6, "axes.axisbelow": True},
    **{"axes.xmargin": 0.08, "axes.ymargin": 0.08},  # leave space for the labels of the outermost points
    **{"errorbar.capsize": 2.0, "svg.hashsalt": "klr-bench", "legend.frameon": False},
}
PANELS_PER_ROW = 3
LONGEST_LABEL = 80
"""Maximum number of characters of a label."""
LIGHT_GREY = "#999999"


def draw_plot(plot: Plot) -> Drawing | None:
    """Draw a plot with error bars and published values; return None if there are no means."""
    series = [one for facet in plot.facets for one in facet.series]
    connected = {one.look: one.connected for one in series if one.kind == "mean"}
    if not connected:
        return None
    handles = []
    for look, lines in connected.items():
        style: dict[str, Any] = {
            "marker": look.marker,
            "linestyle": look.dashes if lines else "none",
            "color": look.color,
        }
        handles.append(Line2D([], [], label=plain(look.label), **style))
    if any(one.kind == "published" for one in series):
        handles.append(Line2D([], [], marker="o", linestyle="none", mfc="none", color="#666666", label="published"))
    if plot.diagonal:
        handles.append(Line2D([], [], color=LIGHT_GREY, linewidth=0.8, label="calibrated"))
    n_columns = 2 if len(plot.facets) == 4 else min(PANELS_PER_ROW, len(plot.facets))
    n_rows = math.ceil(len(plot.facets) / n_columns)
    width = max(5.2, 3.6 * n_columns)
    entry = 0.8 + 0.075 * max(len(str(one.get_label())) for one in handles)  # inches, of the legend
    legend_rows = math.ceil(len(handles) / max(1, int(width / entry)))
    drawing = Drawing(figsize=(width, 3.0 * n_rows + 0.3 + 0.18 * legend_rows), layout="constrained")
    same = len({facet.y.label for facet in plot.facets}) == 1
    for number, facet in enumerate(plot.facets):
        axes = drawing.add_subplot(n_rows, n_columns, number + 1, title=plain(facet.title), xlabel=plot.x.label)
        if number % n_columns == 0 or not same:
            axes.set_ylabel(facet.y.label)
        _draw_facet(axes, plot, facet)
    legend_columns = math.ceil(len(handles) / legend_rows)
    drawing.legend(handles=handles, loc="outside lower center", ncols=legend_columns, handlelength=3)
    return drawing


def _draw_facet(axes: Axes, plot: Plot, facet: Facet) -> None:
    if plot.diagonal:
        axes.plot([0, 1], [0, 1], color=LIGHT_GREY, linewidth=0.8)
    for series in facet.series:
        if series.kind == "mean":
            _draw_means(axes, series, band=plot.band)
        elif series.kind == "published":
            (hollow,) = axes.plot(series.x, series.y, color=series.look.color, linestyle="none")
            hollow.set(marker=series.look.marker, markersize=8, mfc="none")
    scale_axis(axes.xaxis, plot.x)
    scale_axis(axes.yaxis, facet.y)
    if plot.diagonal:
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))


def _draw_means(axes: Axes, series: Series, *, band: bool) -> None:
    look, has_spread = series.look, any(series.spread)
    style: dict[str, Any] = {"color": look.color, "linestyle": look.dashes if series.connected else "none"}
    style |= {"marker": "" if series.sizes else look.marker, "markersize": 4 if series.connected else 5}
    y_errors = series.spread if has_spread and not band else None
    x_errors = series.x_spread if any(series.x_spread) and not series.connected else None
    axes.errorbar(series.x, series.y, y_errors, x_errors, **style, linewidth=1.2, elinewidth=0.8)
    if series.sizes:
        axes.scatter(series.x, series.y, series.sizes, color=look.color, marker=look.marker, linewidths=0)
    if band and has_spread:
        up, spread = np.array(series.y), np.array(series.spread)
        axes.fill_between(series.x, up - spread, up + spread, color=look.color, alpha=0.15, linewidth=0)


def scale_axis(side: XAxis | YAxis, axis: Axis) -> None:
    """Set the scale of an axis; a logarithmic axis gets few ticks, written as plain numbers.

    An axis of less than 0.8 decades has evenly spaced ticks: powers of ten times 1, 2 and 5 would be too few.
    """
    if not axis.logarithmic:
        return
    (side.axes.set_xscale if side.axis_name == "x" else side.axes.set_yscale)("log")
    low, high = side.get_view_interval()
    decades = math.log10(high / low)
    if decades < 0.8:
        side.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    else:
        steps = (1.0, 2.0, 5.0) if decades < 1 else (1.0, 3.0) if decades < 2.7 else (1.0,)
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

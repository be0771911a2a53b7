"""Drawing with matplotlib: a plot as files, panels side by side, axes of counts."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from klr_bench.printing import shortened
from klr_bench.report.figures.core.plot import Axis, Facet, Look, Plot, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis

STYLE = {
    **{"font.size": 9.0, "axes.titlesize": 10.0, "axes.spines.top": False, "axes.spines.right": False},
    **{"axes.grid": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.6, "axes.axisbelow": True},
    **{"errorbar.capsize": 2.0, "svg.hashsalt": "klr-bench", "legend.frameon": False},
}
PANELS_PER_ROW = 3
NARROW, MOST_TICKS = 0.8, 5
"""An axis of counts of fewer decades has evenly spaced counts, so many at most: 1, 2 and 5 would be one or none."""
FEW_DECADES = 2.0
"""A logarithmic axis of fewer decades has ticks at 1, 2 and 5 times powers of ten, written out."""
MOST_VALUES = 7
"""A logarithmic axis over so few different values has its ticks at these."""
LONGEST_LABEL = 80
"""Characters."""
LIGHT_GREY = "#999999"
PUBLISHED = Line2D([], [], marker="o", linestyle="none", mfc="none", color="#666666", label="published")
"""The entry of the legend for hollow markers."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a figure: its title and what draws it."""

    title: str
    draw: Callable[[Axes], None]
    label: Callable[[Axes], None] | None = None
    """Writes labels beside points, once the axes have their size."""
    y: str = ""
    """The label of its own vertical axis, if the panels of a row differ in it."""


def draw_plot(plot: Plot, label: Callable[..., None] | None = None) -> Drawing | None:
    """Draw a plot: means with their spread, published values as hollow markers; `label` writes beside
    the points, given axes and `facet`."""
    same = len({facet.y.label for facet in plot.facets}) == 1
    panels = [
        Panel(
            facet.title,
            partial(_draw_facet, plot=plot, facet=facet),
            label and partial(label, facet=facet),
            "" if same else facet.y.label,
        )
        for facet in plot.facets
    ]
    series = [one for facet in plot.facets for one in facet.series]
    shown = {one.look: one.connected for one in series if one.kind == "mean"}
    handles = [handle(look, look.dashes if connected else "none") for look, connected in shown.items()]
    if any(one.kind == "published" for one in series):
        handles.append(PUBLISHED)
    if plot.diagonal:
        handles.append(Line2D([], [], color=LIGHT_GREY, linewidth=0.8, label="calibrated"))
    return side_by_side(panels, handles, plot.x.label, plot.facets[0].y.label) if shown else None


def _draw_facet(axes: Axes, plot: Plot, facet: Facet) -> None:
    if plot.diagonal:
        axes.plot([0, 1], [0, 1], color=LIGHT_GREY, linewidth=0.8)
    for series in facet.series:
        if series.kind == "mean":
            _draw_means(axes, series, plot, facet.y)
        elif series.kind == "published":
            (hollow,) = axes.plot(series.x, series.y, color=series.look.colour, linestyle="none")
            hollow.set(marker=series.look.marker, markersize=8, mfc="none")
    means = [one for one in facet.series if one.kind == "mean"]
    scale_axis(axes.xaxis, plot.x, {x for one in means for x in one.x})
    scale_axis(axes.yaxis, facet.y)
    if plot.diagonal:
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))


def _draw_means(axes: Axes, series: Series, plot: Plot, y: Axis) -> None:
    look, has_spread = series.look, any(series.spread)
    style: dict[str, Any] = {"color": look.colour, "linestyle": look.dashes if series.connected else "none"}
    style |= {"marker": "" if series.sizes else look.marker, "markersize": 4 if series.connected else 5}
    y_errors = series.spread if has_spread and not plot.band else None
    x_errors = series.x_spread if any(series.x_spread) and not series.connected else None
    axes.errorbar(series.x, series.y, y_errors, x_errors, **style, linewidth=1.2, elinewidth=0.8)
    if series.sizes:
        axes.scatter(series.x, series.y, series.sizes, color=look.colour, marker=look.marker, linewidths=0)
    if plot.band and has_spread and not y.logarithmic:
        up, spread = np.array(series.y), np.array(series.spread)
        axes.fill_between(series.x, up - spread, up + spread, color=look.colour, alpha=0.15, linewidth=0)


def handle(look: Look, dashes: Any) -> Line2D:
    """Return the entry of a look in the legend."""
    return Line2D([], [], marker=look.marker, linestyle=dashes, color=look.colour, label=plain(look.label))


def scale_axis(side: XAxis | YAxis, axis: Axis, values: set[float] | None = None) -> None:
    """Make an axis logarithmic if it is to be, with no more ticks than fit; few different `values` have a tick each."""
    if not (axis.counted or axis.logarithmic):
        return
    set_scale = side.axes.set_xscale if side.axis_name == "x" else side.axes.set_yscale
    set_scale("log")
    low, high = side.get_view_interval()
    decades = math.log10(high / low)
    if axis.counted:
        if decades < NARROW:
            side.set_major_locator(MaxNLocator(MOST_TICKS, steps=[1, 2, 5, 10]))
        else:
            steps = (1.0, 2.0, 5.0) if decades < 1 else (1.0, 3.0) if decades < 2.7 else (1.0,)
            side.set_major_locator(LogLocator(subs=steps, numticks=6))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        side.set_minor_formatter(NullFormatter())
    elif values and len(values) <= MOST_VALUES:
        side.set_ticks(sorted(values))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
        side.set_minor_formatter(NullFormatter())
    elif decades < FEW_DECADES:
        side.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        side.set_minor_formatter(NullFormatter())


def side_by_side(panels: Sequence[Panel], handles: Sequence[Line2D], x: str, y: str) -> Drawing | None:
    """Draw panels in rows, with one legend beneath; None without panels."""
    if not panels or not handles:
        return None
    columns = 2 if len(panels) == 4 else min(PANELS_PER_ROW, len(panels))
    rows = math.ceil(len(panels) / columns)
    width = max(5.2, 3.6 * columns)
    entry = 0.8 + 0.075 * max(len(str(handle.get_label())) for handle in handles)  # inches, of the legend
    legend_rows = math.ceil(len(handles) / max(1, int(width / entry)))
    drawing = Drawing(figsize=(width, 3.0 * rows + 0.3 + 0.18 * legend_rows), layout="constrained")
    for number, panel in enumerate(panels):
        axes = drawing.add_subplot(rows, columns, number + 1)
        panel.draw(axes)
        axes.margins(0.08)  # room for the labels of the outermost points
        axes.set_title(plain(panel.title))
        axes.set_xlabel(x)
        if panel.y or number % columns == 0:
            axes.set_ylabel(panel.y or y)
    legend_columns = math.ceil(len(handles) / legend_rows)
    drawing.legend(handles=handles, loc="outside lower center", ncols=legend_columns, handlelength=3)
    if any(panel.label for panel in panels):
        drawing.draw_without_rendering()  # gives the axes their size
    for panel, axes in zip(panels, drawing.axes, strict=True):
        if panel.label:
            panel.label(axes)
    return drawing


def plain(text: str) -> str:
    """Return a text for matplotlib, of limited length, in which dollars enclose no formula."""
    return shortened(text, LONGEST_LABEL).replace("$", r"\$")


def saved(drawing: Drawing, kind: str, dpi: float) -> bytes:
    """Return the content of a file, the same for the same drawing."""
    content = io.BytesIO()
    undated = {"png": {"Software": None}, "pdf": {"CreationDate": None}}.get(kind, {"Date": None})
    drawing.savefig(content, format=kind, dpi=dpi, metadata=undated)
    return content.getvalue()

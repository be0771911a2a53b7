"""Figures of what the learners were at each checkpoint of their fits: the mean over the repeats, and their spread.

The band around a curve is one standard deviation over the repeats on either side.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from klr_bench.experiment.records import FINISHED
from klr_bench.report.figures.core.drawing import Axis, Look, count_axis, looks_of, panel_each, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import Block, Curve, curve_of, dataset_name, drawable, line_name
from klr_bench.report.figures.core.plot import Facet, Plot, Series

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing
    from numpy.typing import NDArray

ALWAYS = ("t", "elapsed_s")
"""What every checkpoint has: its place and its time."""


def traced(x: Axis, y: Axis, *, usual: bool = False) -> Figure:
    """Return the figure of y against x, both at checkpoints; a curve and a band for each line of the table."""
    metrics = tuple(axis.metric for axis in (x, y) if axis.metric not in ALWAYS)
    return Figure(
        needs=Needs(traces=metrics), draw=partial(drawn, x=x, y=y), usual=usual, plot=partial(plotted, x=x, y=y)
    )


def drawn(inputs: Inputs, x: Axis, y: Axis) -> Drawing | None:
    """Return the drawing of y against x, both at checkpoints, None where there is nothing to draw."""
    checkpoints = _finished_checkpoints(inputs, x, y)
    curves = {
        column: _curve(group, x, y)
        for column, group in checkpoints.groupby(["dataset", "algorithm", "variant"], sort=False)
    }
    blocks = [block for block in inputs.table.blocks if any(block.dataset == column[0] for column in curves)]
    looks = looks_of({curve_of(line): line_name(line) for block in blocks for line in block.lines})

    def draw(axes: Axes, block: Block) -> None:
        for column, look in looks.items():
            curve = curves.get((block.dataset, *column))
            if curve is not None:
                across, up, spread = curve
                (line,) = axes.plot(across, up, color=look.colour)
                line.set(marker=look.marker, markersize=4, linewidth=1.2, linestyle=look.dashes)
                if not y.logarithmic and spread.any():
                    axes.fill_between(across, up - spread, up + spread, color=look.colour, alpha=0.15, linewidth=0)
        count_axis(axes.xaxis, x)
        count_axis(axes.yaxis, y)
        if y.logarithmic:
            axes.set_yscale("log")

    shown = [look for column, look in looks.items() if any((block.dataset, *column) in curves for block in blocks)]
    handles = [look.handle(dashes=look.dashes) for look in shown]
    return side_by_side(panel_each(blocks, draw), handles, x.label, y.label)


def plotted(inputs: Inputs, x: Axis, y: Axis) -> Plot | None:
    """Return y against x as plain data: the means, and where there are several repeats each of them."""
    checkpoints = _finished_checkpoints(inputs, x, y)
    groups = dict(iter(checkpoints.groupby(["dataset", "algorithm", "variant"], sort=False)))
    looks = looks_of({curve_of(line): line_name(line) for block in inputs.table.blocks for line in block.lines})
    facets = []
    for block in inputs.table.blocks:
        series = [
            one
            for curve, look in looks.items()
            if (block.dataset, *curve) in groups
            for one in _series(groups[(block.dataset, *curve)], curve, look, x, y)
        ]
        if series:
            facets.append(Facet(dataset_name(block), y, series))
    return Plot(x, facets) if facets else None


def _series(checkpoints: pd.DataFrame, curve: Curve, look: Look, x: Axis, y: Axis) -> list[Series]:
    """Return the mean of one line of the table over its repeats, and each repeat."""
    fits = {str(key): group for key, group in checkpoints.groupby("key", sort=False)}
    across, up, spread = (values.tolist() for values in _curve(checkpoints, x, y))
    ours = Series(curve, look, connected=True, x=across, y=up, spread=spread)
    ours.keys, ours.names = [list(fits) for _ in up], [look.label for _ in up]
    found = [ours]
    for key, fit in fits.items() if len(fits) > 1 else ():
        one = Series(curve, look, "repeat", connected=True)
        xs, ys = ((axis.factor * fit[f"trace_{axis.metric}"]).tolist() for axis in (x, y))
        for place, value in zip(xs, ys, strict=True):
            one.add(place, value, [key], look.label)
        found.append(one)
    return found


def _finished_checkpoints(inputs: Inputs, x: Axis, y: Axis) -> pd.DataFrame:
    """Return the checkpoints that have both, beside the records of their fits."""
    finished = inputs.records[inputs.records["status"].isin(FINISHED)]
    return _checkpoints(inputs.traces, [x.metric, y.metric]).merge(finished, on="key")


def _curve(checkpoints: pd.DataFrame, x: Axis, y: Axis) -> tuple[NDArray[Any], ...]:
    """Return mean x, mean y and the standard deviation of y, 0 where there is one repeat, at each checkpoint.

    The k-th checkpoints of all repeats are taken together.
    """
    together = checkpoints.groupby(checkpoints.groupby("key").cumcount())
    across, up = (axis.factor * together[f"trace_{axis.metric}"].mean().to_numpy() for axis in (x, y))
    return across, up, y.factor * together[f"trace_{y.metric}"].std().fillna(0.0).to_numpy()


def _checkpoints(traces: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Return a row a checkpoint that has all of these: key, and a column trace_<metric> for each."""
    traces = traces[traces["value"].map(drawable).notna()]
    wide = traces.pivot_table(index=["key", "t", "elapsed_s"], columns="metric", values="value").reset_index()
    wide["trace_t"], wide["trace_elapsed_s"] = wide["t"], wide["elapsed_s"]
    wide = wide.rename(columns={metric: f"trace_{metric}" for metric in traces["metric"].unique()})
    return wide.reindex(columns=["key", *(f"trace_{metric}" for metric in metrics)]).dropna()

"""The share of positive test rows against the predicted probability, bin by bin.

The rows of all repeats are counted together; the area of a marker is their share of the test rows, and bins with fewer
than LEAST of them are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from klr_bench.report.figures.core.drawing import Axis, Look, dashed, looks_of, panel_each, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import Block, Curve, curve_of, dataset_name, line_name, mean
from klr_bench.report.figures.core.plot import Facet, Plot, Series, fits_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

LEAST = 20
"""Rows in a bin from which on their share of positives is shown."""
PREDICTED, OBSERVED = Axis("predicted", "Predicted probability"), Axis("positive", "Observed share")


def _counted(inputs: Inputs) -> dict[tuple[object, ...], pd.DataFrame]:
    """Return the bins of each data set, algorithm and variant that are drawn: n, predicted, positive, and keys."""
    records = inputs.records[inputs.records["status"] == "ok"]
    counted = inputs.reliability.merge(records[["key", "dataset", "algorithm", "variant"]], on="key")
    counted["predicted"] *= counted["n"]
    counted["positive"] *= counted["n"]
    found = {}
    for column, group in counted.groupby(["dataset", "algorithm", "variant"], sort=False):
        bins = group.groupby("bin")[["n", "predicted", "positive"]].sum()
        found[tuple(column)] = bins[bins["n"] >= LEAST]
    return found


def _looks(inputs: Inputs, curves: Mapping[tuple[object, ...], pd.DataFrame]) -> dict[Curve, Look]:
    blocks = [block for block in inputs.table.blocks if any(block.dataset == column[0] for column in curves)]
    lines = [line for block in blocks for line in block.lines if mean(line, "ece") is not None]
    return dashed(looks_of({curve_of(line): line_name(line) for line in lines}))


def _plot(inputs: Inputs) -> Plot | None:
    curves, fits, facets = _counted(inputs), fits_of(inputs), []
    looks = _looks(inputs, curves)
    for block in inputs.table.blocks:
        series = []
        for column, look in looks.items():
            bins = curves.get((block.dataset, *column))
            if bins is not None and len(bins):
                keys = [str(row["key"]) for row in fits.get((block.dataset, *column), [])]
                x, y = ((bins[name] / bins["n"]).tolist() for name in ("predicted", "positive"))
                one = Series(column, look, connected=True)
                for place, value, n in zip(x, y, bins["n"], strict=True):
                    one.add(place, value, keys, f"{look.label}, {n:,.0f} test rows")
                series.append(one)
        if series:
            facets.append(Facet(dataset_name(block), OBSERVED, series))
    return Plot(PREDICTED, facets, diagonal=True) if facets else None


def _draw(inputs: Inputs) -> Drawing | None:
    curves = _counted(inputs)
    looks = _looks(inputs, curves)
    blocks = [block for block in inputs.table.blocks if any(block.dataset == column[0] for column in curves)]

    def draw(axes: Axes, block: Block) -> None:
        axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
        for column, look in looks.items():
            curve = curves.get((block.dataset, *column))
            if curve is not None:
                x, y, share = curve["predicted"] / curve["n"], curve["positive"] / curve["n"], curve["n"]
                axes.plot(x, y, color=look.colour, linewidth=0.9, linestyle=look.dashes)
                axes.scatter(x, y, 14 + 70 * share / share.sum(), color=look.colour, marker=look.marker, linewidths=0)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    handles.append(Line2D([], [], color="#999999", linewidth=0.8, label="calibrated"))
    return side_by_side(panel_each(blocks, draw), handles, PREDICTED.label, OBSERVED.label)


FIGURE = Figure(needs=Needs(metrics=("ece",), bins=True), draw=_draw, comes_with="ece", plot=_plot)

"""Regret and number of support vectors against the number of examples, with bounds.

The bounds are those of Zhang et al. (2012, 2013).

Regret is the cumulative loss of a method (each example before it is learned from) minus that of the best function in
hindsight on the same data set and repeat (`configs/algorithm/hindsight.yaml`).  A dotted line is the bound of the
method with its color (`online.bounds`); the gray line is the trivial value: the regret of f = 0, or every example a
support vector.  A regret below 0 is not shown on the logarithmic axis.  On a page, the points of a bound have the
number of examples from which on it is below the gray line.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pandas as pd

from klr_bench.report.bounded import COMPARATOR, DELTA, bounded
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import (
    EXAMPLES,
    SUPPORT,
    Axis,
    Curve,
    Facet,
    Look,
    Plot,
    Series,
    connected,
    curve_of,
    looks_of,
)
from klr_bench.results.variants import Variant

TRIVIAL = Look("f = 0; every example", "star", "-", "#888888")
REGRET = Axis("regret", "Regret (log loss)", logarithmic=True)
SIDES = ((REGRET, "regret_bound", "regret_of_zero"), (SUPPORT, "support_bound", "t"))
"""The panels: an axis, the column with the bound, and the column with the trivial value."""


def _plot(inputs: Inputs) -> Plot | None:
    curves, facets = bounded(inputs.traces, inputs.records), []
    drawn = {dataset for dataset, *_ in curves}
    lines = [line for block in inputs.table.blocks if block.dataset in drawn for line in block.lines]
    looks = looks_of([line for line in lines if line.algorithm != COMPARATOR], curve_of)
    for (axis, bound, trivial), block in product(SIDES, inputs.table.blocks):
        here = {curve: curves[block.dataset, *curve] for curve in looks if (block.dataset, *curve) in curves}
        if not any((points[axis.metric] > 0).any() for points, _ in here.values()):
            continue
        longest = max((points for points, _ in here.values()), key=len)
        series = [_series(("", Variant()), TRIVIAL, longest, trivial)]
        for curve, (points, starts) in here.items():
            series.append(_series(curve, looks[curve], points, axis.metric))
            if points[bound].notna().any():
                probable = f" with probability {1 - 2 * DELTA:g}" if curve[0] == "oskl" else ""
                look = replace(looks[curve], label=f"{looks[curve].label}, bound{probable}", dashes=":")
                start = "never" if starts[bound] is None else f"from T = {starts[bound]:,} on"
                series.append(_series(curve, look, points, bound, f"{look.label}, {start} below {TRIVIAL.label}"))
        facets.append(Facet(block.label, axis, series))
    return Plot(EXAMPLES, facets) if facets else None


def _series(curve: Curve, look: Look, points: pd.DataFrame, column: str, name: str = "") -> Series:
    shown = points[points[column] > 0]
    return connected(curve, look, shown["t"], shown[column], name=name)


FIGURE = Figure(
    needs=Needs(traces=("cumulative_loss", "n_support")),
    plot=_plot,
    title="Regret and support vectors against the examples seen, with the bounds of Zhang et al. (2012, 2013)",
)

"""How far the objective is above the smallest of all learners, divided by that, against training time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from klr_bench.report.figures.core.drawing import EXCESS, TIME
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import Plot
from klr_bench.report.figures.core.traced import drawn, plotted

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def _draw(inputs: Inputs) -> Drawing | None:
    return drawn(_with_excess(inputs), x=TIME, y=EXCESS)


def _plot(inputs: Inputs) -> Plot | None:
    return plotted(_with_excess(inputs), x=TIME, y=EXCESS)


def _with_excess(inputs: Inputs) -> Inputs:
    return replace(inputs, traces=excess_objectives(inputs.traces, inputs.records))


def excess_objectives(traces: pd.DataFrame, records: pd.DataFrame) -> pd.DataFrame:
    """Return checkpoints of F / F* - 1, where F* is the smallest objective on the same data set and repeat.

    The checkpoint that has the smallest itself is left out: a logarithmic axis has no place for it.
    """
    found = traces[traces["metric"] == "objective"].merge(records[["key", "dataset", "repeat"]], on="key")
    smallest = found.groupby(["dataset", "repeat"])["value"].transform("min")
    found = found.assign(value=found["value"] / smallest - 1, metric=EXCESS.metric)
    return found.loc[found["value"] > 0, list(traces.columns)]


FIGURE = Figure(needs=Needs(traces=("objective",)), draw=_draw, plot=_plot)

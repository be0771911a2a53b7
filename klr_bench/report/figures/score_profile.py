"""Performance profiles of errors and losses (Dolan and More, 2002).

A profile is the share of data sets on which the error of a method is within a factor of the smallest error.  A metric
with an upper limit, such as accuracy, counts as its distance from the limit.  A method without a value on a data set is
within no factor of the smallest.  With a single data set, a problem is a repeat.
"""

from __future__ import annotations

import math

import numpy as np

from klr_bench.errors import fail
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import Axis, Facet, Plot, curve_of, looks_of
from klr_bench.report.figures.performance_profile import profiles
from klr_bench.report.figures.score_boxes import scores_of
from klr_bench.report.statistics.across import ratios


def _plot(inputs: Inputs) -> Plot | None:
    scores = scores_of(inputs.table)
    if scores is None:
        return None
    metric, losses = scores.metric, scores.values
    if metric.better == "higher":
        if not math.isfinite(metric.high):
            fail(f"{metric.name} has no upper limit, from which errors could be counted.")
        losses = metric.high - losses
    looks = looks_of((line for block in inputs.table.blocks for line in block.lines), curve_of, dashed=True)
    title = f"({metric.high:g} - {metric.title.lower()})" if metric.better == "higher" else metric.title
    factor = Axis("factor", f"{title} / smallest of all methods", logarithmic=True)
    share = Axis("share", f"Share of {scores.problems} (%)")
    series = profiles(scores.methods, looks, {"": ratios(np.nan_to_num(losses, nan=np.inf))})
    return Plot(factor, [Facet(metric.title, share, series[""])])


FIGURE = Figure(
    needs=Needs(metrics=("accuracy",)),
    plot=_plot,
    title="Share of data sets on which the error is within a factor of the smallest (Dolan and More, 2002)",
)

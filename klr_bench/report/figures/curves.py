"""The figures that are curves, one entry of `FIGURES` each; all are drawn in the same way from their plots."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import (
    ACCURACY,
    EXAMPLES,
    FIT_TIME,
    LOG_LOSS,
    NONZERO,
    SUPPORT,
    TIME,
    Axis,
    Curve,
    Facet,
    Look,
    Plot,
    Series,
    algorithm_of,
    curve_of,
    drawable,
    looks_of,
    means,
)
from klr_bench.report.labels import line_label, path_label, path_of
from klr_bench.report.table import Line
from klr_bench.results.store import FINISHED
from klr_bench.results.variants import variant_text

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

ALWAYS = ("t", "elapsed_s")
"""What every checkpoint has: its place and its time."""
COLUMN = ["dataset", "algorithm", "variant"]
LAMBDA = Axis("lam", "lambda / lambda_max", logarithmic=True)
SELECTED = Axis("n_selected", "Selected features", counted=True)


def traced(x: Axis, y: Axis, title: str, *, usual: bool = False) -> Figure:
    """Return the figure of y against x, both at checkpoints; one curve and its band for each line of the table."""
    metrics = tuple(axis.metric for axis in (x, y) if axis.metric not in ALWAYS)
    return Figure(needs=Needs(traces=metrics), plot=partial(plot_traces, x=x, y=y), title=title, usual=usual)


def swept(x: Axis, y: Axis, title: str) -> Figure:
    """Return the figure of y, on a logarithmic axis, against the parameter x; a curve for each other variation."""

    def curve(line: Line) -> Curve:
        return curve_of(line, x.metric)

    def label(line: Line) -> str:
        return f"{line.algorithm_label} {variant_text(curve(line)[1])}".strip()

    return Figure(
        needs=Needs(metrics=(y.metric,), parameter=x.metric),
        plot=lambda inputs: means(inputs, x, [replace(y, logarithmic=True)], curve, label),
        title=title,
    )


def against_selected(y: Axis, title: str) -> Figure:
    """Return the figure of y against the number of selected features, as figure 1 of Tan et al. (AAAI 2016)."""
    return Figure(
        needs=Needs(metrics=(SELECTED.metric, y.metric)),
        plot=lambda inputs: means(inputs, SELECTED, [y], path_of, path_label),
        title=title,
    )


def plot_traces(inputs: Inputs, x: Axis, y: Axis) -> Plot | None:
    """Return y against x, both at checkpoints: the means and, with several repeats, each of them."""
    finished = inputs.records[inputs.records["status"].isin(FINISHED)]
    checkpoints = _checkpoints(inputs.traces, [x.metric, y.metric]).merge(finished, on="key")
    groups: dict[Any, pd.DataFrame] = dict(iter(checkpoints.groupby(COLUMN, sort=False)))
    blocks = [block for block in inputs.table.blocks if any(block.dataset == column[0] for column in groups)]
    looks = looks_of({curve_of(line): line_label(line) for block in blocks for line in block.lines})
    facets = []
    for block in blocks:
        series = [
            one
            for curve, look in looks.items()
            if (block.dataset, *curve) in groups
            for one in _traced_series(groups[(block.dataset, *curve)], curve, look, x, y)
        ]
        facets.append(Facet(block.label, y, series))
    return Plot(x, facets, band=True) if facets else None


def _checkpoints(traces: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Return one row per checkpoint that has all of these: key, and a column trace_<metric> for each."""
    traces = traces[traces["value"].map(drawable).notna()]
    wide = traces.pivot_table(index=["key", "t", "elapsed_s"], columns="metric", values="value").reset_index()
    wide["trace_t"], wide["trace_elapsed_s"] = wide["t"], wide["elapsed_s"]
    wide = wide.rename(columns={metric: f"trace_{metric}" for metric in traces["metric"].unique()})
    return wide.reindex(columns=["key", *(f"trace_{metric}" for metric in metrics)]).dropna()


def _traced_series(checkpoints: pd.DataFrame, curve: Curve, look: Look, x: Axis, y: Axis) -> list[Series]:
    """Return the mean of one line of the table over its repeats, and each repeat."""
    fits = {str(key): group for key, group in checkpoints.groupby("key", sort=False)}
    across, up, spread = (values.tolist() for values in _average(checkpoints, x, y))
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


def _average(checkpoints: pd.DataFrame, x: Axis, y: Axis) -> tuple[NDArray[Any], ...]:
    """Return mean x, mean y and the standard deviation of y (0 with one repeat) at each checkpoint.

    The k-th checkpoints of all repeats are taken together.
    """
    together = checkpoints.groupby(checkpoints.groupby("key").cumcount())
    across, up = (axis.factor * together[f"trace_{axis.metric}"].mean().to_numpy() for axis in (x, y))
    return across, up, y.factor * together[f"trace_{y.metric}"].std().fillna(0.0).to_numpy()


def excess_objectives(traces: pd.DataFrame, records: pd.DataFrame) -> pd.DataFrame:
    """Return checkpoints of F / F* - 1, where F* is the smallest objective on the same data set and repeat.

    The checkpoint that has the smallest itself is left out: a logarithmic axis has no place for it.
    """
    found = traces[traces["metric"] == "objective"].merge(records[["key", "dataset", "repeat"]], on="key")
    smallest = found.groupby(["dataset", "repeat"])["value"].transform("min")
    found = found.assign(value=found["value"] / smallest - 1, metric="excess_objective")
    return found.loc[found["value"] > 0, list(traces.columns)]


def _plot_excess(inputs: Inputs) -> Plot | None:
    y = Axis("excess_objective", "Objective / smallest objective - 1", logarithmic=True)
    return plot_traces(replace(inputs, traces=excess_objectives(inputs.traces, inputs.records)), TIME, y)


def _plot_lambda(inputs: Inputs) -> Plot | None:
    sides = [ACCURACY, NONZERO, FIT_TIME]
    return means(inputs, LAMBDA, sides, algorithm_of, lambda line: line.algorithm_label, dashed=True)


FIGURES: dict[str, Figure] = {
    "accuracy_examples": traced(EXAMPLES, ACCURACY, "Test accuracy against the examples seen", usual=True),
    "accuracy_selected": against_selected(ACCURACY, "Test accuracy against the number of selected features"),
    "accuracy_support_curve": traced(
        SUPPORT, ACCURACY, "Test accuracy against support vectors, while a learner sees its examples"
    ),
    "accuracy_time": traced(TIME, ACCURACY, "Test accuracy against training time"),
    "error_components": swept(
        Axis("n_components", "Features", counted=True),
        Axis("kernel_error", "Largest error of a kernel value"),
        "The error of approximate kernel features against their number, as theorem 2 of Qin et al. (2011) bounds it",
    ),
    "excess_objective_time": Figure(
        needs=Needs(traces=("objective",)),
        plot=_plot_excess,
        title="How far the objective is above the smallest of all learners, divided by that, against training time",
    ),
    "gap_time": traced(
        TIME,
        Axis("duality_gap", "Duality gap / objective", logarithmic=True),
        "The duality gap over the objective against training time",
    ),
    "lambda_panels": Figure(
        needs=Needs(metrics=(ACCURACY.metric,), parameter=LAMBDA.metric),
        plot=_plot_lambda,
        title="Accuracy, non-zero coefficients and training time against lambda, relative to lambda_max",
    ),
    "log_loss_prototypes": swept(
        Axis("n_prototypes", "Prototypes", counted=True), LOG_LOSS, "Log loss against the number of prototypes"
    ),
    "log_loss_time": traced(TIME, LOG_LOSS, "Log loss on the test rows against training time"),
    "nonzero_time": traced(TIME, NONZERO, "The share of non-zero coefficients against training time"),
    "objective_time": traced(TIME, Axis("objective", "Objective"), "The objective against training time"),
    "relevant_selected": against_selected(
        Axis("relevant_found", "Relevant features found (%)", 100.0),
        "The share of the relevant features that were found, against the number of selected features",
    ),
    "support_examples": traced(EXAMPLES, SUPPORT, "Support vectors against the examples seen", usual=True),
    "time_selected": against_selected(FIT_TIME, "Training time against the number of selected features"),
}

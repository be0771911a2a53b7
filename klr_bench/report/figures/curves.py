"""Figures that show curves; each is one entry of `FIGURES`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from klr_bench.report.derived import with_smallest
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import (
    ACCURACY,
    COLORS,
    EXAMPLES,
    OTHERS,
    SUPPORT,
    Axis,
    Facet,
    Look,
    Plot,
    Series,
    connected,
    curve_of,
    curves_of,
    drawable,
    fits_of,
    looks_of,
    mean,
    means,
    spread,
    wide_traces,
)
from klr_bench.report.labels import line_label
from klr_bench.report.measured import Conditions, conditions_of
from klr_bench.results.record import FINISHED
from klr_bench.results.variants import Variant, to_number

PLACE = ["dataset", "algorithm", "variant"]
TIME = Axis("elapsed_s", "Training time (s)", logarithmic=True)
FIT_TIME = Axis("fit_time_s", TIME.label, logarithmic=True)
NONZERO = Axis("nonzero_fraction", "Non-zero coefficients (%)", 100.0, from_zero=True)
MISTAKES = Axis("mistake_rate", "Mistakes during training (%)", 100.0, from_zero=True)
LOG_LOSS = Axis("log_loss", "Log loss on test rows")
LAMBDA = Axis("lam", "lambda / lambda_max", logarithmic=True)
AUX_GAMMA = "aux_gamma"
SPARSITY = Look("Sparsity", "circle", "-", COLORS["blue"])
RELATIVE = Look("Relative accuracy", "square", "--", COLORS["red"])
SINGLE, POOLED = replace(OTHERS, label="one data set"), Look("all test rows", "circle", "-", COLORS["blue"])
LEAST = 20
PREDICTED, OBSERVED = Axis("predicted", "Predicted probability"), Axis("positive", "Observed share")
SELECTED = Axis("n_selected", "Selected features", logarithmic=True)
PATH = ("n_features_to_select", "C", "l1")
"""Parameters that vary along a curve over the number of selected features."""


def traced(x: Axis, y: Axis, title: str, *, usual: bool = False) -> Figure:
    """Return a figure of y against x at checkpoints, with one curve per method."""
    metrics = tuple(axis.metric for axis in (x, y) if axis not in (EXAMPLES, TIME))
    return Figure(needs=Needs(traces=metrics), plot=partial(plot_traces, x=x, y=y), title=title, usual=usual)


def swept(x: Axis, y: Axis, title: str) -> Figure:
    """Return a figure of y against the parameter x on a logarithmic axis."""
    return Figure(
        needs=Needs(metrics=(y.metric,), parameter=x.metric),
        plot=lambda inputs: means(inputs, x, [replace(y, logarithmic=True)], lambda line: curve_of(line, x.metric)),
        title=title,
    )


def against_selected(y: Axis, title: str) -> Figure:
    """Return a figure of y against the number of selected features (Tan et al., AAAI 2016)."""
    return Figure(
        needs=Needs(metrics=(SELECTED.metric, y.metric)),
        plot=lambda inputs: means(inputs, SELECTED, [y], lambda line: curve_of(line, *PATH)),
        title=title,
    )


def plot_traces(inputs: Inputs, x: Axis, y: Axis) -> Plot | None:
    """Plot y against x at checkpoints: the mean and, if there are several, the single repeats.

    The k-th checkpoints of all repeats are averaged.  Times of another or a busy machine are left out, and so is what
    is not positive on a logarithmic axis.
    """
    wide = wide_traces(inputs.traces, [x.metric, y.metric])
    values = {"x": x.factor * wide[x.metric], "y": y.factor * wide[y.metric]}
    points = pd.DataFrame({"key": wide["key"], "k": wide.groupby("key").cumcount(), **values}).dropna()
    logarithmic = [name for name, axis in (("x", x), ("y", y)) if axis.logarithmic]
    finished = inputs.records.loc[inputs.records["status"].isin(FINISHED)]
    if TIME.metric in (x.metric, y.metric):
        usual = Conditions(frozenset({inputs.table.measured_on}))
        finished = finished[[conditions_of([row]).alike(usual) for row in finished.to_dict("records")]]
    finished = finished[["key", *PLACE]]
    places: dict[Any, pd.DataFrame] = dict(iter(points.merge(finished, on="key").groupby(PLACE, sort=False)))
    blocks = [block for block in inputs.table.blocks if any(block.dataset == dataset for dataset, *_ in places)]
    looks = looks_of([line for block in blocks for line in block.lines], curve_of)
    facets = []
    for block in blocks:
        series = []
        for curve, look in looks.items():
            if (block.dataset, *curve) in places:
                rows = places[block.dataset, *curve]
                fits = {str(key): fit for key, fit in rows.groupby("key", sort=False)}
                together = rows.groupby("k")
                means = _positive(together[["x", "y"]].mean(), logarithmic)
                spread = together["y"].std().fillna(0.0)[means.index]
                if means.empty:
                    continue
                average = connected(curve, look, means["x"], means["y"])
                keys: list[Sequence[str]] = [[*map(str, together.get_group(k)["key"])] for k in means.index]
                series.append(replace(average, spread=spread.tolist(), keys=keys))
                shown = {key: kept for key, fit in fits.items() if len(kept := _positive(fit, logarithmic))}
                repeats = [connected(curve, look, fit["x"], fit["y"], [key]) for key, fit in shown.items()]
                series += [replace(repeat, kind="repeat") for repeat in repeats if len(fits) > 1]
        facets += [Facet(block.label, y, series)] if series else []
    return Plot(x, facets, band=True) if facets else None


def _positive(points: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    return points[(points[columns] > 0).all(axis=1)]


def plot_reliability(inputs: Inputs) -> Plot | None:
    """Plot the share of positive test rows against the predicted probability, for each method.

    There is one point per bin.  The rows of all repeats are counted together.  If there are several data sets, each has
    a gray curve, and all their rows have one.  The area of a marker is the share of the test rows; bins with fewer than
    LEAST rows are left out.
    """
    bins, fits, blocks = inputs.reliability, fits_of(inputs), inputs.table.blocks
    bins = bins.assign(predicted=bins["n"] * bins["predicted"], positive=bins["n"] * bins["positive"])
    facets = []
    lines = [line for block in blocks for line in block.lines if mean(line, "ece") is not None]
    for curve, title in {line.column: line_label(line) for line in lines}.items():
        keys = [[str(row["key"]) for row in fits.get((block.dataset, *curve), [])] for block in blocks]
        of_blocks = zip(blocks, keys, strict=True) if len(blocks) > 1 else ()
        single = [_reliability(bins, SINGLE, block.label, of_block) for block, of_block in of_blocks]
        pooled = _reliability(bins, POOLED, "all", [key for of_block in keys for key in of_block])
        if pooled.x:
            facets.append(Facet(title, OBSERVED, [*(series for series in single if series.x), pooled]))
    return Plot(PREDICTED, facets, diagonal=True) if facets else None


def _reliability(bins: pd.DataFrame, look: Look, name: str, keys: list[str]) -> Series:
    sums = bins[bins["key"].isin(keys)].groupby("bin")[["n", "predicted", "positive"]].sum()
    sums = sums[sums["n"] >= LEAST]
    sizes = (14 + 70 * sums["n"] / sums["n"].sum()) * (look is POOLED)
    series = Series((look.label, Variant()), look, connected=True, sizes=sizes.tolist())
    for n, predicted, positive in sums.itertuples(index=False):
        series.add(predicted / n, positive / n, keys, f"{name}, {n:,.0f} test rows")
    return series


def plot_sparsity(inputs: Inputs) -> Plot | None:
    """Plot sparsity and relative accuracy of Auxiliary against gamma - 1."""
    fits, facets = fits_of(inputs), []
    for block in inputs.table.blocks:
        points = []
        for line in block.lines:
            gamma, accuracy = drawable(to_number(line.variant.get(AUX_GAMMA))), mean(line, "accuracy")
            if gamma and accuracy:
                points.append((gamma, accuracy, line))
        points.sort(key=lambda point: point[:2])
        base = next((accuracy for gamma, accuracy, _ in points if gamma == 1), points[0][1] if points else 1.0)
        sparsity, relative = (Series((look.label, Variant()), look, connected=True) for look in (SPARSITY, RELATIVE))
        for gamma, accuracy, line in points:
            if gamma > 1:
                keys, name = [str(row["key"]) for row in fits.get((block.dataset, *line.column), [])], line_label(line)
                if (share := mean(line, "sparsity")) is not None:
                    sparsity.add(gamma - 1, 100 * share, keys, name, 100 * spread(line, "sparsity"))
                relative.add(gamma - 1, 100 * accuracy / base, keys, name, 100 * spread(line, "accuracy") / base)
        if sparsity.x:
            facets.append(Facet(block.label, Axis("sparsity", "%"), [sparsity, relative]))
    return Plot(Axis(AUX_GAMMA, "gamma - 1", logarithmic=True), facets) if facets else None


def excess_objectives(traces: pd.DataFrame, records: pd.DataFrame) -> pd.DataFrame:
    """Return F / F* - 1 at each checkpoint, for the objective F and its smallest value F*.

    F* is the smallest value over all fits with the same data set, repeat and lambda.
    """
    excess = with_smallest(traces[traces["metric"] == "objective"], records)
    excess = excess.assign(value=excess["value"] / excess["smallest"] - 1, metric="excess_objective")
    return excess[list(traces.columns)]


def _plot_excess(inputs: Inputs) -> Plot | None:
    y = Axis("excess_objective", "Objective / smallest objective - 1", logarithmic=True)
    return plot_traces(replace(inputs, traces=excess_objectives(inputs.traces, inputs.records)), TIME, y)


FIGURES: dict[str, Figure] = {
    "accuracy_examples": traced(EXAMPLES, ACCURACY, "Test accuracy against the examples seen", usual=True),
    "accuracy_selected": against_selected(ACCURACY, "Test accuracy against the number of selected features"),
    "accuracy_support_curve": traced(
        SUPPORT, ACCURACY, "Test accuracy against support vectors, while a learner sees its examples"
    ),
    "accuracy_time": traced(TIME, ACCURACY, "Test accuracy against training time"),
    "error_components": swept(
        Axis("n_components", "Features", logarithmic=True),
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
        plot=partial(
            means,
            x=LAMBDA,
            sides=[ACCURACY, NONZERO, FIT_TIME],
            curve=lambda line: curve_of(line, LAMBDA.metric),
            dashed=True,
        ),
        title="Accuracy, non-zero coefficients and training time against lambda, relative to lambda_max",
    ),
    "log_loss_prototypes": swept(
        Axis("n_prototypes", "Prototypes", logarithmic=True), LOG_LOSS, "Log loss against the number of prototypes"
    ),
    "log_loss_time": traced(TIME, LOG_LOSS, "Log loss on the test rows against training time"),
    "mistakes_time": Figure(
        needs=Needs(metrics=("mistake_rate", FIT_TIME.metric)),
        plot=lambda inputs: means(inputs, FIT_TIME, [MISTAKES], curves_of(inputs)),
        title="Mistakes during training against training time; a line joins variants that differ in one parameter",
        comes_with="mistake_rate",
    ),
    "nonzero_time": traced(TIME, NONZERO, "The share of non-zero coefficients against training time"),
    "objective_time": traced(TIME, Axis("objective", "Objective"), "The objective against training time"),
    "reliability": Figure(
        needs=Needs(metrics=("ece",), bins=True),
        plot=plot_reliability,
        title="The share of positive test rows against the predicted probability, bin by bin",
        comes_with="ece",
    ),
    "relevant_selected": against_selected(
        Axis("relevant_found", "Relevant features found (%)", 100.0),
        "The share of the relevant features that were found, against the number of selected features",
    ),
    "sparsity_gamma": Figure(
        needs=Needs(metrics=("accuracy", "sparsity"), parameter=AUX_GAMMA),
        plot=plot_sparsity,
        title="Sparsity, and accuracy relative to that at gamma = 1, against gamma - 1 of the auxiliary function",
    ),
    "support_examples": traced(EXAMPLES, SUPPORT, "Support vectors against the examples seen", usual=True),
    "time_selected": against_selected(FIT_TIME, "Training time against the number of selected features"),
}

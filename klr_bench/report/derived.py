"""Metrics that reports compute from records, checkpoints and training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from klr_bench.report.bounded import bound_ratios, run_of
from klr_bench.report.load import Results

if TYPE_CHECKING:
    import pandas as pd

SETTLED = 0.005  # the accuracy has settled when it is at most 0.5 percentage points below its final value
NEAR_OPTIMAL = 0.01  # an objective is near the smallest one if it is at most 1 % above it
COORDINATE, COEFFICIENT = r"u_\d+_\d+", r"b_\d+_\d+"
"""Names of the prototypes' coordinates and coefficients at a checkpoint."""


def with_derived(results: Results) -> pd.DataFrame:
    """Return the records with the derived metrics as further columns, NaN if unknown.

    setup_time_s is the time of a fit before its pass over the examples.  settled_s is the time to final accuracy: the
    seconds of training until the first checkpoint from which on the test accuracy is at least that of the last
    checkpoint less SETTLED.  late_gain is the accuracy at the last checkpoint minus that at the last one in the first
    half of the fit.  Both are unknown for a fit that a time limit ended, whose last checkpoint is not its end.
    first_nonzero and mean_nonzero are the non-zero fraction at the first checkpoint, and its mean over the
    checkpoints.  prototype_shift is the distance by which the prototypes move from one checkpoint to the next, divided
    by the spread of the training rows; coefficient_shift is the same for their coefficients, divided by the root mean
    square coefficient.  loss_over_bound and support_over_bound are the largest ratios to the bounds of `bounded`.
    """
    records = results.records
    keys, finished = records["key"], records["status"] == "ok"
    spreads = results.rows.groupby("key")[["x1", "x2"]].var(ddof=0).sum(axis=1) ** 0.5
    ratios = bound_ratios(results.traces, records)
    accuracy, nonzero = (_at_checkpoints(results, name) for name in ("accuracy", "nonzero_fraction"))
    late, early = _gains(accuracy)
    return records.assign(
        setup_time_s=records["fit_time_s"] - records["pass_time_s"],
        settled_s=keys.map(_settled(accuracy)).astype(float).where(finished),
        late_gain=keys.map(late).astype(float).where(finished),
        early_gain=keys.map(early).astype(float).where(finished),
        near_optimal_s=keys.map(_near_optimal(results)).astype(float),
        first_nonzero=keys.map(nonzero.groupby("key")["value"].first()).astype(float),
        mean_nonzero=keys.map(nonzero.groupby("key")["value"].mean()).astype(float),
        prototype_shift=keys.map(_shifts(results, COORDINATE, spreads)).astype(float),
        coefficient_shift=keys.map(_shifts(results, COEFFICIENT)).astype(float),
        loss_over_bound=keys.map(ratios["loss_over_bound"]).astype(float),
        support_over_bound=keys.map(ratios["support_over_bound"]).astype(float),
    )


def _at_checkpoints(results: Results, metric: str) -> pd.DataFrame:
    traces = results.traces
    return traces[traces["metric"] == metric].sort_values("t", kind="stable")


def _settled(accuracy: pd.DataFrame) -> pd.Series:
    last = accuracy.groupby("key")["value"].transform("last")
    low = accuracy[accuracy["value"] < last - SETTLED - 1e-9]  # the bound itself is reached
    last_low = accuracy["key"].map(low.groupby("key")["t"].max()).astype(float).fillna(-1)
    return accuracy[accuracy["t"] > last_low].groupby("key")["elapsed_s"].min()


def _gains(accuracy: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    by_key = accuracy.groupby("key")
    first_half = accuracy[accuracy["t"] <= by_key["t"].transform("last") / 2].groupby("key")["value"].last()
    return by_key["value"].last() - first_half, first_half - by_key["value"].first()


def with_smallest(objectives: pd.DataFrame, records: pd.DataFrame) -> pd.DataFrame:
    """Add a column `smallest`: the least objective of the run, data set, repeat and lambda."""
    lam = [str(params.get("lam")) for params in records["params"]]
    groups = records[["key", "dataset", "repeat"]].assign(lam=lam, run=records["key"].map(run_of))
    merged = objectives.merge(groups, on="key")
    return merged.assign(smallest=merged.groupby(["run", "dataset", "repeat", "lam"])["value"].transform("min"))


def _near_optimal(results: Results) -> pd.Series:
    objective = with_smallest(_at_checkpoints(results, "objective"), results.records)
    near = objective["value"] <= objective["smallest"] + NEAR_OPTIMAL * objective["smallest"].abs()
    return objective["elapsed_s"].where(near, np.inf).groupby(objective["key"]).min()


def _shifts(results: Results, names: str, scales: pd.Series | None = None) -> dict[str, float]:
    """Return, for each fit key, the mean movement of values from checkpoint to checkpoint.

    The movement is the root mean square over the prototypes, divided by the fit's scale.  The default scale is the root
    mean square of the values.
    """
    values = results.traces[results.traces["metric"].str.fullmatch(names)]
    shifts = {}
    for key, values_of_fit in values.groupby("key"):
        positions = values_of_fit.pivot_table(index="t", columns="metric", values="value", aggfunc="last")
        rows = positions.columns.str.rsplit("_", n=1).str[0].nunique()
        moves = (positions.diff().iloc[1:] ** 2).sum(axis=1, skipna=False) / rows
        scale = ((positions**2).sum(axis=1) / rows).mean() ** 0.5 if scales is None else scales.get(key, 0)
        if scale > 0:
            shifts[str(key)] = float((moves**0.5).mean() / scale)
    return shifts

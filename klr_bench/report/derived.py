"""Metrics that reports compute from records, checkpoints and training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klr_bench.report.load import Results

if TYPE_CHECKING:
    import pandas as pd

SETTLED = 0.005  # the accuracy has settled when it is at most 0.5 percentage points below its final value
COORDINATE = r"u_\d+_\d+"
"""Names of the prototypes' coordinates at a checkpoint."""


def with_derived(results: Results) -> pd.DataFrame:
    """Return the records with the derived metrics as further columns, NaN if unknown.

    setup_time_s is the time of a fit before its pass over the examples.  settled_s is the time to final accuracy: the
    seconds of training until the first checkpoint from which on the test accuracy is at least that of the last
    checkpoint less SETTLED.  late_gain is the accuracy at the last checkpoint minus that at the last one in the first
    half of the fit.  Both are unknown for a fit that a time limit ended, whose last checkpoint is not its end.
    first_nonzero and mean_nonzero are the non-zero fraction at the first checkpoint, and its mean over the
    checkpoints.  prototype_shift is the distance by which the prototypes move from one checkpoint to the next, divided
    by the spread of the training rows.
    """
    records = results.records
    keys, finished = records["key"], records["status"] == "ok"
    accuracy, nonzero = _at_checkpoints(results, "accuracy"), _at_checkpoints(results, "nonzero_fraction")
    return records.assign(
        setup_time_s=records["fit_time_s"] - records["pass_time_s"],
        settled_s=keys.map(_settled(accuracy)).astype(float).where(finished),
        late_gain=keys.map(_late_gains(accuracy)).astype(float).where(finished),
        first_nonzero=keys.map(nonzero.groupby("key")["value"].first()).astype(float),
        mean_nonzero=keys.map(nonzero.groupby("key")["value"].mean()).astype(float),
        prototype_shift=keys.map(_prototype_shifts(results)).astype(float),
    )


def _at_checkpoints(results: Results, metric: str) -> pd.DataFrame:
    traces = results.traces
    return traces[traces["metric"] == metric].sort_values("t", kind="stable")


def _settled(accuracy: pd.DataFrame) -> pd.Series:
    last = accuracy.groupby("key")["value"].transform("last")
    low = accuracy[accuracy["value"] < last - SETTLED - 1e-9]  # the bound itself is reached
    last_low = accuracy["key"].map(low.groupby("key")["t"].max()).fillna(-1)
    return accuracy[accuracy["t"] > last_low].groupby("key")["elapsed_s"].min()


def _late_gains(accuracy: pd.DataFrame) -> pd.Series:
    by_key = accuracy.groupby("key")
    early = accuracy[accuracy["t"] <= by_key["t"].transform("last") / 2]
    return by_key["value"].last() - early.groupby("key")["value"].last()


def _prototype_shifts(results: Results) -> dict[str, float]:
    """Return, for each fit key, the mean movement of the prototypes between checkpoints.

    The movement is the root mean square over the prototypes, divided by the root mean square distance of the training
    rows from their mean.
    """
    spreads = results.rows.groupby("key")[["x1", "x2"]].var(ddof=0).sum(axis=1) ** 0.5
    coordinates = results.traces[results.traces["metric"].str.fullmatch(COORDINATE)]
    shifts = {}
    for key, rows in coordinates.groupby("key"):
        positions = rows.pivot_table(index="t", columns="metric", values="value", aggfunc="last")
        n_prototypes = positions.shape[1] / 2
        moves = (positions.diff().iloc[1:] ** 2).sum(axis=1, skipna=False) / n_prototypes
        if spreads.get(key, 0) > 0:
            shifts[str(key)] = float((moves**0.5).mean() / spreads[key])
    return shifts

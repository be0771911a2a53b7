"""Numbers that a report makes from those of the records: times, and comparisons of two columns, repeat by repeat.

Which column stands for the other is what an experiment says under ``against``: for each such number the parameter
changes that give the column to compare with, ``{two_stage: false}`` or ``{algorithm: l1_fista}``; parameters that
another algorithm does not vary count for nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.targets import Parameters
from klr_bench.report.manifest import Column

if TYPE_CHECKING:
    import pandas as pd

Groups = Mapping[Column, Sequence[dict[Hashable, Any]]]

WITHIN = 0.005
"""Half a point of accuracy."""


def with_derived(records: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
    """Return the records with columns setup_time_s and settled_s, NaN where they cannot be told.

    setup_time_s is the time of a fit before its pass over the examples.  settled_s are the seconds of training until
    the first checkpoint from which on the test accuracy is at least that of the last checkpoint less WITHIN; of a fit
    that a time limit has ended they cannot be told, for its last checkpoint is not its end.
    """
    accuracy = traces[traces["metric"] == "accuracy"].sort_values("t", kind="stable")
    last = accuracy.groupby("key")["value"].transform("last")
    short = accuracy[accuracy["value"] < last - WITHIN - 1e-9]  # the bound itself is reached
    begun = short.groupby("key")["t"].max()  # the last checkpoint that is still too low
    later = accuracy[accuracy["t"] > accuracy["key"].map(begun).fillna(-1)]
    settled = records["key"].map(later.groupby("key")["elapsed_s"].min()).astype(float)
    return records.assign(
        setup_time_s=records["fit_time_s"] - records["pass_time_s"],
        settled_s=settled.where(records["status"] == "ok"),
    )


def compared(groups: Groups, column: Column, metric: Metric, changes: Parameters | None) -> list[float]:
    """Return a number that compares two columns for each repeat that both have; none where it is the other."""
    other = _other(groups, column, changes) if changes else None
    if other is None or other == column:
        return []
    name = metric.compares
    base = {row["repeat"]: row[name] for row in groups[other] if row["status"] == "ok"}
    pairs = [
        (row[name], base[row["repeat"]]) for row in groups[column] if row["status"] == "ok" and row["repeat"] in base
    ]
    return [_ratio(*pair) if metric.name.endswith("_ratio") else float(pair[0] - pair[1]) for pair in pairs]


def _ratio(ours: float, theirs: float) -> float:
    return float(ours / theirs) if theirs else float("nan")


def _other(groups: Groups, column: Column, changes: Parameters) -> Column | None:
    algorithm = str(changes.get("algorithm", column[0]))
    wanted = dict(column[1])
    wanted |= {name: value for name, value in changes.items() if name in wanted or algorithm != column[0]}
    for known in groups:
        alike = known[1].items() <= wanted.items()
        if known[0] == algorithm and alike and (algorithm != column[0] or known[1].keys() == wanted.keys()):
            return known
    return None

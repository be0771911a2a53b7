"""When a fit had nearly its final accuracy, from its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

WITHIN = 0.005
"""Half a point of accuracy."""


def with_settled(records: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a column settled_s, NaN where there is no trace of the accuracy.

    These are the seconds of training until the first checkpoint from which on the test accuracy is at least that of
    the last checkpoint less WITHIN.
    """
    accuracy = traces[traces["metric"] == "accuracy"].sort_values("t", kind="stable")
    last = accuracy.groupby("key")["value"].transform("last")
    short = accuracy[accuracy["value"] < last - WITHIN - 1e-9]  # the bound itself is reached
    begun = short.groupby("key")["t"].max()  # the last checkpoint that is still too low
    later = accuracy[accuracy["t"] > accuracy["key"].map(begun).fillna(-1)]
    return records.assign(settled_s=records["key"].map(later.groupby("key")["elapsed_s"].min()).astype(float))

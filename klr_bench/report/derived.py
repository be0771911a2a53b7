"""Numbers that compare two columns of a table, repeat by repeat: a gain, and ratios.

Which column stands for the other is what an experiment says under ``against``: for each such number the changes to a
column that lead to the other, ``{two_stage: false}`` or ``{algorithm: l1_fista}``; parameters that another algorithm
does not vary count for nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.report.plan import Column

Groups = Mapping[Column, list[dict[Hashable, Any]]]


def compared(groups: Groups, column: Column, name: str, changes: Mapping[str, Any] | None) -> list[float]:
    """Return the number `name` of a column for each repeat that both columns have; none where it is the other."""
    other = _other(groups, column, changes) if changes else None
    if other is None or other == column:
        return []
    metric = METRICS[name].compares
    base = {row["repeat"]: row[metric] for row in groups[other] if row["status"] == "ok"}
    pairs = [
        (row[metric], base[row["repeat"]]) for row in groups[column] if row["status"] == "ok" and row["repeat"] in base
    ]
    return [float(ours / theirs if name.endswith("_ratio") else ours - theirs) for ours, theirs in pairs]


def _other(groups: Groups, column: Column, changes: Mapping[str, Any]) -> Column | None:
    algorithm = str(changes.get("algorithm", column[0]))
    wanted = dict(column[1])
    wanted |= {name: value for name, value in changes.items() if name in wanted or algorithm != column[0]}
    for known in groups:
        alike = known[1].items() <= wanted.items()
        if known[0] == algorithm and alike and (algorithm != column[0] or known[1].keys() == wanted.keys()):
            return known
    return None

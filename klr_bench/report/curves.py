"""Lines of a table as points of a curve over the number of selected features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from klr_bench.experiment.variants import Variant
from klr_bench.report.table import Line

PATH = ("n_features_to_select", "C", "l1")
"""Parameters that the points of a curve differ in; variants that differ in others are curves of their own."""


class Selected(NamedTuple):
    """How many features were selected, and a number that was measured with them, with its spread."""

    n_features: float
    value: float
    spread: float


def path_of(line: Line) -> tuple[str, Variant]:
    """Return the curve of a line: its algorithm, and the part of its variant that is not the place on the curve."""
    return line.algorithm, line.variant.without(*PATH)


def along_path(lines: Sequence[Line], metric: str, factor: float = 1.0) -> list[Selected]:
    """Return the lines that have selected features and this metric, shown times `factor`, in ascending order."""
    found = []
    for line in lines:
        n_features, entry = line.entries["n_selected"].mean, line.entries[metric]
        if n_features and entry.mean is not None:
            found.append(Selected(n_features, factor * entry.mean, factor * (entry.std or 0.0)))
    return sorted(found)

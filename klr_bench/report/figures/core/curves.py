"""Lines of a table as points of a curve over the number of selected features, and who finds more of what matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from klr_bench.experiment.variants import variant_text
from klr_bench.report.figures.core.lines import (
    Block,
    Curve,
    Line,
    Table,
    algorithm_name,
    curve_of,
    dataset_name,
    mean,
    spread,
)

PATH = ("n_features_to_select", "C", "l1")
"""Parameters that the points of a curve differ in; variants that differ in others are curves of their own."""
LESS = 5e-4
"""A difference of shares that is printed."""


class Selected(NamedTuple):
    """How many features were selected, and a number that was measured with them, with its spread."""

    n_features: float
    value: float
    spread: float


def path_of(line: Line) -> Curve:
    """Return the curve of a line."""
    return curve_of(line, *PATH)


def path_name(line: Line) -> str:
    """Return the print name of a curve."""
    return f"{algorithm_name(line)} {variant_text(path_of(line)[1])}".strip()


def along_path(lines: Sequence[Line], metric: str, factor: float = 1.0) -> list[Selected]:
    """Return the lines that have selected features and this metric, shown times `factor`, in ascending order."""
    found = []
    for line in lines:
        n_features, value = mean(line, "n_selected"), mean(line, metric)
        if n_features and value is not None:
            found.append(Selected(n_features, factor * value, factor * spread(line, metric)))
    return sorted(found)


def verdicts(table: Table) -> list[str]:
    """Return for each data set of known relevant features where another method finds more of them than the first."""
    return [said for block in table.blocks if (said := _verdict(block))]


def _verdict(block: Block) -> str:
    """Say where; between its points the share that the first method finds is taken to grow evenly."""
    lines = [line for line in block.lines if along_path([line], "relevant_found")]
    if not lines:
        return ""
    own = along_path([line for line in lines if path_of(line) == path_of(lines[0])], "relevant_found")
    sizes, shares, _ = zip(*own, strict=True)
    ahead: dict[str, list[str]] = {}
    for line in lines:
        ((size, share, _),) = along_path([line], "relevant_found")
        ours = float(np.interp(size, sizes, shares))
        if sizes[0] <= size <= sizes[-1] and share - ours >= LESS:
            ahead.setdefault(path_name(line), []).append(f"{size:.0f} ({100 * share:.1f} against {100 * ours:.1f} %)")
    least = (
        f"At each number of features from {sizes[0]:.0f} to {sizes[-1]:.0f}, {path_name(lines[0])} finds at least as"
    )
    if not ahead:
        return f"{dataset_name(block)}: {least} many of the relevant ones as each other method."
    where = "; ".join(f"{label} at {', '.join(places)}" for label, places in ahead.items())
    return f"{dataset_name(block)}: {least} many of the relevant ones as each other method, but for {where}."

"""Lines of a table as points of a curve over the number of selected features, and who finds more of what matters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klr_bench.experiment.variants import Variant, variant_text
from klr_bench.report.tables import Block, Line, Table

PATH = ("n_features_to_select", "C", "l1")
"""Parameters that the points of a curve differ in; variants that differ in others are curves of their own."""
LESS = 5e-4
"""A difference of shares that is printed."""

Point = tuple[float, float, float]


def curve_of(line: Line) -> tuple[str, Variant]:
    """Return the algorithm, and the part of its variant that is not the place on a curve."""
    return line.algorithm, line.variant.without(*PATH)


def label_of(line: Line) -> str:
    """Return the print name of a curve."""
    return f"{line.algorithm_label} {variant_text(curve_of(line)[1])}".strip()


def points_of(lines: Sequence[Line], metric: str, factor: float = 1.0) -> list[Point]:
    """Return (selected features, factor x value, its spread) of the lines that have some, in ascending order."""
    found = []
    for line in lines:
        selected, cell = line.cells["n_selected"].mean, line.cells[metric]
        if selected and cell.mean is not None:
            found.append((selected, factor * cell.mean, factor * (cell.std or 0.0)))
    return sorted(found)


def verdicts(table: Table) -> list[str]:
    """Return for each data set of known relevant features where another method finds more of them than the first."""
    return [said for block in table.blocks if (said := _verdict(block))]


def _verdict(block: Block) -> str:
    """Say where; between its points the share that the first method finds is taken to grow evenly."""
    lines = [line for line in block.lines if points_of([line], "relevant_found")]
    if not lines:
        return ""
    own = points_of([line for line in lines if curve_of(line) == curve_of(lines[0])], "relevant_found")
    sizes, shares, _ = zip(*own, strict=True)
    ahead: dict[str, list[str]] = {}
    for line in lines:
        ((size, share, _),) = points_of([line], "relevant_found")
        ours = float(np.interp(size, sizes, shares))
        if sizes[0] <= size <= sizes[-1] and share - ours >= LESS:
            ahead.setdefault(label_of(line), []).append(f"{size:.0f} ({100 * share:.1f} against {100 * ours:.1f} %)")
    least = f"At each number of features from {sizes[0]:.0f} to {sizes[-1]:.0f}, {label_of(lines[0])} finds at least as"
    if not ahead:
        return f"{block.label}: {least} many of the relevant ones as each other method."
    where = "; ".join(f"{label} at {', '.join(places)}" for label, places in ahead.items())
    return f"{block.label}: {least} many of the relevant ones as each other method, but for {where}."

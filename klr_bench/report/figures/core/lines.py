"""What figures read of a table.  All that they know of its classes stands here."""

from __future__ import annotations

from klr_bench.experiment.variants import Variant, as_number
from klr_bench.report.labels import line_label
from klr_bench.report.table import Block, Line, Table

__all__ = ["Block", "Curve", "Line", "Table"]

Curve = tuple[str, Variant]
"""An algorithm, and the part of its variant that is the same all along a curve."""

SMALLEST, LARGEST = 1e-30, 1e30
"""Of the sizes of numbers that are drawn."""


def drawable(value: float | None) -> float | None:
    """Return a number that has a place on an axis, None for any other: matplotlib overflows long before 1e308."""
    return value if value == 0 or (value is not None and SMALLEST <= abs(value) <= LARGEST) else None


def mean(line: Line, metric: str) -> float | None:
    """Return the mean over the repeats, None where there is none."""
    entry = line.entries.get(metric)
    return None if entry is None else drawable(entry.mean)


def spread(line: Line, metric: str) -> float:
    """Return the standard deviation over the repeats, 0 where there is none."""
    entry = line.entries.get(metric)
    return (entry and drawable(entry.std)) or 0.0


def published(line: Line, metric: str) -> float | None:
    """Return the mean that a paper printed for the same data, None where there is none."""
    found = line.matches.get(metric)
    return drawable(found.printed.value) if found and not found.stand_in else None


def parameter(line: Line, name: str) -> float | None:
    """Return the value of a swept parameter where it is a number."""
    return drawable(as_number(line.variant.get(name)))


def curve_of(line: Line, *along: str) -> Curve:
    """Return the curve of a line: `along` are the parameters whose values are its points."""
    return line.algorithm, line.variant.without(*along)


def line_name(line: Line) -> str:
    """Return the print name of an algorithm and variant."""
    return line_label(line)


def algorithm_name(line: Line) -> str:
    """Return the print name of an algorithm alone."""
    return line.algorithm_label


def dataset_name(block: Block) -> str:
    """Return the print name of a data set."""
    return block.label


def measured(line: Line) -> bool:
    """Say whether the numbers of a line are those of some fit."""
    return line.n_ok > 0 or line.timed_out


def blocks_with(table: Table, *metrics: str) -> list[Block]:
    """Return the data sets on which some line has all of these, each with a value that is not 0."""
    return [block for block in table.blocks if any(all(mean(line, name) for name in metrics) for line in block.lines)]

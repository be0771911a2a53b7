"""Print names of the lines of a table and of the curves of a figure."""

from __future__ import annotations

from klr_bench.experiment.variants import Variant, variant_text
from klr_bench.report.curves import path_of
from klr_bench.report.table import Line, Other


def column_label(algorithm_label: str, variant: Variant) -> str:
    """Return the print name of an algorithm with a variant: "OSKL G=4"."""
    return f"{algorithm_label} {variant_text(variant)}".strip()


def line_label(line: Line) -> str:
    """Return the print name of a line."""
    return column_label(line.algorithm_label, line.variant)


def path_label(line: Line) -> str:
    """Return the print name of the curve over the number of features that a line is a point of."""
    return column_label(line.algorithm_label, path_of(line)[1])


def other_label(other: Other) -> str:
    """Return the print name of the column that others are compared with: "FISTA; two_stage=False"."""
    return "; ".join(filter(None, [other.algorithm_label or "", variant_text(other.changes)]))

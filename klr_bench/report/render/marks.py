"""How the best of a column, and what is not distinguishable from it, is marked, and the sentences that say so."""

from __future__ import annotations

from klr_bench.experiment.measure.metric import Metric
from klr_bench.report.significance import LEVEL
from klr_bench.report.table import Block, Line, Table

BEST, ALIKE = "‡", "†"
PLAIN = {BEST: "^", ALIKE: "~"}
"""Where an encoding has no daggers."""
SIGNS = {"best": BEST, "alike": ALIKE, "": ""}


def mark_of(block: Block, line: Line, metric: Metric) -> str:
    """Return the mark of a number, "" for none."""
    marks = block.marks.get(metric.name)
    found = marks.lines.get((line.algorithm, line.variant)) if marks else None
    return SIGNS[found.place] if found else ""


def is_best(text: str) -> bool:
    """Say whether a printed number carries the mark of the best."""
    return text.rstrip().endswith(BEST)


def is_alike(text: str) -> bool:
    """Say whether a printed number carries the mark of what is not distinguishable from the best."""
    return text.rstrip().endswith(ALIKE)


def sentences(table: Table) -> list[str]:
    """Say what the marks of a table mean and which test is behind them, or what is missing for one."""
    found = [(block, marks) for block in table.blocks for marks in block.marks.values()]
    if not found:
        return []
    best = f"{BEST} (bold): the best mean of a {'metric in its ' if table.columns else ''}column"
    tested = {marks.corrected for _, marks in found for mark in marks.lines.values() if mark.p is not None}
    missing: dict[str, dict[str, None]] = {}
    for block, marks in found:
        if marks.missing:
            missing.setdefault(marks.missing, {})[block.label] = None
    if not tested:
        because = "; ".join(_on(reason, labels, table) for reason, labels in missing.items())
        return [f"{best}. What is not distinguishable from it cannot be told: {because}."]
    where = {
        frozenset({True}): ", corrected for repeats that split one set again (Nadeau and Bengio)",
        frozenset({False}): ", which differ in the order of the rows and the seed alone",
    }.get(frozenset(tested), ", corrected (Nadeau and Bengio) on data sets that each repeat splits again")
    said = (
        f"{best}; {ALIKE}: not distinguishable from it at {100 * (1 - LEVEL):.0f} % by a paired t test over the "
        f"repeats{where}, with Holm's adjustment over all pairs of lines. Times are not marked."
    )
    rest = [f"Not compared with the best: {_on(reason, labels, table)}." for reason, labels in missing.items()]
    return [said, *rest]


def _on(reason: str, labels: dict[str, None], table: Table) -> str:
    """Name the data sets that a reason is of, where it is not of all."""
    return reason if len(labels) == len(table.blocks) else f"{reason} (on {', '.join(labels)})"

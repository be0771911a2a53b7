"""The sentences below a table: what its numbers are, and what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.report.labels import along_path, line_label, path_label, path_of
from klr_bench.report.measured import BUSY, TIMES, UNKNOWN, Machine
from klr_bench.report.papers.verdicts import mark_sentences
from klr_bench.report.render.document import ALIKE, BEST
from klr_bench.report.significance import LEVEL
from klr_bench.report.table import Block, Line, Table

LESS = 5e-4
"""A difference of shares that is printed."""
FACTS = {
    "n_train": "{} training rows",
    "n_test": "{} test rows",
    "n_examples": "{} rows",
    "n_features": "{} features",
    "nnz_per_instance": "{} non-zero entries per row",
    "lam": "lambda = {} lambda_max",
}
MOST_LISTED = 5
"""Lines that a sentence names."""


def caption(table: Table) -> list[str]:
    """Return the sentences below a table."""
    repeated = any(line.n_ok > 1 for block in table.blocks for line in block.lines)
    counts = "" if table.columns else " (ok: successful repeats / requested repeats)"
    spread = f"Mean ± standard deviation over the repeats{counts}."
    lines = [spread if repeated else "One repeat, so no standard deviation."]
    compared = any(not one.stand_in for block in table.blocks for one in block.matches)
    if table.sources and any(block.matches for block in table.blocks):
        lines += _sources(table, compared=compared)
    lines += _best_sentences(table)
    lines += [_stand_in(block) for block in table.blocks if block.stands_for and block.matches]
    if any(line.timed_out for block in table.blocks for line in block.lines):
        lines.append("Where no repeat ended within its time limit, the numbers are those at the limit.")
    lines += [said for block in table.blocks if (said := _most_found(block))]
    lines += _times(table, compared=compared)
    for name, baseline in table.baselines.items():
        if name in table.shown:
            lines.append(_comparison(table.shown[name], baseline))
    lines += [said for block in table.blocks if (said := _sizes(block))]
    if table.absent:
        lines.append(f"No results yet: {', '.join(table.absent)}.")
    return lines


def failures_of(block: Block) -> list[str]:
    """Return a sentence for each line with a repeat that failed or is missing."""
    return [
        f"{line_label(line)}: {line.n_ok} of {line.n_repeats} repeats ok; {_failures(line)}"
        for line in block.lines
        if line.failures or line.n_missing
    ]


def _failures(line: Line) -> str:
    parts = []
    for failed in line.failures:
        said = f": {failed.message}" if failed.message else ""
        parts.append(f"{failed.status} (repeat {', '.join(map(str, failed.repeats))}){said}")
    if line.n_missing:
        parts.append(f"{line.n_missing} not run")
    return "; ".join(parts)


def _sources(table: Table, *, compared: bool) -> list[str]:
    """Return which tables the published numbers are from, what the differences are and what their marks mean."""
    papers = "; ".join(
        f"{source.name}, {'table' if len(source.tables) == 1 else 'tables'} {' and '.join(source.tables)}"
        for source in table.sources
    )
    if not compared:
        return [f"paper: {papers}."]
    unit_of = "row" if table.columns else "column"
    said = [f"paper: {papers}. diff: our value minus the paper's, in the unit of the {unit_of}."]
    said += mark_sentences(one.verdict for one in table.compared)
    for place, cause in enumerate(table.causes, 1):
        said.append(f"[{place}] {cause.because} Shown by {', '.join(cause.shown_by)}.")
    return said


def _comparison(metric: Metric, baseline: str) -> str:
    compared = METRICS[metric.compares].title.lower()
    operation = "divided by" if metric.name.endswith("_ratio") else "minus"
    return f"{metric.title}: the {compared} {operation} that of {baseline}, repeat by repeat."


def _stand_in(block: Block) -> str:
    return (
        f"{block.label} stands in for the paper's {block.stands_for}: the paper's numbers are of other data, so there "
        "are no differences and no marks."
    )


def _times(table: Table, *, compared: bool) -> list[str]:
    said = []
    if table.shown.keys() & TIMES:
        said += _machines(table, compared=compared) + _busy(table, compared=compared)
    if "settled_s" in table.shown:
        said.append(
            "Settled after: seconds of training after which the test accuracy stays at most 0.5 percentage points "
            "below its final value; of fits that ended by themselves."
        )
    if "setup_time_s" in table.shown:
        said.append("Before the pass: the training time minus that of the pass over the examples alone.")
    return said


def _machines(table: Table, *, compared: bool) -> list[str]:
    """Say where the times were measured; where that was on several machines, which times are those of another."""
    usual = table.machine if table.measured_on == UNKNOWN else _machine_name(table.measured_on)
    ratio = "; ratio: the paper's time, on its own machine, divided by ours" if compared else ""
    said = [f"Training times were measured on {usual}{ratio}."] if usual else []
    elsewhere = _named(
        {
            f"{line_label(line)} on {block.label}": ", ".join(sorted(map(_machine_name, others)))
            for block in table.blocks
            for line in block.lines
            if (others := line.conditions.machines - {table.measured_on})
        }
    )
    if elsewhere:
        end = "; they have no ratio" if compared else ""
        said.append(f"Times of different machines, which cannot be compared with the others{end}: {elsewhere}.")
    return said


def _busy(table: Table, *, compared: bool) -> list[str]:
    """Name the lines whose fits shared the machine with others."""
    busy = _named(
        {
            f"{line_label(line)} on {block.label}": f"{100 * line.conditions.load:.0f} %"
            for block in table.blocks
            for line in block.lines
            if line.conditions.busy and line.conditions.load is not None
        }
    )
    end = "; these times cannot be compared" + (" and have no ratio" if compared else "")
    return [f"Others used more than {100 * BUSY:.0f} % of the machine when fits began: {busy}{end}."] if busy else []


def _machine_name(machine: Machine) -> str:
    known = ", ".join(filter(None, [machine.host, machine.cpu]))
    return known or "a machine that the records do not name"


def _named(found: Mapping[str, str]) -> str:
    """Return names with what is to be said of each, and how many more there are than fit."""
    named = [f"{name} ({said})" for name, said in found.items()]
    more = [f"and {len(named) - MOST_LISTED} more"] if len(named) > MOST_LISTED else []
    return "; ".join([*named[:MOST_LISTED], *more])


def _sizes(block: Block) -> str:
    """Return the size of a data set beside the paper's; "" where its tables have none."""
    if not block.facts or not block.sizes:
        return ""
    ours = ", ".join(FACTS[name].format(f"{size:,.0f}") for name, size in block.sizes.items())
    theirs = ", ".join(FACTS[fact.metric].format(_grouped(fact.mean)) for fact in block.facts)
    first = block.facts[0]
    return f"{block.label}: {ours}. Table {first.table} says of {first.label}: {theirs}."


def _grouped(number: str) -> str:
    return f"{int(number):,}" if number.isdigit() else number


def _most_found(block: Block) -> str:
    """Say at how many points of the other methods the first one finds fewer relevant features, and at which.

    The share that the first method finds is interpolated linearly between its points.
    """
    lines = [line for line in block.lines if along_path([line], "relevant_found")]
    if not lines:
        return ""
    own = along_path([line for line in lines if path_of(line) == path_of(lines[0])], "relevant_found")
    sizes, shares, _ = zip(*own, strict=True)
    fewer: dict[str, list[str]] = {}
    n_points = 0
    for line in lines:
        ((size, share, _),) = along_path([line], "relevant_found")
        if path_of(line) == path_of(lines[0]) or not sizes[0] <= size <= sizes[-1]:
            continue
        n_points += 1
        ours = float(np.interp(size, sizes, shares))
        if share - ours >= LESS:
            texts = fewer.setdefault(path_label(line), [])
            texts.append(f"{size:.0f} ({100 * share:.1f} against {100 * ours:.1f} %)")
    count = sum(map(len, fewer.values()))
    where = "; ".join(f"{label} at {', '.join(places)}" for label, places in fewer.items())
    return (
        f"{block.label}: the other methods have {n_points} points from {sizes[0]:.0f} to {sizes[-1]:.0f} features. "
        f"With the same number of features, {path_label(lines[0])} finds at least as many of the relevant ones as "
        f"{n_points - count} of these points, and fewer than {count}{f': {where}' if where else ''}."
    )


def _best_sentences(table: Table) -> list[str]:
    """Say what the marks of the best mean and which test is behind them, or what is missing for one."""
    found = [(block, marks) for block in table.blocks for marks in block.marks.values()]
    if not found:
        return []
    best = f"{BEST} (bold): the best mean of a {'metric in its ' if table.columns else ''}column"
    tested = {marks.corrected for _, marks in found for mark in marks.lines.values() if mark.p is not None}
    missing: dict[str, dict[str, None]] = {}
    for block, marks in found:
        if marks.missing:
            missing.setdefault(marks.missing, {})[block.label] = None
    because = [
        reason if len(labels) == len(table.blocks) else f"{reason} (on {', '.join(labels)})"
        for reason, labels in missing.items()
    ]
    if not tested:
        return [f"{best}. What is not distinguishable from it cannot be told: {'; '.join(because)}."]
    where = {
        frozenset({True}): ", corrected for repeats that split one set again (Nadeau and Bengio)",
        frozenset({False}): ", which differ in the order of the rows and the seed alone",
    }.get(frozenset(tested), ", corrected (Nadeau and Bengio) on data sets that each repeat splits again")
    said = (
        f"{best}; {ALIKE}: not distinguishable from it at {100 * (1 - LEVEL):.0f} % by a paired t test over the "
        f"repeats{where}, with Holm's adjustment over all pairs of lines. Times are not marked."
    )
    return [said, *(f"Not compared with the best: {reason}." for reason in because)]

"""The sentences below a table: what its numbers are, and what they are compared with."""

from __future__ import annotations

import numpy as np

from klr_bench.report.curves import along_path, path_of
from klr_bench.report.paper import Comparison
from klr_bench.report.render.labels import line_label, other_label, path_label
from klr_bench.report.table import Block, Line, Table

MARK = "*"
LESS = 5e-4
"""A difference of shares that is printed."""
FACTS = {
    "n_train": "training rows",
    "n_test": "test rows",
    "n_examples": "rows",
    "n_features": "features",
    "nnz_per_instance": "numbers a row that are not 0",
    "lam": "lambda / lambda_max",
}
TIMES = {"fit_time_s", "pass_time_s", "setup_time_s", "settled_s"}


def caption(table: Table) -> list[str]:
    """Return the sentences below a table."""
    repeated = any(line.n_ok > 1 for block in table.blocks for line in block.lines)
    spread = "Mean ± standard deviation over the repeats (ok: successful repeats / requested repeats)."
    spread = "Mean over the successful repeats." if table.columns else spread
    lines = [spread if repeated else "One repeat, so no standard deviation."]
    compared = any(entry.comparable for b in table.blocks for line in b.lines for entry in line.entries.values())
    if table.comparison.sources:
        lines.append(_sources(table.comparison, compared=compared, crossed=bool(table.columns)))
    lines += [_stand_in(block) for block in table.blocks if block.stands_for and _has_published(block)]
    if any(line.timed_out for block in table.blocks for line in block.lines):
        lines.append("Where no repeat ended within its time limit, the numbers are those at the limit.")
    lines += [said for block in table.blocks if (said := _most_found(block))]
    lines += _times(table, compared=compared)
    for name, other in table.others.items():
        if name in table.shown:
            over = "divided by" if name.endswith("_ratio") else "less"
            lines.append(f"{table.shown[name].title}: {over} that of {other_label(other)}, repeat by repeat.")
    lines += [said for block in table.blocks if (said := _sizes(block))]
    if table.absent:
        lines.append(f"No rows yet: {', '.join(table.absent)}.")
    return lines


def failures_of(block: Block) -> list[str]:
    """Return a sentence for each line of which a repeat did not end well."""
    return [
        f"{line_label(line)}: {line.n_ok} of {line.n_repeats} ok; {_failures(line)}"
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


def _sources(comparison: Comparison, *, compared: bool, crossed: bool) -> str:
    papers = "; ".join(
        f"{source.name}, {'table' if len(source.tables) == 1 else 'tables'} {' and '.join(source.tables)}"
        for source in comparison.sources
    )
    if not compared:
        return f"paper: {papers}."
    if crossed:
        rule = "; differences in percentage points; for times, the paper's divided by ours"
    else:
        rule = f", in the unit of the column; {MARK}: more than max(2 published standard deviations, half a unit of the"
        rule += " last printed digit)"
    return f"paper: {papers}. diff: ours less the paper's{rule}."


def _has_published(block: Block) -> bool:
    return any(entry.published for line in block.lines for entry in line.entries.values())


def _stand_in(block: Block) -> str:
    return (
        f"{block.label} stands in for the paper's {block.stands_for}: the paper's numbers are of other data, so there "
        "are no differences and no marks."
    )


def _times(table: Table, *, compared: bool) -> list[str]:
    said = []
    if table.machine and table.shown.keys() & TIMES:
        ratio = "; ratio: the paper's time, on its own machine, divided by ours" if compared else ""
        said.append(f"Training times on {table.machine}{ratio}.")
    if "settled_s" in table.shown:
        said.append(
            "Settled after: seconds of training from which on the test accuracy is at most 0.5 point below its last."
        )
    if "setup_time_s" in table.shown:
        said.append("Before the pass: the training time less that of the pass over the examples alone.")
    return said


def _sizes(block: Block) -> str:
    """Return the size of a data set beside the paper's; "" where its tables have none."""
    if not block.facts or not block.sizes:
        return ""
    ours = ", ".join(f"{FACTS[name]} {size:,.0f}" for name, size in block.sizes.items())
    theirs = ", ".join(f"{FACTS[fact.metric]} {_grouped(fact.mean)}" for fact in block.facts)
    first = block.facts[0]
    return f"{block.label}: {ours}. In table {first.table}, {first.label}: {theirs}."


def _grouped(number: str) -> str:
    return f"{int(number):,}" if number.isdigit() else number


def _most_found(block: Block) -> str:
    """Say at how many points of the other methods the first one finds fewer relevant features, and at which.

    Between its points the share that the first method finds is taken to grow evenly.
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
        f"{block.label}: of the {n_points} points of other methods from {sizes[0]:.0f} to {sizes[-1]:.0f} features, "
        f"{path_label(lines[0])} finds at least as many of the relevant features in {n_points - count}, and fewer in "
        f"{count}{f': {where}' if where else ''}."
    )

"""The comparison of two runs as documents and as CSV: what differs, what became of the numbers, and each number."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence

from klr_bench.errors import shown
from klr_bench.printing import no_formula
from klr_bench.report.compare.comparison import Comparison
from klr_bench.report.compare.numbers import Block, Number, Outcome, Shared, numbers_of
from klr_bench.report.compare.runs import Run
from klr_bench.report.compare.wording import (
    cells_sentences,
    conflict_sentence,
    difference_text,
    p_text,
    parameter_sentences,
    setting_sentences,
    significance_sentences,
    time_sentences,
    verdict,
)
from klr_bench.report.labels import NONE, counted, listed, number, title_of
from klr_bench.report.render.document import Document, Grid, right_aligned
from klr_bench.report.writing import csv_text

CSV_COLUMNS = (
    *("dataset", "algorithm", "variant", "metric", "n_a", "mean_a", "std_a", "n_b", "mean_b", "std_b"),
    *("difference", "ratio", "repeats", "low", "high", "p", "p_holm", "significant", "outcome"),
)
MOST_CONFLICTS = 8
MOST_SETTINGS = 60
SIDES = ("A", "B")
HEADS_OF_NUMBERS = ("repeats", *SIDES, "A-B", "p", "significant")
TIME_HEADS = ("repeats", *SIDES, "A/B")
VERDICTS = ("equal", "A better", "B better", "A larger", "B larger", "no", "not tested")
MEANINGS = {"no": "no significant difference"}


def documents(two: Comparison) -> list[Document]:
    """Return what two runs have in common and what not; what matters most stands first."""
    title = f"{two.first.name} (A) against {two.second.name} (B): {headline(two)}"
    if two.identical:
        said = ["The two runs are identical: equal cells, keys and numbers, but for times and memory."]
        return [Document(title, [_setting(two)], [*said, *setting_sentences(two)])]
    said = [*conflict_sentence(two), *cells_sentences(two), *parameter_sentences(two), *setting_sentences(two)]
    found = [Document(title, [*_conflicts(two), _setting(two), *_parameters(two)], said)]
    if not two.equal_numbers:
        found.append(Document("What became of the numbers", [_summary(two)], significance_sentences(two)))
        found.append(Document("Number by number", *_numbers(two)))
    if two.times:
        grids = (_grid(block, TIME_HEADS, times=True) for block in two.blocks)
        found.append(Document("Times", [grid for grid in grids if grid.rows], time_sentences(two)))
    return found


def comma_separated(two: Comparison) -> str:
    """Return a row for each number of each method that both have, in the units of records.csv, with all digits."""
    rows = []
    for block in two.blocks:
        for column in block.columns:
            name = [no_formula(block.dataset), no_formula(column.algorithm), json.dumps(dict(column.variant))]
            for one in column.numbers:
                sides = [value for side in (one.first, one.second) for value in (side.n, side.mean, side.std)]
                significant = None if one.p is None else one.significant
                test = [one.low, one.high, one.p_raw, one.p, significant, one.outcome.value]
                rows.append([*name, one.metric.name, *sides, one.difference, one.ratio, block.pairing.kind, *test])
    return csv_text(CSV_COLUMNS, rows)


def headline(two: Comparison) -> str:
    """Return in some words what a reader is to know first."""
    conflicts, numbers = two.cells.conflicts, two.numbers
    if conflicts:
        return f"{len(conflicts):,} of {counted(two.cells.n_equal_keys, 'equal key')} with other numbers"
    if two.identical:
        return "identical"
    if two.equal_numbers:
        both, equal = two.cells.n_both, two.cells.n_equal_numbers
        return f"equal numbers in {'all' if equal == both else f'{equal:,} of'} {counted(both, 'cell')} that both have"
    tested = [one for one in numbers if one.p is not None]
    if not tested:
        return f"{counted(sum(one.outcome is not Outcome.EQUAL for one in numbers), 'number')} not equal, none tested"
    differ = sum(one.significant for one in tested)
    of = counted(len(tested), "comparison")
    equal = sum(one.outcome is Outcome.EQUAL for one in numbers)
    more = f", {equal:,} more with equal numbers" if equal else ""
    return f"{f'{differ:,} of {of} significant' if differ else f'no significant difference in {of}'}{more}"


def _conflicts(two: Comparison) -> list[Grid]:
    rows = [
        [
            f"{two.first.label(one.column)} on {two.first.manifest.dataset_label(one.dataset)}",
            str(one.repeat),
            shown(one.mismatch.metric),
            *(value if isinstance(value, str) else f"{value:.6g}" for value in one.mismatch[1:]),
        ]
        for one in two.cells.conflicts[:MOST_CONFLICTS]
    ]
    more = len(two.cells.conflicts) - len(rows)
    notes = [f"{more:,} more are left out here"] if more else []
    return [Grid(["Equal keys, other numbers", "repeat", "number", *SIDES], rows, notes=notes)] if rows else []


def _setting(two: Comparison) -> Grid:
    runs = (two.first, two.second)
    rows = [
        ["results", *(shown(run.folder) for run in runs)],
        ["last run", *map(_when, runs)],
        ["cells", f"{two.cells.n_first:,}", f"{two.cells.n_second:,}"],
    ]
    parameters = {one.parameter for one in two.fixed}  # of the fits themselves, in a table of their own
    changed = [one for one in two.setting if one.has_effect and not _sets(one.key, parameters)]
    rows += [[one.key, one.first, one.second] for one in changed[:MOST_SETTINGS]]
    more = len(changed) - MOST_SETTINGS
    return Grid(["Setting", *SIDES], rows, notes=[f"{more:,} more settings that differ"] if more > 0 else [])


def _sets(key: str, parameters: Collection[str]) -> bool:
    """Say whether a key sets one of these parameters of an algorithm."""
    before, _, name = key.rpartition(".estimator.")
    return before.startswith("algorithms.") and name in parameters


def _when(run: Run) -> str:
    """Return the minute in which a run last wrote its manifest."""
    return shown(run.content.get("updated", NONE))[:16].replace("T", " ")


def _parameters(two: Comparison) -> list[Grid]:
    rows = []
    n_columns = sum(len(block.columns) for block in two.blocks)
    for one in two.fixed[:MOST_SETTINGS]:
        every = len(one.methods) == n_columns > 2
        of = f"all {n_columns} columns" if every else listed(one.methods, most=2)
        rows.append([one.parameter, one.first, one.second, of])
    more = len(two.fixed) - MOST_SETTINGS
    notes = [f"{more:,} more parameters that differ"] if more > 0 else []
    return [Grid(["Parameter", *SIDES, "of"], rows, notes=notes)] if rows else []


def _summary(two: Comparison) -> Grid:
    metrics = {one.metric.name: one.metric for one in two.numbers}
    counts = {name: Counter(verdict(one) for one in two.numbers if one.metric.name == name) for name in metrics}
    heads = [head for head in VERDICTS if any(count[head] for count in counts.values())]
    rows = [
        [metric.title, str(counts[name].total()), *(str(counts[name][head] or "-") for head in heads)]
        for name, metric in metrics.items()
    ]
    return Grid(["Metric", "compared", *(MEANINGS.get(head, head) for head in heads)], rows)


def _numbers(two: Comparison) -> tuple[list[Grid], list[str]]:
    """Return the tables of the numbers that differ, and what is to be said of them."""
    said = ["A-B: of percentages in percentage points. p: after Holm's correction; significant: p below 0.05."]
    left_out = [
        f"{counted(count, 'number')} on {block.label}"
        for block in two.blocks
        if (count := sum(one.outcome is Outcome.EQUAL for one in numbers_of([block])))
    ]
    said += [f"Left out, because they are equal in each repeat: {listed(left_out)}."] if left_out else []
    grids = (_grid(block, HEADS_OF_NUMBERS, times=False) for block in two.blocks)
    return [grid for grid in grids if grid.rows], said


def _grid(block: Block, heads: Sequence[str], *, times: bool) -> Grid:
    """Return the numbers of a data set that differ, the times or all others: the columns of the runs below each metric.

    MAGIC              repeats           A           B    A-B      p  significant
    Accuracy (%)
      Baseline               5  85.4 ± 0.5  85.0 ± 0.5  +0.44  0.275           no
      OSKL G=1               5  84.9 ± 0.4  84.9 ± 0.3  +0.02  0.901           no
    """
    found = [
        (one.metric, column, one)
        for column in block.columns
        for one in column.numbers
        if one.outcome is not Outcome.EQUAL and (one.outcome is Outcome.MACHINE) == times
    ]
    rows: list[list[str]] = []
    for metric in dict.fromkeys(metric for metric, _, _ in found):
        rows.append([title_of(metric), *("" for _ in heads)])
        rows += [_row(column, one)[: len(heads) + 1] for of, column, one in found if of == metric]
    header = [block.label, *heads]
    return right_aligned(header, rows)


def _row(column: Shared, one: Number) -> list[str]:
    repeats = " and ".join(dict.fromkeys(str(entry.n) for entry in (one.first, one.second)))
    means = [number(entry.mean, entry.std, one.metric) for entry in (one.first, one.second)]
    said = verdict(one)
    found = [difference_text(one), p_text(one), NONE if said == "not tested" else said]
    return [f"  {column.label}", repeats, *means, *found]

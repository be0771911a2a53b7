"""Sentences about two runs, and the formats of their numbers and cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from klr_bench.errors import shown
from klr_bench.report.compare.cells import unmatched_text
from klr_bench.report.compare.comparison import Comparison
from klr_bench.report.compare.numbers import Block, Number, Outcome, numbers_of
from klr_bench.report.compare.runs import PAIRED, UNPAIRED
from klr_bench.report.labels import NONE, UNITS, counted, listed
from klr_bench.report.measured import BUSY, UNKNOWN, Conditions
from klr_bench.report.significance import LEAST_REPEATS

LONGEST = 30
"""Characters of a value in a sentence."""


def conflict_sentence(two: Comparison) -> list[str]:
    """Say that equal keys have other numbers: the most important thing that there can be."""
    cells = two.cells
    if not cells.conflicts:
        return []
    others = [one.key for one in two.setting if one.key.endswith(" version") or one.key.startswith("machine")]
    why = f" What a key does not hold differs, too: {listed(others)}." if others else ""
    of = counted(cells.n_equal_keys, "cell")
    return [
        f"Not reproducible: {len(cells.conflicts):,} of {of} with equal keys have other numbers. Equal keys mean equal "
        f"data, split, parameters, seed and code of klr-bench.{why}"
    ]


def cells_sentences(two: Comparison) -> list[str]:
    """Say which cells are in both, which keys and numbers are equal, and what is in one only."""
    cells = two.cells
    said = [
        f"{counted(cells.n_both, 'cell')} in both: {cells.n_equal_keys:,} with equal keys (data, split, parameters, "
        f"seed and code), {cells.n_equal_numbers:,} with equal numbers (but for times and memory)."
    ]
    if cells.n_timeouts:
        said.append(
            f"{counted(cells.n_timeouts, 'cell')} with equal keys and other numbers had a time limit that ended the "
            "fit: these depend on the speed of the machine."
        )
    shown_names = {one.metric.name for one in two.numbers}
    hidden = {name: found for name, found in cells.discrepancies.items() if name not in shown_names}
    if hidden:
        names = listed([f"{shown(name)} ({counted(len(found), 'cell')}{_by(found)})" for name, found in hidden.items()])
        said.append(f"Not in the tables below, but different with equal seed, data and split: {names}.")
    for side, unmatched in zip("AB", cells.unmatched, strict=True):
        if unmatched:
            count = counted(sum(one.n_cells for one in unmatched), "cell")
            said.append(f"Only in {side}, {count}: {unmatched_text(unmatched)}.")
    said += _failures(two)
    for side, measured in zip("AB", cells.measured, strict=True):
        if measured:
            said.append(f"Measured in {side} alone: {shown(listed(measured))}.")
    return said


def _failures(two: Comparison) -> list[str]:
    """Name the columns with repeats that did not end well."""
    columns = [(f"{column.label} on {block.label}", column) for block in two.blocks for column in block.columns]
    failed = [
        f"{name} ({counted(count, 'repeat')} of {side})"
        for name, column in columns
        for side, count in zip("AB", column.left_out, strict=True)
        if count
    ]
    late = [
        f"{name} ({side})"
        for name, column in columns
        for side, is_late in zip("AB", column.timed_out, strict=True)
        if is_late
    ]
    said = [f"Did not end well, and enter no mean: {listed(failed)}."] if failed else []
    return said + ([f"At the time limit, as no repeat ended within it: {listed(late)}."] if late else [])


def _by(distances: Sequence[float]) -> str:
    known = [distance for distance in distances if not math.isnan(distance)]
    return f", by {max(known):.2g} at most" if known else ""


def parameter_sentences(two: Comparison) -> list[str]:
    """Name the parameters that are selected or computed in each repeat, and differ."""
    if not two.chosen:
        return []
    names = [f"{one.parameter} ({one.n_differ:,} of {counted(one.n_fits, 'fit')})" for one in two.chosen]
    return [f"Selected or computed in each repeat, and not equal in all: {listed(names)}."]


def setting_sentences(two: Comparison) -> list[str]:
    """Name the settings that differ and change no number."""
    pairs = [
        f"{one.key} ({shown(one.first, LONGEST)}; {shown(one.second, LONGEST)})"
        for one in two.setting
        if not one.has_effect
    ]
    return [f"Also different, with an effect on times at most: {listed(pairs, most=8)}."] if pairs else []


def significance_sentences(two: Comparison) -> list[str]:
    """Say how differences are tested, and why others are not."""
    said = []
    tested = [block for block in two.blocks if any(one.p is not None for one in numbers_of([block]))]
    for resampled, what in (
        (True, "the corrected resampled t test (Nadeau and Bengio; variance factor 1/n + n_test/n_train)"),
        (False, "a t test (variance factor 1/n, as the test rows are fixed: it holds for these test rows)"),
    ):
        paired = [block for block in tested if block.pairing.kind == PAIRED and block.pairing.resampled == resampled]
        if paired:
            said.append(f"Paired over the repeats, as seed, data and split are equal, with {what}: {_labels(paired)}.")
    for why in dict.fromkeys(block.pairing.assumed for block in tested if block.pairing.assumed):
        said.append(f"Assumed, as no equal key proves it: {why}.")
    for why in dict.fromkeys(block.pairing.because for block in tested if block.pairing.kind == UNPAIRED):
        blocks = [block for block in tested if (block.pairing.kind, block.pairing.because) == (UNPAIRED, why)]
        said.append(
            f"Not paired, because {why}: Welch's t test, which says whether the runs differ by more than the chance of "
            f"their repeats: {_labels(blocks)}."
        )
    if tested:
        said.append("p-values are corrected by Holm's method for all comparisons of a metric.")
    return said + _untested(two)


def _untested(two: Comparison) -> list[str]:
    said = []
    for outcome in (Outcome.FEW, Outcome.SPLIT, Outcome.CONSTANT, Outcome.INFINITE, Outcome.ONE_ONLY):
        blocks = [block for block in two.blocks if any(one.outcome is outcome for one in numbers_of([block]))]
        numbers = [one for one in numbers_of(blocks) if one.outcome is outcome]
        if not numbers:
            continue
        why = outcome.value
        if outcome is Outcome.FEW:
            least = min(min(one.first.n, one.second.n) for one in numbers)
            why = (
                f"a test needs {LEAST_REPEATS} repeats in both, and there {'is' if least == 1 else 'are'} {least}. "
                f"Run with repeats={LEAST_REPEATS} or more"
            )
        elif outcome is Outcome.SPLIT:
            why = listed(list(dict.fromkeys(block.pairing.because for block in blocks)))
        said.append(f"No p-value for {counted(len(numbers), 'number')} on {_labels(blocks)}: {why}.")
    return said


def time_sentences(two: Comparison) -> list[str]:
    """Return sentences on whether the times can be compared, and if not, why; [] without times."""
    if not two.times:
        return []
    said = []
    if any(one.ratio is not None for one in two.times):
        columns = (column for block in two.blocks for column in block.columns)
        alike = next(column for column in columns if any(one.ratio is not None for one in column.numbers))
        machine = ", ".join(", ".join(filter(None, machine)) for machine in alike.conditions[0].machines)
        said.append(
            f"A/B: the time or memory of A divided by that of B, both on {machine}, of which others used at most "
            f"{100 * BUSY:.0f} % when the fits began, as far as the records say."
        )
    pairs = [column.conditions for block in two.blocks for column in block.columns]
    apart = [pair for pair in pairs if UNKNOWN in pair[0].machines | pair[1].machines or not pair[0].alike(pair[1])]
    if apart:
        some = "Some times" if len(apart) < len(pairs) else "Times"
        said.append(f"{some} cannot be compared: {_why_apart(apart)}.")
    return said


def _why_apart(pairs: Iterable[tuple[Conditions, Conditions]]) -> str:
    every = [*zip(*pairs, strict=True)]
    machines = [frozenset().union(*(conditions.machines for conditions in side)) for side in every]
    unknown = [name for name, side in zip("AB", machines, strict=True) if UNKNOWN in side]
    if unknown:
        return f"the records of {' and '.join(unknown)} do not all name their machine"
    if len(machines[0] | machines[1]) > 1:
        texts = [listed(sorted(", ".join(filter(None, machine)) for machine in side), most=2) for side in machines]
        return f"A ran on {texts[0]}; B on {texts[1]}"
    load = max(conditions.load or 0.0 for side in every for conditions in side)
    return f"others used up to {100 * load:.0f} % of the machine when fits began (more than {100 * BUSY:.0f} %)"


def _labels(blocks: list[Block]) -> str:
    return listed([block.label for block in blocks])


def difference_text(number: Number) -> str:
    """Return a difference with two digits that count, in the unit of print; of times their ratio."""
    if number.outcome is Outcome.MACHINE:
        return NONE if number.ratio is None else f"{number.ratio:.2f}x"
    if number.difference is None or math.isnan(number.difference):
        return NONE
    value = number.difference * UNITS[number.metric.unit].scale
    if value == 0 or math.isinf(value):
        return f"{value:+g}" if value else "0"
    decimals = 1 - math.floor(math.log10(abs(value)))
    return f"{value:+.1e}" if decimals > 5 else f"{value:+,.{max(0, decimals)}f}"


def p_text(number: Number) -> str:
    """Return a corrected p-value."""
    if number.p is None:
        return NONE
    return "<0.001" if number.p < 0.001 else f"{number.p:.3f}"


def verdict(number: Number) -> str:
    """Return what became of a comparison, in words."""
    if number.outcome is Outcome.EQUAL:
        return "equal"
    if number.p is None:
        return "not tested"
    if not number.significant:
        return "no"
    larger, smaller = "AB" if (number.difference or 0.0) > 0 else "BA"
    if not number.metric.better:
        return f"{larger} larger"
    return f"{larger if number.metric.better == 'higher' else smaller} better"

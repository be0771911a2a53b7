"""The comparison of two runs as documents and as CSV."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence

from klr_bench.errors import shown
from klr_bench.printing import no_formula
from klr_bench.report.compare.comparison import Comparison, Number, Outcome, SharedMethod
from klr_bench.report.compare.runs import Pairing
from klr_bench.report.labels import NONE, UNITS, counted, listed, number, title_of
from klr_bench.report.measured import BUSY
from klr_bench.report.render.document import Document, Grid, right_aligned
from klr_bench.report.significance import LEAST_REPEATS
from klr_bench.report.writing import csv_text

CSV_COLUMNS = (
    *("dataset", "algorithm", "variant", "metric", "n_a", "mean_a", "std_a", "n_b", "mean_b", "std_b"),
    *("difference", "ratio", "repeats", "low", "high", "p", "p_holm", "significant", "outcome"),
)
MOST_ROWS = 60
SIDES = ("A", "B")
VERDICTS = ("equal", "A better", "B better", "A larger", "B larger", "no significant difference", "not tested")


def documents(two: Comparison) -> list[Document]:
    """Return what two runs have in common and what differs, the most important first."""
    cells = two.cells
    title = f"{two.first.name} (A) compared with {two.second.name} (B): {_headline(two)}"
    minor = [f"{key} ({shown(one, 30)}; {shown(other, 30)})" for key, one, other, effect in two.settings if not effect]
    also = [f"Also different, with an effect on times at most: {listed(minor, most=8)}."] if minor else []
    if two.identical:
        identical = "The two runs are identical: equal cells, keys and numbers, except times and memory."
        return [Document(title, [_settings(two)], [identical, *also])]
    grids = [
        _shortened(["Equal keys, different numbers", "repeat", "metric", *SIDES], cells.conflicts),
        _settings(two),
        _shortened(["Parameter", *SIDES, "of"], [[*key, listed(of, most=2)] for key, of in two.parameters.items()]),
    ]
    found = [Document(title, [grid for grid in grids if grid.rows], [*_cell_sentences(two), *also])]
    if not two.equal_numbers:
        equal = Counter(method.dataset_label for method in two.methods for one in method.numbers if _is_equal(one))
        counts = [f"{counted(count, 'number')} on {label}" for label, count in equal.items()]
        left_out = [f"Left out, because they are equal in each repeat: {listed(counts)}."] if counts else []
        legend = "A-B: of percentages in percentage points. p: after Holm's correction; significant: p below 0.05."
        found.append(Document("Summary of the numbers", [_summary(two)], _test_sentences(two)))
        found.append(Document("Number by number", _grids(two, times=False), [legend, *left_out]))
    if times := _grids(two, times=True):
        found.append(Document("Times", times, _time_sentences(two)))
    return found


def comma_separated(two: Comparison) -> str:
    """Return a row for each number of each method that both have, in the units of records.csv, with all digits."""
    rows = []
    for method in two.methods:
        name = [no_formula(method.dataset), no_formula(method.algorithm), json.dumps(dict(method.variant))]
        for one in method.numbers:
            sides = [value for side in (one.first, one.second) for value in (side.n, side.mean, side.std)]
            significant = None if one.p is None else one.significant
            test = [one.low, one.high, one.p_raw, one.p, significant, one.outcome.value]
            rows.append([*name, one.metric.name, *sides, one.difference, one.ratio, method.pairing.kind, *test])
    return csv_text(CSV_COLUMNS, rows)


def _headline(two: Comparison) -> str:
    cells, numbers = two.cells, two.numbers
    n_equal, tested = sum(map(_is_equal, numbers)), [one for one in numbers if one.p is not None]
    if cells.conflicts:
        return f"{len(cells.conflicts):,} of {counted(cells.n_equal_keys, 'equal key')} with different numbers"
    if two.identical:
        return "identical"
    if two.equal_numbers:
        return f"equal numbers in {cells.n_equal_numbers:,} of {counted(cells.n_both, 'cell')} of both"
    if not tested:
        return f"{counted(len(numbers) - n_equal, 'number')} not equal, none tested"
    n_significant = sum(one.significant for one in tested)
    return f"{n_significant:,} of {counted(len(tested), 'comparison')} significant, {n_equal:,} more with equal numbers"


def _is_equal(one: Number) -> bool:
    return one.outcome is Outcome.EQUAL


def _shortened(header: list[str], rows: Sequence[list[str]]) -> Grid:
    more = len(rows) - MOST_ROWS
    return Grid(header, rows[:MOST_ROWS], notes=[f"{more:,} more are left out here"] if more > 0 else [])


def _settings(two: Comparison) -> Grid:
    runs, parameters = (two.first, two.second), {name for name, _, _ in two.parameters}
    rows = [
        ["results", *(shown(run.folder) for run in runs)],
        ["last run", *(shown(run.content.get("updated", NONE))[:16].replace("T", " ") for run in runs)],
        ["cells", *(f"{len(run.results.records):,}" for run in runs)],
    ]
    for one in two.settings:
        before, _, name = one.key.rpartition(".estimator.")
        has_own_row = before.startswith("algorithms.") and name in parameters
        if one.has_effect and not has_own_row:
            rows.append([*one[:3]])
    return _shortened(["Setting", *SIDES], rows)


def _cell_sentences(two: Comparison) -> list[str]:
    cells, said = two.cells, []
    if cells.conflicts:
        others = [one.key for one in two.settings if one.key.startswith(("versions.", "machine"))]
        also = f" Also different: {listed(others)}." if others else ""
        said.append(
            f"Not reproducible: {len(cells.conflicts):,} of {counted(cells.n_equal_keys, 'cell')} with equal keys have "
            f"different numbers, although equal keys mean equal data, split, parameters, seed and code.{also}"
        )
    said.append(
        f"{counted(cells.n_both, 'cell')} in both: {cells.n_equal_keys:,} with equal keys (data, split, parameters, "
        f"seed and code), {cells.n_equal_numbers:,} with equal numbers (except times and memory)."
    )
    if cells.n_timeouts:
        said.append(
            f"A time limit ended {counted(cells.n_timeouts, 'cell')} with equal keys and different numbers, which "
            "depend on the speed of the machine."
        )
    in_tables = {one.metric.name for one in two.numbers}
    hidden = [
        f"{shown(name)} ({counted(n, 'cell')})" for name, n in cells.discrepancies.items() if name not in in_tables
    ]
    if hidden:
        said.append(f"Different with equal seed, data and split, but not in the tables: {listed(hidden)}.")
    for side, unmatched, measured in zip(SIDES, cells.unmatched, cells.measured, strict=True):
        if unmatched:
            names = shown(listed([f"{name} ({count:,})" for name, count in unmatched.items()]), 500)
            said.append(f"Only in {side}, {counted(sum(unmatched.values()), 'cell')}: {names}.")
        if measured:
            said.append(f"Measured in {side} only: {shown(listed(measured))}.")
    for place, side in enumerate(SIDES):
        methods = {f"{one.label} on {one.dataset_label}": one for one in two.methods}
        failed = [f"{name} ({one.n_left_out[place]:,})" for name, one in methods.items() if one.n_left_out[place]]
        said += [f"Repeats of {side} that were not successful, and enter no mean: {listed(failed)}."] if failed else []
        late = [name for name, one in methods.items() if one.timed_out[place]]
        said += [f"No repeat of {side} ended within its time limit: {listed(late)}."] if late else []
    return said


def _test_sentences(two: Comparison) -> list[str]:
    """Return how differences are tested, and why others are not, each with the data sets."""
    said: dict[str, dict[str, None]] = {}
    for method in two.methods:
        for one in method.numbers:
            if one.outcome not in (Outcome.EQUAL, Outcome.MACHINE):
                sentence = _test(method.pairing) if one.p is not None else _no_test(one, method.pairing)
                said.setdefault(sentence, {})[method.dataset_label] = None
    sentences = [f"{sentence}: {listed(list(labels))}." for sentence, labels in said.items()]
    if any(one.p is not None for one in two.numbers):
        sentences.append("p-values are corrected by Holm's method for all comparisons of a metric.")
    return sentences


def _test(pairing: Pairing) -> str:
    if pairing.kind == "unpaired":
        return f"Not paired, because {pairing.because}, so that Welch's t test is used"
    assumed = "" if pairing.proved else " (assumed: both versions of klr-bench split in the same way)"
    test = "a t test (variance factor 1/n, as the test rows are fixed: it holds for these test rows)"
    if pairing.resampled:
        test = "the corrected resampled t test (Nadeau and Bengio; variance factor 1/n + n_test/n_train)"
    return f"Paired over the repeats, as {pairing.because}{assumed}, with {test}"


def _no_test(one: Number, pairing: Pairing) -> str:
    few = f"a test needs {LEAST_REPEATS} repeats in both runs; run with repeats={LEAST_REPEATS} or more"
    unknown = pairing.because if pairing.kind == "unknown" else "the numbers of rows are not known"
    reason = {Outcome.FEW: few, Outcome.SPLIT: unknown}.get(one.outcome, one.outcome.value)
    return f"No p-value, because {reason}" if one.outcome in (Outcome.FEW, Outcome.SPLIT) else f"No p-value ({reason})"


def _time_sentences(two: Comparison) -> list[str]:
    said = []
    if any(one.ratio is not None for method in two.methods for one in method.numbers):
        said.append(
            "A/B: time or memory of A divided by that of B. Both were measured on the same machine, of which other "
            f"processes used at most {100 * BUSY:.0f} % when fits began, as far as the records say."
        )
    reasons = dict.fromkeys(method.times_differ for method in two.methods if method.times_differ)
    return said + [f"Times cannot be compared where {reason}." for reason in reasons]


def _summary(two: Comparison) -> Grid:
    counts: dict[str, Counter[str]] = {}
    for one in two.numbers:
        counts.setdefault(one.metric.title, Counter())[_verdict(one)] += 1
    heads = [head for head in VERDICTS if any(count[head] for count in counts.values())]
    rows = [
        [title, str(count.total()), *(str(count[head] or NONE) for head in heads)] for title, count in counts.items()
    ]
    return Grid(["Metric", "compared", *heads], rows)


def _grids(two: Comparison, *, times: bool) -> list[Grid]:
    """Return the numbers that differ, the times or all others: a grid per data set, a group of rows per metric.

    MAGIC              repeats           A           B    A-B      p  significant
    Accuracy (%)
      Baseline               5  85.4 ± 0.5  85.0 ± 0.5  +0.44  0.275           no
      OSKL G=1               5  84.9 ± 0.4  84.9 ± 0.3  +0.02  0.901           no
    """
    heads = ["repeats", *SIDES, "A/B"] if times else ["repeats", *SIDES, "A-B", "p", "significant"]
    groups: dict[str, dict[str, list[list[str]]]] = {}
    for method in two.methods:
        for one in method.numbers:
            if not _is_equal(one) and (one.outcome is Outcome.MACHINE) == times:
                rows = groups.setdefault(method.dataset_label, {}).setdefault(title_of(one.metric), [])
                rows.append(_row(method, one)[: len(heads) + 1])
    return [
        right_aligned(
            [label, *heads],
            [row for title, rows in metrics.items() for row in [[title, *("" for _ in heads)], *rows]],
        )
        for label, metrics in groups.items()
    ]


def _row(method: SharedMethod, one: Number) -> list[str]:
    repeats = " and ".join(dict.fromkeys(str(entry.n) for entry in (one.first, one.second)))
    means = [number(entry.mean, entry.std, one.metric) for entry in (one.first, one.second)]
    p = NONE if one.p is None else "<0.001" if one.p < 0.001 else f"{one.p:.3f}"
    verdict = {"not tested": NONE, "no significant difference": "no"}.get(_verdict(one), _verdict(one))
    return [f"  {method.label}", repeats, *means, _difference(one), p, verdict]


def _difference(one: Number) -> str:
    """Return a difference with two significant digits, in the unit of print; for times their ratio."""
    if one.outcome is Outcome.MACHINE:
        return NONE if one.ratio is None else f"{one.ratio:.2f}x"
    if one.difference is None or not math.isfinite(one.difference):
        return NONE
    value = one.difference * UNITS[one.metric.unit].scale
    decimals = 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:+.1e}" if decimals > 5 else f"{value:+,.{max(0, decimals)}f}"


def _verdict(one: Number) -> str:
    if _is_equal(one):
        return "equal"
    if one.p is None:
        return "not tested"
    if not one.significant:
        return "no significant difference"
    larger, smaller = "AB" if (one.difference or 0.0) > 0 else "BA"
    if not one.metric.better:
        return f"{larger} larger"
    return f"{larger if one.metric.better == 'higher' else smaller} better"

"""Write the comparison of two runs as documents and as CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.errors import sanitize
from klr_bench.printing import no_formula
from klr_bench.report import render
from klr_bench.report.compare.comparison import Comparison, Number, Outcome, compare
from klr_bench.report.compare.runs import Pairing
from klr_bench.report.labels import NONE, UNITS, join_names, number, pluralize, title_of
from klr_bench.report.measured import BUSY
from klr_bench.report.render.document import Document, Grid, aligned
from klr_bench.report.significance import LEAST_REPEATS
from klr_bench.report.writing import check_formats, write_changed
from klr_bench.results.row_cache import csv_text

if TYPE_CHECKING:
    from rich.console import Console

CSV_COLUMNS = (
    *("dataset", "algorithm", "variant", "metric", "n_a", "mean_a", "std_a", "n_b", "mean_b", "std_b"),
    *("difference", "ratio", "repeats", "low", "high", "p", "p_holm", "significant", "outcome"),
)
MOST_ROWS = 60
SIDES = ("A", "B")


def report_comparison(
    first: Path,
    second: Path,
    *,
    console: Console,
    formats: Sequence[str] = ("terminal",),
    columns: Sequence[str] | None = None,
    output: Path | None = None,
) -> list[Path]:
    """Print the differences between two results folders, write files, and return their paths.

    `formats` is a subset of FORMATS without pdf; `output` is the folder of against.md, against.tex and against.csv, by
    default <first>/report.  Raises KlrBenchError as `compare`.
    """
    check_formats(formats)
    two = compare(first, second, columns)
    pages = documents(two)
    if "terminal" in formats:
        render.show_all(pages, console)
    files = render.texts_of(pages, "against", formats)
    if "csv" in formats:
        files["against.csv"] = comma_separated(two)
    return write_changed(output or first / "report", {name: text.encode() for name, text in files.items()})


def documents(two: Comparison) -> list[Document]:
    """Describe what two runs share and where they differ, most important differences first."""
    title = f"{two.first.name} (A) compared with {two.second.name} (B): {_headline(two)}"
    minor = [f"{key} ({sanitize(a, 30)}; {sanitize(b, 30)})" for key, a, b, effect in two.settings if not effect]
    also = [f"Other differences, which can affect only times: {join_names(minor, most=8)}."] if minor else []
    if two.identical:
        identical = "The two runs have identical cells, keys and results, except times and memory."
        return [Document(title, [_settings(two)], [identical, *also])]
    grids = [
        _shortened(["Equal keys, different numbers", "repeat", "metric", *SIDES], two.cells.conflicts),
        _settings(two),
        _shortened(["Parameter", *SIDES, "of"], [[*key, join_names(of, most=2)] for key, of in two.parameters.items()]),
    ]
    pages = [Document(title, [grid for grid in grids if grid.rows], [*_cell_sentences(two), *also])]
    if not two.equal_numbers:
        grids = _grids(two, two.numbers, ["repeats", *SIDES, "A-B", "p", "significant"])
        legend = (
            "A-B: the difference, in percentage points if the metric is a percentage. p: after Holm's correction for "
            "all comparisons of a metric; significant if below 0.05. Comparisons whose values are equal in each repeat "
            "are left out."
        )
        pages.append(Document("Numbers", grids, [*_test_sentences(two), legend]))
    if times := [compared for compared in two.all_numbers if compared.metric.of_machine]:
        pages.append(Document("Times", _grids(two, times, ["repeats", *SIDES, "A/B"]), _time_sentences(two)))
    return pages


def comma_separated(two: Comparison) -> str:
    """Return one row per metric of each shared method as CSV, in the units of records.csv."""
    rows = []
    for compared in two.all_numbers:
        dataset, (algorithm, variant) = compared.method
        name = [no_formula(dataset), no_formula(algorithm), json.dumps(dict(variant)), compared.metric.name]
        sides = [value for side in (compared.first, compared.second) for value in (side.n, side.mean, side.std)]
        significant = None if compared.p is None else compared.significant
        test = [compared.low, compared.high, compared.p_raw, compared.p, significant, compared.outcome.value]
        rows.append([*name, *sides, compared.difference, compared.ratio, two.pairings[dataset].kind, *test])
    return csv_text([CSV_COLUMNS, *rows])


def _dataset(two: Comparison, compared: Number) -> str:
    return two.first.manifest.dataset_label(compared.method[0])


def _headline(two: Comparison) -> str:
    cells, tested = two.cells, [compared for compared in two.numbers if compared.p is not None]
    n_equal = sum(compared.outcome is Outcome.EQUAL for compared in two.numbers)
    if cells.conflicts:
        return f"{len(cells.conflicts):,} of {pluralize(cells.n_equal_keys, 'equal key')} with different numbers"
    if two.identical:
        return "identical"
    if two.equal_numbers:
        of = "all" if cells.n_equal_numbers == cells.n_both else f"{cells.n_equal_numbers:,} of"
        return f"equal numbers in {of} {pluralize(cells.n_both, 'cell')} of both"
    n_alone = sum(compared.outcome in (Outcome.ONE_ONLY, Outcome.NO_PAIR) for compared in two.numbers)
    if n_alone == len(two.numbers):
        return "no number in both"
    n_significant, n_different = sum(compared.significant for compared in tested), len(two.numbers) - n_equal - n_alone
    significant = f"{n_significant:,} of {len(tested):,} tested ones significantly" if tested else "none tested"
    return f"{pluralize(n_different, 'number')} not equal, {significant}"


def _shortened(header: list[str], rows: Sequence[list[str]]) -> Grid:
    more = len(rows) - MOST_ROWS
    return Grid(header, rows[:MOST_ROWS], notes=[f"{more:,} more are left out here"] if more > 0 else [])


def _settings(two: Comparison) -> Grid:
    runs = two.first, two.second
    rows = [
        ["results", *(sanitize(run.folder) for run in runs)],
        ["last run", *(sanitize(run.content.get("updated", NONE))[:16].replace("T", " ") for run in runs)],
        ["cells", *(f"{len(run.results.records):,}" for run in runs)],
    ]
    rows += [[*setting[:3]] for setting in two.settings if setting.has_effect]
    return _shortened(["Setting", *SIDES], rows)


def _cell_sentences(two: Comparison) -> list[str]:
    cells, sentences, partly = two.cells, [], []
    if cells.conflicts:
        keys = [setting.key for setting in two.settings if setting.key.startswith(("versions.", "machine"))]
        also = f" Also different: {join_names(keys)}." if keys else ""
        sentences.append(
            f"Not reproducible: {len(cells.conflicts):,} of {pluralize(cells.n_equal_keys, 'cell')} with the same key "
            "have different values, although the same key implies the same data, split, parameters, seed and code."
            f"{also}"
        )
    sentences.append(
        f"{pluralize(cells.n_both, 'cell')} in both runs: {cells.n_equal_keys:,} with identical keys (data, split, "
        f"parameters, seed and code), {cells.n_equal_numbers:,} with identical results (ignoring times and memory)."
    )
    in_tables = {compared.metric.name for compared in two.numbers}
    others = {sanitize(name): count for name, count in cells.discrepancies.items() if name not in in_tables}
    if others:
        counts = join_names([f"{name} ({pluralize(count, 'cell')})" for name, count in others.items()])
        sentences.append(f"Cells omitted because they differ despite having the same seed, data and split: {counts}.")
    for side, unmatched, measured in zip(SIDES, cells.unmatched, cells.measured, strict=True):
        if unmatched:
            names = sanitize(join_names([f"{name} ({count:,})" for name, count in unmatched.items()]), 500)
            sentences.append(f"Only in {side}, {pluralize(sum(unmatched.values()), 'cell')}: {names}.")
        if measured:
            sentences.append(f"Measured in {side} only: {sanitize(join_names(measured))}.")
    for method in two.times_differ:
        for side, run in zip(SIDES, (two.first, two.second), strict=True):
            statuses = [row["status"] for row in run.methods[method].values()]
            if (n_ok := statuses.count("ok")) < len(statuses):
                partly.append(f"{run.label(method)} ({n_ok:,} of {pluralize(len(statuses), 'repeat')} of {side})")
    end = "Only successful repeats enter a mean, or if there are none those at the time limit"
    return sentences + ([f"{end}: {join_names(partly)}."] if partly else [])


def _test_sentences(two: Comparison) -> list[str]:
    labels_of: dict[str, dict[str, None]] = {}
    for compared in two.numbers:
        if compared.outcome is not Outcome.EQUAL:
            labels_of.setdefault(_test(compared, two.pairings[compared.method[0]]), {})[_dataset(two, compared)] = None
    return [f"{sentence}: {join_names(list(labels))}." for sentence, labels in labels_of.items()]


def _test(compared: Number, pairing: Pairing) -> str:
    if compared.outcome is Outcome.FEW:
        return f"No p-value (fewer than {LEAST_REPEATS} repeats in a run; use repeats={LEAST_REPEATS} or more)"
    if compared.outcome is not Outcome.TESTED:
        return f"No p-value ({pairing.because if pairing.kind == 'unknown' else compared.outcome.value})"
    if pairing.kind == "unpaired":
        return f"The repeats are not paired, because {pairing.because}; Welch's t test is used"
    assumed = "" if pairing.proved else " (assumed: both versions of klr-bench split in the same way)"
    test = "a t test (variance factor 1/n, as the test rows are fixed: it holds for these test rows)"
    if pairing.resampled:
        test = "the corrected resampled t test (Nadeau and Bengio; variance factor 1/n + n_test/n_train)"
    return f"The repeats are paired, because {pairing.because}{assumed}, and compared by {test}"


def _time_sentences(two: Comparison) -> list[str]:
    reasons = dict.fromkeys(filter(None, two.times_differ.values()))
    legend = (
        "A/B: time or memory of A divided by that of B. Both ran on the same machine, and other processes used at most "
        f"{100 * BUSY:.0f} % of it when fits began, if the records state the load."
    )
    sentences = [legend] if any(compared.ratio is not None for compared in two.all_numbers) else []
    return sentences + [f"Times cannot be compared where {reason}." for reason in reasons]


def _grids(two: Comparison, numbers: Sequence[Number], heads: list[str]) -> list[Grid]:
    """Return one table per data set, with the metrics that differ.

    MAGIC              repeats           A           B    A-B      p  significant
    Accuracy (%)
      Baseline               5  85.4 ± 0.5  85.0 ± 0.5  +0.44  0.275           no
      OSKL G=1               5  84.9 ± 0.4  84.9 ± 0.3  +0.02  0.901           no
    """
    groups: dict[str, dict[str, list[list[str]]]] = {}
    for compared in numbers:
        if compared.outcome is not Outcome.EQUAL:
            titles = groups.setdefault(_dataset(two, compared), {})
            rows = titles.setdefault(title_of(compared.metric), [[title_of(compared.metric), *("" for _ in heads)]])
            rows.append([f"  {two.first.method_label(compared.method)}", *_texts(compared)[: len(heads)]])
    return [
        aligned(Grid([label, *heads], [*chain.from_iterable(titles.values())], sortable=False))
        for label, titles in groups.items()
    ]


def _texts(compared: Number) -> list[str]:
    repeats = " and ".join(dict.fromkeys(str(entry.n) for entry in (compared.first, compared.second)))
    means = [number(entry.mean, entry.std, compared.metric) for entry in (compared.first, compared.second)]
    p = NONE if compared.p is None else "<0.001" if compared.p < 0.001 else f"{compared.p:.3f}"
    return [repeats, *means, _difference(compared), p, _verdict(compared)]


def _difference(compared: Number) -> str:
    if compared.outcome is Outcome.MACHINE:
        return NONE if compared.ratio is None else f"{compared.ratio:.2f}x"
    if compared.difference is None or not math.isfinite(compared.difference):
        return NONE
    value = compared.difference * UNITS[compared.metric.unit].scale
    decimals = 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:+.1e}" if decimals > 5 else f"{value:+,.{max(0, decimals)}f}"


def _verdict(compared: Number) -> str:
    if not compared.significant:
        return NONE if compared.p is None else "no"
    larger, smaller = "AB" if (compared.difference or 0.0) > 0 else "BA"
    if not compared.metric.better:
        return f"{larger} larger"
    return f"{larger if compared.metric.better == 'higher' else smaller} better"

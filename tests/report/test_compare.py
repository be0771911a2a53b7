"""Two runs side by side: what differs is named, what is more than chance is tested, and nothing is said beyond that."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from scipy import stats

from klr_bench import runner
from klr_bench.cli import main
from klr_bench.cli.completion import complete
from klr_bench.console import PlainConsole
from klr_bench.errors import KlrBenchError
from klr_bench.report.compare.comparison import Comparison, compare, report_comparison
from klr_bench.report.compare.numbers import Number, Outcome, numbers_of
from klr_bench.report.compare.pages import documents
from klr_bench.results.store import Record
from tests.config.composing import composed
from tests.report.folders import record, write

HERE = {"host": "here", "cpu": "A CPU, 1 thread", "load": 0.01}
SPLIT = {"test_size": 0.2}
DATA = {
    "label": "MAGIC",
    "source": {"format": "csv", "train": {"name": "magic.data", "sha256": "e9" * 32, "url": "https://here/magic"}},
    "split": SPLIT,
}
CONFIG: dict[str, Any] = {
    "title": "Two runs",
    "seed": 0,
    "repeats": 5,
    "data": {"cache": "/here", "columns": None},
    "kernel": {"kernel": "rbf", "percentile": 20.0},
    "datasets": {"magic": DATA},
    "algorithms": {"nc": {"label": "Baseline"}, "oskl": {"label": "OSKL"}},
    "sweep": {"oskl": {"G": [1, 10]}},
}
COLUMNS = (("nc", ""), ("oskl", "G=1"), ("oskl", "G=10"))
ACCURACIES = (0.851, 0.858, 0.849, 0.86, 0.853)
OTHERS = (0.846, 0.857, 0.845, 0.851, 0.85)
"""Of other repeats, or of a version that learns a bit worse."""

Make = Callable[..., Path]


def fit(column: tuple[str, str], repeat: int, accuracy: float, **changes: Any) -> Record:
    values: dict[str, Any] = {"dataset": "magic", "seed": 0, "accuracy": accuracy, "n_support": 3440 + repeat}
    values |= {"fit_time_s": 0.5 + 0.01 * repeat, "n_train": 8000, "n_test": 2000, "n_features": 10, **HERE}
    return record(*column, repeat, **(values | changes))


def fits(accuracies: Sequence[float] = ACCURACIES, version: str = "", **changes: Any) -> list[Record]:
    """Return a record a column and accuracy; records of another `version` have other keys."""
    found = [fit(column, n, accuracy, **changes) for column in COLUMNS for n, accuracy in enumerate(accuracies)]
    return [replace(one, key=f"{one.key}{version}") for one in found]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that makes a results folder of some records."""

    def folder(name: str, rows: Sequence[Record], manifest: Any = None, **config: Any) -> Path:
        return write(tmp_path / name, rows, CONFIG | config, **(manifest or {}))

    return folder


def page(two: Comparison) -> str:
    """Return all that is shown, on one line, with single blanks."""
    file = io.StringIO()
    console = PlainConsole(file=file, width=400)
    from klr_bench.report import render

    for document in documents(two):
        render.show(document, console)
    return " ".join(file.getvalue().split())


def number(two: Comparison, metric: str = "accuracy", label: str = "Baseline") -> Number:
    (found,) = (
        one
        for block in two.blocks
        for column in block.columns
        for one in column.numbers
        if (one.metric.name, column.label) == (metric, label)
    )
    return found


def test_two_equal_runs_are_identical_and_one_sentence_says_so(make: Make) -> None:
    rows = fits(peak_memory_mb=100.0)
    later = [replace(row, metrics=row.metrics | {"fit_time_s": 9.0, "peak_memory_mb": 900.0}) for row in rows]
    other = make(
        "b", later, results_dir="elsewhere", data={"cache": "/there"}, manifest={"updated": "2026-01-01T10:00"}
    )
    two = compare(make("a", rows), other)
    (document,) = documents(two)
    assert document.title == "a (A) against b (B): identical"
    assert document.caption[0] == "The two runs are identical: equal cells, keys and numbers, but for times and memory."
    assert "data.cache (/here; /there)" in document.caption[1]
    assert [row[0] for row in document.grids[0].rows] == ["results", "last run", "cells"]


@pytest.mark.parametrize(
    ("changed", "metric", "shown"),
    [
        (fit(("nc", ""), 0, 0.8511), "accuracy", ["0.851", "0.8511"]),
        (fit(("nc", ""), 0, ACCURACIES[0], n_support=3439), "n_support", ["3440", "3439"]),
    ],
)
def test_an_equal_key_with_another_number_is_named_first(
    make: Make, changed: Record, metric: str, shown: list[str]
) -> None:
    numpys = [{"versions": {"numpy": version}} for version in ("2.4.6", "2.5.0")]
    two = compare(make("a", fits(), numpys[0]), make("b", [changed, *fits()[1:]], numpys[1]))
    first = documents(two)[0]
    assert first.title == "a (A) against b (B): 1 of 15 equal keys with other numbers"
    assert first.grids[0].header == ["Equal keys, other numbers", "repeat", "number", "A", "B"]
    assert first.grids[0].rows == [["Baseline on MAGIC", "0", metric, *shown]]
    assert first.caption[0].startswith("Not reproducible: 1 of 15 cells with equal keys have other numbers.")
    assert first.caption[0].endswith("What a key does not hold differs, too: numpy version.")


def test_a_fit_that_failed_in_one_run_is_no_conflict_but_told(make: Make) -> None:
    failed = [fit(("nc", ""), 0, ACCURACIES[0], status="killed"), *fits()[1:]]
    two = compare(make("a", fits()), make("b", failed))
    assert (two.cells.conflicts, two.cells.n_equal_numbers, two.identical) == ([], 14, False)
    text = page(two)
    assert "equal numbers in 14 of 15 cells that both have" in text
    assert "Did not end well, and enter no mean: Baseline on MAGIC (1 repeat of B)." in text


def test_numbers_at_a_time_limit_are_told_to_be(make: Make) -> None:
    late = [row if row.algorithm == "oskl" else replace(row, status="timeout") for row in fits(OTHERS, version="b")]
    two = compare(make("a", fits()), make("b", late))
    assert number(two).second.mean == pytest.approx(statistics.mean(OTHERS))
    assert "At the time limit, as no repeat ended within it: Baseline on MAGIC (B)." in page(two)


def test_rounding_and_a_time_limit_make_no_conflict(make: Make) -> None:
    rows = fits()
    rounded = compare(make("a", rows), make("b", [fit(("nc", ""), 0, ACCURACIES[0] + 1e-8), *rows[1:]]))
    assert (rounded.cells.conflicts, rounded.identical) == ([], True)
    late = compare(make("c", rows), make("d", [fit(("nc", ""), 0, 0.5, status="timeout"), *rows[1:]]))
    assert (late.cells.conflicts, late.cells.n_timeouts) == ([], 1)
    assert "1 cell with equal keys and other numbers had a time limit that ended the fit" in page(late)


def by_hand(one: Sequence[float], other: Sequence[float], factor: float) -> tuple[float, float]:
    """Return t and the p-value of paired differences, with the variance of the mean `factor` times theirs."""
    differences = [a - b for a, b in zip(one, other, strict=True)]
    t = statistics.mean(differences) / math.sqrt(factor * statistics.variance(differences))
    return t, float(2 * (1 - stats.t.cdf(abs(t), len(differences) - 1)))


def test_another_version_with_the_same_splits_is_tested_in_pairs(make: Make) -> None:
    two = compare(make("a", fits()), make("b", fits(OTHERS, version="new"), manifest={"git_commit": "f" * 40}))
    block = two.blocks[0]
    assert (block.pairing.kind, block.pairing.resampled) == ("paired", True)
    found = number(two)
    t, p = by_hand(ACCURACIES, OTHERS, 1 / 5 + 2000 / 8000)
    assert found.difference is not None
    assert found.high is not None
    assert found.p_raw == pytest.approx(p, rel=1e-9)
    assert found.difference == pytest.approx(0.0044)
    assert found.difference / t == pytest.approx((found.high - found.difference) / stats.t.isf(0.025, 4))
    assert found.p == pytest.approx(min(1.0, 3 * p)), "three columns have the same differences, and Holm counts them"
    assert "both versions of klr-bench split in the same way" in page(two)
    assert number(two, "n_support").outcome is Outcome.EQUAL


def test_where_the_test_rows_are_fixed_the_variance_is_that_of_the_mean(make: Make) -> None:
    fixed = {"datasets": {"magic": DATA | {"split": {"official": True}}}}
    two = compare(make("a", fits(), **fixed), make("b", fits(OTHERS, version="new"), **fixed))
    assert number(two).p_raw == pytest.approx(stats.ttest_rel(ACCURACIES, OTHERS).pvalue)
    assert "as the test rows are fixed" in page(two)


def test_other_seeds_are_not_paired(make: Make) -> None:
    two = compare(make("a", fits()), make("b", fits(OTHERS, version="seed 1", seed=1), seed=1))
    assert (two.blocks[0].pairing.kind, two.blocks[0].pairing.because) == ("unpaired", "the seeds differ")
    assert number(two).p_raw == pytest.approx(stats.ttest_ind(ACCURACIES, OTHERS, equal_var=False).pvalue)
    text = page(two)
    assert "seed 0 1" in text
    assert "Not paired, because the seeds differ: Welch's t test" in text


OLD = {"label": "MAGIC", **DATA["source"], "n_samples": 100, "positive": 3, "split": SPLIT}
"""A data set of schema version 1: its source is part of it."""


@pytest.mark.parametrize(
    ("first", "second", "because"),
    [
        (DATA, DATA | {"split": {"test_size": 0.5}}, "the splits differ"),
        (
            DATA,
            DATA | {"source": DATA["source"] | {"train": {"name": "magic.data", "sha256": "00"}}},
            "the data differ",
        ),
        (DATA, DATA | {"positive": "h"}, "the data differ"),
        (DATA, DATA | {"only": [3]}, "the data differ"),
        (DATA, DATA | {"source": DATA["source"] | {"reference": "Other words"}}, None),
        (DATA, DATA | {"label": "Other", "scale": "minmax", "only": None}, None),
        (DATA | {"source": DATA["source"] | {"n_samples": 100}, "positive": "3"}, OLD, None),
    ],
)
def test_pairs_have_the_same_data_and_split(
    make: Make, first: dict[str, Any], second: dict[str, Any], because: str | None
) -> None:
    one = make("a", fits(), datasets={"magic": first})
    two = compare(one, make("b", fits(OTHERS, version="b"), datasets={"magic": second}))
    assert two.blocks[0].pairing.kind == ("unpaired" if because else "paired")
    assert not because or two.blocks[0].pairing.because == because
    fewer = compare(one, make("c", fits(OTHERS, version="b", n_train=7999), datasets={"magic": first}))
    assert fewer.blocks[0].pairing.because == "the numbers of rows or columns differ"


@pytest.mark.parametrize(
    ("ours", "theirs", "datasets", "outcome", "said"),
    [
        (ACCURACIES, OTHERS, {}, Outcome.SPLIT, "the manifest of B does not say how it is split"),
        (ACCURACIES[:1], OTHERS[:1], None, Outcome.FEW, "a test needs 3 repeats in both, and there is 1. Run with"),
        (ACCURACIES[:2], OTHERS[:2], None, Outcome.FEW, "a test needs 3 repeats in both, and there are 2. Run with"),
        ((0.5, 0.75, 1.0), (0.25, 0.5, 0.75), None, Outcome.CONSTANT, "the same difference in each repeat"),
    ],
)
def test_what_is_not_tested_says_why(
    make: Make, ours: Sequence[float], theirs: Sequence[float], datasets: Any, outcome: Outcome, said: str
) -> None:
    config = {} if datasets is None else {"datasets": datasets}
    two = compare(make("a", fits(ours)), make("b", fits(theirs, version="b"), **config))
    assert (number(two).outcome, number(two).p) == (outcome, None)
    assert said in " ".join(documents(two)[1].caption)
    assert documents(two)[0].title.endswith("3 numbers not equal, none tested")


def test_a_metric_that_one_run_has_not_measured_is_no_conflict(make: Make) -> None:
    two = compare(make("a", fits(auc=0.9)), make("b", fits()), ["accuracy", "auc"])
    assert two.cells.conflicts == []
    assert number(two, "auc").outcome is Outcome.ONE_ONLY
    assert documents(two)[0].title.endswith(": equal numbers in all 15 cells that both have")
    assert "Measured in A alone: auc." in documents(two)[0].caption


def test_a_difference_that_is_more_than_chance_is_said_to_be(make: Make) -> None:
    worse = [accuracy - 0.05 + 0.0001 * n for n, accuracy in enumerate(ACCURACIES)]
    two = compare(make("a", fits()), make("b", fits(worse, version="b")))
    assert number(two).significant
    summary = documents(two)[1].grids[0]
    assert summary.header == ["Metric", "compared", "equal", "A better"]
    assert summary.rows[0] == ["Accuracy", "3", "-", "3"]
    assert documents(two)[0].title.endswith("3 of 3 comparisons significant, 3 more with equal numbers")
    turned = documents(compare(two.second.folder, two.first.folder))[1].grids[0]
    assert turned.header[-1] == "B better"
    less = [
        replace(row, key=f"{row.key}b", metrics=row.metrics | {"n_support": 3000 + 7 * row.repeat**2}) for row in fits()
    ]
    summary = documents(compare(two.first.folder, make("less", less)))[1].grids[0]
    assert (summary.rows[-1], summary.header[-1]) == (["Support vectors", "3", "-", "3"], "B better")


def test_means_are_those_of_the_repeats_that_both_have(make: Make) -> None:
    two = compare(make("a", fits()), make("b", fits(OTHERS[:3], version="b")))
    found = number(two)
    assert (found.first.n, found.second.n) == (3, 3)
    assert found.first.mean == pytest.approx(statistics.mean(ACCURACIES[:3]))
    text = page(two)
    assert "Only in A, 6 cells: repeats 3 to 4 of Baseline on MAGIC, and 2 more columns." in text


def test_cells_of_one_run_alone_are_counted_and_named(make: Make) -> None:
    extra = [fit(("pegasos", "lam=0.1"), n, 0.8) for n in range(5)]
    rings = [fit(("nc", ""), n, 0.9, dataset="rings", key=f"r{n}") for n in range(2)]
    variant = [fit(("oskl", "G=4"), 0, 0.8)]
    two = compare(make("a", [*fits(), *extra, *rings]), make("b", [*fits(), *variant]))
    text = page(two)
    assert "Only in A, 7 cells: pegasos on MAGIC (5), data set rings (2)." in text
    assert "Only in B, 1 cell: OSKL G=4 on MAGIC (1)." in text
    assert "15 cells in both: 15 with equal keys" in text
    assert not two.identical


def test_times_have_a_ratio_on_one_idle_machine_alone(make: Make) -> None:
    slower = [replace(row, metrics=row.metrics | {"fit_time_s": 2 * row.metrics["fit_time_s"]}) for row in fits()]
    idle = compare(make("a", slower), make("b", fits(version="b")))
    assert number(idle, "fit_time_s").ratio == pytest.approx(2.0)
    assert number(idle, "fit_time_s").p is None
    assert "2.00x" in page(idle)
    for name, changes, why in (
        ("other", {"host": "there"}, "Times cannot be compared: A ran on here, A CPU, 1 thread; B on there"),
        ("busy", {"load": 0.35}, "Times cannot be compared: others used up to 35 % of the machine"),
        (
            "unnamed",
            {"host": "", "cpu": ""},
            "Times cannot be compared: the records of B do not all name their machine",
        ),
    ):
        two = compare(make("a", slower), make(name, fits(version="b", **changes)))
        assert number(two, "fit_time_s").ratio is None
        assert why in page(two)
    assert "machine of the records here, A CPU, 1 thread there, A CPU, 1 thread" in page(
        compare(make("a", slower), make("other", fits(version="b", host="there")))
    )


def test_settings_that_differ_are_named_at_any_depth(make: Make) -> None:
    one = {"versions": {"numpy": "2.4.6"}, "git_commit": "a" * 40, "machine": {"cpu": "X", "workers": 2}}
    other = {"versions": {"numpy": "2.5.0"}, "git_commit": "b" * 40, "machine": {"cpu": "X", "workers": 4}}
    longer = {"algorithms": CONFIG["algorithms"] | {"pegasos": {"label": "Pegasos"}}, "n_jobs": 3}
    kernel = {"kernel": {"kernel": "rbf", "percentile": 50.0}}
    two = compare(make("a", fits(), manifest=one), make("b", fits(version="b"), manifest=other, **kernel, **longer))
    rows = {row[0]: row[1:] for row in documents(two)[0].grids[0].rows}
    assert rows["numpy version"] == ["2.4.6", "2.5.0"]
    assert rows["git commit"] == ["aaaaaaaaaaaa...", "bbbbbbbbbbbb..."]
    assert rows["kernel.percentile"] == ["20.0", "50.0"]
    assert rows["machine: workers"] == ["2", "4"]
    assert rows["algorithms of one alone"] == ["-", "pegasos"]
    other_sweep = documents(compare(two.first.folder, make("c", fits(), manifest=one, sweep={})))[0].grids[0].rows
    assert "sweep.oskl" in [row[0] for row in other_sweep], "both have the algorithm"
    assert not any(name.startswith("algorithms.pegasos") or name == "n_jobs" for name in rows)
    assert "Also different, with an effect on times at most: n_jobs (-; 3)." in page(two)
    assert documents(two)[0].title.endswith("equal numbers in all 15 cells that both have")


def test_long_values_are_shown_where_they_differ(make: Make) -> None:
    values = [[*range(100), last] for last in (7, 8)]
    two = compare(*(make(name, fits(), data={"columns": value}) for name, value in zip("ab", values, strict=True)))
    (row,) = (row for row in documents(two)[0].grids[0].rows if row[0] == "data.columns")
    assert (row[1][:3], row[1][-2:], row[2][-2:]) == ("...", "7]", "8]")


def test_parameters_of_the_fits_that_differ_are_listed(make: Make) -> None:
    ours = [replace(row, params={"lam": 1e-4, "R": 10.0 if row.repeat else 1.0, "new": True}) for row in fits()]
    theirs = [replace(row, params={"lam": 1e-5, "R": 10.0}) for row in fits(version="b")]
    two = compare(make("a", ours), make("b", theirs))
    assert [(one.parameter, one.first, one.second) for one in two.fixed] == [
        ("lam", "0.0001", "1e-05"),
        ("new", "True", "-"),
    ]
    assert [(one.parameter, one.n_differ, one.n_fits) for one in two.chosen] == [("R", 3, 15)]
    text = page(two)
    assert "Selected or computed in each repeat, and not equal in all: R (3 of 15 fits)." in text
    assert "lam 0.0001 1e-05 all 3 columns" in text


def test_a_number_that_is_not_in_the_tables_is_named_if_it_differs(make: Make) -> None:
    ours, theirs = fits(auc=0.9), fits(version="b", auc=0.9)
    theirs[0] = replace(theirs[0], metrics=theirs[0].metrics | {"auc": 0.9001})
    text = page(compare(make("a", ours), make("b", theirs)))
    assert "different with equal seed, data and split: auc (1 cell, by 0.0001 at most)" in text


def test_columns_are_the_metrics_that_are_asked_for(make: Make) -> None:
    rows = fits(auc=0.9)
    two = compare(make("a", rows), make("b", rows), ["auc"])
    assert {one.metric.name for one in numbers_of(two.blocks)} == {"auc"}
    with pytest.raises(KlrBenchError, match="columns: unknown value"):
        compare(make("a", rows), make("b", rows), ["aux"])


HOSTILE = ("<script>alert(1)</script>", "[red]x[/red]", "a|b", r"\input{x}", "*b* _c_ `d`", ":smile:")


def test_hostile_names_stay_text(make: Make, tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "algorithms": {"nc": {"label": HOSTILE[0]}, "oskl": {"label": HOSTILE[1]}},
        "datasets": {"magic": DATA | {"label": HOSTILE[2]}},
    }
    evil = {
        "versions": {name: "1" for name in HOSTILE},
        "git_commit": "\x1b[31mred",
        "changed": ["=cmd|'/c'!A1"],
        "updated": "\x1b[31m",
    }
    ours = [replace(row, params={"=1+1": HOSTILE[3]}) for row in fits(mine=0.5)]
    theirs = [replace(row, params={"=1+1": "\x1b[2J"}) for row in fits(OTHERS, version="b")]
    first, second = make("a", ours, **config), make("b", theirs, manifest=evil, **config)
    table = first / "records.csv"
    table.write_text(table.read_text().replace(",mine", ",\x1b[7m", 1))
    file = io.StringIO()
    console = PlainConsole(file=file, width=300)
    report_comparison(first, second, console=console, formats=["terminal", "md", "tex", "csv"], output=tmp_path / "out")
    text = file.getvalue()
    assert "\x1b" not in text
    assert r"Measured in A alone: \x1b[7m." in text
    assert "<script>alert(1)</script>  " in text
    assert "[red]x[/red] G=1  " in text
    assert not any("\x1b" in path.read_text() for path in (tmp_path / "out").iterdir())
    markdown, latex = (tmp_path / "out" / f"against.{kind}" for kind in ("md", "tex"))
    assert r"\<script\>" in markdown.read_text()
    assert "| <" not in markdown.read_text()
    assert r"a\|b" in markdown.read_text()
    assert r"\input{x}" not in latex.read_text()
    rows = list(csv.DictReader((tmp_path / "out" / "against.csv").open()))
    assert not any(str(value).startswith("=") for row in rows for value in row.values())
    assert [row["metric"] for row in rows if row["algorithm"] == "nc"] == ["accuracy", "n_support", "fit_time_s"]
    first_row = rows[0]
    assert float(first_row["mean_a"]) - float(first_row["mean_b"]) == pytest.approx(float(first_row["difference"]))
    assert (first_row["repeats"], first_row["outcome"], first_row["n_a"]) == ("paired", "tested", "5")


def command(*arguments: object) -> int:
    return main(["report", *map(str, arguments)])


def test_the_command_compares_a_name_a_path_and_two_results_folders(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = make("one/demo", fits()), make("one/other", fits(OTHERS, version="b"))
    third = make("two,three/demo", fits(OTHERS, version="b"))
    where = f"results_dir={tmp_path / 'one'}"
    assert command("experiment=demo", where, "against=other", "format=terminal,md,tex,csv") == 0
    out = capsys.readouterr().out
    assert "demo (A) against other (B)" in out
    assert sorted(path.name for path in (first / "report").iterdir()) == ["against.csv", "against.md", "against.tex"]
    assert str(first / "report" / "against.md") in out
    assert command("experiment=demo", where, f"against={second}", "format=md", f"output={tmp_path / 'o'}") == 0
    assert (tmp_path / "o" / "against.md").is_file()
    assert command("experiment=demo", f"results_dir={third.parent}", "format=csv") == 0, "a folder with a comma"
    third.parent.rename(tmp_path / "two")
    capsys.readouterr()
    assert command("experiment=demo", f"{where},{tmp_path / 'two'}") == 0
    assert f"{first} (A) against {tmp_path / 'two' / 'demo'} (B)" in " ".join(capsys.readouterr().out.split())


def test_bad_input_has_one_clear_message(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make("one/demo", fits())
    make("one/rings", [fit(("nc", ""), 0, 0.5, dataset="rings")], datasets={})
    make("one/pegasos", [fit(("pegasos", ""), 0, 0.5)])
    make("one/sizes", [fit(("nc", "budget=3"), 0, 0.5), fit(("nc", "budget=4"), 0, 0.5)])
    where = f"results_dir={tmp_path / 'one'}"
    for arguments, said in (
        ([where, "against=demo"], "against itself"),
        ([where, f"against={tmp_path}/one/../one/demo"], "against itself"),
        ([where, "against=rinks"], "Did you mean 'rings'?"),
        ([where, f"against={tmp_path / 'one'}/"], "expected the folder of one experiment, got one of several"),
        ([where, "against=rings"], "they share no data set: the first has magic, the second rings."),
        ([where, "against=pegasos"], "they share no algorithm on magic: the first has nc, oskl, the second pegasos."),
        ([where, "against=sizes"], "they share no variant on magic: the first has Baseline"),
        ([f"{where},{tmp_path}", "against=rings"], "both name the other run"),
        ([f"{where},{tmp_path},{tmp_path}/x"], "expected one folder, or two as in results_dir=X,Y, got 3"),
        ([where, "against=rings", "table=3"], "table: has no effect beside against=rings"),
        ([where, "against=rings", "format=pdf"], "format=pdf: has no effect beside against=rings"),
        ([where, "against=rings", "format=word"], "format: unknown value 'word'"),
        ([where, "against=rings", "columns=aux"], "columns"),
    ):
        assert command("experiment=demo", *arguments) == 2, arguments
        message = capsys.readouterr().err
        assert said in message
        assert message.count("error:") == 1


def test_the_other_run_is_completed(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("results/demo", fits())
    monkeypatch.chdir(tmp_path)
    line = "klr-bench report experiment=x against=de"
    assert complete(line, len(line)) == ["against=demo "]


def test_a_real_run_equals_itself_and_differs_from_other_seeds(tmp_path: Path) -> None:
    overrides = ["dataset=[moons]", "algorithm=[nc]", "algorithms.nc.grid={R:[10.0]}", "repeats=3", "trace.points=0"]
    config = composed(*overrides, "parallel=serial", f"data.cache={tmp_path / 'cache'}")
    folders = []
    for name, seed in (("first", 0), ("again", 0), ("seed", 1)):
        changed = config.model_copy(update={"results_dir": str(tmp_path / name), "seed": seed})
        runner.run(changed, console=Console(quiet=True))
        folders.append(tmp_path / name / config.name)
    assert compare(folders[0], folders[1]).identical
    two = compare(folders[0], folders[2])
    assert (two.cells.n_both, two.cells.n_equal_keys, two.blocks[0].pairing.because) == (3, 0, "the seeds differ")

"""Two runs compared: differences are named, those beyond chance are tested, and what cannot be compared says why."""

import csv
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from scipy import stats

from klr_bench import runner
from klr_bench.cli import main
from klr_bench.cli.completion import complete
from klr_bench.errors import KlrBenchError
from klr_bench.report.compare.comparison import Comparison, Number, Outcome, compare
from klr_bench.report.compare.pages import documents, report_comparison
from klr_bench.report.compare.runs import Pairing
from klr_bench.results.record import Record
from tests.config.composing import composed
from tests.report.folders import Make, printed, quiet, record, write
from tests.report.statistics import reference

HERE = {"host": "here", "cpu": "A CPU, 1 thread", "load": 0.01}
SPLIT = {"test_size": 0.2}
FILE = {"name": "magic.data", "sha256": "e9" * 32, "url": "https://here/magic"}
DATA = {"label": "MAGIC", "source": {"format": "csv", "train": FILE}, "split": SPLIT}
CONFIG: dict[str, Any] = {
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
"""Accuracies of other repeats, or of a version that learns slightly worse."""


def fit(column: tuple[str, str], repeat: int, accuracy: float, **changes: Any) -> Record:
    values: dict[str, Any] = {"dataset": "magic", "seed": 0, "accuracy": accuracy, "n_support": 3440 + repeat}
    values |= {"fit_time_s": 0.5 + 0.01 * repeat, "n_train": 8000, "n_test": 2000, "n_features": 10, **HERE}
    return record(*column, repeat, **(values | changes))


def fits(accuracies: Sequence[float] = ACCURACIES, version: str = "", **changes: Any) -> list[Record]:
    """Return a record for each method and accuracy; records of another `version` have other keys."""
    rows = [fit(column, n, accuracy, **changes) for column in COLUMNS for n, accuracy in enumerate(accuracies)]
    return [replace(row, key=f"{row.key}{version}") for row in rows]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that makes a results folder of some records."""

    def folder(name: str, rows: Sequence[Record], manifest: Any = None, **config: Any) -> Path:
        return write(tmp_path / name, rows, CONFIG | config, **(manifest or {}))

    return folder


def page(two: Comparison) -> str:
    """Return all that is printed, on one line, with single blanks."""
    return " ".join(printed(*documents(two)).split())


def number(two: Comparison, metric: str = "accuracy", label: str = "Baseline") -> Number:
    numbers = {(entry.metric.name, two.first.method_label(entry.method)): entry for entry in two.all_numbers}
    return numbers[metric, label]


def test_two_equal_runs_are_identical_and_one_sentence_says_so(make: Make) -> None:
    rows = fits(peak_memory_mb=100.0)
    later = [replace(row, metrics=row.metrics | {"fit_time_s": 9.0, "peak_memory_mb": 900.0}) for row in rows]
    other = make("b", later, {"updated": "2026-01-01T10:00"}, results_dir="elsewhere", data={"cache": "/there"})
    (document,) = documents(compare(make("a", rows), other))
    assert document.title == "a (A) compared with b (B): identical"
    assert document.caption[0] == "The two runs have identical cells, keys and results, except times and memory."
    assert "data.cache (/here; /there)" in document.caption[1]
    assert [row[0] for row in document.grids[0].rows] == ["results", "last run", "cells"]


def test_equal_keys_with_different_numbers_come_first(make: Make) -> None:
    numpys = [{"versions": {"numpy": version}} for version in ("2.4.6", "2.5.0")]
    changed = [fit(("nc", ""), 0, 0.8511), fit(("nc", ""), 1, ACCURACIES[1], n_support=3439), *fits()[2:]]
    first = documents(compare(make("a", fits(), numpys[0]), make("b", changed, numpys[1])))[0]
    assert first.title == "a (A) compared with b (B): 2 of 15 equal keys with different numbers"
    assert first.grids[0].rows == [
        ["Baseline on MAGIC", "0", "accuracy", "0.851", "0.8511"],
        ["Baseline on MAGIC", "1", "n_support", "3441", "3439"],
    ]
    assert first.caption[0].startswith("Not reproducible: 2 of 15 cells with the same key have different values")
    assert first.caption[0].endswith("Also different: versions.numpy.")


def test_failures_rounding_and_time_limits_are_no_conflicts(make: Make) -> None:
    rows = fits()
    first = make("a", rows)
    failed = compare(first, make("b", [fit(("nc", ""), 0, ACCURACIES[0], status="killed"), *rows[1:]]))
    assert (failed.cells.conflicts, failed.cells.n_equal_numbers, failed.identical) == ([], 14, False)
    assert "equal numbers in 14 of 15 cells of both" in page(failed)
    assert "Baseline on MAGIC (4 of 5 repeats of B)." in page(failed)
    assert compare(first, make("c", [fit(("nc", ""), 0, ACCURACIES[0] + 1e-8), *rows[1:]])).identical
    late = compare(first, make("d", [fit(("nc", ""), 0, 0.5, status="timeout"), *rows[1:]]))
    assert (late.cells.conflicts, late.cells.n_equal_numbers) == ([], 14)
    all_late = [row if row.algorithm == "oskl" else replace(row, status="timeout") for row in fits(OTHERS, version="e")]
    two = compare(first, make("e", all_late))
    assert number(two).second.mean == pytest.approx(statistics.mean(OTHERS))
    assert "or if there are none those at the time limit: Baseline on MAGIC (0 of 5 repeats of B)." in page(two)


def test_a_run_without_successful_repeats_is_not_equal(make: Make) -> None:
    rows = fits()
    two = compare(make("a", rows), make("b", [replace(row, status="error", metrics={}) for row in rows]))
    assert not two.equal_numbers
    assert "no number in both" in documents(two)[0].title
    halves = [
        [row if row.repeat in repeats else replace(row, status="error", metrics={}) for row in rows]
        for repeats in ((0, 1), (2, 3))
    ]
    apart = compare(make("c", halves[0]), make("d", halves[1]))
    assert {number.outcome.value for number in apart.numbers} == {"no repeat has a value in both runs"}
    assert not any(number.metric.of_machine for number in apart.numbers)
    assert not apart.equal_numbers
    assert "no number in both" in documents(apart)[0].title


def test_another_version_with_the_same_splits_is_tested_in_pairs(make: Make) -> None:
    two = compare(make("a", fits()), make("b", fits(OTHERS, version="new"), {"git_commit": "f" * 40}))
    assert two.pairings["magic"] == Pairing("paired", "seed, data and split are equal", resampled=True, proved=False)
    expected = reference.interval([a - b for a, b in zip(ACCURACIES, OTHERS, strict=True)], 2000 / 8000, 0.95)
    accuracy = number(two)
    assert (accuracy.difference, accuracy.low, accuracy.high, accuracy.p_raw) == pytest.approx(expected, rel=1e-9)
    assert accuracy.p == pytest.approx(min(1.0, 3 * expected[-1])), "three methods have the same differences"
    assert "both versions of klr-bench split in the same way" in page(two)
    assert number(two, "n_support").outcome is Outcome.EQUAL


def test_fixed_test_rows_need_no_correction_and_other_seeds_are_not_paired(make: Make) -> None:
    fixed = {"datasets": {"magic": DATA | {"split": {"official": True}}}}
    two = compare(make("a", fits(), **fixed), make("b", fits(OTHERS, version="new"), **fixed))
    assert number(two).p_raw == pytest.approx(stats.ttest_rel(ACCURACIES, OTHERS).pvalue)
    assert "as the test rows are fixed" in page(two)
    two = compare(make("c", fits()), make("d", fits(OTHERS, version="seed 1", seed=1), seed=1))
    assert (two.pairings["magic"].kind, two.pairings["magic"].because) == ("unpaired", "the seeds differ")
    assert number(two).p_raw == pytest.approx(stats.ttest_ind(ACCURACIES, OTHERS, equal_var=False).pvalue)
    assert "seed 0 1" in page(two)
    assert "The repeats are not paired, because the seeds differ; Welch's t test is used: MAGIC." in page(two)


SOURCE: dict[str, Any] = {"format": "csv", "train": FILE}


@pytest.mark.parametrize(
    ("first", "second", "because"),
    [
        (DATA, DATA | {"split": {"test_size": 0.5}}, "the splits differ"),
        (DATA, DATA | {"source": SOURCE | {"train": FILE | {"sha256": "00" * 32}}}, "the data differ"),
        (DATA, DATA | {"positive": "h"}, "the data differ"),
        (DATA, DATA | {"only": [3]}, "the data differ"),
        (DATA, DATA | {"source": SOURCE | {"reference": "Other words"}}, None),
        (DATA, DATA | {"label": "Other", "scale": "minmax", "only": None}, None),
    ],
)
def test_pairs_have_the_same_data_and_split(make: Make, first: Any, second: Any, because: str | None) -> None:
    folder = make("a", fits(), datasets={"magic": first})
    two = compare(folder, make("b", fits(OTHERS, version="b"), datasets={"magic": second}))
    assert two.pairings["magic"].kind == ("unpaired" if because else "paired")
    assert not because or two.pairings["magic"].because == because
    fewer = compare(folder, make("c", fits(OTHERS, version="b", n_train=7999), datasets={"magic": first}))
    assert fewer.pairings["magic"].because == "the numbers of rows or columns differ"


@pytest.mark.parametrize(
    ("ours", "theirs", "datasets", "outcome", "reason"),
    [
        (ACCURACIES, OTHERS, {}, Outcome.SPLIT, "a manifest does not say how the data are split"),
        (ACCURACIES[:2], OTHERS[:2], CONFIG["datasets"], Outcome.FEW, "fewer than 3 repeats in a run; use repeats=3"),
        ((0.5, 0.75, 1.0), (0.25, 0.5, 0.75), CONFIG["datasets"], Outcome.CONSTANT, "the same difference in each"),
    ],
)
def test_what_is_not_tested_says_why(
    make: Make, ours: Sequence[float], theirs: Sequence[float], datasets: Any, outcome: Outcome, reason: str
) -> None:
    two = compare(make("a", fits(ours)), make("b", fits(theirs, version="b"), datasets=datasets))
    assert (number(two).outcome, number(two).p) == (outcome, None)
    assert reason in " ".join(documents(two)[1].caption)
    assert documents(two)[0].title.endswith("3 numbers not equal, none tested")


def test_a_metric_of_one_run_and_one_outside_the_tables(make: Make) -> None:
    first = make("a", fits(auc=0.9))
    two = compare(first, make("b", fits()), ["accuracy", "auc"])
    assert (two.cells.conflicts, number(two, "auc").outcome) == ([], Outcome.ONE_ONLY)
    assert documents(two)[0].title.endswith(": equal numbers in all 15 cells of both")
    assert "Measured in A only: auc." in documents(two)[0].caption
    theirs = fits(version="c", auc=0.9)
    theirs[0] = replace(theirs[0], metrics=theirs[0].metrics | {"auc": 0.9001})
    two = compare(first, make("c", theirs))
    assert "Cells omitted because they differ despite having the same seed, data and split: auc (1 cell)." in page(two)
    two = compare(first, make("d", fits(auc=0.9)), ["auc"])
    assert {entry.metric.name for entry in two.numbers} == {"auc"}
    with pytest.raises(KlrBenchError, match="columns: unknown value"):
        compare(first, make("d", []), ["aux"])


def test_a_difference_beyond_chance_names_the_better_run(make: Make) -> None:
    worse = [accuracy - 0.05 + 0.0001 * n for n, accuracy in enumerate(ACCURACIES)]
    first, second = make("a", fits()), make("b", fits(worse, version="b"))
    two = compare(first, second)
    assert number(two).significant
    assert documents(two)[0].title.endswith("3 numbers not equal, 3 of 3 tested ones significantly")
    assert [row[-1].strip() for row in documents(two)[1].grids[0].rows] == ["", *["A better"] * 3]
    less = [replace(row, key=f"{row.key}b", metrics=row.metrics | {"n_support": 7 * row.repeat**2}) for row in fits()]
    assert "B better" in page(compare(first, make("less", less))), "fewer support vectors are better"


def test_cells_of_one_run_are_named_and_enter_no_mean(make: Make) -> None:
    two = compare(make("a", fits()), make("b", fits(OTHERS[:3], version="b")))
    assert (number(two).first.n, number(two).second.n) == (3, 3)
    assert number(two).first.mean == pytest.approx(statistics.mean(ACCURACIES[:3]))
    assert "Only in A, 6 cells: Baseline on MAGIC (2), OSKL G=1 on MAGIC (2), OSKL G=10 on MAGIC (2)." in page(two)
    rings = [fit(("nc", ""), n, 0.9, dataset="rings", key=f"r{n}") for n in range(2)]
    two = compare(make("c", [*fits(), *rings]), make("d", [*fits(), fit(("oskl", "G=4"), 0, 0.8)]))
    assert "Only in A, 2 cells: data set rings (2)." in page(two)
    assert "Only in B, 1 cell: OSKL G=4 on MAGIC (1)." in page(two)
    assert "15 cells in both runs: 15 with identical keys" in page(two)
    assert not two.identical


def test_times_have_a_ratio_only_on_the_same_idle_machine(make: Make) -> None:
    slower = [replace(row, metrics=row.metrics | {"fit_time_s": 2 * row.metrics["fit_time_s"]}) for row in fits()]
    first = make("a", slower)
    idle = compare(first, make("b", fits(version="b")))
    assert (number(idle, "fit_time_s").ratio, number(idle, "fit_time_s").p) == (pytest.approx(2.0), None)
    assert "2.00x" in page(idle)
    for name, changes, reason in (
        ("other", {"host": "there"}, "A ran on here, A CPU, 1 thread, B on there, A CPU, 1 thread."),
        ("busy", {"load": 0.35}, "other processes were using more than 10 % of the machine when some fits started."),
        ("unnamed", {"host": "", "cpu": ""}, "some records do not name their machine."),
    ):
        two = compare(first, make(name, fits(version="b", **changes)))
        assert number(two, "fit_time_s").ratio is None
        assert f"Times cannot be compared where {reason}" in page(two)


def test_settings_that_differ_are_named_at_any_depth(make: Make) -> None:
    changed = {"kernel": {"kernel": "rbf", "percentile": 50.0}, "n_jobs": 3, "sweep": {}}
    changed["algorithms"] = CONFIG["algorithms"] | {"pegasos": {"label": "Pegasos"}}
    first, second = ([*range(1, 101), last] for last in (7, 8))
    folder = make("a", fits(), {"versions": {"numpy": "2.4.6"}}, budget=first)
    two = compare(folder, make("b", fits(version="b"), {"versions": {"numpy": "2.5.0"}}, budget=second, **changed))
    rows = {row[0]: row[1:] for row in documents(two)[0].grids[0].rows}
    assert rows["versions.numpy"] == ["2.4.6", "2.5.0"]
    assert rows["kernel.percentile"] == ["20", "50"]
    assert rows["algorithms in one run only"] == ["-", "pegasos"]
    assert rows["sweep.oskl.G"] == ["[1, 10]", "-"]
    assert [(text[:3], text[-2:]) for text in rows["budget"]] == [("...", "7]"), ("...", "8]")]
    assert not any(name.startswith("algorithms.pegasos") or name == "n_jobs" for name in rows)
    assert "Other differences, which can affect only times: n_jobs (-; 3)." in page(two)


def test_parameters_of_the_fits_that_differ_are_listed(make: Make) -> None:
    ours = [replace(row, params={"lam": 1e-4, "R": 10.0 if row.repeat else 1.0, "new": True}) for row in fits()]
    theirs = [replace(row, params={"lam": 1e-5, "R": 10.0}) for row in fits(version="b")]
    two = compare(make("a", ours), make("b", theirs))
    assert [*two.parameters] == [("lam", "0.0001", "1e-05"), ("R", "1, 10", "10"), ("new", "true", "-")]
    assert "lam 0.0001 1e-05 Baseline on MAGIC, OSKL G=1 on MAGIC, and 1 more" in page(two)


def test_hostile_names_stay_text(make: Make, tmp_path: Path) -> None:
    config: dict[str, Any] = {"algorithms": {"nc": {"label": "<script>"}, "oskl": {"label": "[red]x[/red]"}}}
    config |= {"datasets": {"magic": DATA | {"label": r"a|b \input{x}"}}}
    evil = {"versions": {":smile:": "1"}, "git_commit": "\x1b[31mred", "changed": ["=cmd|'/c'!A1"]}
    first = make("a", [replace(row, params={"=1+1": "*b* _c_"}) for row in fits()], **config)
    theirs = [replace(row, params={"=1+1": "\x1b[2J"}) for row in fits(OTHERS, version="b")]
    second = make("b", theirs, evil, **config)
    text = printed(*documents(compare(first, second)))
    assert "<script>  " in text
    assert "[red]x[/red] G=1  " in text
    report_comparison(first, second, console=quiet(), formats=["md", "tex", "csv"], output=tmp_path / "out")
    files = {kind: (tmp_path / "out" / f"against.{kind}").read_text() for kind in ("md", "tex", "csv")}
    assert not any("\x1b" in content for content in (text, *files.values()))
    assert r"\<script\>" in files["md"]
    assert r"\input{x}" not in files["tex"]
    rows = list(csv.DictReader(files["csv"].splitlines()))
    assert not any(str(value).startswith("=") for row in rows for value in row.values())
    assert [row["metric"] for row in rows if row["algorithm"] == "nc"] == ["accuracy", "n_support", "fit_time_s"]
    assert float(rows[0]["mean_a"]) - float(rows[0]["mean_b"]) == pytest.approx(float(rows[0]["difference"]))
    assert (rows[0]["repeats"], rows[0]["outcome"], rows[0]["n_a"]) == ("paired", "tested", "5")


def command(*arguments: object) -> int:
    return main(["report", "experiment=demo", *map(str, arguments)])


def test_the_command_compares_a_name_a_path_and_two_results_folders(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make("results/demo", fits()), make("results/other", fits(OTHERS, version="b"))
    third = make("two,three/demo", fits(OTHERS, version="b"))
    where = f"results_dir={tmp_path / 'results'}"
    assert command(where, "compare=other", "format=terminal,md,tex,csv") == 0
    out = capsys.readouterr().out
    assert "demo (A) compared with other (B)" in out
    assert sorted(path.name for path in (first / "report").iterdir()) == ["against.csv", "against.md", "against.tex"]
    assert str(first / "report" / "against.md") in out
    assert command(where, f"compare={second}", "format=md", f"output={tmp_path / 'o'}") == 0
    assert (tmp_path / "o" / "against.md").is_file()
    assert command(f"results_dir={third.parent}", "format=csv") == 0, "a folder with a comma"
    third.parent.rename(tmp_path / "two")
    capsys.readouterr()
    assert command(f"{where},{tmp_path / 'two'}") == 0
    assert f"{first} (A) compared with {tmp_path / 'two' / 'demo'} (B)" in " ".join(capsys.readouterr().out.split())
    monkeypatch.chdir(tmp_path)
    line = "klr-bench report experiment=x compare=de"
    assert complete(line, len(line)) == ["compare=demo "]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compare={one}/../one/demo", "the same folder twice"),
        ("compare=rinks", "Did you mean 'rings'?"),
        ("compare=rings", "expected a method in common, but one has Baseline on MAGIC, "),
        ("results_dir={one},{one}/.. compare=rings", "both name the other run"),
        ("results_dir={one},{one}/..,{one}/x", "expected one folder, or two as in results_dir=X,Y, got 3"),
        ("compare=rings table=3", "table=3: has no effect"),
        ("compare=rings format=pdf", "format=pdf has no effect"),
    ],
)
def test_bad_input_has_one_clear_message(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    make("one/demo", fits())
    make("one/rings", [fit(("nc", ""), 0, 0.5, dataset="rings")], datasets={})
    words = arguments.format(one=tmp_path / "one").split()
    where = [] if "results_dir" in arguments else [f"results_dir={tmp_path / 'one'}"]
    assert command(*where, *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("error:") == 1


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
    assert (two.cells.n_both, two.cells.n_equal_keys, two.pairings["moons"].because) == (3, 0, "the seeds differ")

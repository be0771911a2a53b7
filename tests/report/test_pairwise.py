"""`statistics=true`: every two lines compared, on each data set and over the data sets, as other libraries do it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import baycomp
import numpy as np
import pytest
from scipy import stats

from klr_bench.cli import main
from klr_bench.report import report
from klr_bench.report.load import read_results
from klr_bench.report.pairwise import chosen_metrics, on_data_sets, over_data_sets
from klr_bench.report.render import statistics_document
from klr_bench.report.table import results_table
from klr_bench.results.store import Record
from tests.report.folders import quiet, record, write
from tests.report.statistics import reference

ALGORITHMS = ("nc", "margin", "oskl")
FOLDS = 5


def scores(n_data_sets: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return accuracies (algorithms, repeats) by data set: the later algorithms are better."""
    random = np.random.default_rng(seed)
    quality = np.array([0.70, 0.75, 0.752])[:, None]
    return {
        f"set{i:02}": quality + random.normal(0, 0.01, (3, 1)) + random.normal(0, 0.01, (3, FOLDS))
        for i in range(n_data_sets)
    }


def made(folder: Path, values: dict[str, np.ndarray], metric: str = "accuracy", **config: Any) -> Path:
    rows: Sequence[Record] = [
        record(
            name,
            "",
            repeat,
            key=f"{dataset}-{name}-{repeat}",
            dataset=dataset,
            n_train=80,
            n_test=20,
            **{metric: value},
        )
        for dataset, of_set in values.items()
        for name, of_name in zip(ALGORITHMS, of_set, strict=True)
        for repeat, value in enumerate(map(float, of_name))
        if not math.isnan(value)
    ]
    datasets = {name: {"split": {"folds": FOLDS}} for name in values}
    asked = {"title": "Pairs", "repeats": FOLDS, "datasets": datasets, "experiment": "demo"}
    return write(folder / "demo", rows, asked | {"algorithms": {name: {} for name in ALGORITHMS}, "sweep": {}} | config)


def test_the_pairs_of_a_data_set_are_those_of_the_references(tmp_path: Path) -> None:
    values = scores(1)
    table = results_table(read_results(made(tmp_path, values)))
    (metric,) = chosen_metrics(table, None)
    (found,) = on_data_sets(table, metric)
    accuracies = dict(zip(ALGORITHMS, values["set00"], strict=True))
    compared = []
    for pair in found.pairs:
        ours, others = accuracies[pair.first[0]], accuracies[pair.second[0]]
        compared.append(reference.interval((ours - others).tolist(), 1 / (FOLDS - 1), 0.95))
        assert (pair.pair.difference, pair.pair.low, pair.pair.high, pair.pair.p) == pytest.approx(
            compared[-1], rel=1e-9
        )
        shares = (pair.worse, pair.equivalent, pair.better)
        assert shares == pytest.approx(baycomp.two_on_single(others, ours, rope=0.01), abs=1e-9)
    assert [pair.pair.p_holm for pair in found.pairs] == pytest.approx(
        reference.holm([p for *_, p in compared]), rel=1e-9
    )
    assert len(found.pairs) == 3


def test_of_a_loss_the_lower_is_the_better_and_there_is_no_region(tmp_path: Path) -> None:
    values = scores(1)
    table = results_table(read_results(made(tmp_path, values, "log_loss")))
    (metric,) = chosen_metrics(table, None)
    assert metric.name == "log_loss"
    pair = on_data_sets(table, metric)[0].pairs[0]
    ours, others = values["set00"][:2]
    assert (pair.worse, pair.better) == pytest.approx(baycomp.two_on_single(ours, others, rope=0.0), abs=1e-9)
    assert pair.equivalent == 0
    assert pair.pair.difference == pytest.approx((ours - others).mean())


def test_over_data_sets(tmp_path: Path) -> None:
    values = scores(9)
    table = results_table(read_results(made(tmp_path, values)))
    found = over_data_sets(table, table.shown["accuracy"])
    means = np.array([of_set.mean(axis=1) for of_set in values.values()])
    ranks = dict(zip(ALGORITHMS, reference.ranks(means.tolist()), strict=True))
    assert {line.algorithm: rank for line, rank in zip(found.lines, found.ranks, strict=True)} == pytest.approx(ranks)
    assert list(found.ranks) == sorted(found.ranks)
    assert found.friedman is not None
    assert found.friedman.p == pytest.approx(stats.friedmanchisquare(*means.T).pvalue)
    assert found.wilcoxon is not None
    columns = [ALGORITHMS.index(line.algorithm) for line in found.lines]
    first = stats.wilcoxon(means[:, columns[0]], means[:, columns[2]]).pvalue
    assert found.wilcoxon.p[0, 2] == pytest.approx(first)
    assert found.wilcoxon.p_holm[0, 2] == pytest.approx(0.0078125 * 1.5)  # 2 / 2^9, times 3
    assert found.groups == [(0, 1)]
    assert (found.n, found.missing, found.left_out) == (9, "", [])


@pytest.mark.parametrize(
    ("n", "missing"),
    [(1, "1 data set; a comparison over data sets needs at least 6"), (5, "5 data sets; a comparison over"), (6, "")],
)
def test_with_fewer_than_six_data_sets_it_says_what_is_missing(tmp_path: Path, n: int, missing: str) -> None:
    table = results_table(read_results(made(tmp_path, scores(n))))
    metric = table.shown["accuracy"]
    found = over_data_sets(table, metric)
    assert found.missing.startswith(missing)
    assert (found.friedman is None) == bool(missing)
    said = statistics_document(table, on_data_sets(table, metric), [found])
    assert len(said.grids) == n + (0 if missing else 2)
    sentence = f"Over data sets nothing is compared for accuracy: {missing}"
    assert any(line.startswith(sentence) for line in said.caption) == bool(missing)
    words = "With 6 data sets and 3 pairs no p-value after Holm can be below 0.094: no pair can be told apart"
    assert any(line.startswith(words) for line in said.caption) == (n == 6)


def test_a_line_without_a_value_on_some_data_set_is_left_out_and_named(tmp_path: Path) -> None:
    values = scores(8)
    values["set03"][0] = np.nan
    table = results_table(read_results(made(tmp_path, values)))
    found = over_data_sets(table, table.shown["accuracy"])
    assert {line.algorithm for line in found.lines} == {"margin", "oskl"}
    assert [line.algorithm for line in found.left_out] == ["nc"]
    said = statistics_document(table, [], [found]).caption
    assert "Left out, because they have no value on some data set: nc." in said
    assert not any("Friedman" in line for line in said)  # of two lines it is no test


def test_one_repeat_has_differences_and_no_p_values(tmp_path: Path) -> None:
    table = results_table(read_results(made(tmp_path, {name: of_set[:, :1] for name, of_set in scores(1).items()})))
    found = on_data_sets(table, table.shown["accuracy"])
    assert all(
        math.isnan(value)
        for pair in found[0].pairs
        for value in (pair.pair.low, pair.pair.p, pair.pair.p_holm, pair.better)
    )
    document = statistics_document(table, found, [])
    assert document.grids[0].notes == ["1 repeat; a comparison needs at least 3"]
    assert {text.strip() for row in document.grids[0].rows for text in row[3:]} == {"-"}
    assert document.caption == ["difference: the mean over the repeats that both lines have, first minus second."]


def test_the_command_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path, scores(9))
    assert (
        main(["report", "experiment=demo", f"results_dir={tmp_path}", "statistics=true", "format=terminal,md,tex,csv"])
        == 0
    )
    printed = capsys.readouterr().out
    files = {kind: folder / "report" / f"statistics.{kind}" for kind in ("md", "tex", "csv")}
    for text in (printed, files["md"].read_text(), files["tex"].read_text()):
        assert "nc - margin" in text
        assert "9 data sets: accuracy" in text
        assert "Friedman" in text
    assert all(str(path) in printed for path in files.values())
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    assert [row["test"] for row in rows] == ["paired_t"] * 27 + ["friedman"] + ["wilcoxon"] * 3
    assert all(float(row["low"]) < float(row["difference"]) < float(row["high"]) for row in rows[:27])
    assert {row["p_holm"] == "" for row in rows if row["test"] != "friedman"} == {False}


def test_without_being_asked_nothing_is_compared(tmp_path: Path) -> None:
    names = {path.name for path in report(made(tmp_path, scores(1)), console=quiet(), formats=["md", "csv"])}
    assert names >= {"table.md", "table.csv"}
    assert not any("statistics" in name for name in names)


def test_the_metrics_are_those_that_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = scores(1)
    made(tmp_path, values)
    arguments = ["report", "experiment=demo", f"results_dir={tmp_path}", "statistics=true"]
    assert main([*arguments, "columns=n_train,accuracy"]) == 0
    assert "set00: accuracy" in capsys.readouterr().out
    assert main([*arguments, "columns=n_train"]) == 0
    assert "No metric of this table has a direction, so that nothing is compared." in capsys.readouterr().out


def test_a_key_of_an_experiment_is_refused_for_a_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "paper=zhang2013icml", "statistics=true"]) == 2
    assert "a whole paper has no statistics" in capsys.readouterr().err


def test_a_line_with_too_few_repeats_is_named_beside_those_that_are_compared(tmp_path: Path) -> None:
    values = scores(1)
    values["set00"][0, 1:] = np.nan
    table = results_table(read_results(made(tmp_path, values)))
    found = on_data_sets(table, table.shown["accuracy"])
    (grid,) = statistics_document(table, found, []).grids
    assert grid.notes == ["not compared with the best: 1 of 2 lines (1 repeat; a comparison needs at least 3)"]
    assert [row[4].strip() == "-" for row in grid.rows] == [True, True, False]


def test_of_very_many_pairs_those_with_the_best_line_are_listed(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = [
        record("oskl", f"G={line}", repeat, dataset="set00", n_train=80, n_test=20, accuracy=float(random.random()))
        for line in range(20)
        for repeat in range(3)
    ]
    config = {"title": "Pairs", "repeats": 3, "datasets": {"set00": {"split": {"folds": 3}}}, "experiment": "demo"}
    table = results_table(read_results(write(tmp_path / "demo", rows, config | {"algorithms": {}, "sweep": {}})))
    found = on_data_sets(table, table.shown["accuracy"])
    (grid,) = statistics_document(table, found, []).grids
    assert len(found[0].pairs) == 190
    assert len(grid.rows) == 19
    assert grid.notes == ["190 pairs, of which those with the best line are listed; format=csv has all"]

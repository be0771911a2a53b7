"""`statistics=true`: every two methods compared, on each data set and over the data sets, as other libraries do it."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import baycomp
import numpy as np
import pytest
from scipy import stats

from klr_bench.cli import main
from klr_bench.report import report
from klr_bench.report.pairwise import chosen_metrics, on_data_sets, over_data_sets, statistics_document
from klr_bench.report.table import Table
from tests.report.folders import quiet, record, table, write
from tests.report.statistics import reference

ALGORITHMS = ("nc", "margin", "oskl")
FOLDS = 5


def scores(n_data_sets: int) -> dict[str, np.ndarray]:
    """Return accuracies (algorithms, repeats) by data set: the later algorithms are better."""
    random = np.random.default_rng(0)
    quality = np.array([0.70, 0.75, 0.752])[:, None]
    return {
        f"set{i:02}": quality + random.normal(0, 0.01, (3, 1)) + random.normal(0, 0.01, (3, FOLDS))
        for i in range(n_data_sets)
    }


def made(folder: Path, values: dict[str, np.ndarray], metric: str = "accuracy") -> Path:
    rows = [
        record(name, "", repeat, key=f"{dataset}-{name}-{repeat}", dataset=dataset, n_train=80, n_test=20)
        for dataset in values
        for name in ALGORITHMS
        for repeat in range(FOLDS)
    ]
    for row, value in zip(rows, np.concatenate([of_set.ravel() for of_set in values.values()]).tolist(), strict=True):
        row.metrics[metric] = value
    rows = [row for row in rows if not math.isnan(row.metrics[metric])]
    datasets = {name: {"split": {"folds": FOLDS}} for name in values}
    asked = {"title": "Pairs", "repeats": FOLDS, "datasets": datasets, "experiment": "demo", "sweep": {}}
    return write(folder / "demo", rows, asked | {"algorithms": {name: {} for name in ALGORITHMS}})


def built(folder: Path, values: dict[str, np.ndarray], metric: str = "accuracy") -> Table:
    return table(made(folder, values, metric))


@pytest.mark.parametrize(("metric", "sign", "rope"), [("accuracy", 1, 0.01), ("log_loss", -1, 0.0)])
def test_the_pairs_of_a_data_set_are_those_of_the_references(
    tmp_path: Path, metric: str, sign: int, rope: float
) -> None:
    values = scores(1)
    made_of = built(tmp_path, values, metric)
    (found,) = on_data_sets(made_of, *chosen_metrics(made_of, None))
    assert (found.metric.name, len(found.pairs)) == (metric, 3)
    by_name = dict(zip(ALGORITHMS, values["set00"], strict=True))
    compared = []
    for pair in found.pairs:
        ours, others = by_name[pair.first[0]], by_name[pair.second[0]]
        compared.append(reference.interval((ours - others).tolist(), 1 / (FOLDS - 1), 0.95))
        assert (pair.difference, pair.low, pair.high, pair.p) == pytest.approx(compared[-1], rel=1e-9)
        shares = (pair.worse, pair.equivalent, pair.better) if rope else (pair.worse, pair.better)
        assert shares == pytest.approx(baycomp.two_on_single(sign * others, sign * ours, rope=rope), abs=1e-9)
    adjusted = reference.holm([p for *_, p in compared])
    assert [pair.p_holm for pair in found.pairs] == pytest.approx(adjusted, rel=1e-9)


def test_over_data_sets(tmp_path: Path) -> None:
    values = scores(9)
    made_of = built(tmp_path, values)
    found = over_data_sets(made_of, made_of.shown["accuracy"])
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
    assert (found.n, found.missing, found.left_out, found.groups) == (9, "", [], [(0, 1)])


@pytest.mark.parametrize(
    ("n", "missing"),
    [(1, "1 data set; a comparison over data sets needs at least 6"), (5, "5 data sets; a comparison over"), (6, "")],
)
def test_fewer_than_six_data_sets_are_not_compared(tmp_path: Path, n: int, missing: str) -> None:
    made_of = built(tmp_path, scores(n))
    metric = made_of.shown["accuracy"]
    found = over_data_sets(made_of, metric)
    assert found.missing.startswith(missing)
    assert (found.friedman is None) == bool(missing)
    document = statistics_document(made_of, on_data_sets(made_of, metric), [found])
    assert len(document.grids) == n + (0 if missing else 2)
    text = " ".join(document.caption)
    assert (f"Over data sets nothing is compared for accuracy: {missing}" in text) == bool(missing)
    assert ("With 6 data sets and 3 pairs no p-value after Holm can be below 0.094: no pair" in text) == (n == 6)


def test_a_method_without_a_value_on_some_data_set_is_left_out_and_named(tmp_path: Path) -> None:
    values = scores(8)
    values["set03"][0] = np.nan
    made_of = built(tmp_path, values)
    found = over_data_sets(made_of, made_of.shown["accuracy"])
    assert {line.algorithm for line in found.lines} == {"margin", "oskl"}
    caption = statistics_document(made_of, [], [found]).caption
    assert "Left out, because they have no value on some data set: nc." in caption
    assert not any("Friedman" in line for line in caption), "it is not a test of two methods"


@pytest.mark.parametrize(("n_methods", "of"), [(3, ""), (1, "1 of 2 methods (")])
def test_one_repeat_has_differences_and_no_p_values(tmp_path: Path, n_methods: int, of: str) -> None:
    values = scores(1)
    values["set00"][:n_methods, 1:] = np.nan
    made_of = built(tmp_path, values)
    found = on_data_sets(made_of, made_of.shown["accuracy"])
    document = statistics_document(made_of, found, [])
    (grid,) = document.grids
    reason = "1 repeat in common; a comparison needs at least 3"
    assert grid.notes == [f"not compared with the best: {of}{reason}{')' if of else ''}"]
    assert [math.isnan(pair.better) for pair in found[0].pairs] == [True, True, n_methods == 3]
    assert [row[4].strip() == "-" for row in grid.rows] == [True, True, n_methods == 3]
    only = ["difference: the mean over the repeats that both methods have, first minus second."]
    assert (document.caption == only) == (n_methods == 3)


def test_the_command_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path, scores(9))
    arguments = ["report", "experiment=demo", f"results_dir={tmp_path}"]
    assert not any("statistics" in path.name for path in report(folder, console=quiet(), formats=["md", "csv"]))
    assert main([*arguments, "statistics=true", "format=terminal,md,tex,csv"]) == 0
    printed = capsys.readouterr().out
    files = {kind: folder / "report" / f"statistics.{kind}" for kind in ("md", "tex", "csv")}
    for text in (printed, files["md"].read_text(), files["tex"].read_text()):
        assert "nc - margin" in text
        assert "9 data sets: accuracy" in text
        assert "Friedman" in text
    assert all(str(path) in printed for path in files.values())
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    assert [row["test"] for row in rows] == ["paired_t"] * 27 + ["friedman"] + ["wilcoxon"] * 3
    assert all(float(row["low"]) < float(row["difference"]) < float(row["high"]) for row in rows[:27])
    assert {row["p_holm"] == "" for row in rows if row["test"] != "friedman"} == {False}
    assert main([*arguments, "statistics=true", "columns=n_train,accuracy"]) == 0
    assert "set00: accuracy" in capsys.readouterr().out
    assert main([*arguments, "statistics=true", "columns=n_train"]) == 0
    assert "No metric of this table has a direction, so that nothing is compared." in capsys.readouterr().out
    assert main(["report", "paper=zhang2013icml", "statistics=true"]) == 2
    assert "a whole paper has no statistics" in capsys.readouterr().err


def test_of_very_many_pairs_those_with_the_best_method_are_listed(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((20, 3)).tolist()
    rows = [
        record("oskl", f"G={G}", repeat, dataset="set00", n_train=80, n_test=20, accuracy=value)
        for G, of_line in enumerate(values)
        for repeat, value in enumerate(of_line)
    ]
    config: dict[str, Any] = {"title": "Pairs", "repeats": 3, "datasets": {"set00": {}}, "experiment": "demo"}
    made_of = table(write(tmp_path / "demo", rows, config | {"algorithms": {}, "sweep": {}}))
    found = on_data_sets(made_of, made_of.shown["accuracy"])
    (grid,) = statistics_document(made_of, found, []).grids
    assert (len(found[0].pairs), len(grid.rows)) == (190, 19)
    assert grid.notes == ["190 pairs, of which those with the best method are listed; format=csv has all"]

"""Methods of an experiment compared: marks of the best in every format, and with `statistics=true` all pairs."""

import csv
import io
import math
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import baycomp
import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from klr_bench.cli import main
from klr_bench.parsing import parse
from klr_bench.report import report
from klr_bench.report.load import read_results
from klr_bench.report.measured import measure
from klr_bench.report.pairwise import chosen_metrics, on_data_sets, over_data_sets, statistics_document
from klr_bench.report.papers.match import Source
from klr_bench.report.papers.model import Paper
from klr_bench.report.render.caption import caption
from klr_bench.report.significance import MOST_LINES, Mark, Marks
from klr_bench.report.table import Table, build
from klr_bench.results.record import Record
from tests.report.folders import quiet, record, shown, table, write
from tests.report.statistics import reference

ACCURACIES = {
    "nc": [0.90, 0.91, 0.89, 0.92, 0.905],
    "margin": [0.899, 0.907, 0.892, 0.915, 0.906],
    "oskl": [0.80, 0.83, 0.79, 0.81, 0.80],
}
"""The second method is not distinguishable from the first, the third one is."""
PAPER = {"title": "A paper", "authors": "Me", "venue": "Here", "year": 2026, "reference": "Me (2026)"}
SIZES = {"n_train": 80, "n_test": 20}


def rows(values: Any, metric: str = "accuracy", lam: str = "", dataset: str = "moons", **more: Any) -> list[Record]:
    """Return a record for each method and value; a value may be missing, None or NaN."""
    shared = SIZES | {"dataset": dataset}
    return [
        record(name, lam, n, **(shared | {"key": f"{dataset}-{name}-{lam}-{n}", "fit_time_s": n, metric: value} | more))
        for name, of_repeats in values.items()
        for n, value in enumerate(of_repeats)
        if value is None or not math.isnan(value)
    ]


def folder_of(folder: Path, records: Sequence[Record], split: dict[str, Any] | None = None, **config: Any) -> Path:
    """Write results; by default each repeat splits them again."""
    datasets = {"moons": {"label": "Moons"} | ({"split": split} if split else {})}
    return write(folder / "demo", records, {"repeats": 5, "datasets": datasets, "experiment": "demo"} | config)


def marks(built: Table, metric: str = "accuracy") -> dict[str, Mark]:
    (block,) = built.blocks
    return {algorithm: mark for (algorithm, _), mark in block.marks.get(metric, Marks()).lines.items()}


def places(built: Table, metric: str = "accuracy") -> dict[str, str]:
    return {algorithm: mark.place for algorithm, mark in marks(built, metric).items()}


RUNS = {"runs": [[80, 1], [20, 1]]}


@pytest.mark.parametrize(
    ("split", "ratio"), [({"folds": 5}, 0.25), (None, 0.25), ({"official": True}, 0.0), (RUNS, 0.0)]
)
def test_marks_are_those_of_a_slow_reference(tmp_path: Path, split: dict[str, Any] | None, ratio: float) -> None:
    result = marks(table(folder_of(tmp_path, rows(ACCURACIES), split)))
    pairs = list(combinations(ACCURACIES, 2))
    compared = [
        reference.interval([a - b for a, b in zip(ACCURACIES[i], ACCURACIES[j], strict=True)], ratio, 0.95)
        for i, j in pairs
    ]
    adjusted = reference.holm([p for *_, p in compared])
    assert result.pop("nc") == Mark("best")
    for (i, other), (mean, low, high, p), p_holm in zip(pairs, compared, adjusted, strict=True):
        if i == "nc":
            mark = result.pop(other)
            assert mark.place == ("alike" if p_holm >= 0.05 else "")
            numbers = (mark.n, mark.difference, mark.low, mark.high, mark.p, mark.p_holm)
            assert numbers == pytest.approx((5, -mean, -high, -low, p, p_holm), rel=1e-9)
    assert result == {}


def test_low_losses_are_the_best_and_times_memory_and_what_has_no_direction_have_no_marks(tmp_path: Path) -> None:
    unmarked = ["fit_time_s", "n_updates", "peak_memory_mb", "load", "objective", "setup_time_s"]
    records = rows(ACCURACIES, "log_loss", pass_time_s=0.1)
    for number, row in enumerate(records):  # no column is constant
        row.metrics.update({name: number for name in ("fit_time_s", "n_updates", "peak_memory_mb", "objective")})
        row.metrics["load"] = 0.01 * number
    built = table(folder_of(tmp_path, records, metrics=[*unmarked, "log_loss"]))
    assert list(built.metrics) == [*unmarked, "log_loss"]
    assert list(built.blocks[0].marks) == ["log_loss"]
    assert places(built, "log_loss") == {"oskl": "best", "margin": "", "nc": ""}
    assert all((mark.difference or 0) >= 0 for mark in marks(built, "log_loss").values())


SOME = [0.9, 0.8, 0.7]


def test_equal_means_are_all_the_best_but_not_in_a_constant_column(tmp_path: Path) -> None:
    for values, expected in (
        ({"nc": SOME, "oskl": SOME}, {}),
        ({"nc": SOME, "oskl": SOME, "margin": [0.9, 0.8, 0.6]}, {"nc": "best", "oskl": "best", "margin": "alike"}),
    ):
        built = table(folder_of(tmp_path, rows(values)))
        assert places(built) == expected
        assert any("‡" in line for line in caption(built)) == bool(expected)


def test_means_that_differ_by_rounding_are_equal(tmp_path: Path) -> None:
    one, other = [0.1, 0.2, 0.3], [0.3, 0.2, 0.1]
    assert np.mean(one) != np.mean(other)
    built = table(folder_of(tmp_path, rows({"nc": one, "oskl": other, "margin": [0.1, 0.1, 0.2]})))
    assert [name for name, place in places(built).items() if place == "best"] == ["nc", "oskl"]
    values = {
        f"set{i}": np.array([one if i % 2 else other, other if i % 2 else one, [0.1, 0.1, 0.2]]) for i in range(7)
    }
    built = table_of(tmp_path / "more", values)
    result = over_data_sets(built, built.metrics["accuracy"])
    assert sorted(result.ranks) == [1.5, 1.5, 3.0]


OTHER_SEED = [*rows({"nc": ACCURACIES["nc"]}, seed=0), *rows({"oskl": ACCURACIES["oskl"]}, seed=1)]


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (rows({name: values[:2] for name, values in ACCURACIES.items()}), "2 repeats in common; a comparison needs"),
        (OTHER_SEED, "0 repeats in common; a comparison needs at least 3"),
        (rows({"nc": [0.3, 0.4, 0.5], "oskl": [0.3, math.inf, 0.9]}, "log_loss"), "some values are infinite"),
        (rows(ACCURACIES, n_train=None), "the numbers of training and test rows are not known"),
        (
            [row for G in range(MOST_LINES + 1) for row in rows({"nc": [0.5 + 0.001 * G] * 3}, lam=f"G={G}")],
            f"{MOST_LINES + 1} methods are too many to compare (the limit is {MOST_LINES})",
        ),
    ],
)
def test_what_cannot_be_compared_has_a_reason(tmp_path: Path, records: list[Record], reason: str) -> None:
    built = table(folder_of(tmp_path, records))
    ((_, of_metric),) = built.blocks[0].marks.items()
    result = list(of_metric.lines.values())
    assert sorted(mark.place for mark in result) == [*[""] * (len(result) - 1), "best"]
    assert {mark.p for mark in result} == {None}
    sentences = caption(built)
    assert "‡ (bold): the best mean of a column." in sentences
    assert any(line.startswith(f"Not compared with the best on Moons: {reason}") for line in sentences)


@pytest.mark.parametrize(("n_methods", "is_marked"), [(3, True), (5, False), (62, False)])
def test_no_method_is_alike_where_the_test_has_no_power(tmp_path: Path, n_methods: int, is_marked: bool) -> None:
    values = np.array([0.9, 0.91, 0.89])
    of_methods = [(np.roll(values, n) * (1 - 0.001 * n)).tolist() for n in range(n_methods)]
    records = [row for n, of_method in enumerate(of_methods) for row in rows({"nc": of_method}, lam=f"G={n}")]
    built = table(folder_of(tmp_path, records))
    (of_metric,) = built.blocks[0].marks.values()
    assert ("alike" in {mark.place for mark in of_metric.lines.values()}) == is_marked
    assert any(line.startswith("No † on Moons: with") for line in caption(built)) != is_marked


def test_no_power_and_what_cannot_be_compared_are_both_said(tmp_path: Path) -> None:
    of_methods = {
        name: [0.9 - 0.01 * n, 0.91, 0.89] for n, name in enumerate(["nc", "margin", "oskl", "pegasos", "pcd"])
    }
    of_methods["pcd"][1] = math.nan  # a repeat that failed
    built = table(folder_of(tmp_path, rows(of_methods), repeats=3))
    assert {*places(built).values()} == {"best", ""}
    sentences = caption(built)
    assert any("1 of 4 methods (2 repeats in common" in sentence for sentence in sentences)
    assert any(sentence.startswith("No † on Moons: with 10 pairs of methods, 3 repeats") for sentence in sentences)
    assert not any("not significantly different" in sentence for sentence in sentences)


def test_reasons_of_one_column_do_not_explain_the_marks_of_another(tmp_path: Path) -> None:
    names = ["nc", "margin", "oskl", "pegasos", "pcd"]
    records = [
        row
        for lam, some in (("lam=0.5", names), ("lam=0.2", names[:3]))
        for row in rows({name: np.roll([0.9, 0.91, 0.89], n) - 0.001 * n for n, name in enumerate(some)}, lam=lam)
    ]
    by_lam = parse(Paper, PAPER | {"tables": {"1": {"title": "Results", "columns": "lam"}}})
    built = build(
        measure(read_results(folder_of(tmp_path, records, repeats=3))), [Source("a paper", by_lam, [], ["1"])]
    )
    places = {(column[1]["lam"], mark.place) for column, mark in built.blocks[0].marks["accuracy"].lines.items()}
    assert places == {(0.5, "best"), (0.5, ""), (0.2, "best"), (0.2, "alike")}
    assert any("not significantly different" in sentence for sentence in caption(built))


def test_a_constant_predictor_is_not_the_best(tmp_path: Path) -> None:
    records = rows(ACCURACIES, "sparsity") + rows({"majority": [1.0] * 5}, "sparsity", balanced_accuracy=0.5)
    assert places(table(folder_of(tmp_path, records)), "sparsity") == {"nc": "best", "margin": "alike", "oskl": ""}


def test_only_repeats_that_succeeded_for_both_are_compared(tmp_path: Path) -> None:
    records = rows(ACCURACIES | {"nc": [*ACCURACIES["nc"], 0.1]})
    failed = rows({"oskl": [0.9] * 3}, status="timeout")
    keys = {row.key for row in failed}
    built = table(folder_of(tmp_path, [*(row for row in records if row.key not in keys), *failed]))
    result = marks(built)
    assert result["margin"].place == "best"
    assert (result["nc"].n, result["oskl"].n) == (5, 2)
    assert result["nc"].difference == pytest.approx(0.0012)
    assert (result["oskl"].place, result["oskl"].p) == ("", None)
    reason = "1 of 2 methods (2 repeats in common; a comparison needs at least 3)"
    assert f"Not compared with the best on Moons: {reason}." in caption(built)


def test_in_a_table_of_parameter_values_methods_are_compared_in_their_column(tmp_path: Path) -> None:
    worse = {name: [value - 0.3 for value in values] for name, values in ACCURACIES.items()}
    results = read_results(folder_of(tmp_path, rows(worse, lam="lam=0.5") + rows(ACCURACIES, lam="lam=0.2")))
    by_lam = parse(Paper, PAPER | {"tables": {"1": {"title": "Results", "columns": "lam"}}})
    built = build(measure(results), [Source("a paper", by_lam, [], ["1"])])
    result = {
        (name, variant["lam"]): mark.place for (name, variant), mark in built.blocks[0].marks["accuracy"].lines.items()
    }
    expected = zip(ACCURACIES, ("best", "alike", ""), strict=True)
    assert result == {(name, lam): place for name, place in expected for lam in (0.5, 0.2)}
    assert any(line.startswith("‡ (bold): the best mean of a metric in its column; †") for line in caption(built))


def test_the_marks_are_in_every_format(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, rows(ACCURACIES))
    report(folder, console=quiet(), formats=["md", "tex", "csv"])
    files = {kind: (folder / "report" / f"table.{kind}").read_text(encoding="utf-8") for kind in ("md", "tex", "csv")}
    text, markdown = (re.sub(" +", " ", output) for output in (shown(folder), files["md"]))
    for of_text, of_markdown, of_latex in (
        ("90.5 ± 1.1‡ ", "**90.5 ± 1.1‡**", r"\textbf{90.5 $\pm$ 1.1$^\ddagger$}"),
        ("90.4 ± 0.9† ", "90.4 ± 0.9†", r"90.4 $\pm$ 0.9$^\dagger$"),
        ("80.6 ± 1.5 ", "80.6 ± 1.5", r"80.6 $\pm$ 1.5"),
    ):
        assert f" 5/5 {of_text}" in text
        assert f"| {of_markdown} |" in markdown
        assert f"& {of_latex} &" in files["tex"]
    values = {row["algorithm"]: row for row in csv.DictReader(io.StringIO(files["csv"])) if row["metric"] == "accuracy"}
    assert [values[name]["best"] for name in ACCURACIES] == ["best", "alike", ""]
    mark = marks(table(folder))["oskl"]
    numbers = [float(values["oskl"][name]) for name in ("difference_to_best", "low", "high", "p_holm")]
    assert numbers == [mark.difference, mark.low, mark.high, mark.p_holm]
    assert {values["nc"][name] for name in ("difference_to_best", "low", "high", "p_holm")} == {""}


def test_on_a_terminal_the_marks_are_more_than_a_style(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, rows(ACCURACIES))
    text = shown(folder, force_terminal=True, color_system="standard", width=120)
    assert "\x1b[1m90.5 ± 1.1‡\x1b[0m" in text
    assert "\x1b[4m90.4 ± 0.9†\x1b[0m" in text
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    report(folder, console=Console(file=file, width=120))
    text = " ".join(file.buffer.getvalue().decode().split())  # type: ignore[attr-defined]
    for words in (
        "90.5 +- 1.1^ ",
        "90.4 +- 0.9= ",
        "^ (bold): the best mean of a column; =: not significantly different",
    ):
        assert words in text


def scores(n_data_sets: int) -> dict[str, np.ndarray]:
    """Return accuracies (methods, repeats) by data set: the later methods are better."""
    random = np.random.default_rng(0)
    quality = np.array([0.70, 0.75, 0.752])[:, None]
    return {
        f"set{i:02}": quality + random.normal(0, 0.01, (3, 1)) + random.normal(0, 0.01, (3, 5))
        for i in range(n_data_sets)
    }


def table_of(folder: Path, values: dict[str, np.ndarray], metric: str = "accuracy") -> Table:
    by_name = {name: dict(zip(ACCURACIES, of_set.tolist(), strict=True)) for name, of_set in values.items()}
    records = [row for name, of_set in by_name.items() for row in rows(of_set, metric, dataset=name)]
    datasets = {name: {"split": {"folds": 5}} for name in values}
    return table(folder_of(folder, records, datasets=datasets, algorithms={name: {} for name in ACCURACIES}))


@pytest.mark.parametrize(("metric", "sign", "rope"), [("accuracy", 1, 0.01), ("log_loss", -1, 0.0)])
def test_the_pairs_of_a_data_set_are_those_of_the_references(
    tmp_path: Path, metric: str, sign: int, rope: float
) -> None:
    values = scores(1)
    built = table_of(tmp_path, values, metric)
    (result,) = on_data_sets(built, *chosen_metrics(built, None))
    assert (result.metric.name, len(result.pairs)) == (metric, 3)
    by_name = dict(zip([*ACCURACIES], values["set00"], strict=True))
    compared = []
    for pair in result.pairs:
        ours, others = by_name[pair.first[0]], by_name[pair.second[0]]
        compared.append(reference.interval((ours - others).tolist(), 0.25, 0.95))
        assert (pair.difference, pair.low, pair.high, pair.p) == pytest.approx(compared[-1], rel=1e-9)
        shares = (pair.worse, pair.equivalent, pair.better) if rope else (pair.worse, pair.better)
        assert shares == pytest.approx(baycomp.two_on_single(sign * others, sign * ours, rope=rope), abs=1e-9)
    adjusted = reference.holm([p for *_, p in compared])
    assert [pair.p_holm for pair in result.pairs] == pytest.approx(adjusted, rel=1e-9)


def test_over_data_sets(tmp_path: Path) -> None:
    values = scores(9)
    built = table_of(tmp_path, values)
    result = over_data_sets(built, built.metrics["accuracy"])
    means = np.array([of_set.mean(axis=1) for of_set in values.values()])
    ranks = dict(zip([*ACCURACIES], reference.ranks(means.tolist()), strict=True))
    assert {line.algorithm: rank for line, rank in zip(result.lines, result.ranks, strict=True)} == pytest.approx(ranks)
    assert list(result.ranks) == sorted(result.ranks)
    assert result.friedman is not None
    assert result.friedman.p == pytest.approx(stats.friedmanchisquare(*means.T).pvalue)
    assert result.wilcoxon is not None
    columns = [[*ACCURACIES].index(line.algorithm) for line in result.lines]
    first = stats.wilcoxon(means[:, columns[0]], means[:, columns[2]]).pvalue
    assert result.wilcoxon.p[0, 2] == pytest.approx(first)
    assert result.wilcoxon.p_holm[0, 2] == pytest.approx(0.0078125 * 1.5)  # 2 / 2^9, times 3
    assert (result.n, result.missing, result.left_out, result.groups) == (9, "", [], [(0, 1)])


@pytest.mark.parametrize(
    ("n", "missing"),
    [(1, "1 data set; a comparison over data sets needs at least 6"), (5, "5 data sets; a comparison over"), (6, "")],
)
def test_fewer_than_six_data_sets_are_not_compared(tmp_path: Path, n: int, missing: str) -> None:
    built = table_of(tmp_path, scores(n))
    metric = built.metrics["accuracy"]
    result = over_data_sets(built, metric)
    assert result.missing.startswith(missing)
    assert (result.friedman is None) == bool(missing)
    document = statistics_document(built, on_data_sets(built, metric), [result])
    assert len(document.grids) == n + (0 if missing else 2)
    text = " ".join(document.caption)
    assert (f"No comparison over data sets for accuracy: {missing}" in text) == bool(missing)
    assert ("3 pairs no p-value after Holm's correction can be below 0.094, so no pair" in text) == (n == 6)


def test_a_method_without_a_value_on_some_data_set_is_left_out_and_named(tmp_path: Path) -> None:
    values = scores(8)
    values["set03"][0] = np.nan
    built = table_of(tmp_path, values)
    result = over_data_sets(built, built.metrics["accuracy"])
    assert {line.algorithm for line in result.lines} == {"margin", "oskl"}
    caption = statistics_document(built, [], [result]).caption
    assert "Left out, because they have no value on at least one data set: nc." in caption
    assert not any("Friedman" in line for line in caption), "it is not a test of two methods"


def test_one_repeat_has_differences_and_no_p_values(tmp_path: Path) -> None:
    values = scores(1)
    values["set00"][:, 1:] = np.nan
    built = table_of(tmp_path, values)
    result = on_data_sets(built, built.metrics["accuracy"])
    document = statistics_document(built, result, [])
    (grid,) = document.grids
    assert grid.notes == ["not compared with the best: 1 repeat in common; a comparison needs at least 3"]
    assert all(math.isnan(pair.better) for pair in result[0].pairs)
    assert [row[4].strip() for row in grid.rows] == ["-"] * 3
    only = ["difference: first method minus second, averaged over the repeats that both have."]
    assert document.caption == only


def test_the_command_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table_of(tmp_path, scores(9))
    folder = tmp_path / "demo"
    arguments = ["report", "experiment=demo", f"results_dir={tmp_path}"]
    assert not any("statistics" in path.name for path in report(folder, console=quiet(), formats=["md", "csv"]))
    assert main([*arguments, "statistics=true", "format=terminal,md,tex,csv"]) == 0
    printed = capsys.readouterr().out
    files = {kind: folder / "report" / f"statistics.{kind}" for kind in ("md", "tex", "csv")}
    assert all(str(path) in printed for path in files.values())
    for text in (printed, files["md"].read_text(), files["tex"].read_text()):
        assert all(words in text for words in ("nc - margin", "9 data sets: accuracy", "Friedman"))
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    assert [row["test"] for row in rows] == ["paired_t"] * 27 + ["friedman"] + ["wilcoxon"] * 3
    assert all(float(row["low"]) < float(row["difference"]) < float(row["high"]) for row in rows[:27])
    assert all(row["p_holm"] for row in rows if row["test"] != "friedman")
    for columns, words in (
        ("n_train,accuracy", "set00: accuracy"),
        ("n_train", "This table has no metric for which a best value is defined, so no methods are compared."),
    ):
        assert main([*arguments, "statistics=true", f"columns={columns}"]) == 0
        assert words in capsys.readouterr().out
    assert main(["report", "paper=zhang2013icml", "statistics=true"]) == 2
    assert "but a whole paper has no statistics" in capsys.readouterr().err


def test_of_very_many_pairs_those_with_the_best_method_are_listed(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((20, 3)).tolist()
    records = [row for G, of_line in enumerate(values) for row in rows({"oskl": of_line}, lam=f"G={G}")]
    built = table(folder_of(tmp_path, records))
    result = on_data_sets(built, built.metrics["accuracy"])
    (grid,) = statistics_document(built, result, []).grids
    assert (len(result[0].pairs), len(grid.rows)) == (190, 19)
    assert grid.notes == ["190 pairs; only those with the best method are listed. Use format=csv to write all"]

"""Published numbers: their units, the methods that they are matched with, and the rules of verdicts."""

import csv
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.config.locations import config_dir
from klr_bench.metrics.labels import METRICS
from klr_bench.parsing import parse
from klr_bench.report.measured import Entry
from klr_bench.report.papers.match import Source, best_matches, published_tables
from klr_bench.report.papers.model import Numbers, Printed, PrintedTable
from klr_bench.report.papers.reading import FACTS, paper_files, read_lines, read_paper
from klr_bench.report.papers.verdicts import Verdict, tolerance, verdict_of

SHIPPED = [config_dir()]
PAPERS = paper_files(SHIPPED)
TRANSCRIPTION = Path(__file__).resolve().parents[4] / "shared" / "paper_tables"


@cache
def lines(paper: str) -> list[Printed]:
    return read_lines(PAPERS[paper], read_paper(PAPERS[paper], SHIPPED), METRICS, SHIPPED)


def sources(experiment: str, table: str | None = None) -> list[Source]:
    return published_tables(experiment, METRICS, SHIPPED, table=table)


def published(experiment: str, dataset: str, algorithm: str, **values: Any) -> Mapping[str, str]:
    """Return the printed means of a method, by metric."""
    (source,) = sources(experiment)
    key = source.paper.published_name(dataset), algorithm
    of_method = [line for line in source.selected_numbers if (line.dataset, line.algorithm) == key]
    return {metric: line.mean for metric, line in best_matches(of_method, values).items()}


def printed(mean: str, std: str = "", unit: str = "percent", **values: Any) -> Printed:
    """Return a published number."""
    line = {"table": "1", "dataset": "data", "algorithm": "learner", "params": {}, "metric": "accuracy", "label": ""}
    return parse(Printed, line | {"mean": mean, "std": std, "unit": unit} | values)


def test_a_number_in_the_units_of_the_records() -> None:
    number: Printed
    for number, *expected in (
        (printed("85.80", "0.40"), 0.858, 0.004, 0.00005),
        (printed("0", "0"), 0.0, 0.0, 0.005),
        (printed("15216", unit="count"), 15216.0, None, 0.5),
        (printed("78.9", "5.5", "min"), 4734.0, 330.0, 3.0),
        (printed("1.5e-2", unit="fraction"), 0.015, None, 0.0005),
    ):
        assert [number.value, number.spread, number.half_unit] == expected


def test_parameters_are_compared_by_value_and_must_all_be_there() -> None:
    assert published("oskl_magic", "magic", "oskl", G=1.0, loss="logit")["accuracy"] == "85.5"
    assert published("oskl_magic", "magic", "oskl", G=True) == {}, "true is not 1"
    assert published("oskl_magic", "magic", "oskl", G=3) == published("oskl_magic", "magic", "oskl") == {}
    assert "last_accuracy" not in published("oskl_magic", "magic", "nc")
    every = published("oskl_magic", "magic", "pegasos", lam="cv")
    assert every == published("oskl_magic", "magic", "pegasos", lam=1e-4) != {}, "a number without parameters"
    two_stage = {"features": "fourier", "lam": 0.5}
    assert published("l1_two_stage", "mnist10k", "l1_cgd", **two_stage, two_stage=True)["accuracy_gain"] == "0.4"
    assert published("l1_two_stage", "mnist10k", "l1_cgd", **two_stage, two_stage=False) == {}
    assert published("l1_mnist10k", "mnist10k", "l1_cgd", **two_stage)["accuracy"] == "84.8"
    assert published("l1_mnist10k_kernel", "mnist10k", "l1_cgd", features="kernel", lam=0.5)["accuracy"] == "85.4"


def test_several_numbers_of_one_fit() -> None:
    expected = {"last_accuracy": "76.3", "fit_time_s": "3.1", "accuracy": "82.9", "sparsity": "72.9"}
    assert published("budget_magic", "magic", "forgetron", budget=962) == expected | {"n_support": "4129"}
    numbers = published("cw_covtype", "covtype_450k", "bcw1")
    assert numbers == {"setup_time_s": "0.41", "pass_time_s": "0.06", "error_rate": "0.2402"}


def test_tables_properties_and_stand_ins_of_an_experiment() -> None:
    assert not sources("quickstart")
    for experiment, tables, columns in (("budget_adult", ["4", "5"], None), ("l1_iterations", ["7"], "lam")):
        (source,) = sources(experiment)
        assert (source.tables, {source.paper.tables[table].columns for table in tables}) == (tables, {columns})
    facts = [(fact.metric, fact.mean) for source in sources("cw_covtype") for fact in source.facts("covtype_450k")]
    assert facts == [("n_features", "54"), ("n_train", "581012"), ("nnz_per_instance", "12")]
    assert sources("cw_covtype", "2")[0].facts("covtype_450k") == []
    params = {"features": "fourier", "lam": 0.5}
    stand_in = published("l1_mnist49", "mnist49", "l1_cgd", **params)
    assert stand_in == published("l1_gisette", "gisette", "l1_cgd", **params) != {}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_is_found_by_its_own_keys(paper: str) -> None:
    content = read_paper(PAPERS[paper], SHIPPED)
    for line in lines(paper):
        source = Source(paper, content.model_copy(update={"stand_ins": {}}), lines(paper), [line.table])
        assert line.half_unit > 0
        if line.algorithm:
            same = [
                number
                for number in source.selected_numbers
                if (number.dataset, number.algorithm) == (line.dataset, line.algorithm)
            ]
            assert best_matches(same, line.params)[line.metric] == line, "each number has keys of its own"
        else:
            assert line.metric in FACTS
            assert line in source.facts(line.dataset)


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if lines(paper)])
def test_the_numbers_are_those_of_the_transcription(paper: str) -> None:
    path = TRANSCRIPTION / f"{paper}.csv"
    if not path.exists():
        reason = f"no {path} to compare with"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    # A cell that lists several numbers, such as the values of lambda, has a line for each here.
    expected = [
        (row["table"], number, row["std"], "fraction" if row["unit"].startswith("fraction") else row["unit"])
        for row in rows
        for number in row["mean"].split(",")
    ]
    derived = paper == "zhang2013icml"  # footnote 3: spreads of n_support follow from those of the sparsity
    stds = ["" if derived and line.metric == "n_support" else line.std for line in lines(paper)]
    found = [(line.table, line.mean, std, str(line.unit)) for line, std in zip(lines(paper), stds, strict=True)]
    assert found == expected


def test_spreads_of_support_vectors_are_those_of_the_sparsity() -> None:
    numbers = lines("zhang2013icml")
    n_train = {line.dataset: line.value for line in numbers if line.metric == "n_train"}
    by_method = {(line.metric, line.table, line.dataset, line.label): line for line in numbers}
    derived = [line for line in numbers if line.metric == "n_support" and line.spread]
    assert len(derived) == 45
    for line in derived:
        sparsity = by_method["sparsity", line.table, line.dataset, line.label]
        assert line.spread == pytest.approx((sparsity.spread or 0.0005) * n_train[line.dataset], abs=0.51)


def test_no_number_is_lost() -> None:
    """A new paper stands here with the number of its printed numbers; four of the 223 cells of qin2011 list ten."""
    counted = {"zhang2012aaai": 32, "zhang2013icml": 225, "qin2011": 229, "tan2016aaai": 76, "prototype_klr": 0}
    assert {paper: len(lines(paper)) for paper in PAPERS} == counted


digits = st.decimals(0, 100, places=1)


@given(mean=digits, std=digits, ours=st.floats(0, 1), side=st.sampled_from([-1, 1]))
def test_verdicts_depend_on_the_difference_and_the_edges_are_inside(
    mean: Any, std: Any, ours: float, side: int
) -> None:
    def verdict(value: float) -> Verdict:
        return verdict_of(Entry(1, value, None), number, METRICS["accuracy"], None)

    number = printed(str(mean), str(std))
    half = 0.05
    allowed = 2 * 2**0.5 * (float(std) or half)
    away = abs(100 * ours - float(mean))
    if min(abs(away - half), abs(away - allowed)) > 1e-9:
        agrees = Verdict.EXACT if away < half else Verdict.STATISTICAL
        assert verdict(ours) is (agrees if away < max(half, allowed) else Verdict.UNEXPLAINED)
    assert verdict(number.value + side * number.half_unit) is Verdict.EXACT
    assert verdict(number.value + side * (max(half, allowed) / 100 + 1e-6)) is Verdict.UNEXPLAINED


def test_the_tolerance_depends_on_spreads_and_without_one_on_the_kind_of_number() -> None:
    for entry, std, repeats, expected in (
        (Entry(4, 0.9, 0.02), "0.4", 4, 0.0204),  # 2 sqrt(0.02^2 / 4 + 0.004^2 / 4)
        (Entry(4, 0.9, 0.01), "1.0", 4, 0.02),  # two published standard deviations
        (Entry(1, 0.9, None), "1.0", None, 0.02828),  # one run on either side
        (Entry(4, 0.9, 0.02), "", None, 0.07166),  # the next of our runs: 3.182 * 0.02 * sqrt(5 / 4) + 0.0005
        (Entry(4, 0.9, 0.02), "", 4, 0.04551),  # the mean of four more runs: 3.182 * 0.02 * sqrt(1 / 2) + 0.0005
        (Entry(4, 0.9, 0.0), "", None, 0.0005),  # without variation, only rounding counts
        (Entry(1, 0.9, None), "", 4, 0.01),  # no spread on either side
    ):
        assert tolerance(entry, printed("90.0", std), repeats) == pytest.approx(expected, abs=1e-5)
    for number, allowed in (
        (printed("0.3", metric="nonzero_fraction"), 0.04 * 0.003),
        (printed("52.8", metric="n_iter_ratio"), 0.04 * 0.528),
        (printed("3000", unit="count", metric="n_iter"), 120.0),
        (printed("1.5", metric="accuracy_gain"), 0.01),
        (printed("96.0", metric="sparsity"), 0.01),
        (printed("0.9", unit="fraction", metric="log_loss"), 0.04 * 0.9),
    ):
        assert tolerance(Entry(1, 0.0, None), number, None) == pytest.approx(allowed)


def test_a_set_of_numbers() -> None:
    values = {"table": "2", "dataset": "magic", "algorithm": "oskl", "params": {"G": 2}, "metric": "sparsity"}
    number = printed("1", **values)
    for numbers in ({}, {"table": ["2"]}, {"dataset": ["magic", "adult"], "metric": ["sparsity"]}):
        assert parse(Numbers, numbers).holds(number)
        assert parse(Numbers, numbers | {"params": {"G": [1, 2]}}).holds(number)
    for numbers in ({"table": ["3"]}, {"algorithm": ["nc"]}, {"params": {"G": [4]}}, {"params": {"R": [1]}}):
        assert not parse(Numbers, numbers).holds(number)


def test_a_variant_is_meant_by_the_values_it_varies() -> None:
    for chosen, variant, is_meant in (
        (1e-4, {"lam": 1e-4}, True),
        (1e-4, {"lam": "cv"}, False),
        (1e-4, {}, True),
        ([1e-4, 1e-5], {"lam": 1e-5}, True),
        ([1e-4, 1e-5], {"lam": "cv"}, False),
    ):
        table = parse(PrintedTable, {"title": "A table", "counterparts": {"nc": {"lam": chosen}}})
        assert table.is_counterpart("nc", variant) is is_meant


def test_a_percentage_that_looks_like_a_share_has_a_hint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    paper, header = read_paper(PAPERS["zhang2013icml"], SHIPPED), ",".join(Printed.model_fields)
    rows = [
        f"3,magic,nc,,{metric},{mean},,{unit},x"
        for metric, mean, unit in (
            *(("accuracy", "0.858", "percent"), ("sparsity", "0.5", "percent"), ("f1", "0.42", "fraction")),
            *(("error_rate", "0.14", "percent"), ("balanced_accuracy", "85.80", "percent")),
        )
    ]
    (tmp_path / "tables.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    assert len(read_lines(tmp_path, paper, METRICS, SHIPPED)) == len(rows)
    (message,) = caplog.messages
    assert "line 2: accuracy 0.858 percent is less than 1 percent. If it is a share, write fraction" in message
    caplog.clear()
    for folder in PAPERS.values():
        read_lines(folder, read_paper(folder, SHIPPED), METRICS, SHIPPED)
    assert not caplog.messages

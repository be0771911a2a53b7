"""The papers' numbers: found by what a column is, in the units of records.csv, with their last digits."""

from __future__ import annotations

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
from klr_bench.report.papers.match import Source, best_lines, sources_of
from klr_bench.report.papers.model import Printed
from klr_bench.report.papers.reading import FACTS, paper_files, read_lines, read_paper

SHIPPED = [config_dir()]
PAPERS = paper_files(SHIPPED)
TRANSCRIPTION = Path(__file__).resolve().parents[4] / "shared" / "paper_tables"


def beside(experiment: str, table: str | None = None) -> list[Source]:
    """Return the tables beside an experiment that has a data set and an algorithm of each."""
    every = [(line.dataset, line.algorithm) for paper in PAPERS for line in lines(paper)]
    return sources_of(experiment, every, METRICS, SHIPPED, table=table)


@cache
def lines(paper: str) -> list[Printed]:
    return read_lines(PAPERS[paper], read_paper(PAPERS[paper], SHIPPED), METRICS, SHIPPED)


def published(experiment: str, dataset: str, algorithm: str, **values: Any) -> dict[str, Printed]:
    """Return the printed numbers of a method, by metric."""
    (source,) = beside(experiment)
    key = source.paper.published_name(dataset), algorithm
    return best_lines([line for line in source.of_tables if (line.dataset, line.algorithm) == key], values)


def found(experiment: str, dataset: str, algorithm: str, **values: Any) -> Mapping[str, str]:
    """Return the means as printed, by metric."""
    return {metric: line.mean for metric, line in published(experiment, dataset, algorithm, **values).items()}


def printed(mean: str, std: str = "", unit: str = "percent") -> Printed:
    """Return a published number as if it stood in a paper."""
    line = {"table": "1", "dataset": "data", "algorithm": "learner", "params": {}, "metric": "accuracy"}
    return parse(Printed, line | {"mean": mean, "std": std, "unit": unit, "label": ""})


@pytest.mark.parametrize(
    ("number", "mean", "std", "half_unit"),
    [
        (printed("85.8", "0.4"), 0.858, 0.004, 0.0005),
        (printed("85.80", "0.40"), 0.858, 0.004, 0.00005),
        (printed("0", "0"), 0.0, 0.0, 0.005),
        (printed("15216", unit="count"), 15216.0, None, 0.5),
        (printed("11.8", "0.0", "s"), 11.8, 0.0, 0.05),
        (printed("78.9", "5.5", "min"), 4734.0, 330.0, 3.0),
        (printed("1.5e-2", unit="fraction"), 0.015, None, 0.0005),
    ],
)
def test_a_number_in_the_units_of_the_records(
    number: Printed, mean: float, std: float | None, half_unit: float
) -> None:
    assert (number.value, number.spread, number.half_unit) == (mean, std, half_unit)


def test_parameters_are_compared_by_value_and_must_all_be_there() -> None:
    assert found("oskl_magic", "magic", "oskl", G=1.0, loss="logit")["accuracy"] == "85.5"
    assert found("oskl_magic", "magic", "oskl", G=True) == {}, "true is not 1"
    assert found("oskl_magic", "magic", "oskl", G=3) == {}
    assert found("oskl_magic", "magic", "oskl") == {}
    assert found("budget_magic", "magic", "forgetron", budget=962)["last_accuracy"] == "76.3"
    two_stage = {"features": "fourier", "lam": 0.5}
    assert found("l1_two_stage", "mnist10k", "l1_cgd", **two_stage, two_stage=True)["accuracy_gain"] == "0.4"
    assert found("l1_two_stage", "mnist10k", "l1_cgd", **two_stage, two_stage=False) == {}
    assert found("l1_mnist10k", "mnist10k", "l1_cgd", **two_stage)["accuracy"] == "84.8"
    assert found("l1_mnist10k_kernel", "mnist10k", "l1_cgd", features="kernel", lam=0.5)["accuracy"] == "85.4"


def test_of_one_fit_the_paper_prints_the_last_and_the_average_classifier() -> None:
    both = found("budget_magic", "magic", "forgetron", budget=962)
    expected = {"last_accuracy": "76.3", "fit_time_s": "3.1", "accuracy": "82.9", "sparsity": "72.9"}
    assert both == expected | {"n_support": "4129"}
    assert "last_accuracy" not in found("oskl_magic", "magic", "nc")


def test_a_time_that_is_printed_in_two_parts() -> None:
    numbers = found("cw_covtype", "covtype_450k", "bcw1")
    assert numbers == {"setup_time_s": "0.41", "pass_time_s": "0.06", "error_rate": "0.2402"}
    assert found("cw_covtype", "covtype_450k", "arow") == {"error_rate": "0.2461", "fit_time_s": "21.72"}


def test_what_a_paper_says_of_a_data_set() -> None:
    facts = [
        (fact.metric, fact.mean, fact.label) for source in beside("cw_covtype") for fact in source.facts("covtype_450k")
    ]
    expected = [("n_features", "54"), ("n_train", "581012"), ("nnz_per_instance", "12")]
    assert facts == [(*fact, "covtype") for fact in expected]
    assert beside("cw_covtype", "2")[0].facts("covtype_450k") == []


def test_a_line_without_parameters_belongs_to_every_variant() -> None:
    assert found("oskl_magic", "magic", "pegasos", lam="cv") == found("oskl_magic", "magic", "pegasos", lam=1e-4) != {}


def test_a_stand_in_has_the_numbers_of_the_other_data_set() -> None:
    params = {"features": "fourier", "lam": 0.5}
    assert published("l1_mnist49", "mnist49", "l1_cgd", **params) == published(
        "l1_gisette", "gisette", "l1_cgd", **params
    )
    (source,) = beside("l1_mnist49")
    assert (source.paper.published_name("mnist49"), source.paper.published_name("gisette")) == ("gisette", "gisette")


@pytest.mark.parametrize(
    ("experiment", "paper", "tables", "columns"),
    [
        ("klr_rcv1", "zhang2012aaai", ["2"], None),
        ("oskl_magic", "zhang2013icml", ["3"], None),
        ("budget_adult", "zhang2013icml", ["4", "5"], None),
        ("l1_iterations", "qin2011", ["7"], "lam"),
        ("l1_codrna", "qin2011", ["5"], None),
        ("cw_epsilon50k", "tan2016aaai", ["1", "2"], None),
    ],
)
def test_which_tables_stand_beside_an_experiment(
    experiment: str, paper: str, tables: list[str], columns: str | None
) -> None:
    (source,) = beside(experiment)
    assert (source.name, source.tables) == (paper, tables)
    assert {source.paper.tables[table].columns for table in tables} == {columns}


@pytest.mark.parametrize("experiment", ["klr_rcv1_subset", "klr_peers", "quickstart", "nothing"])
def test_an_experiment_that_no_paper_names_stands_alone(experiment: str) -> None:
    assert not beside(experiment)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_is_found_by_its_own_keys(paper: str) -> None:
    content = read_paper(PAPERS[paper], SHIPPED)
    for line in lines(paper):
        source = Source(paper, content.model_copy(update={"stand_ins": {}}), lines(paper), [line.table])
        assert line.half_unit > 0
        if line.algorithm:
            same = [one for one in source.of_tables if (one.dataset, one.algorithm) == (line.dataset, line.algorithm)]
            assert best_lines(same, line.params)[line.metric] == line, "each number has keys of its own"
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
    assert [(line.table, line.mean, line.std, str(line.unit)) for line in lines(paper)] == expected


def test_no_number_is_lost() -> None:
    assert {paper: len(lines(paper)) for paper in PAPERS} == {
        "zhang2012aaai": 32,
        "zhang2013icml": 225,
        "qin2011": 229,  # 223 cells, four of which list ten numbers
        "tan2016aaai": 76,
        "prototype_klr": 0,
    }, "a new paper stands here with the number of its printed numbers, counted in the paper"


digits = st.decimals(0, 100, places=1)


@given(mean=digits, std=digits, ours=st.floats(0, 1))
def test_the_mark_is_the_rule(mean: Any, std: Any, ours: float) -> None:
    number = printed(str(mean), str(std))
    far = abs(100 * ours - float(mean)) - max(2 * float(std), 0.05)
    if abs(far) > 1e-9:
        assert number.outside(ours) is (far > 0)


@given(mean=digits, std=digits, side=st.sampled_from([-1, 1]))
def test_on_the_edge_is_within_whatever_the_rounding(mean: Any, std: Any, side: int) -> None:
    number = printed(str(mean), str(std))
    edge = number.value + side * number.tolerance
    assert not number.outside(edge)
    assert number.outside(number.value + side * (number.tolerance + 1e-6))

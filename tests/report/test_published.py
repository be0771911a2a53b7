"""The papers' numbers: found by what a column is, in the units of records.csv, with their last digits."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.variants import parse_variant
from klr_bench.report.published import FOLDER, SCALES, Published, Row, data_rows, load, published, published_of_line

PAPERS = sorted(path.stem for path in FOLDER.glob("*.csv"))
TABLES = Path(__file__).resolve().parents[2] / "shared" / "paper_tables"


def found(
    algorithm: str, variant: dict[str, object], metric: str, dataset: str = "magic", table: str = "3"
) -> Published:
    number = published("zhang2013icml", [table], dataset, algorithm, variant, metric)
    assert number is not None
    return number


def printed(mean: str, std: str = "", unit: str = "percent") -> Published:
    """Return a published number as if it stood in a paper."""
    row = Row("paper", "1", "data", "algorithm", "", "accuracy", unit, mean, std)
    return Published.of(row)


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
    number: Published, mean: float, std: float | None, half_unit: float
) -> None:
    assert (number.mean, number.std, number.half_unit) == (mean, std, half_unit)


def test_numbers_of_table_3() -> None:
    assert found("baseline", {}, "sparsity").mean == 0.0
    assert found("oskl", {"G": "10"}, "accuracy").mean == 0.823
    assert found("oskl", {"G": 4.0}, "n_support").mean == 962
    assert found("margin", {}, "fit_time_s", "covtype").mean == 579 * 60


def test_parameters_are_compared_by_value_and_must_all_be_there() -> None:
    assert found("oskl", {"G": "1e0", "loss": "logit"}, "accuracy").row.mean == "85.5"
    assert published("zhang2013icml", ["3"], "magic", "oskl", {"G": "3"}, "accuracy") is None
    assert published("zhang2013icml", ["3"], "magic", "oskl", {}, "accuracy") is None
    forgetron = {"budget": 962, "classifier": "last"}
    assert found("forgetron", forgetron, "accuracy", table="4").row.params == "budget=962;classifier=last"
    assert published("zhang2013icml", ["4"], "magic", "forgetron", {"budget": 962}, "accuracy") is None


def test_of_one_fit_the_paper_prints_the_last_and_the_average_classifier() -> None:
    def beside(metric: str, tables: list[str], algorithm: str = "forgetron") -> str | None:
        number = published_of_line("zhang2013icml", tables, "magic", algorithm, {"budget": "962"}, metric)
        return number and number.row.mean

    assert beside("last_accuracy", ["4", "5"]) == "76.3"
    assert beside("accuracy", ["4", "5"]) == "82.9"
    assert beside("fit_time_s", ["4", "5"]) == "3.1"
    assert beside("accuracy", ["4"]) is None
    assert beside("last_accuracy", ["5"]) is None
    assert beside("last_accuracy", ["3"], "baseline") is None


def test_a_time_that_is_printed_in_two_parts_is_their_sum() -> None:
    def beside(metric: str, algorithm: str = "bcw-l1") -> str | None:
        number = published_of_line("tan2016aaai", ["1", "2"], "covtype-450k", algorithm, {}, metric)
        return number and number.row.mean

    assert (beside("fit_time_s"), beside("pass_time_s"), beside("error_rate")) == ("0.47", "0.06", "0.2402")
    assert (beside("fit_time_s", "arow"), beside("pass_time_s", "arow")) == ("21.72", None)


def test_what_a_paper_says_of_a_data_set() -> None:
    rows = data_rows("tan2016aaai", ["1", "2"], "covtype")
    assert [(row.metric, row.mean) for row in rows] == [
        ("n_features", "54"),
        ("n_train", "581012"),
        ("nnz_per_instance", "12"),
    ]
    assert not data_rows("tan2016aaai", ["2"], "covtype")


def test_a_row_without_parameters_fits_every_variant() -> None:
    assert found("pegasos", {"lam": "cv"}, "accuracy") == found("pegasos", {"lam": "0.0001"}, "accuracy")


def test_what_is_not_printed_is_none() -> None:
    assert published("zhang2013icml", ["3"], "magic", "baseline", {}, "log_loss") is None
    assert published("zhang2013icml", ["3"], "mushrooms", "baseline", {}, "accuracy") is None


def test_an_unknown_paper_is_named_with_the_nearest() -> None:
    with pytest.raises(KlrBenchError, match=r"no published numbers of 'zang2013icml'.*Did you mean 'zhang2013icml'\?"):
        load("zang2013icml")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_can_be_read(paper: str) -> None:
    rows = load(paper)
    assert rows
    for row in rows:
        assert row.paper == paper
        if row.metric == "lambda_factors":  # several numbers
            continue
        assert row.unit in SCALES
        assert Published.of(row).half_unit > 0
        if row.algorithm:
            number = published(
                paper, [row.table], row.dataset, row.algorithm, dict(parse_variant(row.params)), row.metric
            )
            assert number is not None
            assert number.row == row


@pytest.mark.parametrize("paper", PAPERS)
def test_the_numbers_are_those_of_the_transcription(paper: str) -> None:
    path = TABLES / f"{paper}.csv"
    if not path.exists():
        reason = f"no {path} to compare with"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    tables = []
    for file in (path, FOLDER / path.name):
        with file.open(encoding="utf-8", newline="") as lines:
            tables.append(list(csv.reader(lines)))
    assert tables[0] == tables[1]


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
    edge = number.mean + side * number.tolerance
    assert not number.outside(edge)
    assert number.outside(number.mean + side * (number.tolerance + 1e-6))


def test_not_a_number_is_outside() -> None:
    assert printed("85.8", "0.4").outside(float("nan"))

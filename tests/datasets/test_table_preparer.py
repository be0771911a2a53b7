"""TablePreparer: the features are those of `own_file`, and data frames are treated as scikit-learn's users expect."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from klr_bench import TablePreparer
from klr_bench.datasets import load
from klr_bench.datasets.splits import Split, prepare
from tests.config.composing import dataset_of
from tests.datasets.test_table import rows, write


def table(n: int = 60) -> pd.DataFrame:
    """Return a table with columns of all kinds, one of them with a long tail."""
    random = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "id": range(500, 500 + n),
            "size": np.where(random.rand(n) < 0.1, np.nan, random.randint(20, 60, n)),
            "weight": [f"{random.randint(1, 90) / 2} kg" for _ in range(n)],
            "price": [f"{1000 + 37 * i:,.2f}" for i in range(n)],
            "share": [None if i % 9 == 4 else f"{i % 50} %" for i in range(n)],
            "income": np.exp(3 * random.standard_normal(n)),
            "plan": random.choice(["free", "gold", None, "basic"], n),
            "flag": random.rand(n) < 0.4,
            "since": pd.date_range("2021-01-01", periods=n),
            "mail": [f"user{i}@example.org" for i in range(n)],
            "unit": "kg",
        }
    )


@pytest.mark.parametrize("scale", ["auto", "minmax", None])
@pytest.mark.parametrize("frame", [pd.DataFrame(rows()), table().assign(label=["a", "b"] * 30)], ids=["texts", "typed"])
def test_the_features_are_those_of_an_own_file(frame: pd.DataFrame, scale: str | None, tmp_path: Path) -> None:
    path = write(tmp_path / "mine.csv", [{key: f'"{v}"' for key, v in row.items()} for row in frame.to_dict("records")])
    dataset = load(
        "file", dataset_of({"source": {"format": "file", "path": str(path)}}), cache=tmp_path / "cache", mirror=None
    )
    every = np.arange(len(frame))
    expected = prepare(dataset, Split(every, every), scale).X_train
    found = TablePreparer(scale=scale).fit_transform(frame.iloc[:, :-1])
    assert found.dtype == expected.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


def test_each_column_is_reported_and_named() -> None:
    preparer = TablePreparer().fit(table())
    report = preparer.report_.set_index("column")
    assert report["features"].map(len).to_dict() == {
        **{"id": 0, "size": 2, "weight": 1, "price": 1, "share": 2, "income": 1, "plan": 4, "flag": 1},
        **{"since": 0, "mail": 0, "unit": 0},
    }
    assert report["reason"][report["kind"] == "leave_out"].tolist() == [
        *("row numbers", "dates", "60 different strings", "the same value in all rows")
    ]
    assert report["unit"][["weight", "price", "share"]].tolist() == ["kg", "", "%"]
    assert report.index[report["ranks"]].tolist() == ["income"]
    assert report["n_missing"]["share"] == 7
    names = preparer.get_feature_names_out().tolist()
    assert [*names[:5], *names[-2:]] == [
        *("size", "weight", "price", "share", "income"),
        *("missingindicator_size", "missingindicator_share"),
    ]
    assert set(names[5:9]) == {"plan_free", "plan_gold", "plan_basic", "plan_nan"}
    assert sorted(report["features"].explode().dropna()) == sorted(names)


def test_columns_are_found_by_name_and_set_output_names_them() -> None:
    preparer = TablePreparer().set_output(transform="pandas").fit(table())
    expected = preparer.transform(table())
    assert expected.columns.tolist() == preparer.get_feature_names_out().tolist()
    with pytest.warns(UserWarning, match="Columns that `fit` has not seen are ignored: other, new"):
        found = preparer.transform(table().assign(new=1, other="a").iloc[:, ::-1])
    pd.testing.assert_frame_equal(found, expected)
    unneeded = ["id", "since", "mail", "unit"]
    pd.testing.assert_frame_equal(preparer.transform(table().drop(columns=unneeded)), expected)
    pd.testing.assert_frame_equal(preparer.transform(dict(table())), expected)
    with pytest.raises(ValueError, match="X: expected the columns 'size', 'plan', which are missing; got "):
        preparer.transform(table().drop(columns=["size", "plan"]))


def test_new_values_are_zeros_and_new_missing_numbers_the_median() -> None:
    preparer = TablePreparer(scale=None).set_output(transform="pandas").fit(table())
    new = table(3).assign(plan="platinum", weight="", flag=[True, False, True])
    with pytest.warns(UserWarning, match="Values that `fit` has not seen get no feature, in the columns plan"):
        found = preparer.transform(new)
    assert not found.filter(like="plan").to_numpy().any()
    median = table()["weight"].str.removesuffix(" kg").astype(np.float32).median()
    assert found["weight"].tolist() == [median] * 3
    assert found.filter(like="flag").to_numpy().ravel().tolist() == [1, 0, 1]
    new["size"] = "NA"
    assert preparer.transform(new.assign(plan="gold"))["missingindicator_size"].tolist() == [1] * 3


def test_types_of_a_frame_change_nothing() -> None:
    texts = pd.DataFrame({"a": [str(i % 7) for i in range(40)], "b": [["x", "", "y"][i % 3] for i in range(40)]})
    texts.loc[3, "a"] = ""
    expected = TablePreparer().fit_transform(texts)
    typed = texts.assign(a=pd.to_numeric(texts["a"]), b=texts["b"].replace("", None))
    for frame in (typed, typed.astype({"a": "Int64", "b": "category"}), typed.astype(object), typed.to_numpy(object)):
        np.testing.assert_array_equal(TablePreparer().fit_transform(frame), expected)
    as_text = TablePreparer({"a": "text"}).fit(typed)
    np.testing.assert_array_equal(as_text.transform(typed.fillna({"a": 9})[:3]), as_text.transform(texts[:3]))


def test_rare_values_share_a_feature() -> None:
    codes = pd.DataFrame({"code": ["a"] * 300 + ["b"] * 190 + ["c"] * 4 + ["d", "e", "e"], "x": range(0, 994, 2)})
    preparer = TablePreparer(scale=None).set_output(transform="pandas").fit(codes)
    found = preparer.transform(codes).drop(columns="x")
    assert found.columns.tolist() == ["code_a", "code_b", "code_rare"]
    assert found.sum().tolist() == [300, 190, 7]
    two = TablePreparer().fit(codes.assign(code=["a"] * 496 + ["b"]))
    assert two.get_feature_names_out().tolist() == ["code_b", "x"]


@pytest.mark.parametrize(
    ("changes", "columns", "message"),
    [
        (
            {"income": ["high", *range(59)]},
            {},
            "row 0, column 6 ('income'): 'high' is not a number, unlike 59 of the 60",
        ),
        ({"income": [np.inf, *range(59)]}, {}, "row 0, column 6 ('income'): inf is not a number between -1e+18 and"),
        (
            {"price": [f"1.20{i % 9},5" for i in range(60)]},
            {},
            "or leave the column out with columns={'price': 'leave_out'}",
        ),
        ({}, {"plam": "text"}, "columns: there is no feature column 'plam'. Did you mean 'plan'?"),
        ({}, {"plan": "txt"}, "columns: plan: unknown value 'txt'. Did you mean 'text'?"),
        ({}, {7: "number"}, "column 7 ('plan'): "),
        ({}, {"plan": "number"}, "column 7 ('plan'): "),
    ],
)
def test_unclear_values_are_refused(changes: dict[str, Any], columns: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        TablePreparer(columns).fit(table().assign(**changes))
    if "income" in changes:
        with pytest.raises(ValueError, match=re.escape(message.partition(" is not")[0])):
            TablePreparer().fit(table()).transform(table().assign(**changes))


def test_other_tables_are_refused() -> None:
    for frame, message in [
        (table()[["unit", "id"]], r"all feature columns are left out \(unit: the same value in all rows; id: row numb"),
        (table()[:0], "X has 0 rows and 11 columns"),
        (table().rename(columns={"id": "size"}), "X has several columns with the name 'size'"),
    ]:
        with pytest.raises(ValueError, match=message):
            TablePreparer().fit(frame)
    with pytest.raises(ValueError, match="The 'scale' parameter"):
        TablePreparer(scale="robust").fit(table())


def test_conventions_of_scikit_learn() -> None:
    check_estimator(TablePreparer())
    preparer = TablePreparer({"id": "number"}, scale="minmax")
    assert clone(preparer).get_params() == {"columns": {"id": "number"}, "scale": "minmax"}
    array = np.random.RandomState(0).standard_normal((20, 2))
    assert TablePreparer().fit(array).get_feature_names_out(["a", "b"]).tolist() == ["a", "b"]

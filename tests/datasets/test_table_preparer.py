"""TablePreparer: the features are those of `own_file`, and data frames are treated as scikit-learn's users expect."""

import re
import warnings
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
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=5e-6)  # of a year, float32 has three more digits


def test_each_column_is_reported_and_named() -> None:
    preparer = TablePreparer().fit(table())
    report = preparer.report_.set_index("column")
    assert report["features"].map(len).to_dict() == {
        **{"id": 0, "size": 2, "weight": 1, "price": 1, "share": 2, "income": 1, "plan": 4, "flag": 1},
        **{"since": 3, "mail": 0, "unit": 0},
    }
    assert report["reason"][report["kind"] == "leave_out"].tolist() == [
        *("identifiers, all different", "60 different strings", "the same value in all rows")
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
    unneeded = ["id", "mail", "unit"]
    pd.testing.assert_frame_equal(preparer.transform(table().drop(columns=unneeded)), expected)
    pd.testing.assert_frame_equal(preparer.transform(dict(table())), expected)
    with pytest.raises(ValueError, match="X: expected the columns 'size', 'plan', which are missing; got "):
        preparer.transform(table().drop(columns=["size", "plan"]))


def test_new_values_are_zeros_and_new_missing_numbers_the_median() -> None:
    preparer = TablePreparer(scale=None).set_output(transform="pandas").fit(table())
    new = table(3).assign(plan="platinum", weight="", flag=[True, False, True])
    expected = "weight: missing values in 3 rows; plan: 'platinum' in 3 rows. A text counts as none"
    with pytest.warns(UserWarning, match=f"X has values that the training rows do not have: {expected}"):
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
        ({"income": [np.inf, *range(59)]}, {}, "row 0, column 6 ('income'): inf is not a number between -1e+19 and"),
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
            TablePreparer().fit(table()).transform(table().assign(**changes)[:9])


@pytest.mark.parametrize("cell", ["unknown", "98109-2547", "n/k", "never"])
@pytest.mark.parametrize("name", ["size", "weight", "price", "income", "since"])
def test_a_cell_of_another_kind_does_not_stop_a_batch(name: str, cell: str) -> None:
    """It counts as missing if others can be read, which a warning says; `fit` refuses it, or coerces and counts it."""
    preparer, changed = TablePreparer(scale=None).fit(table()), table().astype({name: object})
    changed.loc[7, name] = cell
    missing = changed.assign(**{name: changed[name].where(changed[name] != cell, None)})
    with pytest.warns(UserWarning, match=f"{name}: '{cell}' in 1 row. .* a missing or unreadable number as the median"):
        found = preparer.transform(changed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(found, preparer.transform(missing))
        coercing, expected = (TablePreparer(coerce=True).fit(frame) for frame in (changed, missing))
        np.testing.assert_array_equal(coercing.transform(changed), expected.transform(missing))
        report = coercing.report_.set_index("column")
        assert report["n_unreadable"].to_dict() == {column: int(column == name) for column in table()}
        assert f"missingindicator_{report['features'][name][0]}" in report["features"][name]
        if name != "since":
            message = rf"row 7, .*'{cell}' is not a number.* with columns={{'{name}': 'text'}}, .*coerce=True, or leave"
            with pytest.raises(ValueError, match=message):
                TablePreparer().fit(changed)
    many = changed.assign(**{name: changed[name].where(np.arange(60) % 8 > 0, cell)})
    with pytest.raises(ValueError, match=f"row 0, .*'{cell}' is not a"):
        preparer.transform(many)


@pytest.mark.parametrize("cell", [np.inf, "inf", "1e30"])
@pytest.mark.parametrize("others", ["", "unknown"])
def test_too_large_numbers_are_coerced(cell: float | str, others: str) -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 0.5] * 20, "b": [3.0, 1.0, 2.0, 5.0] * 15}).astype(object)
    changed, missing = frame.copy(), frame.copy()
    changed.loc[7, "a"], missing.loc[7, "a"] = cell, None
    if others:
        changed.loc[9, "a"], missing.loc[9, "a"] = others, None
    preparer = TablePreparer(coerce=True, scale=None).fit(changed)
    assert preparer.report_["n_unreadable"].tolist() == [1 + bool(others), 0]
    with pytest.warns(UserWarning, match="a: .* a missing or unreadable number as the median"):
        np.testing.assert_array_equal(preparer.transform(changed), TablePreparer(scale=None).fit_transform(missing))
    with pytest.raises(ValueError, match="is not a number"):
        TablePreparer().fit(changed)


@pytest.mark.parametrize("cell", ["5 lb", "1,5", "3 kg"])
def test_a_number_of_another_form_stops_a_batch(cell: str) -> None:
    """It is a number whose value is not known, rather than a missing one."""
    preparer, changed = TablePreparer(scale=None).fit(table()), table().astype({"income": object})
    changed.loc[7, "income"] = cell
    with pytest.raises(ValueError, match=f"row 7, .*'{cell}' is not a number"):
        preparer.transform(changed)


@pytest.mark.parametrize("levels", [["S", "M", "L"], ["L", "S", "M"]])
def test_an_ordered_category_keeps_its_order(levels: list[str]) -> None:
    values = np.array(["S", "M", "L"])[np.random.RandomState(0).randint(0, 3, 60)]
    frame = pd.DataFrame({"a": values, "x": np.arange(60) % 7})
    typed = frame.assign(a=pd.Categorical(values, levels, ordered=True))
    expected = [levels.index(value) for value in values]
    for preparer, train in ((TablePreparer({"a": levels}, scale=None), frame), (TablePreparer(scale=None), typed)):
        assert preparer.fit(train).get_feature_names_out().tolist() == ["a", "x"]
        for table in (frame, typed):
            assert preparer.transform(table)[:, 0].tolist() == expected
        with pytest.raises(ValueError, match=rf"row 0, .*'XL' is not one of {', '.join(levels)} as in the column"):
            preparer.transform(frame.assign(a="XL"))
    with pytest.raises(ValueError, match="columns: a: expected at least two different values in their order"):
        TablePreparer({"a": ["S", "S"]}).fit(frame)


@pytest.mark.parametrize(("kind", "values"), [("number", ["12", "30"]), (["S", "L"], ["S", "L"])])
def test_marks_of_missing_values_are_no_categories_of_a_requested_kind(kind: Any, values: list[str]) -> None:
    table = pd.DataFrame({"a": [*(values * 15), "?"], "x": np.arange(31) % 7})
    expected = TablePreparer({"a": kind}, scale=None).fit_transform(table)
    typed = table.assign(a=pd.Categorical(table["a"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        preparer = TablePreparer({"a": kind}, scale=None).fit(typed)
        np.testing.assert_array_equal(preparer.transform(typed), expected)


def test_other_tables_are_refused() -> None:
    for frame, message in [
        (
            table()[["unit", "id"]],
            r"all feature columns are left out \(unit: the same value in all rows; id: identifiers, all",
        ),
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
    assert clone(preparer).get_params() == {
        **{"columns": {"id": "number"}, "scale": "minmax"},
        **{"coerce": False, "decimal": "."},
    }
    array = np.random.RandomState(0).standard_normal((20, 2))
    several = TablePreparer().fit_transform(array, np.arange(40).reshape(20, 2) % 3)
    np.testing.assert_array_equal(several, TablePreparer().fit_transform(array))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TablePreparer().fit(array, np.zeros((10, 2)))
    assert TablePreparer().fit(array).get_feature_names_out(["a", "b"]).tolist() == ["a", "b"]


def test_truth_values_of_an_array_are_numbers_where_numbers_were_learned() -> None:
    numbers = np.random.default_rng(0).integers(0, 2, (40, 2))
    declared = TablePreparer({"x0": "number"}, scale=None)
    for preparer in (TablePreparer(scale=None).fit(numbers), declared.fit(numbers == 1)):
        np.testing.assert_array_equal(preparer.transform(numbers == 1), numbers)


def test_features_have_different_names() -> None:
    values = ["common"] * 400 + ["rare"] * 195 + ["x"] * 2 + ["y"] * 3
    table = pd.DataFrame({"a": values, "a_b": ["c", "d", "e"] * 200, "b": range(600)})
    preparer = TablePreparer().set_output(transform="polars").fit(table)
    names = preparer.get_feature_names_out().tolist()
    assert len({*names}) == len(names)
    assert {"a_common", "a_rare", "a_rare_2"} <= {*names}
    assert preparer.transform(table).columns == names


@pytest.mark.parametrize("n_values", [2, 3, 7, 30, 120])
@pytest.mark.parametrize("n_missing", [0, 40])
@pytest.mark.parametrize("scale", [None, "auto", "minmax"])
def test_no_unknown_value_is_coded_like_a_known_one(n_values: int, n_missing: int, scale: str | None) -> None:
    """Neither a new text nor, where none was missing in `fit`, a missing one; and both are reported."""
    values = [f"v{i}" for i in range(n_values)]
    rare = ["seldom"] * (n_values > 2)
    column = [*values * 20, *[None] * n_missing, *rare]
    random = np.random.RandomState(0)
    preparer = TablePreparer(scale=scale).fit(pd.DataFrame({"a": column, "x": random.standard_normal(len(column))}))
    old = values + [None] * bool(n_missing) + rare
    new = ["other", "V1", " v1\u200b", "1", *[None] * (not n_missing), "?" if not n_missing else "no"]
    with pytest.warns(UserWarning, match="a: .*'other', 'V1' .but 'v1' occurs., ") as caught:
        features = preparer.transform(pd.DataFrame({"a": old + new, "x": 0.0}))
    n_new = len(new)
    assert f" in {n_new} rows. A text counts as none of the values of its column" in str(caught[0].message)
    assert ("missing values" in str(caught[0].message)) == (not n_missing)
    unknown = features[-n_new:]
    np.testing.assert_array_equal(unknown, np.repeat(unknown[:1], n_new, axis=0))
    assert not (features[:-n_new] == unknown[0]).all(axis=1).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        preparer.transform(pd.DataFrame({"a": old, "x": 0.0}))


TRUTH = {
    "bool": lambda flag: flag,
    "object": lambda flag: flag.astype(object),
    "boolean": lambda flag: flag.astype("boolean"),
    "arrow": lambda flag: flag.astype("bool[pyarrow]"),
    **{f"{no}, {yes}": lambda flag, pair=(no, yes): flag.map(dict(zip((False, True), pair, strict=True)))
       for no, yes in (("FALSE", "TRUE"), ("false", "true"), ("False", "True"), ("fALSE", "tRUE"), ("0", "1"))},
    "int": lambda flag: flag.astype(int),
    "float": lambda flag: flag.astype(float),
    "category": lambda flag: flag.astype("category"),
    "mixed": lambda flag: flag.astype(object).where(flag.index % 2 == 1, flag.astype(int)),
}  # fmt: skip


@pytest.mark.parametrize("share", [0.2, 0.8])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("train", [name for name in TRUTH if name not in ("0, 1", "int", "float")])
def test_truth_values_are_compared_by_value(train: str, gaps: bool, share: float) -> None:
    random = np.random.RandomState(0)
    flag = pd.Series(random.random_sample(60) < share)
    table = pd.DataFrame({"a": flag, "x": random.standard_normal(60)})
    table["a"] = TRUTH[train](table["a"])
    if gaps:
        table["a"] = table["a"].astype(object).mask(table.index % 6 == 0)
    preparer = TablePreparer(scale=None).fit(table)
    names = preparer.get_feature_names_out().tolist()
    assert names[0] == "a_True" if not gaps else {*names} == {"a_True", "a_False", "a_nan", "x"}
    for name, convert in TRUTH.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = preparer.transform(table.assign(a=convert(flag)))
        assert found[:, names.index("a_True")].tolist() == flag.tolist(), name
    with pytest.warns(UserWarning, match="a: 'yes' in 60 rows"):
        unknown = preparer.transform(table.assign(a="yes"))[:, names.index("a_True")]
    assert {*unknown} == {0.0 if gaps else 0.5}


GUESSED = {
    "stepped": (range(500, 560), "row numbers"),
    "Kundennr": ([37 * i % 101 for i in range(60)], "identifiers, all different"),
    "CustomerNo": ([37 * i % 101 for i in range(60)], "identifiers, all different"),
    "customer_id": ([37 * i % 101 for i in range(60)], "identifiers, all different"),
    "Unnamed: 0": ([37 * i % 101 for i in range(60)], "row numbers"),
    "index": ([37 * i % 101 for i in range(60)], "row numbers"),
    "user_key": ([f"u{i}" for i in range(60)], "identifiers, all different"),
    **{
        name: ([values(i) for i in range(60)], "identifiers that repeat: pass them to fit(groups=)?")
        for name, values in {
            "genus_id": lambda i: i % 40,
            "patient": lambda i: i // 2,
            "id": lambda i: f"a{i % 59}",
        }.items()
    },
    "mail": ([f"user{i}@example.org" for i in range(60)], "60 different strings"),
}
KEPT = {
    "heat_index": [60 + 37 * i % 101 for i in range(60)],
    "body_mass_index": [18 + i % 20 for i in range(60)],
    "genus_id": [i % 20 for i in range(60)],
    "customer_id": [i // 2 / 4 for i in range(60)],
    "row": [i / 2 for i in range(60)],
    "humid": [37 * i % 101 for i in range(60)],
    "refractive_index": [1.3 + i % 7 / 10 for i in range(60)],
}


@pytest.mark.parametrize("name", GUESSED)
def test_what_is_left_out_by_a_guess_is_said(name: str) -> None:
    values, why = GUESSED[name]
    frame = pd.DataFrame({name: values, "x": np.random.RandomState(0).standard_normal(60), "one": 1})
    expected = f"TablePreparer leaves out {name}: {why}. Set columns={{NAME: 'number'}} or {{NAME: 'text'}} to keep"
    with pytest.warns(UserWarning, match=re.escape(expected)) as caught:
        preparer = TablePreparer().fit(frame)
    assert len(caught) == 1
    assert preparer.report_["reason"].tolist() == [why, "", "the same value in all rows"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TablePreparer({name: "leave_out"}).fit(frame)
        preparer.transform(frame)


@pytest.mark.parametrize("n_copies", [1, 40])
@pytest.mark.parametrize("name", KEPT)
def test_measurements_with_names_of_identifiers_are_kept(name: str, n_copies: int) -> None:
    frame = pd.DataFrame({name: [*KEPT[name]] * n_copies, "x": np.random.RandomState(0).standard_normal(60 * n_copies)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TablePreparer().fit(frame).report_["kind"].tolist() == ["number", "number"]


def test_many_identifiers_are_left_out_whether_they_repeat_or_not() -> None:
    random = np.random.RandomState(0)
    ids = random.permutation(5000)
    for first, second in ((ids, ids + 2**53), (ids % 4999, ids // 2)):
        frame = pd.DataFrame({"id": first, "order_id": second, "x": random.standard_normal(5000)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert TablePreparer().fit(frame).report_["kind"].tolist() == ["leave_out", "leave_out", "number"]


@pytest.mark.parametrize("base", [1.7e18, 1.7e9, 5.9e6, 2e4])
def test_numbers_far_from_0_keep_their_digits(base: float) -> None:
    x = np.random.RandomState(0).random_sample(400) * base * 1e-8
    for scale in ("auto", "standard", "minmax", None):
        found = TablePreparer(scale=scale).fit_transform(pd.DataFrame({"t": base + x}))
        assert len(np.unique(found)) == 400
        assert found.dtype == (np.float32 if scale else np.float64)
        np.testing.assert_array_equal(np.argsort(found[:, 0]), np.argsort(base + x))


@pytest.mark.parametrize("order", [[3, 1, 2], [3.0, 1.0, 2.0], ["3", "1", "2"]])
def test_the_order_of_numbers_does_not_depend_on_their_type(order: list[Any]) -> None:
    values = [1, 2, 3, 3, 2, 1, 1]
    for dtype in ("int8", "float32", "float64", "Int64", "str"):
        table = pd.DataFrame({"a": pd.Series(values).astype(dtype), "b": np.arange(7)[::-1] / 3})
        features = TablePreparer(columns={"a": order}, scale=None).fit_transform(table)
        assert features[:, 0].tolist() == [1, 2, 0, 0, 2, 1, 1]
    texts = pd.DataFrame({"a": ["1.0", "2.0", "3.0"], "b": [0.5, 2.5, 1.5]})
    assert TablePreparer(columns={"a": [3.0, 1.0, 2.0]}, scale=None).fit_transform(texts)[:, 0].tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    "texts",
    [
        [f"{1000 + i} st{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(59)] + ["1,200 elm"],
        [*(f"192.168.0.{i}" for i in range(59)), "192.168.100.101"],
        *([*(f"comment no. {i}, see above" for i in range(59)), cell] for cell in ("5,000", "1,5")),
    ],
)
def test_a_number_with_a_comma_in_a_column_of_texts_is_one_of_them(texts: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        preparer = TablePreparer().fit(pd.DataFrame({"a": texts, "x": np.arange(60) % 7}))
    assert preparer.columns_[0].why == "60 different strings"


def test_a_minus_of_printers_is_one_in_training_and_new_rows() -> None:
    numbers = np.arange(60) % 23 - 11
    table = pd.DataFrame({"a": [str(number).replace("-", "\u2212") for number in numbers]})
    preparer = TablePreparer(scale=None).fit(table)
    np.testing.assert_array_equal(preparer.transform(table)[:, 0], numbers)
    plain = TablePreparer(scale=None).fit(pd.DataFrame({"a": numbers}))
    np.testing.assert_array_equal(plain.transform(table)[:, 0], numbers)

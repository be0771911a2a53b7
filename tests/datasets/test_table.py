"""User tables with texts, dates, row numbers and missing values: features and notes."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.config.splitting import Share
from klr_bench.datasets import load
from klr_bench.datasets.amounts import is_missing
from klr_bench.datasets.class_labels import Labels
from klr_bench.datasets.column import Column
from klr_bench.datasets.layout import layout_of
from klr_bench.datasets.readers import Reading
from klr_bench.datasets.readers import read as read_files
from klr_bench.datasets.readers.user_table import Table, read_table
from klr_bench.datasets.splits import make_split, prepare
from klr_bench.errors import KlrBenchError
from tests.config.composing import dataset_of

N, HERE = 40, Path("mine.csv")
CITIES = ["Rome", "Oslo", "Rome", "Bern", "?"]
SEXES = ["f", "m"]


def rows() -> list[dict[str, Any]]:
    random = np.random.RandomState(0)
    return [
        {
            **{"id": 1000 + 7 * i, "age": "NA" if i % 10 == 3 else 20 + i % 13, "city": CITIES[i % 5]},
            **{"sex": SEXES[i % 2], "born": f"19{50 + i % 40}-0{1 + i % 9}-1{i % 9}", "note": f"text {i}"},
            **{"unit": "kg", "x": f"{random.standard_normal():.4f}", "class": ["no", "yes"][i % 3 == 0]},
        }
        for i in range(N)
    ]


def write(path: Path, table: list[dict[str, Any]]) -> Path:
    lines = [",".join(table[0]), *(",".join(map(str, row.values())) for row in table)]
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path: Path, requested: dict[str, str] | None = None, train: Table | None = None) -> tuple[Any, Any, Table]:
    layout = layout_of(path, None, train.layout if train else None, unnamed=True)
    return read_table(path, layout, Labels(drop_missing=True), requested or {}, train)


def treatment(tmp_path: Path, table: list[dict[str, Any]], **requested: str) -> tuple[Any, Any, Table]:
    """Return X, the first column and the table of rows, which need no class."""
    rows = [row if "class" in row else row | {"class": "ab"[i % 2]} for i, row in enumerate(table)]
    X, _, found = read(write(tmp_path / "mine.csv", rows), requested)
    return X, found.columns[0], found


def test_treatment_of_each_column(tmp_path: Path) -> None:
    X, codes, table = read(write(tmp_path / "mine.csv", rows()))
    kinds = {column.name: (column.kind, column.why or column.values) for column in table.columns}
    assert kinds == {
        "id": ("leave_out", "identifiers, all different"),
        "age": ("number", ()),
        "city": ("text", ("Rome", "Bern", "Oslo", "")),
        "sex": ("text", ("m",)),
        "born": ("date", ("year", "month", "weekday")),
        "note": ("leave_out", "40 different strings"),
        "unit": ("leave_out", "the same value in all rows"),
        "x": ("number", ()),
    }
    assert X.dtype == np.float64
    for i, row in enumerate(rows()):
        cities = [row["city"] == name for name in ("Rome", "Bern", "Oslo", "?")]
        age = np.nan if row["age"] == "NA" else row["age"]
        born = date.fromisoformat(row["born"])
        parts = born.year, born.month, born.weekday()
        np.testing.assert_allclose(X[i], [age, *cities, row["sex"] == "m", *parts, float(row["x"])], rtol=1e-6)
    assert codes.tolist() == [int(i % 3 != 0) for i in range(N)]
    assert table.notes(HERE) == [
        "labels: column 9 ('class')",
        "2 columns of numbers: age, x",
        "2 columns of text as 5 binary features: city (4), sex (1)",
        "1 column of dates or times: born (year, month, weekday)",
        "missing values in 1 column of numbers are replaced by the median of the training rows, and an indicator "
        "feature is added: "
        "age (4)",
        "missing values in 1 column of text are treated as a separate value: city (8)",
        "left out: id: identifiers, all different; note: 40 different strings; unit: the same value in all rows. "
        "To keep a column, set data.columns={NAME: number} or {NAME: text}",
    ]


def test_kinds_of_columns_may_be_requested(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.csv", rows())
    requested = {"id": "number", "sex": "leave_out", "8": "leave_out", "age": "text", "unit": "leave_out"}
    kinds = {column.name: column.kind for column in read(path, requested)[2].columns}
    assert [name for name, kind in kinds.items() if kind == "leave_out"] == ["sex", "note", "unit", "x"]
    assert (kinds["id"], kinds["age"]) == ("number", "text")


@pytest.mark.parametrize(
    ("requested", "value", "message"),
    [
        ({"agee": "number"}, "1", "data.columns: there is no feature column 'agee'. Did you mean 'age'?"),
        ({"class": "number"}, "1", "there is no feature column 'class'"),
        (
            {"city": "number"},
            "1",
            "line 2, column 3 ('city'): 'Rome' is not a number; correct it (a number without a unit)",
        ),
        ({}, "1.2.3", "line 7, column 8 ('x'): '1.2.3' is not a number, unlike 39 of the 40 values in the column"),
        ({}, "1e300", "line 7, column 8 ('x'): '1e300' is not a number between -1e+19"),
    ],
)
def test_mistakes_are_rejected(tmp_path: Path, requested: dict[str, str], value: str, message: str) -> None:
    table = rows()
    table[5]["x"] = value
    with pytest.raises(KlrBenchError, match=re.escape(message)):
        read(write(tmp_path / "mine.csv", table), requested)


@pytest.mark.parametrize(
    ("name", "value", "first", "key"),
    [
        ("x", "{},{}5", "0,05", "x"),  # hardly any value repeats
        ("size", "{0},5", "0,5", "size"),
        ("Größe", "{1}5,0", "05,0", "2"),  # the command line cannot hold the name
        ("price", "1.20{0}.000 €", "1.200.000 €", "price"),
    ],
)
def test_decimal_commas_are_rejected(tmp_path: Path, name: str, value: str, first: str, key: str) -> None:
    table = [
        {"y": i % 3, name: value.format(i % 5 if "0}" in value else i, i % 7), "class": "ab"[i % 2]} for i in range(60)
    ]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join([";".join(table[0]), *(";".join(map(str, row.values())) for row in table)]))
    expected = (
        f"line 2, column 2 ('{name}'): '{first}' has a decimal comma or thousands separators as in "
        "1.234,5; set data.decimal=comma (decimal=',' in Python), or leave the column out with "
        f"'data.columns={{{key}: leave_out}}'."
    )
    with pytest.raises(KlrBenchError, match=re.escape(expected)):
        read(path)
    assert read(path, {"2": "text"})[2].columns[1].kind == "text"


@pytest.mark.parametrize("unit", ["", " €"])
@pytest.mark.parametrize(
    ("values", "thousands"),
    [
        *(
            (["1.234", "987"], True),
            (["12", "-1.234", "987"], True),
            (["1.234", "98"], False),
            (["1.234", "2.345"], False),
        ),
        *((["1.234", "987", other], False) for other in ("98.5", "0.987", "1234", "1e3", "987.0")),
    ],
)
def test_points_that_may_separate_thousands_are_refused(
    tmp_path: Path, values: list[str], thousands: bool, unit: str
) -> None:
    table = [{"n": values[i % len(values)] + unit, "x": (7 * i) % 5} for i in range(60)]
    if thousands:
        expected = rf"'-?1\.234{unit}' may be thousands, since others .* set 'data.columns={{n: number}}'; for"
        with pytest.raises(KlrBenchError, match=expected):
            treatment(tmp_path, table)
    X = treatment(tmp_path, table, **({"n": "number"} if thousands else {}))[0]
    np.testing.assert_array_equal(X[:, 0], [float(row["n"].removesuffix(unit)) for row in table])


UNITS = {"${}": "$", "{} €": "€", "{} %": "%", "EUR {}": "EUR", "{}kg/m2": "kg/m2", "US${}": "US$"}


@pytest.mark.parametrize("form", UNITS)
def test_a_unit_is_removed_from_numbers(tmp_path: Path, form: str) -> None:
    table = [{"price": form.format(f"{i - 5}.50"), "x": (7 * i) % 5} for i in range(30)]
    table[7]["price"] = ""
    X, _, found = treatment(tmp_path, table)
    np.testing.assert_array_equal(X[:, 0], [np.nan if i == 7 else float(f"{i - 5}.50") for i in range(30)])
    removed = f"the unit is removed from 1 column of numbers: price ({UNITS[form]!r})"
    assert found.notes(HERE)[1:3] == ["2 columns of numbers: price, x", removed]
    assert treatment(tmp_path, table, price="text")[1].kind == "text"
    wrong = rf"'5 lb' is not a number with the unit {re.escape(repr(UNITS[form]))}"
    other = write(tmp_path / "test.csv", [row | {"price": "5 lb", "class": "a"} for row in table[:2]])
    with pytest.raises(KlrBenchError, match=f"{wrong} between .*; convert it to "):
        read(other, train=found)
    table[9]["price"] = "5 lb"
    with pytest.raises(KlrBenchError, match=rf"line 11, column 1 .*{wrong}, unlike 28 of the 29"):
        treatment(tmp_path, table)


def test_numbers_in_different_units_stay_text_with_a_warning(tmp_path: Path) -> None:
    table = [{"w": f"{i % 7} {['kg', 'g'][i % 3 == 0]}", "x": i % 5} for i in range(60)]
    assert (
        "warning: w is read as text because it has numbers with different units ('kg', 'g'); convert the numbers to "
        "one unit, or confirm with data.columns={w: text}"
    ) in treatment(tmp_path, table)[2].notes(HERE)
    assert "warning" not in "".join(treatment(tmp_path, table, w="text")[2].notes(HERE))
    with pytest.raises(
        KlrBenchError,
        match=r"line 2, .*: '0 g' is not a number with the unit 'kg'; convert it to 'kg'; read the column as",
    ):
        treatment(tmp_path, table, w="number")
    column = treatment(tmp_path, [{"w": f"{i}.5 {['kg', 'g'][i % 2]}", "x": i % 5} for i in range(60)])[1]
    assert (column.kind, column.why) == ("leave_out", "numbers with different units ('kg', 'g')")


@pytest.mark.parametrize(
    ("prices", "numbers"),
    [
        (["1,234,567", "4,799"], [1234567, 4799]),
        (["$1,234.50", "-$4,799.00"], [1234.5, -4799]),
        (["4,799", "850"], [4799, 850]),
        (["4,799", "12.25"], [4799, 12.25]),
        (["1 234 567 €", "4 799 €"], [1234567, 4799]),
        (["1'234.50", "850"], [1234.5, 850]),
        (["4,799", "4,800"], None),
        (["4,799", "4800"], None),
    ],
)
def test_separators_of_thousands_are_removed(tmp_path: Path, prices: list[str], numbers: list[float] | None) -> None:
    table = [{"price": f'"{prices[i % 2]}"', "x": (7 * i) % 5} for i in range(30)]
    requested = {}
    if numbers is None:  # a comma that may be either
        expected = (
            "line 2, column 1 ('price'): '4,799' has an ambiguous comma; for thousands, set "
            "'data.columns={price: number}'; for decimals, set data.decimal=comma"
        )
        with pytest.raises(KlrBenchError, match=re.escape(expected)):
            treatment(tmp_path, table)
        requested, numbers = {"price": "number"}, [4799, 4800]
    X, _, found = treatment(tmp_path, table, **requested)
    np.testing.assert_array_equal(X[:, 0], numbers * 15)
    assert ("commas separate thousands in 1 column: price" in found.notes(HERE)) == ("," in "".join(prices))
    table[0]["price"] = '"1,5"'
    with pytest.raises(KlrBenchError, match=r"test.csv, line 2, column 1 \('price'\): '1,5' is not a number"):
        read(write(tmp_path / "test.csv", [row | {"class": "a"} for row in table]), train=found)


def test_a_point_in_any_batch_of_rows_tells_what_commas_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klr_bench.datasets.layout.ROWS", 10)
    table = [{"price": "12.5" if i < 20 else '"4,799"', "x": (7 * i) % 5} for i in range(30)]
    np.testing.assert_array_equal(treatment(tmp_path, table)[0][:, 0], [12.5] * 20 + [4799] * 10)


@pytest.mark.parametrize("name", ["PassengerId", "customer_id", "userid", "Order Key", "ID"])
@pytest.mark.parametrize(
    ("form", "n"), [("{}", 12), ("{}", 1500), ("c{}", 60), ("c{}", 1500), ("90071992547{:06}", 60)]
)
def test_identifiers_are_left_out(tmp_path: Path, name: str, n: int, form: str) -> None:
    table = [{name: form.format(37 * i % 1511), "x": i % 5} for i in range(n)]
    table[1][name] = ""
    column = treatment(tmp_path, table)[1]
    assert column.kind == "leave_out"
    repeating = "identifiers; if they repeat, set data.group="
    assert column.why == "identifiers, all different" or (n > 1000 and column.why.startswith(repeating))


TEXTS = ("A12 A13", "12-05 13-05", "10:30 9:00", "1.2.3 1.2.4")
KEPT = [
    *((name, [str(37 * i % 101) for i in range(60)], "number") for name in ("paid", "humid")),
    ("Id", [f"{37 * i % 101}.5" for i in range(60)], "number"),
    *(("c", [*texts.split(), "b"] * 20, "text") for texts in TEXTS),
]


@pytest.mark.parametrize(("name", "values", "kind"), KEPT)
def test_measurements_and_codes_are_kept(tmp_path: Path, name: str, values: list[str], kind: str) -> None:
    assert treatment(tmp_path, [{name: value, "x": i % 5} for i, value in enumerate(values)])[1].kind == kind


@pytest.mark.parametrize("wide", [False, True])
def test_rows_without_a_label_are_left_out_and_counted(tmp_path: Path, wide: bool) -> None:
    filler = {f"f{i}": i for i in range(2000 if wide else 0)}
    labels = ["a", "NA", "none", "?", "", "-"]
    table = [{"x": 100 * (i % 6) + i, **filler, "class": labels[i % 6]} for i in range(60)]
    path = write(tmp_path / "mine.csv", table)
    arrays = read_files([path, path], Reading(table=1, multiclass=True))
    assert arrays.classes == ("-", "a", "none")
    X = arrays.X.toarray() if wide else arrays.X
    assert X[:30, 0].tolist() == [row["x"] for row in table if row["class"] in arrays.classes]
    assert arrays.n_train_official == 30
    assert arrays.said[-1] == "left out: 60 rows without a label ('NA', '?', empty)"
    no_label = write(tmp_path / "mine.csv", [row | {"class": ""} for row in table])
    column = 2002 if wide else 2
    expected = rf"mine\.csv: no row has a label in column {column} \('class'\); set data\.label=NAME to use another"
    with pytest.raises(KlrBenchError, match=expected):
        read_files([no_label], Reading(table=1, multiclass=True))


def test_row_numbers_are_left_out_and_other_counts_are_kept(tmp_path: Path) -> None:
    table = [{"": i, "nr": 1 + i, "back": 6000 - i, "class": "ab"[i > 2999]} for i in range(6000)]
    _, _, found = treatment(tmp_path, table)
    assert [column.why for column in found.columns] == ["row numbers", "row numbers", ""]
    shuffled = [{"": 7 * i % 30, "rank": (11 * i) % 30, "x": (7 * i) % 5} for i in range(30)]
    assert [column.why for column in treatment(tmp_path, shuffled)[2].columns] == ["row numbers", "", ""]


def test_a_table_without_features_is_rejected(tmp_path: Path) -> None:
    table = [{"id": i, "class": "ab"[i % 2]} for i in range(30)]
    with pytest.raises(
        KlrBenchError, match=r"all feature columns are left out \(id: identifiers, all different\); keep at least one"
    ):
        read(write(tmp_path / "mine.csv", table))


def test_a_test_file_follows_the_training_file(tmp_path: Path) -> None:
    _, _, table = read(write(tmp_path / "train.csv", rows()))
    other = [row | {"id": 3, "city": "Paris", "x": "", "note": ""} for row in rows()[:3]]
    X, _, again = read(write(tmp_path / "test.csv", other), train=table)
    assert again.columns == table.columns
    assert again.unseen == (
        f"warning: {tmp_path}/test.csv has values that the training rows do not have: city: 'Paris' in 3 rows; x: "
        "missing values in 3 rows. A text counts as none of the values of its column, a missing or unreadable number "
        "as the median"
    )
    np.testing.assert_array_equal(X[:, 1:5], np.zeros((3, 4)))
    assert np.isnan(X[:, -1]).all()
    other[1]["x"] = "high"
    with pytest.raises(KlrBenchError, match=r"test\.csv, line 3, column 8 \('x'\): 'high' is not a number between"):
        read(write(tmp_path / "test.csv", other), train=table)


def test_a_tenth_of_a_test_file_may_be_unreadable_wherever_it_is(tmp_path: Path) -> None:
    table = [{"x": i % 97, "class": "ab"[i % 2]} for i in range(5005)]
    _, _, train = read(write(tmp_path / "train.csv", table))
    table[-1]["x"] = "unknown"
    X, _, _ = read(write(tmp_path / "test.csv", table), train=train)
    assert np.isnan(X[:, 0]).nonzero()[0].tolist() == [5004]


def test_three_decimals_may_follow_a_comma_before_a_unit(tmp_path: Path) -> None:
    rows = [{"x": f'"{i % 9},{100 + i} kg"' if i % 2 else f"{100 + i} kg", "class": "ab"[i % 2]} for i in range(60)]
    path = write(tmp_path / "mine.csv", rows)
    X, _, _ = read_table(path, layout_of(path, None), Labels(drop_missing=True), {}, decimal=",")
    assert X[:2, 0].tolist() == [100, 1.101]


def test_columns_with_many_different_values(tmp_path: Path) -> None:
    table = [
        {"day": f"{1 + i % 28}.{1 + i % 12}.{1900 + i // 12}", "text": f"t{i}", "x": i % 7, "code": f"c{i % 300}"}
        for i in range(1500)
    ]
    _, _, found = treatment(tmp_path, table)
    assert [column.why for column in found.columns] == ["", "more than 1,000 different strings", "", ""]
    assert (len(found.columns[3].values), len(found.columns[3].rare), found.columns[3].width) == (100, 200, 101)
    assert "rare values share a feature in 1 column of text: code (200 values)" in found.notes(HERE)


def test_missing_values_are_imputed_from_the_training_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.csv", rows())
    source = {"format": "file", "path": str(path)}
    spec = dataset_of({"source": source, "split": {"test_size": 0.25}})
    dataset = load("file", spec, cache=tmp_path / "cache", mirror=None)
    again = load("file", spec, cache=tmp_path / "cache", mirror=None)
    assert dataset.said == again.said != ()
    split = make_split(dataset, Share(test_size=0.25), 0, 0)
    ages = dataset.X[:, 0]
    data = prepare(dataset, split, None)
    assert data.X_train.dtype == np.float32
    assert data.X_train.shape[1] == dataset.X.shape[1] + 1, "with the indicator"
    for X, part in ((data.X_train, split.train), (data.X_test, split.test)):
        missing = np.isnan(ages[part])
        np.testing.assert_array_equal(X[:, -1], missing)
        np.testing.assert_array_equal(X[missing, 0], np.nanmedian(ages[split.train]))
        np.testing.assert_array_equal(X[~missing, 0], ages[part][~missing])
    assert abs(prepare(dataset, split, "auto").X_train.mean(axis=0)).max() < 1e-5


@given(st.lists(st.one_of(st.floats(-1e15, 1e15), st.sampled_from(["", "NA", "?", "null"])), min_size=1, max_size=30))
def test_numbers_are_read_exactly(values: list[Any]) -> None:
    column = Column(0, "x", "number", n_missing=1)
    found = column.features([repr(value) if isinstance(value, float) else value for value in values])[:, 0]
    np.testing.assert_array_equal(found, [value if isinstance(value, float) else np.nan for value in values])
    assert [is_missing(str(value)) for value in values] == np.isnan(found).tolist()

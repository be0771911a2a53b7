"""Frames of all libraries and types give equal features; a type says what a column is; other cells are refused."""

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from klr_bench import TablePreparer

N = 60
RANDOM = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "whole": RANDOM.integers(-50, 50, N),
        "real": RANDOM.normal(size=N).astype(np.float32).astype(float),
        "gaps": np.where(RANDOM.random(N) < 0.2, np.nan, RANDOM.integers(0, 9, N)),
        "flag": RANDOM.random(N) < 0.4,
        "plan": RANDOM.choice(["free", "gold", "basic"], N),
        "holes": [None if i % 7 == 3 else ["x", "y"][i % 2] for i in range(N)],
        "weight": [f"{1 + i * 7 % 13} kg" for i in range(N)],
        "code": pd.Categorical(RANDOM.integers(0, 4, N)),
    }
)
"""Columns whose values all libraries have."""


def in_columns(table: pd.DataFrame) -> dict[str, list[Any]]:
    """Return the values as Python objects, with None for a missing one."""
    return {name: [None if pd.isna(value) else value for value in table[name].tolist()] for name in table}


def polars(table: pd.DataFrame) -> pl.DataFrame:
    columns = in_columns(table) | {"code": [str(value) for value in table["code"]]}
    return pl.DataFrame(columns).with_columns(pl.col("code").cast(pl.Categorical))


def arrow(table: pd.DataFrame) -> pa.Table:
    columns = {name: pa.array(values) for name, values in in_columns(table).items()}
    return pa.table(columns | {"code": pa.array(table["code"].astype(str).tolist()).dictionary_encode()})


SAME: dict[str, Callable[[pd.DataFrame], Any]] = {
    "numpy": lambda table: table,
    "object": lambda table: table.astype(dict.fromkeys([*table.columns[:-1]], object)),
    "nullable": lambda table: table.convert_dtypes().astype({"code": table["code"].dtype}),
    "pandas with Arrow": lambda table: table.convert_dtypes(dtype_backend="pyarrow").astype(
        {"code": table["code"].dtype}
    ),
    "small": lambda table: table.astype({"whole": "int8", "real": "float32", "gaps": "float16"}),
    "other order": lambda table: table.astype({"code": pd.CategoricalDtype([3, 1, 2, 0])}),
    "sparse": lambda table: table.astype({"whole": "Sparse[int64]", "real": "Sparse[float64]"}),
    "other index": lambda table: table.set_axis([f"r{i}" for i in range(len(table))], axis=0),
    "dict": dict,
    "polars": polars,
    "polars Enum": lambda table: polars(table).with_columns(pl.col("code").cast(pl.Enum(["3", "0", "1", "2"]))),
    "arrow": arrow,
    "arrow batch": lambda table: arrow(table).to_batches()[0],
}
"""Ways of holding the same table."""


@pytest.mark.parametrize("scale", ["auto", "minmax", None])
@pytest.mark.parametrize("form", SAME)
def test_all_frames_give_equal_features(form: str, scale: str | None) -> None:
    reference = TablePreparer(scale=scale).fit(TABLE)
    expected, frame = reference.transform(TABLE), SAME[form](TABLE)
    found = TablePreparer(scale=scale).fit(frame)
    np.testing.assert_array_equal(found.transform(frame), expected)
    assert found.report_.drop(columns="unit").equals(reference.report_.drop(columns="unit"))
    assert found.feature_names_in_.tolist() == [*TABLE]
    np.testing.assert_array_equal(found.transform(TABLE), expected)
    moved = SAME[form](TABLE.iloc[::-1, ::-1].reset_index(drop=True))
    np.testing.assert_array_equal(reference.transform(moved), expected[::-1])


def test_a_frame_of_polars_in_a_pipeline_gives_a_frame_of_polars() -> None:
    preparer = TablePreparer().set_output(transform="polars")
    assert isinstance(preparer.fit_transform(polars(TABLE)), pl.DataFrame)
    y = (TABLE["real"] > 0).to_numpy()
    model = make_pipeline(TablePreparer(), LogisticRegression()).fit(polars(TABLE), y)
    np.testing.assert_array_equal(model.predict_proba(TABLE), model.predict_proba(arrow(TABLE)))


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("scale", ["auto", "standard", "minmax", None])
def test_the_global_configuration_changes_only_the_output(output: str, scale: str | None) -> None:
    frame = TABLE.assign(tail=np.exp(3 * RANDOM.normal(size=N)))
    expected = TablePreparer(scale=scale).fit_transform(frame)
    with sklearn.config_context(transform_output=output):
        preparer = TablePreparer(scale=scale)
        results = preparer.fit_transform(frame), preparer.transform(frame), preparer.fit(frame).transform(frame)
    for result in results:
        assert type(result).__module__.partition(".")[0] == {"default": "numpy"}.get(output, output)
        np.testing.assert_array_equal(np.asarray(result), expected)


def kinds(frame: Any, **columns: str) -> list[str]:
    return TablePreparer(columns).fit(frame).report_["kind"].tolist()


NUMERALS = [str(i % 12) for i in range(N)]
OTHER = RANDOM.normal(size=N)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series(pd.Categorical(range(N))), "text"),
        (pd.Series(pd.Categorical([i % 12 for i in range(N)])), "text"),
        (pd.Series(pd.Categorical([i % 3 / 2 for i in range(N)], ordered=True)), "ordered"),
        (pd.cut(pd.Series(range(N)), 4), "ordered"),
        (pd.Series(NUMERALS, dtype="string"), "text"),
        (pd.Series(NUMERALS, dtype="string[pyarrow]"), "text"),
        (pd.Series(NUMERALS), "text"),
        (pd.Series([f"{10 + i % 3:05}" for i in range(N)]), "text"),
        (pd.Series([f"{i % 7}.5" for i in range(N)]), "number"),
        (pd.Series([f"{i % 7} kg" for i in range(N)], dtype="string"), "number"),
        (pd.Series([["?", *NUMERALS][i % 13] for i in range(N)]), "number"),
        (pd.Series([i % 3 == 0 for i in range(N)], dtype="boolean"), "text"),
        (pd.Series([i % 12 for i in range(N)], dtype=object), "number"),
        (pd.Series([Decimal(i % 7) / 2 for i in range(N)]), "number"),
        (pd.Series([Fraction(i % 7, 2) for i in range(N)]), "number"),
        (pd.Series([i % 7 / 2 for i in range(N)], dtype="float64[pyarrow]"), "number"),
        (pd.Series(pd.array([Decimal(i % 7) for i in range(N)], pd.ArrowDtype(pa.decimal128(5, 2)))), "number"),
        (pd.Series(pd.date_range("2021", periods=N)), "date"),
        (pd.Series(pd.date_range("2021", periods=N, tz="CET", freq="h")), "date"),
        (pd.Series(pd.period_range("2021", periods=N, freq="M")), "leave_out"),
        (pd.Series([date(2021, 1, 1 + i % 20) for i in range(N)]), "date"),
        (pd.Series([time(i % 3) for i in range(N)]), "date"),
        (pd.Series([UUID(int=i % 3) for i in range(N)]), "text"),
        (pd.Series([Enum("Plan", "free gold")(1 + i % 2) for i in range(N)]), "text"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.dtype}, {value[1]}",
)
def test_the_type_of_a_column_says_what_it_is(column: pd.Series, kind: str) -> None:
    assert kinds(pd.DataFrame({"a": column, "x": OTHER}))[0] == kind


def test_the_type_of_a_column_of_polars_says_what_it_is() -> None:
    frame = pl.DataFrame({"a": NUMERALS, "b": [i % 3 for i in range(N)], "d": [datetime(2021, 1, 1)] * N, "x": OTHER})
    frame = frame.with_columns(c=pl.col("a").cast(pl.Categorical), i=pl.col("b").cast(pl.Int128), n=pl.lit(None))
    assert kinds(frame) == ["text", "number", "leave_out", "number", "text", "number", "leave_out"]


def test_codes_beyond_2_to_the_53_are_not_joined() -> None:
    codes = np.array([2**53, 2**53 + 1, 2**53 + 2])[np.arange(N) % 3]
    missing = pd.Series(codes, dtype="Int64").where(np.arange(N) % 10 != 4)
    for column, width in ((codes, 3), (codes.astype(np.uint64), 3), (missing, 4), (pd.Categorical(codes), 3)):
        for frame in (pd.DataFrame({"a": column, "x": OTHER}), {"a": column, "x": OTHER}):
            preparer = TablePreparer({"a": "text"}, scale=None).fit(frame)
            assert len(preparer.get_feature_names_out()) == width + 1
            new = preparer.transform(pd.DataFrame({"a": [2**53 + 1], "x": [0.0]}))[0, :width]
            assert new[[f"a_{2**53 + 1}" == name for name in preparer.get_feature_names_out()[:width]]] == [1]
            assert new.sum() == 1


def test_truth_values_may_be_numbers() -> None:
    flags = [i % 3 == 0 for i in range(N)]
    for column in (flags, pd.Series(flags, dtype="boolean"), pl.Series(flags)):
        frame = (pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame)({"a": column, "x": OTHER})
        preparer = TablePreparer({"a": "number"}, scale=None).fit(frame)
        assert preparer.get_feature_names_out().tolist() == ["a", "x"]
        assert preparer.transform(frame)[:, 0].tolist() == flags


def test_truth_values_are_numbers_where_numbers_were_learned() -> None:
    preparer = TablePreparer(scale=None).fit(pd.DataFrame({"a": [0, 1] * 30, "x": OTHER}))
    found = preparer.transform(pd.DataFrame({"a": [True, False], "x": [0.0, 0.0]}))
    assert found[:, 0].tolist() == [1, 0]


def test_masked_values_are_missing() -> None:
    for dtype in (float, np.float32, int, bool):
        values = RANDOM.integers(0, 2 if dtype is bool else 9, (N, 2)).astype(dtype)
        mask = RANDOM.random((N, 2)) < 0.2
        masked = np.ma.MaskedArray(values, mask)
        with_gaps = pd.DataFrame(values.astype(object)).mask(mask).to_numpy(object)
        expected = TablePreparer(scale=None).fit_transform(with_gaps)
        np.testing.assert_array_equal(TablePreparer(scale=None).fit_transform(masked), expected)
        assert expected.shape[1] > 2
        columns = {"a": masked[:, 0], "b": masked[:, 1]}
        np.testing.assert_array_equal(TablePreparer(scale=None).fit_transform(columns), expected)


CELLS = [
    *(1j, np.complex64(1), [1, 2], (1, 2), {"a": 1}, {1}, b"a", np.zeros(2), object()),
    *(timedelta(1), np.timedelta64(1, "s"), pd.Timedelta(1)),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: type(cell).__name__)
@pytest.mark.parametrize("every", [True, False], ids=["all", "one"])
def test_other_cells_are_refused(cell: Any, every: bool) -> None:
    column = pd.Series([None, *[cell if every else f"{i % 3}" for i in range(N - 2)], cell], dtype=object)
    frame = pd.DataFrame({"a": column, "x": OTHER})
    row = 1 if every else N - 1
    expected = (
        rf"X: column 'a' contains values of the type \w+, such as .* in row {row}; expected numbers, texts, truth"
    )
    fitted = TablePreparer().fit(pd.DataFrame({"a": ["u", "v"] * 30, "x": OTHER}))
    for call in (TablePreparer().fit, TablePreparer({"a": "text"}).fit, fitted.transform):
        with pytest.raises(ValueError, match=expected):
            call(frame)
    assert kinds(frame, a="leave_out") == ["leave_out", "number"]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([timedelta(1)] * N),
        pl.Series([[1, 2]] * N),
        pl.Series([[1, 2]] * N, dtype=pl.Array(pl.Int64, 2)),
        pl.Series([{"a": 1}] * N),
        pl.Series([b"a"] * N),
        pd.Series([1j] * N),
        pd.Series(pd.to_timedelta(range(N), unit="s")),
        pd.Series(pd.array([[1]] * N, dtype=pd.ArrowDtype(pa.list_(pa.int64())))),
        pd.Series(pd.array(range(N), dtype=pd.ArrowDtype(pa.duration("s")))),
    ],
    ids=lambda column: str(column.dtype),
)
def test_types_without_numbers_or_texts_are_refused(column: Any) -> None:
    make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    with pytest.raises(ValueError, match="X: column 'a' contains values of the type"):
        TablePreparer().fit(make({"a": column, "x": OTHER}))


@pytest.mark.parametrize("X", [np.zeros((N, 2)) + 1j, np.ma.MaskedArray(np.zeros((N, 2)) + 1j)])
def test_complex_arrays_are_refused(X: Any) -> None:
    with pytest.raises(ValueError, match="Complex data not supported"):
        TablePreparer().fit(X)


def test_tables_that_are_not_in_memory_are_refused() -> None:
    for X, message in (
        (polars(TABLE).lazy(), "expected a table in memory, got LazyFrame of polars"),
        (pa.table([[1], [2]], names=["a", "a"]), "'a'"),
        (polars(TABLE).head(0), "X has 0 rows and 8 columns"),
        (pl.Series([1, 2]), "Expected 2D array"),
        (pd.Series([1, 2]), "Expected a 2-dimensional container"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            TablePreparer().fit(X)


@pytest.mark.parametrize("scale", ["auto", "standard", "minmax", None])
def test_float32_and_a_constant_column_change_nothing(scale: str | None) -> None:
    X = RANDOM.normal(size=(300, 3)).astype(np.float32)
    X[:, 1] = np.exp(3 * X[:, 1])
    expected = TablePreparer(scale=scale).fit_transform(X.astype(np.float64))
    np.testing.assert_allclose(TablePreparer(scale=scale).fit_transform(X), expected, rtol=1e-6, atol=1e-6)
    for value in (0, 0.1, 1 / 3, 1e6 + 0.1, -1e-300, np.float32(0.7)):
        for dtype in (np.float64, np.float32):
            wide = np.c_[X.astype(dtype), np.full(300, value, dtype)]
            preparer = TablePreparer(scale=scale).fit(wide)
            np.testing.assert_allclose(preparer.transform(wide), expected, rtol=1e-6, atol=1e-6)
            wide[:, 3] += dtype(1e-9)
            np.testing.assert_allclose(preparer.transform(wide), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("names", [[0, 1, 2, 3], [1, 2, 3, 4], [3, 2, 1, 0], [10, 20, 30, 40], ["a", 2, 3.5, (1, 2)]])
def test_names_that_are_numbers_can_be_requested(names: list[Any]) -> None:
    table = pd.DataFrame({name: RANDOM.integers(0, 9, N) for name in range(4)}).set_axis(names, axis=1)
    for name in names:
        preparer = TablePreparer(columns={name: "leave_out"}).fit(table)
        kinds = preparer.report_.set_index("column")["kind"]
        assert kinds[kinds == "leave_out"].index.tolist() == [str(name)]
        assert not hasattr(preparer, "feature_names_in_")
        reordered = preparer.transform(table[names[::-1]])
        np.testing.assert_array_equal(reordered, preparer.transform(table), "columns are found by name")
        np.testing.assert_array_equal(reordered, preparer.transform(table.to_numpy()))


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_position_is_one_where_no_column_has_this_name(place: int) -> None:
    table = pd.DataFrame({name: RANDOM.integers(0, 9, N) for name in "abc"})
    kinds = TablePreparer(columns={place: "leave_out"}).fit(table).report_["kind"].tolist()
    assert kinds.index("leave_out") == place - 1


LOADS = ["none", "light", "heavy"]


@pytest.mark.parametrize(
    "make",
    [
        lambda values: pd.DataFrame({"load": pd.Categorical(values, LOADS), "x": np.arange(len(values)) % 7}),
        lambda values: pl.DataFrame({"load": pl.Series(values, dtype=pl.Enum(LOADS)), "x": np.arange(len(values)) % 7}),
        lambda values: pa.table({"load": pa.array(values).dictionary_encode(), "x": np.arange(len(values)) % 7}),
    ],
    ids=["pandas", "polars", "Arrow"],
)
def test_a_category_that_is_spelled_as_a_missing_value_is_a_category(make: Callable[[list[str | None]], Any]) -> None:
    preparer = TablePreparer(scale=None).fit(make(LOADS * 20))
    assert preparer.get_feature_names_out().tolist() == ["load_heavy", "load_light", "load_none", "x"]
    assert preparer.report_["n_missing"][0] == 0
    assert preparer.transform(make(["none", "heavy"]))[:, :3].tolist() == [[0, 0, 1], [1, 0, 0]]
    with pytest.warns(UserWarning, match="load"):
        assert preparer.transform(make([None, "none"]))[:, :3].tolist() == [[0, 0, 0], [0, 0, 1]]
    both = TablePreparer(scale=None).fit(make([*LOADS, None] * 20))
    assert both.report_["n_missing"][0] == 20
    assert both.transform(make(["none", None]))[:, :4].sum(axis=0).tolist() == [0, 0, 1, 1]
    two = TablePreparer(scale=None).fit(make(["none", "heavy"] * 20))
    with pytest.warns(UserWarning, match="load"):
        assert len({*two.transform(make(["none", "heavy", None]))[:, 0].tolist()}) == 3


def test_an_ordered_category_of_arrow_keeps_its_order() -> None:
    values = LOADS * 20
    codes = pa.array([LOADS.index(value) for value in values], pa.int8())
    array = pa.DictionaryArray.from_arrays(codes, LOADS, ordered=True)
    X = TablePreparer(scale=None).fit_transform(pa.table({"load": array, "x": np.arange(60)}))
    np.testing.assert_array_equal(X[:, 0], codes.to_numpy())


@pytest.mark.parametrize("scale", ["auto", "standard", "minmax"])
def test_a_column_with_one_value_and_missing_ones_has_no_effect_on_new_rows(scale: str) -> None:
    table = pd.DataFrame({"limit": [5000.0, np.nan, 5000.0] * 20, "x": np.arange(60.0) % 7})
    preparer = TablePreparer(scale=scale).fit(table)
    np.testing.assert_array_equal(
        preparer.transform(table[:1].assign(limit=6000.0)), preparer.transform(table[:1].assign(limit=5000.0))
    )


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("kind", [float, Decimal, Fraction, np.float64])
def test_numbers_in_a_column_of_objects_are_those_of_a_column_of_floats(kind: type, decimal: str) -> None:
    numbers = [1.234, 2.5, 987.0, 12.5] * 15
    table = pd.DataFrame({"a": pd.Series([kind(str(x)) for x in numbers], dtype=object)})
    found = TablePreparer(decimal=decimal, scale=None).fit(table)
    assert found.columns_[0].kind == "number"
    np.testing.assert_allclose(found.transform(table)[:, 0], numbers, rtol=1e-6)
    np.testing.assert_allclose(found.transform(pd.DataFrame({"a": numbers}))[:, 0], numbers, rtol=1e-6)


@pytest.mark.parametrize("n_missing", [0, 99, 100, 150])
def test_numbers_below_many_missing_values_are_numbers(n_missing: int) -> None:
    cells = [None] * n_missing + [7 * i % 101 for i in range(100)]
    (column,) = TablePreparer().fit(pd.DataFrame({"a": pd.Series(cells, dtype=object)})).columns_
    assert column.kind == "number"

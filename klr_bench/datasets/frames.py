"""Read the columns of tables of pandas, polars, Arrow and NumPy as numbers or strings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_integer_dtype
from sklearn.utils.validation import check_array

from klr_bench.datasets.amounts import is_missing, text_of
from klr_bench.datasets.columns import CATEGORY, DATES, MOST_EXACT, STRING, ColumnProfile
from klr_bench.datasets.layout import Layout
from klr_bench.datasets.readers.user_table import SOURCE
from klr_bench.datasets.workbook import declared_types
from klr_bench.errors import sanitize

NUMBERS = (int, float, Decimal, Fraction, np.integer, np.floating)
"""Types that count as numbers in a column of the dtype object."""


@dataclass(frozen=True)
class Values:
    """Values of a column."""

    of: NDArray[Any] | list[str]
    """Array of numbers, in which NaN is a missing value, or list of strings, in which "" is a missing value."""
    declared: str = ""
    """CATEGORY, STRING or DATES if the type of the column says what the values are."""
    levels: tuple[str, ...] = ()
    """Values of an ordered category, in their order."""

    def profile(self, lines: Sequence[int], decimal: str) -> ColumnProfile:
        """Return the statistics of the values; `lines` are the numbers of their rows."""
        profile = ColumnProfile(declared=self.declared, levels=self.levels, decimal=decimal)
        if isinstance(self.of, list):
            profile.add(lines[: len(self.of)], self.of)
        else:
            profile.set_numbers(lines, self.of)
        return profile

    def texts(self) -> list[str]:
        """Return the values as strings."""
        return self.of if isinstance(self.of, list) else ["" if value != value else text_of(value) for value in self.of]

    def numbers(self) -> NDArray[np.float64] | None:
        """Return the values as numbers, truth values as 1 and 0; None for other strings."""
        if not isinstance(self.of, list):
            return self.of.astype(np.float64)
        if self.declared != CATEGORY or not {*self.of} <= {"True", "False", ""}:
            return None
        return np.array([{"True": 1.0, "False": 0.0, "": math.nan}[text] for text in self.of])


@dataclass(frozen=True)
class Frame:
    """A table in memory."""

    columns: dict[str, Any]
    """Columns as Series of narwhals, by name."""
    lines: Sequence[int]
    """Numbers of the rows, for messages."""
    has_names: bool
    """False for an array, whose columns are called x0, x1 and so on."""
    has_text_names: bool
    """True if all names are strings; others were converted."""
    path: Path | None
    """File from which the table was read, if known."""
    layout: Layout

    @property
    def source(self) -> str:
        """The file, or X."""
        return str(self.path or "X")

    def position(self, name: str) -> int:
        """Return the position of a column, counted from 0; in the file if there is one."""
        return (self.layout.header or ()).index(name)

    def read(self, name: str) -> Values:
        """Return the values of a column.

        Raises ValueError for values that are neither numbers, texts, truth values nor dates.
        """
        values = _values(self.columns[name], self.lines, f"{self.source}: column {name!r}")
        if self.path is not None:
            return Values(values.of, declared_types(self.path, [name]).get(name, ""))
        return values if self.has_names or values.declared == CATEGORY else Values(values.of)


def frame_of(X: Any) -> Frame:
    """Return a table of pandas, polars or Arrow, a dict of columns, or an array as a `Frame`.

    Raises ValueError if a name occurs twice, if there are no rows or no columns, or if the rows are not in memory.
    """
    table = pd.DataFrame(X) if type(X) is dict else X  # scipy's dok_matrix is a subclass of dict
    has_text_names = True
    if isinstance(table, pd.DataFrame):
        has_text_names = all(isinstance(name, str) for name in table.columns)
        table = _with_text_names(table)
    has_names = isinstance(nw.from_native(table, pass_through=True), nw.DataFrame | nw.LazyFrame)
    if not has_names and hasattr(table, "__dataframe__"):  # such as a RecordBatch of Arrow
        table, has_names = nw.from_arrow(table, backend="pyarrow"), True
    if not has_names:
        checked = check_array(X, dtype=None, ensure_all_finite=False)
        table = pd.DataFrame(X if isinstance(X, np.ma.MaskedArray) else checked)  # pandas replaces masked values by NaN
        table.columns = [f"x{place}" for place in range(table.shape[1])]
    path, layout, lines = None, None, None
    if isinstance(table, pd.DataFrame):
        path, layout = table.attrs.get(SOURCE, (None, None))
        lines = table.index.tolist() if is_integer_dtype(table.index) else None
    frame = nw.from_native(table)
    if isinstance(frame, nw.LazyFrame):
        message = f"X: expected a table in memory, got {type(X).__name__} of {type(X).__module__}; call collect()."
        raise ValueError(message)
    if not all(frame.shape):
        message = f"X has {frame.shape[0]} rows and {frame.shape[1]} columns; expected at least one of each."
        raise ValueError(message)
    columns = {name: frame[name] for name in frame.columns}
    layout = layout or Layout("", tuple(columns), len(columns), -1)
    return Frame(columns, lines or range(len(frame)), has_names, has_names and has_text_names, path, layout)


def _with_text_names(table: pd.DataFrame) -> pd.DataFrame:
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    if repeated := table.columns[table.columns.duplicated()].tolist():
        source = table.attrs.get(SOURCE, ("X",))[0]
        message = f"{source} has several columns with the name {repeated[0]!r}; rename them."
        raise ValueError(message)
    return table


def _values(series: Any, lines: Sequence[int], where: str) -> Values:
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Unknown:
        with_missing = dtype.is_integer() and series.is_null().any()
        numbers = None if dtype in (nw.Decimal, nw.Int128, nw.UInt128) else series.to_numpy()
        if numbers is not None and numbers.dtype.kind in "iuf":
            exact = not with_missing or not (np.abs(numbers) > MOST_EXACT).any()
            if exact:
                narrow = numbers.dtype.kind in "iu" and numbers.dtype != np.uint64
                return Values(numbers.astype(np.int64) if narrow else numbers)
    missing = series.is_null().to_list()
    cells = series.to_list()
    kinds = {type(cell): row for row, cell in reversed([*enumerate(cells)]) if not missing[row]}
    for kind, row in kinds.items():
        if _is_no_value(kind):
            cell = sanitize(repr(cells[row]), 50)
            message = (
                f"{where} contains values of the type {kind.__name__}, such as {cell} in row {lines[row]}; expected "
                "numbers, texts, truth values or dates. Convert the column, or leave it out."
            )
            raise ValueError(message)
    is_category = dtype in (nw.Categorical, nw.Enum, nw.Boolean) or {*kinds} <= {bool, np.bool_}
    if not is_category and all(issubclass(kind, NUMBERS) and not issubclass(kind, bool) for kind in kinds):
        with suppress(OverflowError):
            values = np.array([math.nan if gone else float(cell) for cell, gone in zip(cells, missing, strict=True)])
            if not (np.abs(values) > MOST_EXACT).any():
                return Values(values)
    texts = ["" if gone else text_of(cell) for cell, gone in zip(cells, missing, strict=True)]
    if is_category:
        return Values(texts, CATEGORY if kinds else "", tuple(map(text_of, _levels(series.to_native()))))
    if dtype in (nw.Date, nw.Datetime) or all(issubclass(kind, date | pd.Period) for kind in kinds):
        return Values(texts, DATES if kinds else "")
    marked = any(is_missing(text) for text, gone in zip(texts, missing, strict=True) if not gone)
    is_text = dtype == nw.String and all(issubclass(kind, str) for kind in kinds)  # of all cells, not of the first ones
    return Values(texts, STRING if is_text and not marked else "")


def _levels(native: Any) -> list[Any]:
    """Return the values of an ordered category of pandas or Arrow, or none."""
    dtype, kind = getattr(native, "dtype", None), getattr(native, "type", None)
    if getattr(dtype, "ordered", False):
        return list(native.dtype.categories)
    if not getattr(kind, "ordered", False):
        return []
    chunks = native.unify_dictionaries().chunks
    return list(chunks[0].dictionary.to_pylist()) if chunks else []


def _is_no_value(kind: type) -> bool:
    if issubclass(kind, str):
        return False
    refused = (complex, np.complexfloating, timedelta, np.timedelta64, pd.DateOffset)
    is_container = any({"__iter__", "__len__"} & vars(base).keys() for base in kind.__mro__)
    without_text = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    return issubclass(kind, refused) or is_container or without_text

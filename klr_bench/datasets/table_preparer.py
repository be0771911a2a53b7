"""Convert a data frame to features that a classifier accepts: `TablePreparer`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints
from sklearn.utils.validation import _check_feature_names_in, check_array, check_is_fitted, validate_data

from klr_bench.datasets.class_labels import first_ten
from klr_bench.datasets.column_kinds import (
    LEAVE_OUT,
    NUMBER,
    Column,
    choose_column,
    describe_cell,
    requested_kinds,
)
from klr_bench.datasets.columns import ColumnProfile, text_of
from klr_bench.datasets.preprocessing import scaling_by
from klr_bench.datasets.readers.layout import Layout
from klr_bench.datasets.user_table import SOURCE
from klr_bench.errors import KlrBenchError, fail


class TablePreparer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Convert the columns of a data frame to numbers without missing values.

    Each column is treated according to its values in `fit`:

    - Numbers stay.  Texts such as "12 kg", "$1,200" or "45 %" are numbers if their unit is the same in all rows.
    - A text column becomes one 0/1 feature per value, or a single one if it has two values.  Values in fewer than 5
      rows and less than 1 % of the rows share a feature, as do all but the 100 most frequent values.  A value that does
      not occur in `fit` is 0 in all of them.
    - A missing number (NaN, None, and the texts "", NA, N/A, nan, null, none, ? and -) is replaced by the median, and
      an indicator feature is added; a missing text is a value of its own.
    - Dates, row numbers, identifiers, texts that hardly repeat, and columns with one value are left out.
    - Features with a long tail, whose kurtosis exceeds 12, are replaced by their ranks.  Then all features are scaled:

    .. math::

        x' = (x - \operatorname{mean}(x)) / \operatorname{std}(x)

    The commands ``klr-bench fit`` and ``klr-bench run experiment=own_file`` treat files in the same way.  Row numbers
    are recognized only in the order 1, 2, 3, ...: leave them out before rows are shuffled or divided into folds.

    Parameters
    ----------
    columns : dict or None, default=None
        Kinds of columns, which replace those found from the values: "number", "text" or "leave_out", by the name of the
        column or by its position, counted from 1.
    scale : {"auto", "standard", "minmax"} or None, default="auto"
        "auto" as described above; "standard" is the same without ranks; "minmax" scales each feature to [0, 1]; None
        scales nothing.

    Attributes
    ----------
    report_ : DataFrame
        What became of each column: its name, its kind, the names of its features, the reason why it is left out or read
        as text, the number of missing values, the unit that is removed, and whether ranks replace its values.
    columns_ : tuple of Column
        How each column is converted; `report_` shows the same.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the columns, if X is a data frame whose column names are all strings.

    References
    ----------
    Hyndman and Fan, The American Statistician 50, 1996, for the ranks: definition 7, by linear interpolation between
    the quantiles of the training rows (scikit-learn's `QuantileTransformer`).

    Examples
    --------
    >>> from klr_bench import TablePreparer
    >>> import pandas as pd
    >>> table = pd.DataFrame({"weight": ["12 kg", "7 kg", None, "9 kg"], "plan": ["free", "gold", "free", "free"]})
    >>> preparer = TablePreparer(scale=None).set_output(transform="pandas").fit(table)
    >>> preparer.transform(table).columns.tolist()
    ['weight', 'plan_gold', 'missingindicator_weight']
    >>> preparer.transform(pd.DataFrame({"plan": ["new"], "weight": ["8.5 kg"]})).values.tolist()
    [[8.5, 0.0, 0.0]]
    """

    _parameter_constraints = {  # noqa: RUF012
        "columns": [dict, None],
        "scale": [StrOptions({"auto", "standard", "minmax"}), None],
    }

    def __init__(self, columns: Mapping[str, str] | None = None, *, scale: str | None = "auto") -> None:
        self.columns = columns
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> TablePreparer:
        """Choose how each column of the table X is treated, and return self.

        Parameters
        ----------
        X : DataFrame, dict of columns, or array of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored.

        Raises
        ------
        ValueError
            If all columns are left out, or a value is unclear, such as a text among numbers; the message names the row
            and the column.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Choose how each column of the table X is treated, and return the features of X; see `fit`."""
        validate_parameter_constraints(self._parameter_constraints, self.get_params(), type(self).__name__)
        frame = _frame(X)
        validate_data(self, frame if _has_names(X) else frame.to_numpy(), skip_check_array=True)
        with _value_errors():
            path, layout, lines = origin = _origin(frame)
            names = {_position(layout, name): name for name in frame.columns}
            kinds = requested_kinds(path, names, self.columns or {})
            columns, features = [], []
            for place, (position, name) in enumerate(names.items()):
                values, profile = _values(frame[name]), ColumnProfile()
                if isinstance(values, list):
                    profile.add(lines, values)
                else:
                    profile.set_numbers(lines, values)
                column = choose_column(path, layout, position, name, profile, kinds.get(position))
                features.append(_features(column, values, name, *origin))
                columns.append(replace(column, place=place))
            if not sum(column.width for column in columns):
                why = "; ".join(first_ten([f"{column.name}: {column.why}" for column in columns]))
                setting = "data.columns={NAME: number}" if path else "columns={NAME: 'number'}"
                table = path or f"X (n_samples={len(frame)})"
                fail(f"{table}: all feature columns are left out ({why}); keep at least one with {setting}.")
        self.columns_ = tuple(columns)
        matrix = np.concatenate(features, axis=1, dtype=np.float32)
        self._scaling = scaling_by(matrix, self.scale, impute=True)
        return self._scaling.transform(matrix)

    def transform(self, X: Any) -> Any:
        """Return the features (n_samples, n_features_out), float32, of the rows of a table.

        Columns are found by name, in any order; by position if X or the table of `fit` is an array.  Columns that `fit`
        has left out may be missing.  Warnings name columns that it has not seen, and text columns of more than two
        values in which new values occur.

        Raises
        ------
        ValueError
            If columns are missing, or a value in a column of numbers is not a number.
        """
        check_is_fitted(self)
        frame, columns = _frame(X), [column for column in self.columns_ if column.kind != LEAVE_OUT]
        if _has_names(X) and hasattr(self, "feature_names_in_"):
            known = self.feature_names_in_.tolist()
            if missing := [column.name for column in columns if column.name not in frame]:
                lacking, present = (", ".join(map(repr, first_ten(names))) for names in (missing, [*frame]))
                message = f"{_table_name(frame)}: expected the columns {lacking}, which are missing; got {present}."
                raise ValueError(message)
            if unknown := [name for name in frame.columns if name not in known]:
                message = f"Columns that `fit` has not seen are ignored: {', '.join(unknown)}."
                warnings.warn(message, stacklevel=3)  # `set_output` adds a stack level
            names = [column.name for column in columns]
        else:
            validate_data(self, frame if _has_names(X) else frame.to_numpy(), skip_check_array=True, reset=False)
            names = [frame.columns[column.place] for column in columns]
        with _value_errors():
            origin = _origin(frame)
            features = [
                _features(column, _values(frame[name]), name, *origin)
                for column, name in zip(columns, names, strict=True)
            ]
        pairs = zip(columns, features, strict=True)
        # a text column of two values has one feature, which is 0 for one of them
        if unseen := [column.name for column, block in pairs if column.width > 1 and not block.any(axis=1).all()]:
            message = f"Values that `fit` has not seen get no feature, in the columns {', '.join(unseen)}."
            warnings.warn(message, stacklevel=3)
        return self._scaling.transform(np.concatenate(features, axis=1, dtype=np.float32))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features: column, column_value or missingindicator_column.

        Parameters
        ----------
        input_features : array of str, default=None
            Names of the columns, if the table of `fit` was an array; None is x0, x1 and so on.
        """
        check_is_fitted(self)
        inputs = _check_feature_names_in(self, input_features)
        names = [name for one in self.columns_ for name in replace(one, name=inputs[one.place]).feature_names()]
        indicators = [f"missingindicator_{names[place]}" for place in self._scaling.imputer.indicator_.features_]
        return np.array([*names, *indicators], dtype=object)

    @property
    def report_(self) -> pd.DataFrame:
        """Data frame that describes how each column was treated, with one row per column."""
        names, rows, start = self.get_feature_names_out(), [], 0
        for one in self.columns_:
            own = names[start : start + one.width].tolist()
            added = [f"missingindicator_{name}" for name in own if f"missingindicator_{name}" in names]
            ranks = any(start <= place < start + one.width for place in self._scaling.columns)
            rows.append([one.name, one.kind, [*own, *added], one.why, one.n_missing, one.unit, ranks])
            start += one.width
        return pd.DataFrame(rows, columns=["column", "kind", "features", "reason", "n_missing", "unit", "ranks"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


@contextmanager
def _value_errors() -> Iterator[None]:
    """Convert a KlrBenchError to a ValueError, which users of scikit-learn expect."""
    try:
        yield
    except KlrBenchError as error:
        raise ValueError(str(error)) from error


def _has_names(X: Any) -> bool:
    return isinstance(X, pd.DataFrame) or type(X) is dict  # dok_matrix is a subclass of dict


def _frame(X: Any) -> pd.DataFrame:
    if not _has_names(X):
        X = check_array(X, dtype=None, ensure_all_finite=False)
        return pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])
    frame = pd.DataFrame(X) if isinstance(X, dict) else X  # a new data frame would not have the attribute `SOURCE`
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if repeated := frame.columns[frame.columns.duplicated()].tolist():
        message = f"{_table_name(frame)} has several columns with the name {repeated[0]!r}; rename them."
        raise ValueError(message)
    if frame.empty:
        message = f"X has {frame.shape[0]} rows and {frame.shape[1]} columns; expected at least one of each."
        raise ValueError(message)
    return frame


def _origin(frame: pd.DataFrame) -> tuple[Path | None, Layout, Sequence[int]]:
    """Return the file of a data frame (or None if unknown), its layout, and its row numbers."""
    path, layout = frame.attrs.get(SOURCE, (None, Layout("", tuple(frame.columns), frame.shape[1], -1)))
    return path, layout, frame.index.tolist() if is_integer_dtype(frame.index) else range(len(frame))


def _table_name(frame: pd.DataFrame) -> str:
    return str(_origin(frame)[0] or "X")


def _position(layout: Layout, name: str) -> int:
    return (layout.header or ()).index(name)


def _values(column: pd.Series[Any]) -> NDArray[np.float64] | list[str]:
    """Return the values of a column as numbers, with NaN for missing ones, or as strings."""
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column.to_numpy(np.float64, na_value=math.nan)
    return ["" if missing else text_of(value) for value, missing in zip(column, column.isna(), strict=True)]


def _features(
    column: Column,
    values: NDArray[np.float64] | list[str],
    name: str,
    path: Path | None,
    layout: Layout,
    lines: Sequence[int],
) -> NDArray[np.float64]:
    """Convert the values of a column to features, an array of shape (n, column.width)."""

    def cell(row: int) -> str:
        value = values[row] if isinstance(values, list) else float(values[row])
        return describe_cell(path, layout, lines[row], _position(layout, name), value)

    if isinstance(values, list):
        features = column.features(values)
    elif column.kind == NUMBER and not column.unit:
        features = values[:, None]
    else:
        features = column.features([text_of(value) for value in values])
    column.check(features, cell)
    return features

"""Convert a data frame to features that a classifier accepts: `TablePreparer`."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from klr_bench.datasets.amounts import text_of
from klr_bench.datasets.class_labels import LARGEST, first_ten
from klr_bench.datasets.column import LEAVE_OUT, NUMBER, TEXT, Column
from klr_bench.datasets.column_kinds import Request, choose_column, describe_cell, requested_kinds
from klr_bench.datasets.column_notes import unseen_values
from klr_bench.datasets.frames import Frame, Values, frame_of
from klr_bench.datasets.onnx_columns import onnx_features
from klr_bench.datasets.preprocessing import needs_float64, scaling_by
from klr_bench.datasets.treatments import Treated, choose_treatments
from klr_bench.errors import KlrBenchError, fail


class TablePreparer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Convert the columns of a data frame to numbers without missing values.

    Each column is treated according to its values in `fit`:

    - Numbers stay.  Texts such as "12 kg", "$1,200", "(50)" for -50, or "45 %" are numbers if their unit is the same in
      all rows.
    - A text column becomes one 0/1 feature per value, or a single one if it has two values.  Values in fewer than 5
      rows and less than 1 % of the rows share a feature, as do all but the 100 most frequent values.  A value that does
      not occur in `fit` is 0 in all of them, or 0.5 in the only one, and `transform` warns.  Truth values are texts, of
      which "TRUE", "true" and True are one, and so is 1 beside them or in `transform`.
    - The type of a column decides first: a categorical, a column of truth values, and strings that are all whole
      numbers, such as postal codes, are texts.  An ordered categorical becomes the numbers 0, 1, 2, ... of its values.
    - Dates and clock times become year, month, weekday (0 is Monday) and hour, the last one if a clock shows more than
      0:00.
    - A missing number (NaN, None, the marks of pandas such as "", NA, N/A, <NA>, #N/A, nan, null and None, errors of
      spreadsheets such as #REF!, and ?, -, --, . and n.a.) is replaced by the median, and an indicator feature is
      added; a missing text is a value of its own.  In `transform`, a text in a column of numbers is a missing number if
      at most a tenth of the rows have one.
    - Row numbers, identifiers, texts that hardly repeat, and columns with one value are left out.  A warning names
      them, apart from those with one value.
    - With the classes y, columns of 3 to 20 different whole numbers become texts, all of them or none, and a text of
      more than 10 features becomes the smoothed shares of the classes in the rows of each value, or is left out, if a
      small kernel model then has a lower validation log loss.
    - Features with a long tail, whose kurtosis exceeds 12, are replaced by their ranks.  Then all features are scaled,
      in float64:

    .. math::

        x' = (x - \operatorname{mean}(x)) / \operatorname{std}(x)

    The commands ``klr-bench fit`` and ``klr-bench run experiment=own_file`` treat files in the same way.  Row numbers
    under any other name than that of an index are recognized only in the order 1, 2, 3, ...: leave them out before rows
    are shuffled or divided into folds.

    Parameters
    ----------
    columns : dict or None, default=None
        Kinds of columns, which replace those found from the values: "number", "text", "date", "leave_out", or a list of
        values in their order, which become 0, 1, 2, ...; by the name of the column or, if no column has this name, by
        its position, counted from 1.
    coerce : bool, default=False
        Whether values that cannot be read in a column of numbers or dates are missing values, instead of an error in
        `fit`; `report_` counts them.  It takes nine tenths of readable values to make a column one of numbers.
    decimal : {".", ","}, default="."
        Decimal mark of numbers in texts; with ",", 1.234,5 is 1234.5.
    scale : {"auto", "standard", "minmax"} or None, default="auto"
        "auto" as described above; "standard" is the same without ranks; "minmax" scales each feature to [0, 1]; None
        scales nothing.

    Attributes
    ----------
    report_ : DataFrame
        What became of each column: its name, its kind, the names of its features, the reason why it is left out or read
        as text, the numbers of missing values and, among them, unreadable ones, the unit that is removed, and whether
        ranks replace its values.
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
    [[8.5, 0.5, 0.0]]
    """

    _parameter_constraints = {  # noqa: RUF012
        "columns": [dict, None],
        "coerce": ["boolean"],
        "decimal": [StrOptions({".", ","})],
        "scale": [StrOptions({"auto", "standard", "minmax"}), None],
    }

    def __init__(
        self,
        columns: Mapping[str | int, Request] | None = None,
        *,
        coerce: bool = False,
        decimal: str = ".",
        scale: str | None = "auto",
    ) -> None:
        self.columns = columns
        self.coerce = coerce
        self.decimal = decimal
        self.scale = scale

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> TablePreparer:
        """Choose how each column of the table X is treated, and return self.

        Parameters
        ----------
        X : table of pandas, polars or Arrow, dict of columns, or array of shape (n_samples, n_features)
            Training rows.  Masked values of an array are missing.
        y : array of shape (n_samples,), default=None
            Classes of the rows, by which validation chooses between treatments.  Without them, and with other targets,
            nothing is validated.
        groups : array of shape (n_samples,), default=None
            Rows with the same value are kept in the same fold of this validation.

        Raises
        ------
        ValueError
            If all columns are left out, or a value is unclear, such as a text among numbers, or is none, such as a
            complex number, a list or a duration; the message names the row and the column.
        """
        self.fit_transform(X, y, groups)
        return self

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Choose how each column of the table X is treated, and return the features of X; see `fit`.

        They differ from those of `transform` in the shares of the classes, which are computed from other rows.
        """
        validate_parameter_constraints(self._parameter_constraints, self.get_params(), type(self).__name__)
        frame = frame_of(X)
        self._check_names(frame, reset=True)
        self._has_names = frame.has_names
        with _value_errors():
            names = {frame.position(name): name for name in frame.columns}
            kinds = requested_kinds(frame.path, names, self.columns or {})
            table = []
            for place, (position, name) in enumerate(names.items()):
                kind = kinds.get(position)
                values = frame.read(name) if kind != LEAVE_OUT else Values([])
                if kind == NUMBER and (numbers := values.numbers()) is not None:
                    values = Values(numbers)
                described = values if kind in (None, TEXT) else replace(values, declared="")  # marks are no categories
                profile = described.profile(frame.lines, self.decimal)
                column = choose_column(
                    frame.path, frame.layout, position, name, profile, kind, coerce=bool(self.coerce)
                )
                features = _features(column, values, name, frame) if column.width else np.empty((len(frame.lines), 0))
                table.append(Treated(replace(column, place=place), values, features, kind is None))
            columns = [treated.column for treated in table]
            reasons = "; ".join(first_ten([f"{column.name}: {column.why}" for column in columns]))
            if not sum(column.width for column in columns):
                setting = "data.columns={NAME: number}" if frame.path else "columns={NAME: 'number'}"
                source = frame.path or f"X (n_samples={len(frame.lines)})"
                fail(f"{source}: all feature columns are left out ({reasons}); keep at least one with {setting}.")
        if (classes := _classes(y, frame)) is not None:
            table = choose_treatments(table, classes, groups)
            columns = [treated.column for treated in table]
        self._warn_of_guesses(columns, frame)
        self.columns_ = tuple(columns)
        matrix = np.concatenate([treated.features for treated in table], axis=1)
        if self.scale is None and not needs_float64(matrix):
            matrix = matrix.astype(np.float32)
        self._scaling = scaling_by(matrix, self.scale, impute=True)
        self._dtype = matrix.dtype.name
        return self._scaling.transform(matrix)

    def transform(self, X: Any) -> Any:
        """Return the features (n_samples, n_features_out) of the rows of a table.

        They are float32; with ``scale=None`` float64 if a column of the training rows needs its digits, such as times
        in seconds since 1970.  Columns are found by name, in any order; by position if X or the table of `fit` is an
        array.  Columns that `fit` has left out may be missing.  Warnings name columns that `fit` has not seen, and
        values that do not occur in the training rows: a new text counts as none of the values of its column (0 in all
        of its features, or 0.5 in the only one), a missing or unreadable number as the median.

        Raises
        ------
        ValueError
            If columns are missing, or more than a tenth of the values in a column of numbers are not numbers, or one is
            a number in another unit or with an unclear comma.
        """
        check_is_fitted(self)
        frame, columns = frame_of(X), [column for column in self.columns_ if column.kind != LEAVE_OUT]
        if frame.has_names and self._has_names:
            if missing := [column.name for column in columns if column.name not in frame.columns]:
                lacking, present = (", ".join(map(repr, first_ten(names))) for names in (missing, [*frame.columns]))
                message = f"{frame.source}: expected the columns {lacking}, which are missing; got {present}."
                raise ValueError(message)
            seen = {column.name for column in self.columns_}
            if unknown := [name for name in frame.columns if name not in seen]:
                message = f"Columns that `fit` has not seen are ignored: {', '.join(first_ten(unknown))}."
                warnings.warn(message, stacklevel=3)  # `set_output` adds a stack level
            names = [column.name for column in columns]
        else:
            self._check_names(frame, reset=False)
            names = [[*frame.columns][column.place] for column in columns]
        features, unseen = [], {}
        with _value_errors():
            for column, name in zip(columns, names, strict=True):
                values = frame.read(name)
                features.append(_features(column, values, name, frame, lenient=True))
                unseen[column] = _unseen(column, values)
        if new := unseen_values(unseen):
            warnings.warn(f"{frame.source} has {new}.", stacklevel=3)
        return self._scaling.transform(np.concatenate(features, axis=1, dtype=self._dtype))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features: column, column_value or missingindicator_column.

        Repeated names get a number: the second is column_value_2.

        Parameters
        ----------
        input_features : array of str, default=None
            Names of the columns, if the table of `fit` was an array, whose columns are otherwise x0, x1 and so on.
        """
        check_is_fitted(self)
        names_in = [column.name for column in self.columns_]
        inputs = names_in if input_features is None else _check_feature_names_in(self, input_features)
        names = [
            name for column in self.columns_ for name in replace(column, name=inputs[column.place]).feature_names()
        ]
        indicators = [f"missingindicator_{names[place]}" for place in self._scaling.imputer.indicator_.features_]
        unique: dict[str, None] = {}
        for name in (*names, *indicators):
            repeated = (f"{name}_{number}" for number in count(2))
            unique[name if name not in unique else next(new for new in repeated if new not in unique)] = None
        return np.array([*unique], dtype=object)

    def _onnx_features(self, graph: Any) -> tuple[str, list[tuple[str, bool]]]:
        """Add the preparation of a table to a graph of `to_onnx` (see `onnx_features`)."""
        check_is_fitted(self)
        return onnx_features(graph, self.columns_, self._scaling)

    @property
    def report_(self) -> pd.DataFrame:
        """Data frame that describes how each column was treated, with one row per column."""
        names, rows, start = self.get_feature_names_out(), [], 0
        for column in self.columns_:
            features = names[start : start + column.width].tolist()
            added = [f"missingindicator_{name}" for name in features if f"missingindicator_{name}" in names]
            ranks = any(start <= place < start + column.width for place in self._scaling.columns)
            counts = {"n_missing": column.n_missing, "n_unreadable": column.n_unreadable}
            treatment = {"column": column.name, "kind": column.kind, "features": [*features, *added]}
            reason = "; ".join(filter(None, [column.why, column.validation]))
            rows.append({**treatment, "reason": reason, **counts, "unit": column.unit, "ranks": ranks})
            start += column.width
        return pd.DataFrame(rows)

    def _check_names(self, frame: Frame, *, reset: bool) -> None:
        names = [*frame.columns]
        stub = pd.DataFrame(columns=names) if frame.has_text_names else np.empty((0, len(names)))
        validate_data(self, stub, skip_check_array=True, reset=reset)

    def _warn_of_guesses(self, columns: Sequence[Column], frame: Frame) -> None:
        """Warn of columns that are left out because of a guess.

        The command line describes the columns of a file itself.
        """
        guesses = first_ten([f"{column.name}: {column.why}" for column in columns if column.is_guessed], 150)
        if guesses and frame.path is None:
            message = (
                f"TablePreparer leaves out {'; '.join(guesses)}. Set columns={{NAME: 'number'}} or {{NAME: 'text'}} to "
                "keep a column, {NAME: 'leave_out'} to confirm."
            )
            warnings.warn(message, stacklevel=4)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _classes(y: Any, frame: Frame) -> NDArray[Any] | None:
    """Return the classes of the rows (n,), or None if y is None or no classes."""
    if y is None:
        return None
    check_consistent_length(frame.lines, y)
    if len(shape := np.shape(np.asarray(y))) == 2 and shape[1] > 1:
        return None
    y = column_or_1d(y)
    return y if type_of_target(y) in {"binary", "multiclass"} else None


@contextmanager
def _value_errors() -> Iterator[None]:
    """Convert a KlrBenchError to a ValueError, which users of scikit-learn expect."""
    try:
        yield
    except KlrBenchError as error:
        raise ValueError(str(error)) from error


def _features(column: Column, values: Values, name: str, frame: Frame, *, lenient: bool = False) -> NDArray[np.float64]:
    """Convert the values of a column to features, an array of shape (n, column.width)."""
    numbers = values.numbers() if column.kind == NUMBER and not column.unit else None
    if numbers is not None and column.coerce:
        numbers[np.abs(numbers) > LARGEST] = np.nan
    features = column.features(values.texts(), lenient=lenient) if numbers is None else numbers[:, None]

    def cell(row: int) -> str:
        value = values.of[row] if isinstance(values.of, list) else values.of[row].item()
        return describe_cell(frame.path, frame.layout, frame.lines[row], frame.position(name), value)

    column.check(features, cell)
    return features


def _unseen(column: Column, values: Values) -> Counter[str]:
    numbers = values.numbers() if column.kind == NUMBER else None
    if numbers is None:
        return column.unseen(values.texts())
    unread = numbers[~(np.abs(numbers) <= LARGEST)]
    return column.unseen(["" if np.isnan(number) else text_of(number) for number in unread])

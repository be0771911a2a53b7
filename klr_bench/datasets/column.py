"""Convert a column of a user's table to features.

Units are removed from numbers, and missing numbers become NaN.  A column of text becomes one binary feature per value,
dates and clock times become years, months, weekdays and hours, and an ordered category the places of its values.  Row
numbers, identifiers, strings that rarely repeat and constant columns are left out.  Files and data frames are treated
alike: `path` is the path of a file, and None for a data frame.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.amounts import amount_value, is_missing, parse_amount, parse_numbers, text_of
from klr_bench.datasets.class_labels import LARGEST, first_ten
from klr_bench.datasets.columns import truth_values
from klr_bench.datasets.dates import YEAR, date_features
from klr_bench.errors import fail, sanitize

NUMBER, TEXT, DATE, LEAVE_OUT = KINDS = ("number", "text", "date", "leave_out")
ORDERED = "ordered"
"""Kind of a column whose values have an order, which the type of the column or a list in the request gives."""
NUMERIC = (NUMBER, DATE, ORDERED)
"""Kinds of columns in which a missing value is NaN."""
MOSTLY = 0.9
"""Share of numbers in a column above which any other value is considered a mistake."""
MOST_VALUES = 100
"""Maximum number of values of a text column that get a feature of their own; rarer values share one."""
FEW_ROWS, SMALL_SHARE = 5, 0.01
"""A text value is rare if it occurs in fewer than 5 rows and in less than 1 % of the rows of a column."""
UNKNOWN = 0.5
"""Feature of a text column of two values for any other value; its values are 0 and 1."""
NO_VALUES, CONSTANT, REQUESTED = "no values", "the same value in all rows", "as requested"
"""Reasons for leaving a column out that are no guesses."""
MOST_UNITS = 10
"""Maximum number of units in a column of numbers; with more, the values are taken for codes such as 12a and 7c."""


@dataclass(frozen=True)
class Column:
    """A column of a user's table, and how it is converted to features."""

    place: int
    """0-based position in the table."""
    name: str
    kind: str
    why: str = ""
    """Reason for leaving the column out, or for treating numbers as text."""
    values: tuple[str, ...] = ()
    """Values of a text column that get a feature; an empty string stands for a missing value.

    In a column of dates, the features; in an ordered category, all values in their order.
    """
    zero: str | None = None
    """Value that is 0 in the only feature of a text column of two values."""
    rare: tuple[str, ...] = ()
    """Values of a text column that share the last feature."""
    n_missing: int = 0
    unit: str = ""
    """Text before or after the numbers, which is removed."""
    commas: bool = False
    """True if commas separate thousands, or points if `decimal` is a comma."""
    decimal: str = "."
    day_first: bool | None = True
    """Order of the day and the month in a date such as 3/4/2021; None if the training rows do not show it."""
    coerce: bool = False
    """True if values that cannot be read are missing values."""
    n_unreadable: int = 0
    """Number of these values, which `n_missing` includes."""
    whole: bool = False
    """True if the values of a text column are whole numbers, so that 1.0 is 1."""
    classes: tuple[str, ...] = ()
    """Classes whose shares among the rows with a value are the features of a text column."""
    shares: tuple[tuple[float, ...], ...] = ()
    """These shares, for each of `values` and then for any other value."""
    validation: str = ""
    """Validation log loss with the treatment of the column and before, if validation has chosen it."""

    @property
    def width(self) -> int:
        """Number of features to which the column is converted."""
        return 1 if self.kind in (NUMBER, ORDERED) else len(self.classes or self.values) + bool(self.rare)

    def feature_names(self) -> list[str]:
        """Return the names of the features, as scikit-learn's OneHotEncoder forms them."""
        if self.kind in (NUMBER, ORDERED):
            return [self.name]
        if self.classes:
            return [f"{self.name}_share_{name}" for name in self.classes]
        return [f"{self.name}_{value or 'nan'}" for value in self.values] + [f"{self.name}_rare"] * bool(self.rare)

    @property
    def is_guessed(self) -> bool:
        """True if the column is left out because of a guess."""
        return self.kind == LEAVE_OUT and not self.why.startswith((NO_VALUES, CONSTANT, REQUESTED))

    def features(self, texts: Sequence[str], *, lenient: bool = False) -> NDArray[np.float64]:
        """Convert the strings of the column to features, an array of shape (n, width).

        In a column of numbers, dates or ordered categories, a missing value becomes NaN, and any other string that
        cannot be read becomes infinity, or NaN, like a number above `LARGEST`, if the column coerces such values.  If
        `lenient` is true, the latter also applies to strings that are not numbers if they are at most a tenth.  In a
        column of text, a value that has no feature is 0 in all of them, or UNKNOWN in the only one.
        """
        if self.kind in NUMERIC:
            numbers = self._plain_numbers(texts)
            if numbers is None:
                values = {text: self._numbers(text) for text in {*texts}}
                features = np.array([values[text] for text in texts], dtype=np.float64)
            else:
                features = numbers[:, None]
            unreadable = np.abs(features[:, 0]) > LARGEST
            if unreadable.any() and (self.coerce or (lenient and self._are_few_texts(unreadable, texts))):
                features[unreadable] = math.nan
            return features
        codes = self.codes(texts)
        if self.classes:
            return np.array(self.shares)[codes]
        columns: NDArray[np.float64] = (codes[:, None] == np.arange(self.width)).astype(np.float64)
        if self.zero is not None:
            columns = np.array([0.0, 1.0, UNKNOWN])[codes][:, None]
        return columns

    def _plain_numbers(self, texts: Sequence[str]) -> NDArray[np.float64] | None:
        """Return the numbers (n,) of a column without unit; None if a string is no number."""
        return parse_numbers(texts, self.decimal) if self.kind == NUMBER and not self.unit else None

    def _are_few_texts(self, unreadable: NDArray[np.bool_], texts: Sequence[str]) -> bool:
        few = len(texts) - unreadable.sum() >= MOSTLY * len(texts)
        return bool(
            few and not any(parse_amount(text) for text, is_text in zip(texts, unreadable, strict=True) if is_text)
        )

    def unseen(self, texts: Sequence[str]) -> Counter[str]:
        """Count the strings that the training rows do not have, or that cannot be read.

        An empty string stands for a missing value.
        """
        if self.kind in NUMERIC:
            numbers = self._plain_numbers(texts)
            if numbers is not None and not (np.abs(numbers) > LARGEST).any():
                return Counter()
            counts = Counter("" if self._is_missing(text) else text for text in texts)
            return Counter({text: n for text, n in counts.items() if self._is_new(text)})
        code_of = self._codes(texts)
        return Counter("" if self._is_missing(text) else text for text in texts if code_of[text] < 0)

    def codes(self, texts: Sequence[str]) -> NDArray[np.intp]:
        """Return the places (n,) of the strings of a column of text among its values, or -1."""
        code_of = self._codes(texts)
        return np.array([code_of[text] for text in texts])

    def _codes(self, texts: Sequence[str]) -> dict[str, int]:
        """Map the strings of a column of text to the places of their values, or to -1."""
        places = {value: place for place, value in enumerate(self.known)}
        truth = truth_values({*places} - {""})
        values = {text: "" if self._is_missing(text) else truth.get(text.lower(), text) for text in set(texts)}
        if self.whole:
            read = partial(amount_value, unit="", commas=self.commas, decimal=self.decimal)
            numbers = {text: read(value) for text, value in values.items() if value}
            values |= {text: text_of(number) for text, number in numbers.items() if number is not None}
        return {text: min(places.get(value, -1), len(self.values)) for text, value in values.items()}  # rare ones last

    @property
    def known(self) -> tuple[str, ...]:
        """Values of a text column, those that share a feature last."""
        return (*(() if self.zero is None else (self.zero,)), *self.values, *self.rare)

    def _numbers(self, text: str) -> Sequence[float]:
        """Return the features of a string in a column of numbers, dates or ordered categories."""
        if self._is_missing(text):
            return [math.nan] * self.width
        value: float | None
        if self.kind == DATE:
            return date_features(text, self.values, day_first=self.day_first) or [math.inf] * self.width
        if self.kind == ORDERED:
            value = self.values.index(text) if text in self.values else None
        else:
            value = amount_value(text, self.unit, commas=self.commas, decimal=self.decimal)
        return [math.inf if value is None else value]

    def _is_missing(self, text: str) -> bool:
        """Return True for a missing value.

        A value of the training rows is not missing, although it may be spelled so, as the category "none".
        """
        return is_missing(text) and not (text and self.kind in (ORDERED, TEXT) and text in self.known)

    def _is_new(self, text: str) -> bool:
        return abs(self._numbers(text)[0]) > LARGEST if text else not self.n_missing

    def check(self, features: NDArray[np.float64], cell: Callable[[int], str]) -> None:
        """Raise KlrBenchError if a feature is too large; `cell` describes the value in a row."""
        wrong = np.flatnonzero((np.abs(features) > LARGEST).any(axis=1))
        if len(wrong) and self.kind in (DATE, ORDERED):
            expected = "a date or a time" if self.kind == DATE else f"one of {', '.join(first_ten(self.values))}"
            has_clear_days = self.kind == DATE and self.day_first is None and YEAR in self.values
            order = ", where day and month can be told apart" if has_clear_days else ""
            fail(f"{cell(wrong[0])} is not {expected} as in the column{order}; correct it, or leave it empty.")
        if len(wrong):
            fail(
                f"{cell(wrong[0])} is not a number{with_unit(self.unit)} between -{LARGEST:g} and {LARGEST:g}; "
                f"{remedy_for(self.unit)}, or leave it empty."
            )


def with_unit(unit: str) -> str:
    return f" with the unit {sanitize(repr(unit))}" if unit else ""


def remedy_for(unit: str) -> str:
    return f"convert it to {sanitize(repr(unit))}" if unit else "correct it (a number without a unit)"

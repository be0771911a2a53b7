"""Decide how the columns of a table are converted to features, and convert them.

Units are removed from numbers, and missing numbers become NaN.  A column of text becomes one binary feature per value.
Dates, row numbers, identifiers, strings that rarely repeat and constant columns are left out.  Files and data frames
are treated alike: `path` is the path of a file, and None for a data frame.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import LARGEST, first_ten, look
from klr_bench.datasets.columns import (
    BOOLEANS,
    CATEGORY,
    FEW_VALUES,
    MOST_COUNTED,
    STRING,
    ColumnProfile,
    amount_value,
    is_missing,
    parse_numbers,
    truth_values,
)
from klr_bench.datasets.layout import Layout
from klr_bench.errors import fail, nearest, sanitize
from klr_bench.parsing import check_choice

NUMBER, TEXT, LEAVE_OUT = KINDS = ("number", "text", "leave_out")
MOSTLY = 0.9
"""Share of numbers in a column above which any other value is considered a mistake."""
MOST_VALUES = 100
"""Maximum number of values of a text column that get a feature of their own; rarer values share one."""
FEW_ROWS, SMALL_SHARE = 5, 0.01
"""A text value is rare if it occurs in fewer than 5 rows and in less than 1 % of the rows of a column."""
UNKNOWN = 0.5
"""Feature of a text column of two values for any other value; its values are 0 and 1."""
NO_VALUES, CONSTANT, REQUESTED = "no values", "the same value in all rows", "as requested by"
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
    """Values of a text column that get a feature; an empty string stands for a missing value."""
    zero: str | None = None
    """Value that is 0 in the only feature of a text column of two values."""
    rare: tuple[str, ...] = ()
    """Values of a text column that share the last feature."""
    n_missing: int = 0
    unit: str = ""
    """Text before or after the numbers, which is removed."""
    commas: bool = False
    """True if commas separate thousands."""

    @property
    def width(self) -> int:
        """Number of features to which the column is converted."""
        return 1 if self.kind == NUMBER else len(self.values) + bool(self.rare)

    def feature_names(self) -> list[str]:
        """Return the names of the features, as scikit-learn's OneHotEncoder forms them."""
        if self.kind == NUMBER:
            return [self.name]
        return [f"{self.name}_{value or 'nan'}" for value in self.values] + [f"{self.name}_rare"] * bool(self.rare)

    @property
    def is_guessed(self) -> bool:
        """True if the column is left out because of a guess."""
        return self.kind == LEAVE_OUT and not self.why.startswith((NO_VALUES, CONSTANT, REQUESTED))

    def features(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Convert the strings of the column to features, an array of shape (n, width).

        In a column of numbers, a missing value becomes NaN, and any other string that is not a number becomes infinity.
        In a column of text, a value that has no feature is 0 in all of them, or UNKNOWN in the only one.
        """
        if self.kind == NUMBER:
            numbers = None if self.unit else parse_numbers(texts)
            if numbers is None:
                numbers = np.array([math.nan if is_missing(text) else self._number(text) for text in texts])
            return numbers[:, None]
        code_of = self._codes(texts)
        codes = np.array([code_of[text] for text in texts])
        columns: NDArray[np.float64] = (codes[:, None] == np.arange(self.width)).astype(np.float64)
        if self.zero is not None:
            columns = np.array([0.0, 1.0, UNKNOWN])[codes][:, None]
        return columns

    def unseen(self, texts: Sequence[str]) -> Counter[str]:
        """Count the strings that the training rows do not have.

        An empty string stands for a missing value.
        """
        if self.kind == NUMBER:
            n_missing = 0 if self.n_missing else sum(map(is_missing, texts))
            return Counter({"": n_missing} if n_missing else {})
        code_of = self._codes(texts)
        return Counter("" if is_missing(text) else text for text in texts if code_of[text] < 0)

    def _codes(self, texts: Sequence[str]) -> dict[str, int]:
        """Map the strings of a column of text to the places of their values, or to -1."""
        places = {value: place for place, value in enumerate(self._known)}
        truth = truth_values({*places} - {""})
        values = {text: "" if is_missing(text) else truth.get(text.lower(), text) for text in set(texts)}
        return {text: min(places.get(value, -1), len(self.values)) for text, value in values.items()}  # rare ones last

    @property
    def _known(self) -> tuple[str, ...]:
        return (*(() if self.zero is None else (self.zero,)), *self.values, *self.rare)

    def _number(self, text: str) -> float:
        value = amount_value(text, self.unit, commas=self.commas)
        return math.inf if value is None else value

    def describe_unseen(self, counts: Counter[str]) -> str:
        """Describe the strings counted by `unseen`, with the values that look alike."""
        alike = {look(value): f" (but {value!r} occurs)" for value in self._known}
        texts = [
            f"{text!r}{alike.get(look(text), '')}" if text else "missing values" for text, _ in counts.most_common()
        ]
        n = counts.total()
        return f"{self.name}: {', '.join(first_ten(texts))} in {n:,} {'row' if n == 1 else 'rows'}"

    def check(self, features: NDArray[np.float64], cell: Callable[[int], str]) -> None:
        """Raise KlrBenchError if a feature is too large; `cell` describes the value in a row."""
        wrong = np.flatnonzero((np.abs(features) > LARGEST).any(axis=1))
        if len(wrong):
            fail(
                f"{cell(wrong[0])} is not a number{_with_unit(self.unit)} between -{LARGEST:g} and {LARGEST:g}; "
                f"{_remedy(self.unit)}, or leave it empty."
            )


def unseen_values(counts: Mapping[Column, Counter[str]]) -> str | None:
    """Return a warning that names the values of `Column.unseen`, or None if there are none."""
    parts = [column.describe_unseen(unseen) for column, unseen in counts.items() if unseen]
    if not parts:
        return None
    return (
        f"values that the training rows do not have: {'; '.join(first_ten(parts, 300))}. A text counts as none of the "
        "values of its column, a missing number as the median"
    )


def describe(path: Path | None, columns: Sequence[Column]) -> list[str]:
    """Describe how the columns are converted, in a list of notes.

    The list is empty if all columns consist of plain numbers without missing values.
    """
    numbers, texts, others = ([column for column in columns if column.kind == kind] for kind in KINDS)
    if not (texts or others or any(column.n_missing or column.unit or column.commas for column in numbers)):
        return []
    notes: list[str] = []

    def note(text: str, columns: Sequence[Column], detail: Callable[[Column], object] | None = None) -> None:
        names = ", ".join(
            first_ten([f"{column.name} ({detail(column)})" if detail else column.name for column in columns])
        )
        counted = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        notes.extend([text.format(counted, names)] if columns else [])

    note("{} of numbers: {}", numbers)
    with_unit = [column for column in numbers if column.unit]
    note("the unit is removed from {} of numbers: {}", with_unit, lambda column: repr(column.unit))
    note("commas separate thousands in {}: {}", [column for column in numbers if column.commas])
    note(
        f"{{}} of text as {sum(column.width for column in texts)} binary features: {{}}",
        texts,
        lambda column: column.width,
    )
    rare = [column for column in texts if column.rare]
    note("rare values share a feature in {} of text: {}", rare, lambda column: f"{len(column.rare):,} values")
    notes += [
        f"warning: {column.name} is read as text because it has {column.why}; convert the numbers to one unit, or "
        f"confirm with {_setting(path, column.place, column.name, TEXT)}"
        for column in texts
        if column.why
    ]
    replaced = "are replaced by the median of the training rows, and an indicator feature is added"
    for text, columns in (
        (f"missing values in {{}} of numbers {replaced}: {{}}", numbers),
        ("missing values in {} of text are treated as a separate value: {}", texts),
    ):
        note(text, [column for column in columns if column.n_missing], lambda column: f"{column.n_missing:,}")
    if others:
        reasons = "; ".join(first_ten([f"{column.name}: {column.why}" for column in others]))
        setting = (
            "data.columns={NAME: number} or {NAME: text}" if path else "columns={NAME: 'number'} or {NAME: 'text'}"
        )
        notes.append(f"left out: {reasons}. To keep a column, set {setting}")
    return notes


def requested_kinds(path: Path | None, names: Mapping[int, str], requested: Mapping[str, str]) -> dict[int, str]:
    """Return the requested kinds of columns, keyed by column position, counted from 0.

    Raises KlrBenchError for unknown columns.
    """
    kinds: dict[int, str] = {}
    for key, kind in requested.items():
        name, where = str(key), f"{path}: data.columns" if path else "columns"
        check_choice(f"{where}: {name}", kind, KINDS)
        places = [place for place, column_name in names.items() if column_name == name or (name == str(place + 1))]
        if len(places) != 1:
            what = " Several columns have this name; use the position." if places else nearest(name, names.values())
            fail(f"{where}: there is no feature column {sanitize(repr(name))}.{what}")
        kinds[places[0]] = kind
    return kinds


def choose_column(
    path: Path | None, layout: Layout, place: int, name: str, profile: ColumnProfile, requested: str | None
) -> Column:
    """Decide how a column is converted, given the statistics of its values.

    `requested` is the kind that the user has set, or None.  Raises KlrBenchError for values that are unclear.
    """
    free, counts, units, n_present = requested is None, profile.merged_counts, profile.units, profile.n_present
    category = free and profile.declared == CATEGORY
    codes = free and profile.declared == STRING and profile.whole  # whole numbers that are strings on purpose

    def column(kind: str, why: str = "", **more: Any) -> Column:
        return Column(place, name, kind, why, n_missing=profile.n_missing, **more)

    def setting(kind: str) -> str:
        text = _setting(path, place, name, kind)
        return f"'{text}'" if path else text

    def refuse(value: tuple[int, str], reason: str) -> NoReturn:
        cell = describe_cell(path, layout, value[0], place, value[1])
        fail(f"{cell} {reason}, or leave the column out with {setting(LEAVE_OUT)}.")

    if requested == LEAVE_OUT:
        return column(LEAVE_OUT, f"{REQUESTED} {'data.columns' if path else 'columns'}")
    if n_present == 0:
        return column(LEAVE_OUT, NO_VALUES)
    if counts is not None and len(counts) == 1 and not profile.n_missing:
        return column(LEAVE_OUT, CONSTANT)
    if category:
        levels = f"more than {MOST_COUNTED:,} categories"
        return column(LEAVE_OUT, levels) if counts is None else _text_column(column, counts, profile)
    if free and (why := profile.reason_to_leave_out(layout.header[place] if layout.header else name)):
        return column(LEAVE_OUT, why)
    commas = profile.commas == "thousands" or (requested == NUMBER and profile.commas == "either")
    unit = next(iter(units), "")
    n_numbers, other = profile.numbers(commas=commas)
    if free and profile.point_of_thousands and not codes:
        what = f"may be thousands, since others have three digits and no point; for decimals, set {setting(NUMBER)}"
        refuse(
            profile.point_of_thousands, f"{what}; for thousands, remove the points (thousands='.' of pandas.read_csv)"
        )
    if requested != TEXT and other is None and not codes:
        return column(NUMBER, unit=unit, commas=commas)
    if other and (requested == NUMBER or (free and n_numbers >= MOSTLY * n_present and not codes)):
        share = f", unlike {n_numbers:,} of the {n_present:,} values in the column" if free else ""
        refuse(other, f"is not a number{_with_unit(unit)}{share}; {_remedy(unit)}")
    mixed = ""
    if free:
        many = counts is None or len(counts) > max(FEW_VALUES, n_present / 2)
        all_numbers = None not in profile.forms
        if profile.commas in {"decimal", "either"} and (all_numbers or many):
            what = "has a decimal comma or thousands separators; write 1234.5 instead of 1.234,5"
            if profile.commas == "either":
                thousands = f"for thousands, set {setting(NUMBER)}"
                what = f"has an ambiguous comma; {thousands}; for decimals, use a point"
            first = min(value for form, value in profile.first.items() if form and form[1])
            refuse(first, f"{what} (see decimal=',' and thousands='.' of pandas.read_csv)")
        if all_numbers and 1 < len(units) <= MOST_UNITS:
            mixed = f"numbers with different units ({', '.join(repr(unit) if unit else 'none' for unit in units)})"
        if profile.dates or many:
            counted = f"more than {MOST_COUNTED:,}" if counts is None else f"{len(counts):,}"
            return column(LEAVE_OUT, "dates" if profile.dates else mixed or f"{counted} different strings")
    if counts is None:
        where = f"{path}: {name}" if path else f"column {name!r}"
        fail(f"{where}: expected at most {MOST_COUNTED:,} different strings, got more; leave the column out.")
    return _text_column(column, counts, profile, mixed)


def _text_column(column: Callable[..., Column], counts: Counter[str], profile: ColumnProfile, why: str = "") -> Column:
    values = sorted(counts, key=lambda value: (-counts[value], value))
    if len(values) == 2 and not profile.n_missing:  # one feature is enough
        nonzero, zero = ("True", "False") if {*values} == {*BOOLEANS.values()} else (values[1], values[0])
        return column(TEXT, why, values=(nonzero,), zero=zero)
    least = min(FEW_ROWS, SMALL_SHARE * profile.n_present)
    n_frequent = min(sum(counts[value] >= least for value in values) or len(values), MOST_VALUES)
    frequent, rare = values[:n_frequent], values[n_frequent:]
    return column(TEXT, why, values=tuple(frequent + [""] * bool(profile.n_missing)), rare=tuple(rare))


def describe_cell(path: Path | None, layout: Layout, line: object, place: int, value: object) -> str:
    """Describe a value for messages, for example "a.csv, line 2, column 1 ('x'): 'high'"."""
    line = f"{path}, line {line}" if path else f"row {line}"
    return f"{line}, {layout.describe(place)}: {sanitize(repr(value))}"


def _setting(path: Path | None, place: int, name: str, kind: str) -> str:
    """Return the setting that requests a kind of column, on the command line or in Python."""
    if not path:
        return f"columns={{{name!r}: {kind!r}}}"
    key = name if re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) else str(place + 1)  # other names need quotes
    return f"data.columns={{{key}: {kind}}}"


def _with_unit(unit: str) -> str:
    return f" with the unit {sanitize(repr(unit))}" if unit else ""


def _remedy(unit: str) -> str:
    return f"convert it to {sanitize(repr(unit))}" if unit else "correct it (a number without a unit)"

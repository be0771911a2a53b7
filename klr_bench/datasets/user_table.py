"""Convert a user's table to features.

Units are removed from numbers, and missing numbers become NaN.  A column of text becomes one binary feature per value.
Dates, row numbers, identifiers, strings that rarely repeat and constant columns are left out.  Notes for the user
describe how each column was converted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import LARGEST, Labels, first_ten, is_missing_label
from klr_bench.datasets.columns import FEW_VALUES, MOST_COUNTED, ColumnProfile, amount_value, is_missing, parse_numbers
from klr_bench.datasets.readers.chunks import stack_rows
from klr_bench.datasets.readers.layout import WIDE, Layout, TextRows, no_labeled_row, text_rows
from klr_bench.errors import fail, nearest, sanitize

NUMBER, TEXT, LEAVE_OUT = "number", "text", "leave_out"
MOSTLY = 0.9
"""Share of numbers in a column above which any other value is considered a mistake."""
MOST_VALUES = 100
"""Maximum number of values of a text column that get a feature; rarer values get none."""
MOST_UNITS = 10
"""Maximum number of units in a column of numbers; with more units, the values are codes such as 12a and 7c."""


@dataclass(frozen=True)
class Column:
    """A column of a user's table, and how it is converted to features."""

    place: int
    """0-based position in the file."""
    name: str
    kind: str
    why: str = ""
    """Reason why the column is left out, or why numbers are treated as text."""
    values: tuple[str, ...] = ()
    """Values of a text column that get a feature; an empty string stands for a missing value."""
    n_missing: int = 0
    unit: str = ""
    """Text before or after the numbers, which is removed."""
    commas: bool = False
    """True if commas separate thousands."""

    @property
    def width(self) -> int:
        """Number of features to which the column is converted."""
        return 1 if self.kind == NUMBER else len(self.values)

    def features(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Convert the strings of the column to features, an array of shape (n, width).

        In a column of numbers, a missing value becomes NaN, and any other string that is not a number becomes infinity.
        """
        if self.kind == NUMBER:
            numbers = None if self.unit else parse_numbers(texts)
            if numbers is None:
                numbers = np.array([math.nan if is_missing(text) else self._number(text) for text in texts])
            return numbers[:, None]
        places = {value: place for place, value in enumerate(self.values)}
        codes = np.array([places.get("" if is_missing(text) else text, -1) for text in texts])
        columns: NDArray[np.float64] = (codes[:, None] == np.arange(self.width)).astype(np.float64)
        return columns

    def _number(self, text: str) -> float:
        value = amount_value(text, self.unit, commas=self.commas)
        return math.inf if value is None else value


@dataclass(frozen=True)
class Table:
    """The columns of a training file; a test file must have the same columns."""

    layout: Layout
    columns: tuple[Column, ...]

    def notes(self) -> list[str]:
        """Describe the label column and how the other columns are converted, in a list of notes.

        Only the label column is described if all other columns consist of plain numbers without missing values.
        """
        numbers, texts, others = (
            [one for one in self.columns if one.kind == kind] for kind in (NUMBER, TEXT, LEAVE_OUT)
        )
        notes = [f"labels: {self.layout.describe(self.layout.label)}" + ("" if self.layout.header else " (no header)")]
        if not (texts or others or any(one.n_missing or one.unit or one.commas for one in numbers)):
            return notes

        def note(text: str, columns: Sequence[Column], detail: Callable[[Column], object] | None = None) -> None:
            names = ", ".join(first_ten([f"{one.name} ({detail(one)})" if detail else one.name for one in columns]))
            counted = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            notes.extend([text.format(counted, names)] if columns else [])

        note("{} of numbers: {}", numbers)
        with_unit = [one for one in numbers if one.unit]
        note("the unit is removed from {} of numbers: {}", with_unit, lambda one: repr(one.unit))
        note("commas separate thousands in {}: {}", [one for one in numbers if one.commas])
        note(f"{{}} of text as {sum(one.width for one in texts)} binary features: {{}}", texts, lambda one: one.width)
        notes += [
            f"warning: {one.name} is read as text because it has {one.why}; convert the numbers to one unit, or "
            f"confirm with data.columns={{{_key(one.place, one.name)}: text}}"
            for one in texts
            if one.why
        ]
        replaced = "are replaced by the median of the training rows, and an indicator feature is added"
        for text, columns in (
            (f"missing values in {{}} of numbers {replaced}: {{}}", numbers),
            ("missing values in {} of text are treated as a separate value: {}", texts),
        ):
            note(text, [one for one in columns if one.n_missing], lambda one: f"{one.n_missing:,}")
        if others:
            reasons = "; ".join(first_ten([f"{one.name}: {one.why}" for one in others]))
            notes.append(f"left out: {reasons}. To keep a column, set data.columns={{NAME: number}} or {{NAME: text}}")
        return notes


def read_table(
    path: Path, layout: Layout, labels: Labels, requested: Mapping[str, str], train: Table | None = None
) -> tuple[Any, NDArray[np.int64], Table]:
    """Read a user's table; return its features X (n, d), label codes (n,) and columns.

    X is float32, CSR if it is wide, with NaN for a missing number.  `requested` maps columns, by name or by position
    from 1, to kinds (number, text, leave_out).  `train` is the table of the training file, which determines the columns
    of a test file.  Raises KlrBenchError that names the file, and the line if possible.
    """
    table = train or Table(layout, tuple(_columns(path, layout, requested)))
    parts: list[Any] = []
    codes: list[int] = []
    for rows in text_rows(path, layout):
        labeled: TextRows = []
        for line, row in rows:
            if labels.drops(row[layout.label]):
                continue
            try:
                codes.append(labels.code(row[layout.label]))
            except ValueError as error:
                where = f"{path}, line {line}, {layout.describe(layout.label)}"
                fail(f"{where}: {error}; set data.label=NAME to use another column.")
            labeled.append((line, row))
        if labeled:
            X = _values(path, layout, table.columns, labeled)
            parts.append(sp.csr_matrix(X) if X.shape[1] > WIDE else X)
    if not parts:
        raise no_labeled_row(path, layout, labels)
    X = stack_rows(parts)
    if not X.shape[1]:
        why = "; ".join(first_ten([f"{column.name}: {column.why}" for column in table.columns]))
        fail(f"{path}: all feature columns are left out ({why}); keep one with data.columns={{NAME: number}}.")
    if sp.issparse(X) and np.isnan(X.data).any():
        fail(f"{path}: missing values are not supported with more than {WIDE:,} features; fill them in beforehand.")
    return X, np.array(codes, dtype=np.int64), table


def _columns(path: Path, layout: Layout, requested: Mapping[str, str]) -> list[Column]:
    header = [sanitize(name, 50) for name in layout.header or [""] * layout.n_columns]
    names = {place: name or f"column {place + 1}" for place, name in enumerate(header) if place != layout.label}
    kinds = _requested_kinds(path, names, requested)
    profiles = {place: ColumnProfile() for place in names}
    for rows in text_rows(path, layout):
        if labeled := [(line, row) for line, row in rows if not is_missing_label(row[layout.label])]:
            lines, fields = zip(*labeled, strict=True)
            texts = list(zip(*fields, strict=True))
            for place, profile in profiles.items():
                profile.add(lines, texts[place])
    return [_column(path, layout, place, name, profiles[place], kinds.get(place)) for place, name in names.items()]


def _requested_kinds(path: Path, names: Mapping[int, str], requested: Mapping[str, str]) -> dict[int, str]:
    """Convert the columns in data.columns to positions; raise KlrBenchError for unknown columns."""
    kinds: dict[int, str] = {}
    for name, kind in requested.items():
        places = [place for place, known in names.items() if known == name or (name == str(place + 1))]
        if len(places) != 1:
            what = " Several columns have this name; use the position." if places else nearest(name, names.values())
            fail(f"{path}: data.columns: there is no feature column {sanitize(repr(name))}.{what}")
        kinds[places[0]] = kind
    return kinds


def _column(path: Path, layout: Layout, place: int, name: str, profile: ColumnProfile, requested: str | None) -> Column:
    free, counts, units, n_present = requested is None, profile.counts, profile.units, profile.n_present
    key = _key(place, name)

    def column(kind: str, why: str = "", **more: Any) -> Column:
        return Column(place, name, kind, why, n_missing=profile.n_missing, **more)

    def refuse(value: tuple[int, str], reason: str) -> NoReturn:
        where = f"{path}, line {value[0]}, {layout.describe(place)}: {sanitize(repr(value[1]))}"
        fail(f"{where} {reason}, or leave the column out with 'data.columns={{{key}: leave_out}}'.")

    if requested == LEAVE_OUT or n_present == 0:
        return column(LEAVE_OUT, "no values" if n_present == 0 else "as requested by data.columns")
    if counts is not None and len(counts) == 1 and not profile.n_missing:
        return column(LEAVE_OUT, "the same value in all rows")
    if free and (why := profile.reason_to_leave_out(layout.header[place] if layout.header else name)):
        return column(LEAVE_OUT, why)
    commas = profile.commas == "thousands" or (requested == NUMBER and profile.commas == "either")
    unit = next(iter(units), "")
    n_numbers, other = profile.numbers(commas=commas)
    if requested != TEXT and other is None:
        return column(NUMBER, unit=unit, commas=commas)
    if other and (requested == NUMBER or (free and n_numbers >= MOSTLY * n_present)):
        share = f", unlike {n_numbers:,} of the {n_present:,} values in the column" if free else ""
        refuse(other, f"is not a number{_with_unit(unit)}{share}; correct the line")
    mixed = ""
    if free:
        many = counts is None or len(counts) > max(FEW_VALUES, n_present / 2)
        all_numbers = None not in profile.forms
        if profile.commas in {"decimal", "either"} and (all_numbers or many):
            what = "has a decimal comma or thousands separators; write 1234.5 instead of 1.234,5"
            if profile.commas == "either":
                setting = f"'data.columns={{{key}: number}}'"
                what = f"has an ambiguous comma; for thousands, set {setting}; for decimals, use a point"
            first = min(value for form, value in profile.first.items() if form and form[1])
            refuse(first, f"{what} (see decimal=',' and thousands='.' of pandas.read_csv)")
        if all_numbers and 1 < len(units) <= MOST_UNITS:
            mixed = f"numbers with different units ({', '.join(repr(unit) if unit else 'none' for unit in units)})"
        if profile.dates or many:
            counted = f"more than {MOST_COUNTED:,}" if counts is None else f"{len(counts):,}"
            return column(LEAVE_OUT, "dates" if profile.dates else mixed or f"{counted} different strings")
    if counts is None:
        fail(f"{path}: {name}: expected at most {MOST_COUNTED:,} different strings, got more; leave the column out.")
    values = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_VALUES]
    if profile.n_missing:
        values.append("")
    elif len(values) == 2:
        values = values[1:]  # a column with two values needs only one binary feature
    return column(TEXT, mixed, values=tuple(values))


def _with_unit(unit: str) -> str:
    return f" with the unit {sanitize(repr(unit))}" if unit else ""


def _key(place: int, name: str) -> str:
    """Return the name of a column, or its position if the name needs quotes on the command line."""
    return name if re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) else str(place + 1)


def _values(path: Path, layout: Layout, columns: Sequence[Column], rows: TextRows) -> NDArray[np.float32]:
    texts = list(zip(*(row for _, row in rows), strict=True))
    features = []
    for column in columns:
        values = column.features(texts[column.place])
        wrong = np.flatnonzero((np.abs(values) > LARGEST).any(axis=1))
        if len(wrong):
            line, row = rows[wrong[0]]
            where, value = f"{path}, line {line}, {layout.describe(column.place)}", sanitize(repr(row[column.place]))
            fail(
                f"{where}: {value} is not a number{_with_unit(column.unit)} between -{LARGEST:g} and {LARGEST:g}; "
                "correct or remove the row."
            )
        features.append(values)
    return np.concatenate(features, axis=1).astype(np.float32)

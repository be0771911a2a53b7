"""Conversion of a user's table of numbers, texts, dates and missing values to features.

Numbers lose a unit, missing ones are NaN; a text becomes a column of 0 and 1 for each of its values; dates, row numbers
and identifiers, texts that hardly repeat and columns of one value are left out.  Notes describe all of it.
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

from klr_bench.datasets.class_labels import LARGEST, Labels, first_names, is_unlabelled
from klr_bench.datasets.columns import MOST_COUNTED, SELDOM, ColumnProfile, is_missing, numbers_of, value_of
from klr_bench.datasets.readers.chunks import concatenate_matrices
from klr_bench.datasets.readers.layout import WIDE, Layout, TextRows, no_labelled_row, text_rows
from klr_bench.errors import fail, nearest, sanitize

NUMBER, TEXT, LEAVE_OUT = "number", "text", "leave_out"
MOSTLY = 0.9
"""Share of numbers in a column above which other values count as mistakes."""
MOST_VALUES = 100
"""Maximum number of values of a text that get a column; rarer values get none."""
MOST_UNITS = 10
"""Maximum number of units of a numeric column; values with more units are treated as codes, such as 12a and 7c."""


@dataclass(frozen=True)
class Column:
    """Treatment of a column of the file."""

    place: int
    """0-based position in the file."""
    name: str
    kind: str
    why: str = ""
    """Reason why the column is left out, or why numbers are treated as text."""
    values: tuple[str, ...] = ()
    """Values of a text that get a column, with "" for missing."""
    n_missing: int = 0
    unit: str = ""
    """Text before or after a number, which is removed."""
    commas: bool = False
    """True if commas separate thousands."""

    @property
    def width(self) -> int:
        """Number of columns of X."""
        return 1 if self.kind == NUMBER else len(self.values)

    def features(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the feature columns of some rows, (n, width).

        Text in a numeric column becomes infinity.
        """
        if self.kind == NUMBER:
            numbers = None if self.unit else numbers_of(texts)
            if numbers is None:
                numbers = np.array([math.nan if is_missing(text) else self._number(text) for text in texts])
            return numbers[:, None]
        places = {value: place for place, value in enumerate(self.values)}
        codes = np.array([places.get("" if is_missing(text) else text, -1) for text in texts])
        columns: NDArray[np.float64] = (codes[:, None] == np.arange(self.width)).astype(np.float64)
        return columns

    def _number(self, text: str) -> float:
        value = value_of(text, self.unit, commas=self.commas)
        return math.inf if value is None else value


@dataclass(frozen=True)
class Table:
    """Columns of a training file, which a test file must share."""

    layout: Layout
    columns: tuple[Column, ...]

    def notes(self) -> list[str]:
        """Return notes on the label column and on the treatment of the others.

        The notes are empty if all columns are complete numbers.
        """
        numbers, texts, others = (
            [one for one in self.columns if one.kind == kind] for kind in (NUMBER, TEXT, LEAVE_OUT)
        )
        notes = [f"labels: {self.layout.named(self.layout.label)}" + ("" if self.layout.header else " (no header)")]
        if not (texts or others or any(one.n_missing or one.unit or one.commas for one in numbers)):
            return notes

        def note(text: str, columns: Sequence[Column], detail: Callable[[Column], object] | None = None) -> None:
            names = ", ".join(first_names([f"{one.name} ({detail(one)})" if detail else one.name for one in columns]))
            counted = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            notes.extend([text.format(counted, names)] if columns else [])

        note("{} of numbers: {}", numbers)
        with_unit = [one for one in numbers if one.unit]
        note("the unit is removed from {} of numbers: {}", with_unit, lambda one: repr(one.unit))
        note("commas separate thousands in {}: {}", [one for one in numbers if one.commas])
        note(f"{{}} of text as {sum(one.width for one in texts)} of 0 and 1: {{}}", texts, lambda one: one.width)
        notes += [
            f"warning: {one.name} is read as text, because it has {one.why}: convert them to one unit, or confirm with "
            f"data.columns={{{_key(one.place, one.name)}: text}}"
            for one in texts
            if one.why
        ]
        median = "the median of the training rows stands for them, beside a column that says so"
        for text, columns in (
            (f"values are missing in {{}} of numbers: {{}}; {median}", numbers),
            ("values are missing in {} of text, as a value of its own: {}", texts),
        ):
            note(text, [one for one in columns if one.n_missing], lambda one: f"{one.n_missing:,}")
        if others:
            reasons = "; ".join(first_names([f"{one.name}: {one.why}" for one in others]))
            notes.append(f"left out: {reasons}. To keep one: data.columns={{NAME: number}}, or text")
        return notes


def read_table(
    path: Path, layout: Layout, labels: Labels, requested: Mapping[str, str], train: Table | None = None
) -> tuple[Any, NDArray[np.int64], Table]:
    """Read a table; return X float32 (n, d), the codes of the labels (n,), and the columns.

    X is CSR if it is wide, and NaN stands for a missing number.

    `requested` are kinds of columns (number, text, leave_out) by name or by number from 1.  `train` is the table of the
    training file, which determines the columns of a test file.  Raises a KlrBenchError that names the file, and the
    line if there is one.
    """
    table = train or Table(layout, tuple(_columns(path, layout, requested)))
    parts: list[Any] = []
    codes: list[int] = []
    for rows in text_rows(path, layout):
        labelled: TextRows = []
        for line, row in rows:
            if labels.drops(row[layout.label]):
                continue
            try:
                codes.append(labels.code(row[layout.label]))
            except ValueError as error:
                fail(f"{path}, line {line}: {error} ({layout.named(layout.label)}); data.label=NAME takes another.")
            labelled.append((line, row))
        if labelled:
            X = _values(path, layout, table.columns, labelled)
            parts.append(sp.csr_matrix(X) if X.shape[1] > WIDE else X)
    if not parts:
        raise no_labelled_row(path, layout, labels)
    X = concatenate_matrices(parts)
    if not X.shape[1]:
        why = "; ".join(first_names([f"{column.name}: {column.why}" for column in table.columns]))
        fail(f"{path}: no feature column is left ({why}); keep one with data.columns={{NAME: number}}.")
    if sp.issparse(X) and np.isnan(X.data).any():
        fail(
            f"{path}: values are missing; with more than {WIDE:,} columns they are not imputed. Fill them in the file."
        )
    return X, np.array(codes, dtype=np.int64), table


def _columns(path: Path, layout: Layout, requested: Mapping[str, str]) -> list[Column]:
    """Return the treatment of all feature columns, based on all labeled rows."""
    header = [sanitize(name, 50) for name in layout.header or [""] * layout.n_columns]
    names = {place: name or f"column {place + 1}" for place, name in enumerate(header) if place != layout.label}
    kinds = _requested_kinds(path, names, requested)
    profiles = {place: ColumnProfile() for place in names}
    for rows in text_rows(path, layout):
        if labelled := [(line, row) for line, row in rows if not is_unlabelled(row[layout.label])]:
            lines, fields = zip(*labelled, strict=True)
            texts = list(zip(*fields, strict=True))
            for place, profile in profiles.items():
                profile.add(lines, texts[place])
    return [_column(path, layout, place, name, profiles[place], kinds.get(place)) for place, name in names.items()]


def _requested_kinds(path: Path, names: Mapping[int, str], requested: Mapping[str, str]) -> dict[int, str]:
    """Return the requested kinds by position.

    Raises KlrBenchError for an unknown column.
    """
    kinds: dict[int, str] = {}
    for name, kind in requested.items():
        places = [place for place, known in names.items() if known == name or (name == str(place + 1))]
        if len(places) != 1:
            what = " Several columns have this name; give a number." if places else nearest(name, names.values())
            fail(f"{path}: data.columns: no column {sanitize(repr(name))} of features.{what}")
        kinds[places[0]] = kind
    return kinds


def _column(path: Path, layout: Layout, place: int, name: str, profile: ColumnProfile, requested: str | None) -> Column:
    """Return the treatment of a column, as requested in `data.columns` or by its profile."""
    free, counts, units, n_there = requested is None, profile.counts, profile.units, profile.n_there
    key = _key(place, name)

    def column(kind: str, why: str = "", **more: Any) -> Column:
        return Column(place, name, kind, why, n_missing=profile.n_missing, **more)

    def refuse(value: tuple[int, str], reason: str) -> NoReturn:
        where = f"{path}, line {value[0]}, {layout.named(place)}: {sanitize(repr(value[1]))}"
        fail(f"{where} {reason}, or leave the column out with 'data.columns={{{key}: leave_out}}'.")

    if requested == LEAVE_OUT or n_there == 0:
        return column(LEAVE_OUT, "no values" if n_there == 0 else "as data.columns says")
    if counts is not None and len(counts) == 1 and not profile.n_missing:
        return column(LEAVE_OUT, "the same value in all rows")
    if free and (why := profile.reason_to_leave_out(layout.header[place] if layout.header else name)):
        return column(LEAVE_OUT, why)
    commas = profile.commas == "thousands" or (requested == NUMBER and profile.commas == "either")
    unit = next(iter(units), "")
    n_numbers, other = profile.numbers(commas=commas)
    if requested != TEXT and other is None:
        return column(NUMBER, unit=unit, commas=commas)
    if other and (requested == NUMBER or (free and n_numbers >= MOSTLY * n_there)):
        share = f", as {n_numbers:,} of {n_there:,} values of the column are" if free else ""
        refuse(other, f"is not a number{_with_unit(unit)}{share}; mend the line")
    mixed = ""
    if free:
        many = counts is None or len(counts) > max(SELDOM, n_there / 2)
        all_numbers = None not in profile.forms
        if profile.commas in {"decimal", "either"} and (all_numbers or many):
            what = "has a decimal comma, or points between thousands; write 1234.5 for 1.234,5"
            if profile.commas == "either":
                number = f"'data.columns={{{key}: number}}'"
                what = f"may have a decimal comma or separate thousands; for thousands, add {number}; else write points"
            first = min(value for form, value in profile.first.items() if form and form[1])
            refuse(first, f"{what} (pandas.read_csv has decimal=',' and thousands='.')")
        if all_numbers and 1 < len(units) <= MOST_UNITS:
            mixed = f"numbers with different units ({', '.join(repr(unit) if unit else 'none' for unit in units)})"
        if profile.dates or many:
            counted = f"more than {MOST_COUNTED:,}" if counts is None else f"{len(counts):,}"
            return column(LEAVE_OUT, "dates" if profile.dates else mixed or f"{counted} different texts")
    if counts is None:
        fail(f"{path}: {name}: expected at most {MOST_COUNTED:,} different texts, got more; leave the column out.")
    values = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_VALUES]
    if profile.n_missing:
        values.append("")
    elif len(values) == 2:
        values = values[1:]  # one column determines the other value
    return column(TEXT, mixed, values=tuple(values))


def _with_unit(unit: str) -> str:
    return f" with the unit {sanitize(repr(unit))}" if unit else ""


def _key(place: int, name: str) -> str:
    """Return the column's name, or its number if the name needs quotes on the command line."""
    return name if re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) else str(place + 1)


def _values(path: Path, layout: Layout, columns: Sequence[Column], rows: TextRows) -> NDArray[np.float32]:
    """Return the features of some rows."""
    texts = list(zip(*(row for _, row in rows), strict=True))
    features = []
    for column in columns:
        values = column.features(texts[column.place])
        wrong = np.flatnonzero((np.abs(values) > LARGEST).any(axis=1))
        if len(wrong):
            line, row = rows[wrong[0]]
            what = f"{sanitize(repr(row[column.place]))} is not a number{_with_unit(column.unit)}"
            between = f"between -{LARGEST:g} and {LARGEST:g}; mend or remove the row."
            fail(f"{path}, line {line}, {layout.named(column.place)}: {what} {between}")
        features.append(values)
    return np.concatenate(features, axis=1).astype(np.float32)

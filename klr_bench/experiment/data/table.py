"""A user's table: columns of numbers, texts, dates and identifiers, with values missing, and what is made of each.

Numbers lose a unit, missing ones are NaN; a text becomes a column of 0 and 1 for each of its values; dates, row numbers
and identifiers, texts that hardly repeat and columns of one value are left out.  All that is done is said in words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError, nearest, shown
from klr_bench.experiment.data.columns import (
    MOST_COUNTED,
    SELDOM,
    ColumnProfile,
    is_missing,
    numbers_of,
    value_of,
)
from klr_bench.experiment.data.labels import LARGEST, Labels, is_unlabelled, some
from klr_bench.experiment.data.readers.layout import WIDE, Layout, TextRows, layout_of, text_rows

NUMBER, TEXT, LEAVE_OUT = "number", "text", "leave_out"
MOSTLY = 0.9
"""Share of numbers in a column above which another value is taken for a mistake."""
MOST_VALUES = 100
"""Values of a text that get a column; the rarer ones have none."""
MOST_UNITS = 10
"""Units of a column of numbers in different units; with more they are codes, such as 12a and 7c."""


@dataclass(frozen=True)
class Column:
    """What is made of a column of the file."""

    place: int
    """In the file, from 0."""
    name: str
    kind: str
    why: str = ""
    """Why it is left out, or why numbers are a text."""
    values: tuple[str, ...] = ()
    """Of a text: those that get a column, "" for missing."""
    n_missing: int = 0
    unit: str = ""
    """Of a number: the text before or after it, which is removed."""
    commas: bool = False
    """Whether commas in a number separate thousands."""

    @property
    def width(self) -> int:
        """Number of columns of X."""
        return {NUMBER: 1, TEXT: len(self.values), LEAVE_OUT: 0}[self.kind]

    def features(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the columns of X for some rows, (n, width); infinity for what is to be a number and is none."""
        columns: NDArray[np.float64]
        if self.kind == NUMBER:
            numbers = None if self.unit else numbers_of(texts)
            if numbers is None:
                numbers = np.array([math.nan if is_missing(text) else self._number(text) for text in texts])
            columns = numbers[:, None]
        else:
            places = {value: place for place, value in enumerate(self.values)}
            found = np.array([places.get("" if is_missing(text) else text, -1) for text in texts])
            columns = (found[:, None] == np.arange(self.width)).astype(np.float64)
        return columns

    def _number(self, text: str) -> float:
        value = value_of(text, self.unit, commas=self.commas)
        return math.inf if value is None else value


@dataclass(frozen=True)
class Table:
    """The columns of a training file, from which a test file may not differ."""

    layout: Layout
    columns: tuple[Column, ...]

    def notes(self) -> list[str]:
        """Return where the labels stand, and what was done with the other columns unless all are whole and numbers."""
        numbers, texts, left = ([one for one in self.columns if one.kind == kind] for kind in (NUMBER, TEXT, LEAVE_OUT))
        empty, own_value = ([one for one in some_columns if one.n_missing] for some_columns in (numbers, texts))
        units = [one for one in numbers if one.unit]
        commas = [one for one in numbers if one.commas]
        found = [f"labels: {self.layout.named(self.layout.label)}" + ("" if self.layout.header else " (no header)")]
        if not (texts or left or empty or units or commas):
            return found
        found += [f"{_columns_of(numbers)} of numbers: {_names(numbers)}"] if numbers else []
        if units:
            of = _listed([f"{one.name} ({shown(repr(one.unit))})" for one in units])
            found.append(f"the unit is removed from {_columns_of(units)} of numbers: {of}")
        if commas:
            found.append(f"commas separate thousands in {_columns_of(commas)}: {_names(commas)}")
        if texts:
            width = sum(one.width for one in texts)
            of = _listed([f"{one.name} ({one.width})" for one in texts])
            found.append(f"{_columns_of(texts)} of text as {width} of 0 and 1: {of}")
        found += [
            f"warning: {one.name} is read as text, for it has {one.why}: convert them to one unit, or confirm with "
            f"data.columns={{{_key(one.place, one.name)}: text}}"
            for one in texts
            if one.why
        ]
        if empty:
            of = _listed([f"{one.name} ({one.n_missing:,})" for one in empty])
            found.append(
                f"values are missing in {_columns_of(empty)} of numbers: {of}; the median of the training rows stands "
                "for them, beside a column that says so"
            )
        if own_value:
            of = _listed([f"{one.name} ({one.n_missing:,})" for one in own_value])
            found.append(f"values are missing in {_columns_of(own_value)} of text, as a value of its own: {of}")
        if left:
            of = "; ".join(some([f"{one.name}: {one.why}" for one in left]))
            found.append(f"left out: {of}. To keep one: data.columns={{NAME: number}}, or text")
        return found


def read_table(
    path: Path,
    labels: Labels,
    label_column: str | int | None = None,
    asked: Mapping[str, str] | None = None,
    like: Table | None = None,
) -> tuple[Any, NDArray[np.int64], Table]:
    """Return X float32 (n, d), dense or, if it is wide, CSR, NaN where a number is missing; codes (n,); the table.

    `asked` are the kinds that columns are to have, by name or by number from 1: number, text, leave_out.  `like` is the
    table of the training file, which decides on the columns of a test file.  Raises a KlrBenchError that names the
    file, and the line where there is one.
    """
    layout = layout_of(path, label_column, like.layout if like else None, unnamed=True)
    columns = list(like.columns) if like else _columns(path, layout, asked or {})
    X, codes = _rows(path, layout, columns, labels)
    if X.shape[1] == 0:
        why = "; ".join(some([f"{one.name}: {one.why}" for one in columns]))
        message = f"{path}: no column is left to learn from ({why}); keep one with data.columns={{NAME: number}}."
        raise KlrBenchError(message)
    if sp.issparse(X) and np.isnan(X.data).any():
        message = f"{path}: values are missing; with more than {WIDE:,} columns they cannot be filled in. Fill them."
        raise KlrBenchError(message)
    return X, codes, like or Table(layout, tuple(columns))


def _rows(path: Path, layout: Layout, columns: Sequence[Column], labels: Labels) -> tuple[Any, NDArray[np.int64]]:
    """Return X, dense or, if it is wide, CSR, and the codes of the labels; rows without a label are counted."""
    parts: list[Any] = []
    codes: list[int] = []
    for rows in text_rows(path, layout):
        labelled: TextRows = []
        for line, row in rows:
            text = row[layout.label]
            if is_unlabelled(text):
                labels.dropped[text] += 1
                continue
            try:
                codes.append(labels.code(text))
            except ValueError as error:
                named = layout.named(layout.label)
                message = f"{path}, line {line}: {error} ({named}); set data.label= if the labels stand elsewhere."
                raise KlrBenchError(message) from error
            labelled.append((line, row))
        if labelled:
            X = _values(path, layout, columns, labelled)
            parts.append(sp.csr_matrix(X) if X.shape[1] > WIDE else X)
    if not parts:
        what = "no rows."
        if labels.dropped:
            what = f"no row has a label in {layout.named(layout.label)}; data.label=NAME takes another column."
        message = f"{path}: {what}"
        raise KlrBenchError(message)
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    return X, np.array(codes, dtype=np.int64)


def _columns(path: Path, layout: Layout, asked: Mapping[str, str]) -> list[Column]:
    """Decide on all columns but the label, after a look at all rows that have one."""
    names = {place: _name(layout, place) for place in range(layout.n_columns) if place != layout.label}
    chosen = _chosen(path, names, asked)
    profiles = {place: ColumnProfile() for place in names}
    for rows in text_rows(path, layout):
        if labelled := [(line, row) for line, row in rows if not is_unlabelled(row[layout.label])]:
            lines, fields = zip(*labelled, strict=True)
            texts = list(zip(*fields, strict=True))
            for place, profile in profiles.items():
                profile.add(lines, texts[place])
    return [_decided(path, layout, place, names[place], profiles[place], chosen.get(place)) for place in names]


def _name(layout: Layout, place: int) -> str:
    named = layout.header[place] if layout.header else ""
    return shown(named, 50) if named else f"column {place + 1}"


def _chosen(path: Path, names: Mapping[int, str], asked: Mapping[str, str]) -> dict[int, str]:
    """Return the kinds that are asked for, by place; refuse a column that there is not."""
    found: dict[int, str] = {}
    for name, kind in asked.items():
        places = [place for place, known in names.items() if known == name]
        if not places and name.isdecimal() and int(name) - 1 in names:
            places = [int(name) - 1]
        if len(places) != 1:
            what = "several columns have this name; give its number." if places else nearest(name, names.values())
            message = f"{path}: data.columns: no column {shown(repr(name))} of features.{' ' if places else ''}{what}"
            raise KlrBenchError(message)
        found[places[0]] = kind
    return found


def _decided(path: Path, layout: Layout, place: int, name: str, profile: ColumnProfile, asked: str | None) -> Column:
    """Return what is made of a column."""

    def left_out(why: str) -> Column:
        return Column(place, name, LEAVE_OUT, why, n_missing=profile.n_missing)

    if asked == LEAVE_OUT:
        return left_out("as data.columns says")
    if profile.n_there == 0:
        return left_out("no values")
    if profile.counts is not None and len(profile.counts) == 1 and not profile.n_missing:
        return left_out("the same value in all rows")
    if asked is None and (
        profile.numbers_rows(place, name) or (profile.whole and layout.header and not layout.header[place])
    ):
        return left_out("numbers of the rows")
    if asked is None and profile.identifies(name):
        return left_out("identifiers, all different")
    commas = profile.commas == "thousands" or (asked == NUMBER and profile.commas == "either")
    units = tuple(profile.units)
    n_numbers, other = profile.numbers(commas=commas)
    if asked != TEXT and n_numbers == profile.n_there:
        return Column(place, name, NUMBER, n_missing=profile.n_missing, unit=units[0], commas=commas)
    if other and (asked == NUMBER or (asked is None and n_numbers >= MOSTLY * profile.n_there)):
        line, text = other
        share = "" if asked else f", as {n_numbers:,} of {profile.n_there:,} values of the column are"
        unit = f" with the unit {shown(repr(units[0]))}" if units and units[0] else ""
        message = (
            f"{path}, line {line}, {layout.named(place)}: {shown(repr(text))} is not a number{unit}{share}; mend the "
            f"line, or {_left_out_by(place, name)}."
        )
        raise KlrBenchError(message)
    many = profile.counts is None or len(profile.counts) > max(SELDOM, profile.n_there / 2)
    all_numbers = None not in profile.forms
    if asked is None and profile.commas in {"decimal", "either"} and (all_numbers or many):
        line, text = min(found for form, found in profile.first.items() if form and form.comma)
        what, option = "is no number, and some values of the column have a decimal comma; write points", "decimal=','"
        if "," not in text:
            what, option = "is no number, as points separate thousands; remove them", "thousands='.'"
        if profile.commas == "either":
            what = (
                f"may have a decimal comma or separate thousands; for thousands, add "
                f"'data.columns={{{_key(place, name)}: number}}'; for a decimal comma, write points"
            )
        message = (
            f"{path}, line {line}, {layout.named(place)}: {shown(repr(text))} {what} (pandas.read_csv has "
            f"{option}), or {_left_out_by(place, name)}."
        )
        raise KlrBenchError(message)
    if asked is None and profile.dates():
        return left_out("dates")
    mixed = ""
    if asked is None and all_numbers and 1 < len(units) <= MOST_UNITS:
        mixed = f"numbers with different units ({', '.join(repr(unit) if unit else 'none' for unit in units)})"
    if asked is None and many:
        counted = f"more than {MOST_COUNTED:,}" if profile.counts is None else f"{len(profile.counts):,}"
        return left_out(mixed or f"{counted} different texts")
    if profile.counts is None:
        message = f"{path}: {name}: expected at most {MOST_COUNTED:,} different texts, got more; leave the column out."
        raise KlrBenchError(message)
    values = sorted(profile.counts, key=lambda value: (-profile.counts[value], value))[:MOST_VALUES]  # type: ignore[index]
    if profile.n_missing:
        values.append("")
    elif len(values) == 2:
        values = values[1:]  # the other one is where this is not
    return Column(place, name, TEXT, mixed, tuple(values), profile.n_missing)


def _key(place: int, name: str) -> str:
    """Return the name of a column if the command line can hold it unquoted, else its number."""
    return name if re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) else str(place + 1)


def _left_out_by(place: int, name: str) -> str:
    return f"leave the column out with 'data.columns={{{_key(place, name)}: leave_out}}'"


def _values(path: Path, layout: Layout, columns: Sequence[Column], piece: TextRows) -> NDArray[np.float32]:
    """Return the features of some rows."""
    texts = list(zip(*(row for _, row in piece), strict=True))
    found = [np.zeros((len(piece), 0))]
    for column in columns:
        if column.kind == LEAVE_OUT:
            continue
        values = column.features(texts[column.place])
        wrong = np.flatnonzero((np.abs(values) > LARGEST).any(axis=1))
        if len(wrong):
            line, row = piece[wrong[0]]
            unit = f" with the unit {shown(repr(column.unit))}" if column.unit else ""
            what = f"{shown(repr(row[column.place]))} is not a number{unit} between -{LARGEST:g} and {LARGEST:g}"
            message = f"{path}, line {line}, {layout.named(column.place)}: {what}; mend or remove the row."
            raise KlrBenchError(message)
        found.append(values)
    return np.concatenate(found, axis=1).astype(np.float32)


def _columns_of(what: Collection[object]) -> str:
    return "1 column" if len(what) == 1 else f"{len(what)} columns"


def _names(columns: Sequence[Column]) -> str:
    return _listed([one.name for one in columns])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(some(names))

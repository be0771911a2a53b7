"""A user's table: columns of numbers, texts, dates and identifiers, with values missing, and what is made of each.

Numbers lose a unit, missing ones are NaN; a text becomes a column of 0 and 1 for each of its values; dates, row numbers
and identifiers, texts that hardly repeat and columns of one value are left out.  All that is done is said in words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import LARGEST, Labels, is_unlabelled, some
from klr_bench.datasets.columns import MOST_COUNTED, SELDOM, ColumnProfile, is_missing, numbers_of, value_of
from klr_bench.datasets.readers.layout import WIDE, Layout, TextRows, layout_of, text_rows
from klr_bench.errors import KlrBenchError, nearest, shown

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
        notes = [f"labels: {self.layout.named(self.layout.label)}" + ("" if self.layout.header else " (no header)")]
        if not (texts or left or any(one.n_missing or one.unit or one.commas for one in numbers)):
            return notes

        def note(text: str, columns: Sequence[Column], detail: Callable[[Column], object] | None = None) -> str:
            names = _listed([f"{one.name} ({detail(one)})" if detail else one.name for one in columns])
            counted = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            return f"{text.format(counted)}: {names}" if columns else ""

        notes += [
            note("{} of numbers", numbers),
            note("the unit is removed from {} of numbers", [one for one in numbers if one.unit], _quoted_unit),
            note("commas separate thousands in {}", [one for one in numbers if one.commas]),
            note(f"{{}} of text as {sum(one.width for one in texts)} of 0 and 1", texts, lambda one: one.width),
            *(
                f"warning: {one.name} is read as text, for it has {one.why}: convert them to one unit, or confirm with "
                f"data.columns={{{_key(one.place, one.name)}: text}}"
                for one in texts
                if one.why
            ),
        ]
        for kind, columns, end in (
            ("numbers", numbers, "; the median of the training rows stands for them, beside a column that says so"),
            ("text, as a value of its own", texts, ""),
        ):
            missing = [one for one in columns if one.n_missing]
            found = note(f"values are missing in {{}} of {kind}", missing, lambda one: f"{one.n_missing:,}")
            notes.append(found and found + end)
        if left:
            of = "; ".join(some([f"{one.name}: {one.why}" for one in left]))
            notes.append(f"left out: {of}. To keep one: data.columns={{NAME: number}}, or text")
        return [text for text in notes if text]


def read_table(
    path: Path,
    labels: Labels,
    label_column: str | int | None = None,
    requested: Mapping[str, str] | None = None,
    like: Table | None = None,
) -> tuple[Any, NDArray[np.int64], Table]:
    """Return X float32 (n, d), dense or, if it is wide, CSR, NaN where a number is missing; codes (n,); the table.

    `requested` are kinds of columns (number, text, leave_out) by name or by number from 1.  `like` is the table of the
    training file, which decides on the columns of a test file.  Raises a KlrBenchError that names the file, and the
    line if there is one.
    """
    layout = layout_of(path, label_column, like.layout if like else None, unnamed=True)
    columns = list(like.columns) if like else _columns(path, layout, requested or {})
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


def _columns(path: Path, layout: Layout, requested: Mapping[str, str]) -> list[Column]:
    """Decide on all columns but the label, after a look at all rows that have one."""
    names = {place: _name(layout, place) for place in range(layout.n_columns) if place != layout.label}
    chosen = _chosen(path, names, requested)
    profiles = {place: ColumnProfile() for place in names}
    for rows in text_rows(path, layout):
        if labelled := [(line, row) for line, row in rows if not is_unlabelled(row[layout.label])]:
            lines, fields = zip(*labelled, strict=True)
            texts = list(zip(*fields, strict=True))
            for place, profile in profiles.items():
                profile.add(lines, texts[place])
    return [
        _Decision(path, layout, place, name, profiles[place], chosen.get(place)).column()
        for place, name in names.items()
    ]


def _name(layout: Layout, place: int) -> str:
    named = layout.header[place] if layout.header else ""
    return shown(named, 50) if named else f"column {place + 1}"


def _chosen(path: Path, names: Mapping[int, str], requested: Mapping[str, str]) -> dict[int, str]:
    """Return the requested kinds by place; refuse an unknown column."""
    found: dict[int, str] = {}
    for name, kind in requested.items():
        places = [place for place, known in names.items() if known == name]
        if not places and name.isdecimal() and int(name) - 1 in names:
            places = [int(name) - 1]
        if len(places) != 1:
            what = "several columns have this name; give its number." if places else nearest(name, names.values())
            message = f"{path}: data.columns: no column {shown(repr(name))} of features.{' ' if places else ''}{what}"
            raise KlrBenchError(message)
        found[places[0]] = kind
    return found


@dataclass(frozen=True)
class _Decision:
    """What becomes of a column, by the kind that `data.columns` requests or by the profile of its values."""

    path: Path
    layout: Layout
    place: int
    name: str
    profile: ColumnProfile
    requested: str | None

    def column(self) -> Column:
        profile, free = self.profile, self.requested is None
        if why := self._reason_to_leave_out():
            return self._left_out(why)
        commas = profile.commas == "thousands" or (self.requested == NUMBER and profile.commas == "either")
        unit = next(iter(profile.units), "")
        n_numbers, other = profile.numbers(commas=commas)
        if self.requested != TEXT and n_numbers == profile.n_there:
            return Column(self.place, self.name, NUMBER, n_missing=profile.n_missing, unit=unit, commas=commas)
        if other and (self.requested == NUMBER or (free and n_numbers >= MOSTLY * profile.n_there)):
            share = f", as {n_numbers:,} of {profile.n_there:,} values of the column are" if free else ""
            reason = f"is not a number{_with_unit(unit)}{share}; mend the line"
            raise self._refusal(other, reason)
        return self._text() if self.requested else self._text_or_left_out()

    def _reason_to_leave_out(self) -> str | None:
        profile, free = self.profile, self.requested is None
        if self.requested == LEAVE_OUT:
            return "as data.columns says"
        if profile.n_there == 0:
            return "no values"
        if profile.counts is not None and len(profile.counts) == 1 and not profile.n_missing:
            return "the same value in all rows"
        unnamed = self.layout.header is not None and not self.layout.header[self.place]
        if free and (profile.numbers_rows(self.place, self.name) or (profile.whole and unnamed)):
            return "numbers of the rows"
        return "identifiers, all different" if free and profile.identifies(self.name) else None

    def _text_or_left_out(self) -> Column:
        profile, units = self.profile, tuple(self.profile.units)
        many = profile.counts is None or len(profile.counts) > max(SELDOM, profile.n_there / 2)
        all_numbers = None not in profile.forms
        if profile.commas in {"decimal", "either"} and (all_numbers or many):
            raise self._comma_refusal()
        if profile.dates():
            return self._left_out("dates")
        mixed = ""
        if all_numbers and 1 < len(units) <= MOST_UNITS:
            mixed = f"numbers with different units ({', '.join(repr(unit) if unit else 'none' for unit in units)})"
        if many:
            counted = f"more than {MOST_COUNTED:,}" if profile.counts is None else f"{len(profile.counts):,}"
            return self._left_out(mixed or f"{counted} different texts")
        return self._text(mixed)

    def _text(self, why: str = "") -> Column:
        counts = self.profile.counts
        if counts is None:
            expected = f"expected at most {MOST_COUNTED:,} different texts, got more"
            message = f"{self.path}: {self.name}: {expected}; leave the column out."
            raise KlrBenchError(message)
        values = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_VALUES]
        if self.profile.n_missing:
            values.append("")
        elif len(values) == 2:
            values = values[1:]  # the other one is where this is not
        return Column(self.place, self.name, TEXT, why, tuple(values), self.profile.n_missing)

    def _left_out(self, why: str) -> Column:
        return Column(self.place, self.name, LEAVE_OUT, why, n_missing=self.profile.n_missing)

    def _comma_refusal(self) -> KlrBenchError:
        first = min(first for form, first in self.profile.first.items() if form and form.comma)
        what, option = "is no number, and some values of the column have a decimal comma; write points", "decimal=','"
        if "," not in first[1]:
            what, option = "is no number, as points separate thousands; remove them", "thousands='.'"
        if self.profile.commas == "either":
            what = (
                f"may have a decimal comma or separate thousands; for thousands, add "
                f"'data.columns={{{_key(self.place, self.name)}: number}}'; for a decimal comma, write points"
            )
        return self._refusal(first, f"{what} (pandas.read_csv has {option})")

    def _refusal(self, value: tuple[int, str], reason: str) -> KlrBenchError:
        line, text = value
        leave_out = f"leave the column out with 'data.columns={{{_key(self.place, self.name)}: leave_out}}'"
        where = f"{self.path}, line {line}, {self.layout.named(self.place)}"
        return KlrBenchError(f"{where}: {shown(repr(text))} {reason}, or {leave_out}.")


def _quoted_unit(column: Column) -> str:
    return shown(repr(column.unit))


def _with_unit(unit: str) -> str:
    return f" with the unit {shown(repr(unit))}" if unit else ""


def _key(place: int, name: str) -> str:
    """Return the name of a column if the command line can hold it unquoted, else its number."""
    return name if re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) else str(place + 1)


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
            what = f"{shown(repr(row[column.place]))} is not a number{_with_unit(column.unit)}"
            between = f"between -{LARGEST:g} and {LARGEST:g}; mend or remove the row."
            message = f"{path}, line {line}, {layout.named(column.place)}: {what} {between}"
            raise KlrBenchError(message)
        found.append(values)
    return np.concatenate(found, axis=1).astype(np.float32)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(some(names))

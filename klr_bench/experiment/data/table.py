"""A user's table: columns of numbers, texts, dates and row numbers, with values missing, and what is made of each.

Numbers stay as they are, missing ones NaN; a text becomes a column of 0 and 1 for each of its values; dates, row
numbers, texts that hardly repeat and columns of one value are left out.  All that is done is said in words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError, nearest, shown
from klr_bench.experiment.data.delimited import WIDE, Layout, Piece, layout_of, pieces_of, rows_and_codes
from klr_bench.experiment.data.labels import LARGEST, Labels, number, some
from klr_bench.experiment.data.seen import MOST_COUNTED, SELDOM, WITH_UNIT, Seen, is_missing, is_odd, numbers_of

NUMBER, TEXT, LEAVE_OUT = "number", "text", "leave_out"
MOSTLY = 0.9
"""Share of numbers in a column above which another value is taken for a mistake."""
MOST_VALUES = 100
"""Values of a text that get a column; the rarer ones have none."""


@dataclass(frozen=True)
class Column:
    """What is made of a column of the file."""

    place: int
    """In the file, from 0."""
    name: str
    kind: str
    why: str = ""
    """Why it is left out."""
    values: tuple[str, ...] = ()
    """Of a text: those that get a column, "" for missing."""
    n_missing: int = 0

    @property
    def width(self) -> int:
        """Number of columns of X."""
        return {NUMBER: 1, TEXT: len(self.values), LEAVE_OUT: 0}[self.kind]

    def features(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the columns of X for some rows, (n, width); ValueError where one is to be a number and is none."""
        columns: NDArray[np.float64]
        if self.kind == NUMBER:
            numbers = numbers_of(texts)
            if numbers is None:
                there = [math.nan if is_missing(text) else number(text) for text in texts]
                if None in there:
                    raise ValueError(texts)
                numbers = np.array(there, dtype=np.float64)
            columns = numbers[:, None]
        else:
            places = {value: place for place, value in enumerate(self.values)}
            found = np.array([places.get("" if is_missing(text) else text, -1) for text in texts])
            columns = (found[:, None] == np.arange(self.width)).astype(np.float64)
        return columns


@dataclass(frozen=True)
class Table:
    """The columns of a training file, from which a test file may not differ."""

    layout: Layout
    columns: tuple[Column, ...]

    def said(self) -> list[str]:
        """Return where the labels stand, and what was done with the other columns unless all are whole and numbers."""
        numbers, texts, left = ([one for one in self.columns if one.kind == kind] for kind in (NUMBER, TEXT, LEAVE_OUT))
        missing = [one for one in self.columns if one.n_missing and one.kind != LEAVE_OUT]
        found = [f"labels: {self.layout.named(self.layout.label)}"]
        if not (texts or left or missing):
            return found
        found += [f"{_columns_of(numbers)} of numbers: {_names(numbers)}"] if numbers else []
        if texts:
            width = sum(one.width for one in texts)
            of = _listed([f"{one.name} ({one.width})" for one in texts])
            found.append(f"{_columns_of(texts)} of text as {width} of 0 and 1: {of}")
        if missing:
            of = _listed([f"{one.name} ({one.n_missing:,})" for one in missing])
            found.append(
                f"values are missing in {_columns_of(missing)}: {of}; for a number stands the median of the training "
                "rows, beside a column that says so"
            )
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
    X, codes = rows_and_codes(path, layout, labels, partial(_values, path, layout, columns))
    if X.shape[1] == 0:
        why = "; ".join(some([f"{one.name}: {one.why}" for one in columns]))
        message = f"{path}: no column is left to learn from ({why}); keep one with data.columns={{NAME: number}}."
        raise KlrBenchError(message)
    if sp.issparse(X) and np.isnan(X.data).any():
        message = f"{path}: values are missing; with more than {WIDE:,} columns they cannot be filled in. Fill them."
        raise KlrBenchError(message)
    return X, codes, like or Table(layout, tuple(columns))


def _columns(path: Path, layout: Layout, asked: Mapping[str, str]) -> list[Column]:
    """Decide on all columns but the label, after a look at all rows."""
    names = {place: _name(layout, place) for place in range(layout.n_columns) if place != layout.label}
    chosen = _chosen(path, names, asked)
    seen = {place: Seen() for place in names}
    for piece in pieces_of(path, layout):
        lines = [line for line, _ in piece]
        texts = list(zip(*(row for _, row in piece), strict=True))
        for place, column in seen.items():
            column.take(lines, texts[place])
    return [_decided(path, layout, place, names[place], seen[place], chosen.get(place)) for place in names]


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


def _decided(path: Path, layout: Layout, place: int, name: str, seen: Seen, asked: str | None) -> Column:
    """Return what is made of a column."""

    def left_out(why: str) -> Column:
        return Column(place, name, LEAVE_OUT, why, n_missing=seen.n_missing)

    if asked == LEAVE_OUT:
        return left_out("as data.columns says")
    if seen.n_there == 0:
        return left_out("no values")
    if seen.counts is not None and len(seen.counts) == 1 and not seen.n_missing:
        return left_out("the same value in all rows")
    if asked is None and (
        seen.numbers_rows(place, name) or (seen.whole and layout.header and not layout.header[place])
    ):
        return left_out("numbers of the rows")
    if asked != TEXT and seen.n_numbers == seen.n_there:
        return Column(place, name, NUMBER, n_missing=seen.n_missing)
    if seen.odd and (asked == NUMBER or (asked is None and seen.n_numbers >= MOSTLY * seen.n_there)):
        line, text = seen.odd
        share = "" if asked else f", as {seen.n_numbers:,} of {seen.n_there:,} values of the column are"
        message = (
            f"{path}, line {line}, {layout.named(place)}: {shown(repr(text))} is not a number{share}; mend the line, "
            f"or {_left_out_by(place, name)}."
        )
        raise KlrBenchError(message)
    many = seen.counts is None or len(seen.counts) > max(SELDOM, seen.n_there / 2)
    if asked is None and seen.odd and (seen.decimal_commas() or (many and seen.n_commas)):
        line, text = seen.odd
        message = (
            f"{path}, line {line}, {layout.named(place)}: {shown(repr(text))} is no number, and some values "
            "of the column have a decimal comma; write points (pandas.read_csv has decimal=','), or "
            f"{_left_out_by(place, name)}."
        )
        raise KlrBenchError(message)
    if asked is None and seen.dates():
        return left_out("dates")
    if asked is None and many:
        counted = f"more than {MOST_COUNTED:,}" if seen.counts is None else f"{len(seen.counts):,}"
        numeric = seen.odd is not None and WITH_UNIT.fullmatch(seen.odd[1]) is not None
        return left_out(f"{counted} texts as {seen.odd[1]}" if seen.odd and numeric else f"{counted} different texts")
    if seen.counts is None:
        message = f"{path}: {name}: expected at most {MOST_COUNTED:,} different texts, got more; leave the column out."
        raise KlrBenchError(message)
    values = sorted(seen.counts, key=lambda value: (-seen.counts[value], value))[:MOST_VALUES]  # type: ignore[index]
    if seen.n_missing:
        values.append("")
    elif len(values) == 2:
        values = values[1:]  # the other one is where this is not
    return Column(place, name, TEXT, values=tuple(values), n_missing=seen.n_missing)


def _left_out_by(place: int, name: str) -> str:
    """Return how to leave a column out, by its name if the command line can hold it unquoted, else by its number."""
    key = name if re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) else str(place + 1)
    return f"leave the column out with 'data.columns={{{key}: leave_out}}'"


def _values(path: Path, layout: Layout, columns: Sequence[Column], piece: Piece) -> NDArray[np.float32]:
    """Return the features of some rows."""
    texts = list(zip(*(row for _, row in piece), strict=True))
    found = [np.zeros((len(piece), 0))]
    for column in columns:
        if column.kind == LEAVE_OUT:
            continue
        try:
            values = column.features(texts[column.place])
            wrong = np.flatnonzero((np.abs(values) > LARGEST).any(axis=1))
        except ValueError:
            wrong = np.array([i for i, text in enumerate(texts[column.place]) if is_odd(text)])
        if len(wrong):
            line, row = piece[wrong[0]]
            what = f"{shown(repr(row[column.place]))} is not a number between -{LARGEST:g} and {LARGEST:g}"
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

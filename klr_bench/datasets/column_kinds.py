"""Decide how the columns of a table are converted to features.

Files and data frames are treated alike: `path` is the path of a file, and None for a data frame.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.amounts import COMMA, text_of
from klr_bench.datasets.column import (
    CONSTANT,
    DATE,
    FEW_ROWS,
    KINDS,
    LEAVE_OUT,
    MOST_UNITS,
    MOST_VALUES,
    MOSTLY,
    NO_VALUES,
    NUMBER,
    ORDERED,
    REQUESTED,
    SMALL_SHARE,
    TEXT,
    Column,
    remedy_for,
    with_unit,
)
from klr_bench.datasets.columns import BOOLEANS, CATEGORY, DATES, FEW_VALUES, MOST_COUNTED, STRING, ColumnProfile
from klr_bench.datasets.dates import (
    CLOCK,
    DAY_FIRST,
    DOTTED,
    HOUR,
    MONTH,
    MONTH_FIRST,
    UNKNOWN_ORDER,
    WEEKDAY,
    YEAR,
    order_of,
)
from klr_bench.datasets.layout import Layout
from klr_bench.errors import fail, nearest, sanitize
from klr_bench.parsing import check_choice

Request = str | Sequence[str]
"""One of `KINDS`, or the values of an ordered category in their order."""


def requested_kinds(
    path: Path | None, names: Mapping[int, str], requested: Mapping[Any, Request]
) -> dict[int, Request]:
    """Return the requested kinds of columns, keyed by column position, counted from 0.

    The keys of `requested` are names, or positions from 1 that are no names.

    Raises KlrBenchError for unknown columns.
    """
    kinds: dict[int, Request] = {}
    for key, kind in requested.items():
        name, where = str(key), f"{path}: data.columns" if path else "columns"
        if isinstance(kind, str):
            check_choice(f"{where}: {name}", kind, KINDS)
        elif len({*map(str, kind)}) < max(len(kind), 2):
            fail(f"{where}: {name}: expected at least two different values in their order, got {sanitize(kind, 100)}.")
        places = [place for place, column_name in names.items() if column_name == name]
        places = places or [place for place in names if name == str(place + 1)]
        if len(places) != 1:
            what = " Several columns have this name; use the position." if places else nearest(name, names.values())
            fail(f"{where}: there is no feature column {sanitize(repr(name))}.{what}")
        kinds[places[0]] = kind
    return kinds


def choose_column(
    path: Path | None,
    layout: Layout,
    place: int,
    name: str,
    profile: ColumnProfile,
    requested: Request | None,
    *,
    coerce: bool = False,
) -> Column:
    """Decide how a column is converted, given the statistics of its values.

    `requested` is the kind that the user has set, or None.  With `coerce`, values that cannot be read are missing
    values.  Raises KlrBenchError for values that are unclear.
    """
    free, counts, units, n_present = requested is None, profile.merged_counts, profile.units, profile.n_present
    codes = free and profile.declared == STRING and profile.whole  # whole numbers that are strings on purpose
    shared: dict[str, Any] = {"coerce": coerce, "decimal": profile.decimal}

    def column(kind: str, why: str = "", n_unreadable: int = 0, n_levels: int = 0, **more: Any) -> Column:
        return Column(
            place,
            name,
            kind,
            why,
            n_missing=profile.n_missing + n_unreadable - n_levels,
            n_unreadable=n_unreadable,
            **shared,
            **more,
        )

    def setting(kind: str) -> str:
        text = setting_of(path, place, name, kind)
        return f"'{text}'" if path else text

    def refuse(value: tuple[int, str], reason: str, remedy: str = "") -> NoReturn:
        cell = describe_cell(path, layout, value[0], place, value[1])
        fail(f"{cell} {reason}{remedy}, or leave the column out with {setting(LEAVE_OUT)}.")

    if requested == LEAVE_OUT:
        return column(LEAVE_OUT, REQUESTED)
    if n_present == 0:
        return column(LEAVE_OUT, NO_VALUES)
    if counts is not None and len(counts) == 1 and not profile.n_missing:
        return column(LEAVE_OUT, CONSTANT)
    levels = profile.levels if free else () if isinstance(requested, str) else _levels(requested or (), counts or ())
    if levels:
        n_unreadable = sum(n for text, n in (profile.counts or {}).items() if text not in levels) if coerce else 0
        n_levels = sum(profile.missing[level] for level in levels)  # such as "none"
        return column(ORDERED, n_unreadable=n_unreadable, n_levels=n_levels, values=levels)
    if free and profile.declared == CATEGORY:
        too_many = f"more than {MOST_COUNTED:,} categories"
        return column(LEAVE_OUT, too_many) if counts is None else _text_column(column, counts, profile)
    groups = f"set data.group={name}" if path else "pass them to fit(groups=)"
    if free and (why := profile.reason_to_leave_out(layout.header[place] if layout.header else name, groups)):
        return column(LEAVE_OUT, why)
    if requested == DATE or (free and _has_dates(profile, coerce=coerce)):
        return _date_column(column, profile, is_free=free)
    commas = profile.commas == "thousands" or (requested == NUMBER and profile.commas == "either")
    unit = next(iter(units), "")
    n_numbers, other = profile.numbers(commas=commas)
    if free and profile.point_of_thousands and not codes:
        what = f"may be thousands, since others have three digits and no point; for decimals, set {setting(NUMBER)}"
        refuse(profile.point_of_thousands, f"{what}; for thousands, set data.decimal=comma (decimal=',' in Python)")
    n_unreadable = n_present - n_numbers if coerce else 0
    if requested != TEXT and other is None and not codes:
        return column(NUMBER, n_unreadable=n_unreadable, unit=unit, commas=commas)
    if other and (requested == NUMBER or (free and n_numbers >= MOSTLY * n_present and not codes)):
        if coerce:
            return column(NUMBER, n_unreadable=n_unreadable, unit=unit, commas=commas)
        share = f", unlike {n_numbers:,} of the {n_present:,} values in the column" if free else ""
        coercion = "data.coerce=true" if path else "coerce=True"
        remedy = f"; read the column as text with {setting(TEXT)}, count such values as missing with {coercion}"
        refuse(other, f"is not a number{with_unit(unit)}{share}; {remedy_for(unit)}", remedy)
    mixed = ""
    if free:
        many = counts is None or len(counts) > max(FEW_VALUES, n_present / 2)
        all_numbers = None not in profile.forms
        n_amounts = sum(n for form, n in profile.forms.items() if form)
        first = profile.first_with_comma
        if first and profile.commas in COMMA[1:] and (all_numbers or (many and 2 * n_amounts >= n_present)):
            refuse(first, _unclear_comma(profile, setting(NUMBER)))
        if all_numbers and 1 < len(units) <= MOST_UNITS:
            mixed = f"numbers with different units ({', '.join(repr(unit) if unit else 'none' for unit in units)})"
        if many:
            counted = f"more than {MOST_COUNTED:,}" if counts is None else f"{len(counts):,}"
            return column(LEAVE_OUT, mixed or f"{counted} different strings")
    if counts is None:
        where = f"{path}: {name}" if path else f"column {name!r}"
        fail(f"{where}: expected at most {MOST_COUNTED:,} different strings, got more; leave the column out.")
    return _text_column(column, counts, profile, mixed)


def _levels(values: Sequence[Any], present: Collection[str]) -> tuple[str, ...]:
    """Return the requested values as texts, with 1.0 as 1 if the column contains 1."""
    spellings = tuple(map(str, values)), tuple(map(text_of, values))
    return max(spellings, key=lambda texts: sum(text in present for text in texts))


def _has_dates(profile: ColumnProfile, *, coerce: bool) -> bool:
    least = MOSTLY * profile.n_present if coerce else profile.n_present
    return profile.declared == DATES or profile.n_dates >= max(least, 1)


def _date_column(column: Callable[..., Column], profile: ColumnProfile, *, is_free: bool) -> Column:
    forms = profile.date_forms
    day_first = order_of(forms)
    if is_free and not profile.n_dates:
        return column(LEAVE_OUT, "dates in a form that cannot be read")
    if CLOCK in forms and len(forms) > 1:
        return column(LEAVE_OUT, "dates and clock times in one column")
    if day_first is None:
        return column(LEAVE_OUT, UNKNOWN_ORDER)
    days = () if CLOCK in forms else (YEAR, MONTH, WEEKDAY)
    n_unreadable = profile.n_present - profile.n_dates if column(DATE).coerce else 0
    values = (*days, *((HOUR,) if profile.has_clock else ()))
    is_shown = {DAY_FIRST, MONTH_FIRST, DOTTED} & {*forms}
    return column(DATE, n_unreadable=n_unreadable, values=values, day_first=day_first if is_shown else None)


def _unclear_comma(profile: ColumnProfile, as_number: str) -> str:
    """Return what is wrong with a number that has an unclear comma or point."""
    if profile.decimal == ",":
        return "has a point that does not separate thousands, although data.decimal is a comma; write 1.234,5"
    if profile.commas == "either":
        what = f"has an ambiguous comma; for thousands, set {as_number}; for decimals, set data.decimal=comma"
    else:
        what = "has a decimal comma or thousands separators as in 1.234,5; set data.decimal=comma"
    return f"{what} (decimal=',' in Python)"


def _text_column(column: Callable[..., Column], counts: Counter[str], profile: ColumnProfile, why: str = "") -> Column:
    return column(TEXT, why, **_text_values(counts, has_missing=profile.n_missing > 0))


def as_category(column: Column, numbers: NDArray[np.float64]) -> Column | None:
    """Return a column of few different whole numbers (n, 1) as one of text, or None."""
    if column.kind != NUMBER or column.unit or column.n_unreadable:
        return None
    present = numbers[~np.isnan(numbers)]
    values, n_rows = np.unique(present, return_counts=True)
    if not 2 < len(values) <= FEW_VALUES or (values != np.round(values)).any():
        return None
    counts = Counter(dict(zip(map(text_of, values), n_rows.tolist(), strict=True)))
    return replace(column, kind=TEXT, whole=True, **_text_values(counts, has_missing=len(present) < len(numbers)))


def _text_values(counts: Counter[str], *, has_missing: bool) -> dict[str, Any]:
    """Return the attributes of a `Column` of text whose values occur in `counts` rows."""
    values = sorted(counts, key=lambda value: (-counts[value], value))
    if len(values) == 2 and not has_missing:  # one feature is enough
        nonzero, zero = ("True", "False") if {*values} == {*BOOLEANS.values()} else (values[1], values[0])
        return {"values": (nonzero,), "zero": zero}
    least = min(FEW_ROWS, SMALL_SHARE * counts.total())
    n_frequent = min(sum(counts[value] >= least for value in values) or len(values), MOST_VALUES)
    frequent, rare = values[:n_frequent], values[n_frequent:]
    return {"values": tuple(frequent + [""] * has_missing), "rare": tuple(rare)}


def describe_cell(path: Path | None, layout: Layout, line: object, place: int, value: object) -> str:
    """Describe a value for messages, for example "a.csv, line 2, column 1 ('x'): 'high'"."""
    line = f"{path}, line {line}" if path else f"row {line}"
    return f"{line}, {layout.describe(place)}: {sanitize(repr(value))}"


def setting_of(path: Path | None, place: int, name: str, kind: str) -> str:
    """Return the setting that requests a kind of column, on the command line or in Python."""
    if not path:
        return f"columns={{{name!r}: {kind!r}}}"
    is_key = re.fullmatch(r"[A-Za-z_][\w-]*|0|[1-9][0-9]*", name, re.ASCII)  # other names need quotes
    key = name if is_key else str(place + 1)
    return f"data.columns={{{key}: {kind}}}"

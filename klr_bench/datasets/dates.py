"""Recognize dates and clock times in a column of strings, and convert them to numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, time, timedelta

YEAR, MONTH, WEEKDAY, HOUR = ("year", "month", "weekday", "hour")
"""Features of a date; weekdays count from 0 for Monday, and hours have a fraction."""
CLOCK, CERTAIN, DAY_FIRST, MONTH_FIRST, DOTTED, EITHER = ("clock", "certain", "day", "month", "dotted", "either")
"""Forms of a clock time without a date, and of dates by the order of day and month.

The order is certain, or day or month comes first because the other number exceeds 12, or it may be either; dates with
points, as in 3.4.2021, have the day first unless others in the column differ.
"""
UNKNOWN_ORDER = "dates whose day and month cannot be told apart; write 2021-04-03"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = rf"({'|'.join(MONTHS)})[a-z]*\.?"
_DAYS = re.compile(
    r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"
    r"|(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second>\d{1,2})[-/.](?P<last>\d{4}|\d\d)"
    rf"|(?P<before>\d{{1,2}})(?:\.|st|nd|rd|th)?[ -](?P<name>{_NAME}),?[ -](?P<end>\d{{4}}|\d\d)"
    rf"|(?P<start>{_NAME}) (?P<after>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<final>\d{{4}})",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(:(?P<second>\d\d)(?P<fraction>[.,]\d+)?)?( ?(?P<half>[ap])\.?m\.?)?",
    re.IGNORECASE,
)
_ZONE = re.compile(r" ?(Z|UTC|GMT|[+-]\d\d(:?\d\d)?)$")
_OFFSET = re.compile(r":\d\d\S* ?([+-])(\d\d):?(\d\d)?$")


def date_form(text: str) -> tuple[str, bool] | None:
    """Return the form of a date or a clock time, or None for any other string.

    The second value is true if there is a clock other than 0:00.
    """
    if _clock(text) is not None:
        return CLOCK, True
    moments = [moment(text, day_first=day_first) for day_first in (True, False)]
    found = next(filter(None, moments), None)
    if found is None:
        return None
    has_clock = found.time() != time()
    if moments[0] == moments[1]:
        return CERTAIN, has_clock
    if None in moments:
        return (DAY_FIRST if moments[0] else MONTH_FIRST), has_clock
    return (DOTTED if "." in text[:3] else EITHER), has_clock


def moment(text: str, *, day_first: bool) -> datetime | None:
    """Return a date with its clock time, if any, or None for any other string.

    A time zone is left out.
    """
    match = _DAYS.match(text)
    rest = text[match.end() :] if match else ""
    clock = _clock(_ZONE.sub("", rest).lstrip("T, ")) if rest.startswith(("T", " ", ",")) else None
    if not match or (rest and clock is None):
        return None
    part = match.groupdict()
    if part["mark"]:
        day, month = (part["first"], part["second"]) if day_first else (part["second"], part["first"])
    else:
        name = part["name"] or part["start"]
        month = str(MONTHS.index(name[:3].lower()) + 1) if name else part["month"]
        day = part["day"] or part["before"] or part["after"]
    year = part["year"] or part["last"] or part["end"] or part["final"]
    century = 0 if len(year) == 4 else 1900 if int(year) > 68 else 2000  # as strptime
    try:
        return datetime.combine(datetime(century + int(year), int(month), int(day)), clock or time())
    except ValueError:
        return None


def _clock(text: str) -> time | None:
    match = _TIME.fullmatch(text)
    if not match:
        return None
    hour, fraction = int(match["hour"]), float(f"0{(match['fraction'] or '.0').replace(',', '.')}")
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].lower() == "p" else 0) if 1 <= hour <= 12 else 24
    try:
        return time(hour, int(match["minute"]), int(match["second"] or 0), int(1e6 * fraction))
    except ValueError:
        return None


def order_of(forms: Collection[str]) -> bool | None:
    """Return True if the day comes first in dates, or None if this is not known.

    `forms` are those of `date_form`.
    """
    if DAY_FIRST in forms and MONTH_FIRST in forms:
        return None
    if EITHER in forms and not {DAY_FIRST, MONTH_FIRST} & {*forms}:
        return None
    return MONTH_FIRST not in forms


def clear_moment(text: str) -> datetime | None:
    """Return what `moment` returns, or None if the day and the month cannot be told apart."""
    form = date_form(text)
    if form is None or form[0] == EITHER:
        return None
    return moment(text, day_first=True) or moment(text, day_first=False)


def date_features(text: str, parts: Collection[str], *, day_first: bool | None) -> list[float] | None:
    """Return some features of a date or a clock time, or None for any other string.

    If `day_first` is None, None is also returned for a date that is not clear.
    """
    found = None
    if YEAR in parts:
        found = clear_moment(text) if day_first is None else moment(text, day_first=day_first)
    clock = found.time() if found else _clock(text)
    if clock is None or (YEAR in parts and found is None):
        return None
    hour = clock.hour + clock.minute / 60 + clock.second / 3600
    values = {HOUR: hour}
    if found:
        values |= {YEAR: found.year, MONTH: found.month, WEEKDAY: found.weekday()}
    return [values.get(part, math.nan) for part in parts]


def in_utc(text: str, *, day_first: bool) -> datetime | None:
    """Return a date as `moment`, converted to UTC if it has the offset of a time zone."""
    found, offset = moment(text, day_first=day_first), _OFFSET.search(text)
    if found is None or offset is None:
        return found
    minutes = 60 * int(offset[2]) + int(offset[3] or 0)
    with suppress(OverflowError):  # "never", such as 9999-12-31T23:59:59-05:00
        return found - timedelta(minutes=-minutes if offset[1] == "-" else minutes)
    return found

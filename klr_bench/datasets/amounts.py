"""Recognize missing values and numbers, with units and separators, in strings of a table."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import parse_number

MISSING = frozenset(
    {
        *("", "na", "n/a", "nan", "null", "none", "?", "-", "--", ".", "..", "n.a.", "n.a", "<na>", "-nan"),
        *("#n/a", "#na", "#n/a n/a", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
        *("#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!", "#calc!", "#spill!"),
        *("#nv", "#wert!", "#bezug!", "#zahl!", "\\n", "(null)", "\u2013", "\u2014", "0000-00-00"),
    }
)
"""Texts (in lower case) that denote a missing value: those of pandas, databases and spreadsheets, and further marks."""
NO_TIME = "NaT"
"""Mark of pandas for a missing date, which is case-sensitive, because NAT may be a name."""
LONGEST_MARK = max(map(len, MISSING))
_SYMBOL = r"[$¢£¥฿\u20a0-\u20c0]"
_BEFORE = rf"(?:[A-Z]{{0,3}}{_SYMBOL}|[A-Z]{{3}}(?=\s)|Rs[.,]?|[Kk]r[.,]?(?=\s))"
_MINUS = re.compile(rf"\u2212|^\u2013(?=[\s\d.]|{_SYMBOL})")
_WORD = r"[^\d\s.,:;+()#\\-]{1,10}"
_AFTER = rf"(?![/_]){_WORD}[23]?(?: {_WORD})?"
_DIGITS = r"(?:[0-9]+(?:[.,'\u2019\s][0-9]+)*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_AMOUNT = re.compile(rf"([+-]?)({_BEFORE})?\s?([+-]?)({_DIGITS})\s?({_AFTER})?")
_NEGATIVE = re.compile(r"([^(0-9]{0,4})\(([^()+-]+)\)((?!\s?[0-9]).{0,12})")
"""A negative number in the notation of accountants, such as (5) for -5; (030) 1234567 is none."""
_SPACED = re.compile(r"[0-9]{1,3}(?:(['\u2019\s])[0-9]{3})(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_INDIAN = re.compile(r"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]+)?")
_DECIMAL = re.compile(r"[0-9][0-9.]*,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3}){2,}")
COMMA = ("thousands", "decimal", "either")
"""Possible meanings of a comma in a number; ``either`` is a single comma before three digits, as in 4,799."""
SWAPPED = str.maketrans(",.", ".,")


class Amount(NamedTuple):
    """A number such as "5,000 kg", split into its unit and its digits."""

    unit: str
    digits: str
    """Sign and digits without blanks."""
    mark: str
    """One of `COMMA`; without a comma ``point``, ``hundreds`` (100 to 999), ``large`` (at least 1000) or ``small``."""


def parse_amount(text: str, decimal: str = ".") -> Amount | None:
    """Split a string such as "5,000 kg" into unit and digits; return None if it is not a number.

    If `decimal` is ",", commas and points are exchanged first.  A minus may be a dash, as printers set it.
    """
    text = _MINUS.sub("-", text)
    if decimal == ",":
        text = text.translate(SWAPPED)
    if negative := _NEGATIVE.fullmatch(text):
        text = "{}-{}{}".format(*negative.groups())
    value = parse_number(text)
    if value is not None:
        return None if math.isnan(value) else Amount("", text, _mark(text, value))
    match = _AMOUNT.fullmatch(text)
    if not match or (match[1] and match[3]):
        return None
    digits = re.sub(r"['\u2019\s]", "", match[4]) if _SPACED.fullmatch(match[4]) else match[4]
    value = parse_number(digits)
    if _THOUSANDS.fullmatch(digits) or (decimal == "." and _INDIAN.fullmatch(digits)):
        single = digits.count(",") == 1 and "." not in digits
        mark = "thousands" if not single else "decimal" if digits.startswith("0") else "either"
    elif _DECIMAL.fullmatch(digits):
        mark = "decimal"
    elif value is None:
        return None
    else:
        mark = _mark(digits, value)
    unit = (match[2] or "").replace(",", ".") + (match[5] or "")  # "kr." if points were exchanged
    return Amount(unit, match[1] + match[3] + digits, mark)


def _mark(digits: str, value: float) -> str:
    size = abs(value)
    return "point" if "." in digits else "large" if size >= 1000 else "hundreds" if size >= 100 else "small"


def amount_value(text: str, unit: str, *, commas: bool, decimal: str = ".") -> float | None:
    """Convert a number with the given unit, such as "5 kg", to a float.

    Return None for any other string.  If `commas` is true, commas may separate thousands; if `decimal` is ",", points.
    """
    parts = parse_amount(text, decimal)
    if parts is None or parts.unit != unit or parts.mark == "decimal" or (parts.mark in COMMA and not commas):
        return None
    return parse_number(parts.digits.replace(",", ""))


def text_of(value: Any) -> str:
    """Convert a value to the string in a CSV file, such as 3 for 3.0, and 0 for -0.0."""
    value = float(value) if isinstance(value, Fraction) else value
    is_float = isinstance(value, float | np.floating)
    return np.format_float_positional(value or abs(value), trim="-") if is_float else str(value).strip()


def is_missing(text: str) -> bool:
    """Return True if a field of a table denotes a missing value."""
    return len(text) <= LONGEST_MARK and (text.lower() in MISSING or text == NO_TIME)


def parse_numbers(texts: Sequence[str], decimal: str = ".") -> NDArray[np.float64] | None:
    """Convert strings to floats; return None if any string is not a plain number or is NaN."""
    joined = "".join(texts)
    if decimal == "," and "." in joined:
        return None
    try:
        numbers = np.array([text.replace(",", ".") for text in texts] if decimal == "," else texts, dtype=np.float64)
    except ValueError:
        return None
    return numbers if joined.isascii() and "_" not in joined and not np.isnan(numbers).any() else None

"""Numbers with a unit or with separators between thousands, such as ``$1,234.50``, ``40 %`` and ``12.5 °C``."""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

from klr_bench.experiment.data.labels import number

_BYTE = r"\\x[89a-f][0-9a-f]"  # a byte that is not UTF-8, as `delimited` shows it
_BEFORE = rf"(?:[A-Z]{{0,3}}(?:[$€£¥₹₩₽₺₪₫₴₦฿¢]|{_BYTE})|[A-Z]{{3}}(?=\s))"
_WORD = rf"(?:{_BYTE}|[^\d\s.,:;+()#\\-]){{1,10}}"
_AFTER = rf"(?![/_]){_WORD}[23]?(?: {_WORD})?"
_DIGITS = r"(?:[0-9]+(?:[.,'\u2019\s][0-9]+)*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_AMOUNT = re.compile(rf"([+-]?)({_BEFORE})?\s?([+-]?)({_DIGITS})\s?({_AFTER})?")
_SPACED = re.compile(r"[0-9]{1,3}(?:(['\u2019\s])[0-9]{3})(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_DECIMAL = re.compile(r"[0-9][0-9.]*,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3}){2,}")

Mark = Literal["none", "thousands", "decimal", "either"]
"""What the commas of a number are; ``either`` is a single one before three digits, such as 4,799."""


class Amount(NamedTuple):
    """A number as text: its unit, its sign and digits without blanks, and the role of its commas."""

    unit: str
    digits: str
    mark: Mark


def amount(text: str) -> Amount | None:
    """Return the parts of a number with a unit or with commas, or None for another text."""
    value = number(text)
    if value is not None:
        return Amount("", text, "none") if not math.isnan(value) else None
    found = _AMOUNT.fullmatch(text)
    if not found or (found[1] and found[3]):
        return None
    digits = re.sub(r"['\u2019\s]", "", found[4]) if _SPACED.fullmatch(found[4]) else found[4]
    mark: Mark = "none"
    if _THOUSANDS.fullmatch(digits):
        single = digits.count(",") == 1 and "." not in digits
        mark = "thousands" if not single else "decimal" if digits.startswith("0") else "either"
    elif _DECIMAL.fullmatch(digits):
        mark = "decimal"
    elif number(digits) is None:
        return None
    return Amount((found[2] or "") + (found[5] or ""), found[1] + found[3] + digits, mark)


def value_of(text: str, unit: str, *, commas: bool) -> float | None:
    """Return the number that a text with a unit stands for, or None; `commas` may separate thousands."""
    found = amount(text)
    if found is None or found.unit != unit or found.mark == "decimal" or (found.mark != "none" and not commas):
        return None
    return number(found.digits.replace(",", ""))

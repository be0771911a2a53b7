"""Detect missing values, numbers, units, dates and identifiers in a column of strings."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import parse_number

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""Texts (in lower case) that denote a missing value."""
MOST_COUNTED = 1000
"""Maximum number of different values of a column that are counted."""
FEW_VALUES = 20
"""Number of different values that a text column may always have, even with few rows."""
DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d))"
    r"([ T]\d{1,2}:\d\d(:\d\d(\.\d+)?)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?"
)
IDENTIFIER = re.compile(
    r"(?i:(.*[^a-z0-9])?(id|uuid|guid|key|index|row|rowid))|.*[a-z0-9](ID|Id|UUID|Guid|Key)"
    r"|(?i:(user|customer|client|patient|passenger|person|employee|student|subject|account|order|transaction|session"
    r"|product|item|record|sample|case|loan)id)"
)
"""Names of identifier columns: the last word is ``id`` or similar, but ``humid`` does not match."""
MOST_FORMS = 50
"""Maximum number of different units of a column that are counted."""
_BYTE = r"\\x[89a-f][0-9a-f]"  # the escape sequence by which the reader replaces an invalid UTF-8 byte
_BEFORE = rf"(?:[A-Z]{{0,3}}(?:[$€£¥₹₩₽₺₪₫₴₦฿¢]|{_BYTE})|[A-Z]{{3}}(?=\s))"
_WORD = rf"(?:{_BYTE}|[^\d\s.,:;+()#\\-]){{1,10}}"
_AFTER = rf"(?![/_]){_WORD}[23]?(?: {_WORD})?"
_DIGITS = r"(?:[0-9]+(?:[.,'\u2019\s][0-9]+)*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_AMOUNT = re.compile(rf"([+-]?)({_BEFORE})?\s?([+-]?)({_DIGITS})\s?({_AFTER})?")
_SPACED = re.compile(r"[0-9]{1,3}(?:(['\u2019\s])[0-9]{3})(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_DECIMAL = re.compile(r"[0-9][0-9.]*,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3}){2,}")
COMMA = ("thousands", "decimal", "either")
"""Possible meanings of a comma in a number; ``either`` is a single comma before three digits, as in 4,799."""

Form = tuple[str, bool]
"""The unit of a number, and whether the number contains a comma."""


class Amount(NamedTuple):
    """A number such as "5,000 kg", split into its unit and its digits."""

    unit: str
    digits: str
    """Sign and digits without blanks."""
    mark: str
    """One of `COMMA`; without a comma ``point``, ``hundreds`` (100 to 999), ``large`` (at least 1000) or ``small``."""


def parse_amount(text: str) -> Amount | None:
    """Split a string such as "5,000 kg" into unit and digits; return None if it is not a number."""
    value = parse_number(text)
    if value is not None:
        return None if math.isnan(value) else Amount("", text, _mark(text, value))
    match = _AMOUNT.fullmatch(text)
    if not match or (match[1] and match[3]):
        return None
    digits = re.sub(r"['\u2019\s]", "", match[4]) if _SPACED.fullmatch(match[4]) else match[4]
    value = parse_number(digits)
    if _THOUSANDS.fullmatch(digits):
        single = digits.count(",") == 1 and "." not in digits
        mark = "thousands" if not single else "decimal" if digits.startswith("0") else "either"
    elif _DECIMAL.fullmatch(digits):
        mark = "decimal"
    elif value is None:
        return None
    else:
        mark = _mark(digits, value)
    return Amount((match[2] or "") + (match[5] or ""), match[1] + match[3] + digits, mark)


def _mark(digits: str, value: float) -> str:
    size = abs(value)
    return "point" if "." in digits else "large" if size >= 1000 else "hundreds" if size >= 100 else "small"


def amount_value(text: str, unit: str, *, commas: bool) -> float | None:
    """Convert a number with the given unit, such as "5 kg", to a float.

    Return None for any other string.  If `commas` is true, commas may separate thousands.
    """
    parts = parse_amount(text)
    if parts is None or parts.unit != unit or parts.mark == "decimal" or (parts.mark in COMMA and not commas):
        return None
    return parse_number(parts.digits.replace(",", ""))


@dataclass
class ColumnProfile:
    """Statistics of the values in one column of a table, collected over all rows."""

    n: int = 0
    n_missing: int = 0
    counts: Counter[str] | None = field(default_factory=Counter)
    """Number of rows with each value that is not missing; None if there are more than MOST_COUNTED different values."""
    dates: bool = True
    """True if all values are dates."""
    forms: Counter[Form | None] = field(default_factory=Counter)
    """Number of values of each form; the key None counts the values that are not numbers."""
    first: dict[Form | None, tuple[int, str]] = field(default_factory=dict)
    """Line and text of the first value of each form."""
    marks: set[str] = field(default_factory=set)
    """Marks of the numbers (see `Amount`)."""
    whole: bool = True
    """True if all values are integers."""
    stepped: bool = True
    """True if each number equals the number in the previous row plus 1."""
    last: float = math.nan
    """Number in the previous row."""

    def add(self, lines: Sequence[int], texts: Sequence[str]) -> None:
        """Update the statistics with the values and line numbers of a batch of rows."""
        numbers = parse_numbers(texts)
        rows = list(zip(lines, texts, strict=True))
        if numbers is None:
            rows = [(line, text) for line, text in rows if not is_missing(text)]
            numbers = parse_numbers([text for _, text in rows])
        self.n += len(texts)
        self.n_missing += len(texts) - len(rows)
        if self.counts is not None:
            self.counts.update(text for _, text in rows)
            self.counts = self.counts if len(self.counts) <= MOST_COUNTED else None
        self.dates = self.dates and all(DATE.fullmatch(text) for _, text in rows)
        if numbers is None:
            self.whole = False
            for line, text in rows:
                self._add_text(line, text)
        elif rows:
            self._add_numbers(numbers, rows[0])

    def set_numbers(self, lines: Sequence[int], values: NDArray[np.float64]) -> None:
        """Set the statistics to those of an array of numbers, in which NaN denotes a missing value."""
        present = np.flatnonzero(~np.isnan(values))
        numbers = values[present]
        self.n, self.n_missing, self.dates = len(values), len(values) - len(present), not len(present)
        different, counts = np.unique(numbers, return_counts=True)
        if len(different) > MOST_COUNTED:
            self.counts = None
        else:
            self.counts = Counter(dict(zip(map(text_of, different), counts.tolist(), strict=True)))
        if len(present):
            self._add_numbers(numbers, (lines[present[0]], text_of(numbers[0])))

    def _add_text(self, line: int, text: str) -> None:
        parts = parse_amount(text)
        form = (parts.unit, parts.mark in COMMA) if parts else None
        if form not in self.forms and len(self.forms) >= MOST_FORMS:
            form = None
        self.forms[form] += 1
        self.first.setdefault(form, (line, text))
        self.marks |= {parts.mark} if parts else set()

    def _add_numbers(self, numbers: NDArray[np.float64], first: tuple[int, str]) -> None:
        self.forms["", False] += len(numbers)
        self.first.setdefault(("", False), first)
        sizes = np.abs(numbers)
        self.marks |= {"large"} if (sizes >= 1000).any() else {"hundreds"} if (sizes >= 100).any() else set()
        self.whole = self.whole and bool((numbers == np.round(numbers)).all())
        with np.errstate(invalid="ignore"):  # of two infinite values
            steps = np.diff(numbers, prepend=numbers[0] - 1 if math.isnan(self.last) else self.last)
        self.stepped, self.last = self.stepped and bool((steps == 1).all()), float(numbers[-1])

    def reason_to_leave_out(self, name: str) -> str | None:
        """Return a reason to leave out the column, such as "row numbers", or None to keep it."""
        if self.whole and self.n >= FEW_VALUES and self.stepped and not self.n_missing:
            return "row numbers"
        if not IDENTIFIER.fullmatch(name) and name:
            return None
        if self.whole and self.n >= FEW_VALUES and (self.counts is None or len(self.counts) > self.n_present / 2):
            return "row numbers"
        different = self.counts is not None and len(self.counts) == self.n_present
        return "identifiers, all different" if different and (self.whole or not self.forms["", False]) else None

    @property
    def n_present(self) -> int:
        """Number of values in the column that are not missing."""
        return self.n - self.n_missing

    @property
    def commas(self) -> str:
        """Meaning of commas in the numbers: "none", "thousands", "decimal" or "either" (unclear)."""
        if "decimal" in self.marks or not self.marks & {"thousands", "either"}:
            return "decimal" if "decimal" in self.marks else "none"
        thousands = self.marks & {"thousands", "point"} or ("hundreds" in self.marks and "large" not in self.marks)
        return "thousands" if thousands else "either"

    @property
    def units(self) -> list[str]:
        """Units of the numbers in the column, the most frequent first; "" means no unit."""
        counts: Counter[str] = Counter()
        for form, count in self.forms.items():
            counts.update({form[0]: count} if form else {})
        return [unit for unit, _ in counts.most_common()]

    def numbers(self, *, commas: bool) -> tuple[int, tuple[int, str] | None]:
        """Count the numbers with the most frequent unit, and find the first value without it.

        That value is returned as (line, string), or None if there is none.  Numbers with a comma are counted only if
        `commas` is true.
        """
        unit = next(iter(self.units), "")
        forms = {(unit, False), (unit, commas)}
        others = [value for form, value in self.first.items() if form not in forms]
        return sum(self.forms[form] for form in forms), min(others, default=None)


def text_of(value: Any) -> str:
    """Convert a value to the string that a CSV file would contain, such as 3 for 3.0."""
    is_float = isinstance(value, float | np.floating)
    return np.format_float_positional(value, trim="-") if is_float else str(value).strip()


def is_missing(text: str) -> bool:
    """Return True if a field of a table denotes a missing value."""
    return len(text) <= 4 and text.lower() in MISSING


def parse_numbers(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Convert strings to floats; return None if any string is not a number or is NaN."""
    try:
        numbers = np.array(texts, dtype=np.float64)
    except ValueError:
        return None
    joined = "".join(texts)
    return numbers if joined.isascii() and "_" not in joined and not np.isnan(numbers).any() else None

"""Detect missing values, numbers, units, dates and identifiers in a column of strings."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import parse_number

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "<na>", "#n/a"})
"""Texts (in lower case) that denote a missing value."""
BOOLEANS = {"true": "True", "false": "False"}
"""Spelling of truth values, which are compared in lower case."""
NUMBERS_OF_BOOLEANS = {"1": "True", "0": "False", "1.0": "True", "0.0": "False"}
"""Further spellings in a column of truth values."""
MOST_COUNTED = 1000
"""Maximum number of different values of a column that are counted."""
MOST_EXACT = 2**53
"""Largest number up to which float64 represents all integers."""
FEW_VALUES = 20
"""Number of different values that a text column may always have, even with few rows."""
DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d))"
    r"([ T]\d{1,2}:\d\d(:\d\d(\.\d+)?)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?"
)
IDENTIFIER = re.compile(
    r"(?i:(.*[^a-z0-9])?(id|uuid|guid|key))|.*[a-z0-9](ID|Id|UUID|Guid|Key)"
    r"|(?i:(user|customer|client|patient|passenger|person|employee|student|subject|account|order|transaction|session"
    r"|product|item|record|sample|case|loan|row)id)"
    r"|(?i:|index|level_0|row|row.?num(ber)?|unnamed: \d+)"
)
"""Names of identifier columns: the last word is ``id`` or similar, but ``humid`` does not match.

Names such as ``index`` must match as a whole, because a ``heat_index`` is a measurement.
"""
MOST_FORMS = 50
"""Maximum number of different units of a column that are counted."""
_BEFORE = r"(?:[A-Z]{0,3}[$€£¥₹₩₽₺₪₫₴₦฿¢]|[A-Z]{3}(?=\s))"
_WORD = r"[^\d\s.,:;+()#\\-]{1,10}"
_AFTER = rf"(?![/_]){_WORD}[23]?(?: {_WORD})?"
_DIGITS = r"(?:[0-9]+(?:[.,'\u2019\s][0-9]+)*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_AMOUNT = re.compile(rf"([+-]?)({_BEFORE})?\s?([+-]?)({_DIGITS})\s?({_AFTER})?")
_SPACED = re.compile(r"[0-9]{1,3}(?:(['\u2019\s])[0-9]{3})(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_DECIMAL = re.compile(r"[0-9][0-9.]*,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3}){2,}")
_GROUPS = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
_SMALL = re.compile(r"[+-]?[0-9]{1,3}")
CATEGORY, STRING, DATES = ("category", "string", "dates")
"""Types of columns that say what the values are."""
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
    groups: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Line and text of the first number of each kind that `_grouping` distinguishes."""
    whole: bool = True
    """True if all values are integers."""
    stepped: bool = True
    """True if each number equals the number in the previous row plus 1."""
    last: float = math.nan
    """Number in the previous row."""
    declared: str = ""
    """CATEGORY or STRING if the type of the column says what its values are; "" if this must be guessed."""
    distinct: list[NDArray[Any]] | None = field(default_factory=list)
    """Batches of whole numbers; None if there are others, or if a number occurs twice in a batch."""

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
            if "other" not in self.groups:
                for line, text in rows:
                    self.groups.setdefault(_grouping(text), (line, text))
            exact = np.abs(numbers).max() <= MOST_EXACT
            self._add_numbers(numbers, rows[0], numbers if exact else np.array([text for _, text in rows]))

    def set_numbers(self, lines: Sequence[int], values: NDArray[Any]) -> None:
        """Set the statistics to those of an array of integers or floats, in which NaN is missing."""
        present = np.flatnonzero(~np.isnan(values))
        numbers = values[present]
        self.n, self.n_missing, self.dates = len(values), len(values) - len(present), not len(present)
        different, counts = np.unique(numbers, return_counts=True)
        if len(different) > MOST_COUNTED:
            self.counts = None
        else:
            self.counts = Counter(dict(zip(map(text_of, different), counts.tolist(), strict=True)))
        if len(present):
            self._add_numbers(numbers, (lines[present[0]], text_of(numbers[0])), numbers)

    def _add_text(self, line: int, text: str) -> None:
        parts = parse_amount(text)
        form = (parts.unit, parts.mark in COMMA) if parts else None
        if form not in self.forms and len(self.forms) >= MOST_FORMS:
            form = None
        self.forms[form] += 1
        self.first.setdefault(form, (line, text))
        if parts:
            self.marks.add(parts.mark)
            self.groups.setdefault(_grouping(parts.digits), (line, text))

    def _add_numbers(self, numbers: NDArray[Any], first: tuple[int, str], exact: NDArray[Any]) -> None:
        """Update the statistics with numbers.

        `exact` holds the numbers, or strings if float64 does not resolve them.
        """
        self.forms["", False] += len(numbers)
        self.first.setdefault(("", False), first)
        sizes = np.abs(numbers)
        self.marks |= {"large"} if (sizes >= 1000).any() else {"hundreds"} if (sizes >= 100).any() else set()
        self.whole = self.whole and bool((numbers == np.round(numbers)).all())
        if self.distinct is not None:
            self.distinct.append(exact)
            self.distinct = self.distinct if self.whole and _all_different(exact) else None
        with np.errstate(invalid="ignore", over="ignore"):  # of two infinite values, or of unsigned integers
            steps = np.diff(numbers, prepend=numbers[:1] - 1 if math.isnan(self.last) else [self.last])
        self.stepped, self.last = self.stepped and bool((steps == 1).all()), float(numbers[-1])

    def reason_to_leave_out(self, name: str) -> str | None:
        """Return a reason to leave out the column, such as "row numbers", or None to keep it.

        The values must be consecutive whole numbers, or whole numbers or texts that are all different under a name of
        identifiers (or none).
        """
        if self.whole and self.n >= FEW_VALUES and self.stepped and not self.n_missing:
            return "row numbers"
        kept = self.forms["", False] and not self.whole
        if kept or not IDENTIFIER.fullmatch(name) or not self.all_different:
            return None
        return "row numbers" if self.whole and self.n >= FEW_VALUES else "identifiers, all different"

    @property
    def merged_counts(self) -> Counter[str] | None:
        """Counts of the values, in which the spellings of a truth value are one value."""
        if self.counts is None:
            return None
        merged, truth = Counter[str](), truth_values(self.counts)
        for text, count in self.counts.items():
            merged[truth.get(text.lower(), text)] += count
        return merged

    @property
    def all_different(self) -> bool:
        """True if no value occurs twice.

        False for more than MOST_COUNTED values that are not whole numbers.
        """
        if self.counts is not None:
            return len(self.counts) == self.n_present
        return self.whole and bool(self.distinct) and _all_different(np.concatenate(self.distinct or []))

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
    def point_of_thousands(self) -> tuple[int, str] | None:
        """Line and text of the first number such as 1.234 that may be 1234, or None.

        All numbers are like it or have at most three digits and no point, and one has exactly three, such as 987.
        """
        grouped = {"point", "three"} <= self.groups.keys() and "other" not in self.groups
        return self.groups["point"] if grouped else None

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


def _grouping(digits: str) -> str:
    """Return "point" (such as 1.234), "three" (987), "few" (98) or "other"."""
    if _SMALL.fullmatch(digits):
        return "three" if len(digits.lstrip("+-")) == 3 else "few"
    return "point" if _GROUPS.fullmatch(digits) else "other"


def truth_values(values: Collection[str]) -> Mapping[str, str]:
    """Return truth values by spelling; 1 and 0 are truth values if all `values` are."""
    texts, every = {value.lower() for value in values}, BOOLEANS | NUMBERS_OF_BOOLEANS
    return every if texts & BOOLEANS.keys() and texts <= every.keys() else BOOLEANS


def _all_different(values: NDArray[Any]) -> bool:
    return len(np.unique(values)) == len(values)


def text_of(value: Any) -> str:
    """Convert a value to the string that a CSV file would contain, such as 3 for 3.0."""
    value = float(value) if isinstance(value, Fraction) else value
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

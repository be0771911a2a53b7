"""Collect statistics of a column of strings, by which its kind is recognized."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.amounts import COMMA, is_missing, parse_amount, parse_numbers, text_of
from klr_bench.datasets.class_labels import LARGEST, parse_number
from klr_bench.datasets.dates import date_form

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
_ENTITY = (
    r"(user|customer|client|patient|passenger|person|employee|student|participant|subject|account|order|transaction"
    r"|session|product|item|record|sample|case|loan|member|kunden|patienten)"
)
IDENTIFIER = re.compile(
    r"(?i:(.*[^a-z0-9])?(id|ids|uuid|guid|key))|.*[a-z0-9](ID|Id|UUID|Guid|Key)"
    rf"|(?i:{_ENTITY}[ _.-]?(id|no|nr|num|number|code|nummer)\.?|customer|client|patient|participant|user|.*nummer)"
)
"""Names of identifier columns: the last word is ``id`` or similar, but ``humid`` does not match."""
ROW_NUMBER = re.compile(r"(?i:|index|level_0|row|row.?(id|no|nr|num|number)|unnamed: \d+(\.\d+)*)")
"""Names of columns with row numbers, which match as a whole, because a ``heat_index`` is a measurement."""
MOST_FORMS = 50
"""Maximum number of different units of a column that are counted."""
_GROUPS = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
_SMALL = re.compile(r"[+-]?[0-9]{1,3}")
CATEGORY, STRING, DATES = ("category", "string", "dates")
"""Types of columns that say what the values are."""
Form = tuple[str, bool]
"""The unit of a number, and whether the number contains a comma."""


@dataclass
class ColumnProfile:
    """Statistics of the values in one column of a table, collected over all rows."""

    n: int = 0
    n_missing: int = 0
    counts: Counter[str] | None = field(default_factory=Counter)
    """Number of rows with each value that is not missing; None if there are more than MOST_COUNTED different values."""
    missing: Counter[str] = field(default_factory=Counter)
    """Number of rows with each spelling of a missing value."""
    n_dates: int = 0
    """Number of values that are dates or clock times."""
    date_forms: set[str] = field(default_factory=set)
    """Forms of the dates (see `klr_bench.datasets.dates.date_form`)."""
    has_clock: bool = False
    """True if a date has a clock time other than 0:00."""
    forms: Counter[Form | None] = field(default_factory=Counter)
    """Number of values of each form; the key None counts the values that are not numbers."""
    too_large: Counter[Form | None] = field(default_factory=Counter)
    """Number of values of each form whose absolute value is above LARGEST."""
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
    """CATEGORY, STRING or DATES if the type of the column says what its values are; "" if this must be guessed."""
    levels: tuple[str, ...] = ()
    """Values of an ordered category, in their order."""
    decimal: str = "."
    """Decimal mark of the numbers: "." or ","."""
    distinct: list[NDArray[Any]] | None = field(default_factory=list)
    """Batches of whole numbers; None if there are others, or if a number occurs twice in a batch."""

    def add(self, lines: Sequence[int], texts: Sequence[str]) -> None:
        """Update the statistics with the values and line numbers of a batch of rows."""
        numbers = parse_numbers(texts, self.decimal)
        rows = list(zip(lines, texts, strict=True))
        if numbers is None:
            marks = {""} if self.declared == CATEGORY else {text for text in {*texts} if is_missing(text)}
            self.missing.update(text for text in texts if text in marks)
            rows = [(line, text) for line, text in rows if text not in marks]
            numbers = parse_numbers([text for _, text in rows], self.decimal)
        self.n += len(texts)
        self.n_missing += len(texts) - len(rows)
        if self.counts is not None:
            self.counts.update(text for _, text in rows)
            self.counts = self.counts if len(self.counts) <= MOST_COUNTED else None
        if numbers is None:
            self.whole = False
            self._add_dates([text for _, text in rows])
            for line, text in rows:
                self._add_text(line, text)
        elif rows:
            self.marks |= {"point"} if any("." in text for _, text in rows) else set()
            if "other" not in self.groups and self.decimal == ".":
                for line, text in rows:
                    self.groups.setdefault(_grouping(text), (line, text))
            exact = np.abs(numbers).max() <= MOST_EXACT
            self._add_numbers(numbers, rows[0], numbers if exact else np.array([text for _, text in rows]))

    def set_numbers(self, lines: Sequence[int], values: NDArray[Any]) -> None:
        """Set the statistics to those of an array of integers or floats, in which NaN is missing."""
        present = np.flatnonzero(~np.isnan(values))
        numbers = values[present]
        self.n, self.n_missing = len(values), len(values) - len(present)
        different, counts = np.unique(numbers, return_counts=True)
        if len(different) > MOST_COUNTED:
            self.counts = None
        else:
            self.counts = Counter(dict(zip(map(text_of, different), counts.tolist(), strict=True)))
        if len(present):
            self._add_numbers(numbers, (lines[present[0]], text_of(numbers[0])), numbers)

    def _add_dates(self, texts: Sequence[str]) -> None:
        if self.n_dates or self.n <= len(texts) + self.n_missing:  # a first batch without dates tells enough
            forms = {text: date_form(text) for text in {*texts}}
            found = [form for text in texts if (form := forms[text])]
            self.n_dates += len(found)
            self.date_forms |= {form for form, _ in found}
            self.has_clock = self.has_clock or any(has_clock for _, has_clock in found)

    def _add_text(self, line: int, text: str) -> None:
        parts = parse_amount(text, self.decimal)
        form = (parts.unit, parts.mark in COMMA) if parts else None
        if form not in self.forms and len(self.forms) >= MOST_FORMS:
            form = None
        self.forms[form] += 1
        self.first.setdefault(form, (line, text))
        if parts:
            self.too_large[form] += abs(parse_number(parts.digits.replace(",", "")) or 0.0) > LARGEST
            self.marks.add(parts.mark)
            if self.decimal == ".":
                self.groups.setdefault(_grouping(parts.digits), (line, text))

    def _add_numbers(self, numbers: NDArray[Any], first: tuple[int, str], exact: NDArray[Any]) -> None:
        """Update the statistics with numbers.

        `exact` holds the numbers, or strings if float64 does not resolve them.
        """
        self.forms["", False] += len(numbers)
        self.first.setdefault(("", False), first)
        sizes = np.abs(numbers)
        self.too_large["", False] += int((sizes > LARGEST).sum())
        self.marks |= {"large"} if (sizes >= 1000).any() else {"hundreds"} if (sizes >= 100).any() else set()
        self.whole = self.whole and bool((numbers == np.round(numbers)).all())
        if self.distinct is not None:
            self.distinct.append(exact)
            self.distinct = self.distinct if self.whole and _all_different(exact) else None
        with np.errstate(invalid="ignore", over="ignore"):  # of two infinite values, or of unsigned integers
            steps = np.diff(numbers, prepend=numbers[:1] - 1 if math.isnan(self.last) else [self.last])
        self.stepped, self.last = self.stepped and bool((steps == 1).all()), float(numbers[-1])

    def reason_to_leave_out(self, name: str, groups: str) -> str | None:
        """Return a reason to leave out the column, such as "row numbers", or None to keep it.

        The values must be consecutive whole numbers, or whole numbers or texts under a name of identifiers (or none).
        Identifiers that repeat are those of more than FEW_VALUES groups, and `groups` says how to declare them.
        """
        is_text = self.whole or 2 * self.forms["", False] < self.n_present
        if is_text and IDENTIFIER.fullmatch(name):
            if self.all_different:
                return "identifiers, all different"
            if self.counts is None and not self.whole:
                return f"identifiers; if they repeat, {groups}"
            if self.counts is None or len(self.counts) > FEW_VALUES:
                return f"identifiers that repeat: {groups}?"
        if self.whole and self.n >= FEW_VALUES and self.stepped and not self.n_missing:
            return "row numbers"
        if is_text and ROW_NUMBER.fullmatch(name) and self.all_different:
            return "row numbers" if self.whole else "identifiers, all different"
        return None

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
        if self.decimal == ",":  # commas and points are exchanged
            return "thousands"
        thousands = self.marks & {"thousands", "point"} or ("hundreds" in self.marks and "large" not in self.marks)
        return "thousands" if thousands else "either"

    @property
    def first_with_comma(self) -> tuple[int, str] | None:
        """Line and text of the first number with a comma, or None."""
        return min((value for form, value in self.first.items() if form and form[1]), default=None)

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
        `commas` is true, and numbers above LARGEST are not.
        """
        unit = next(iter(self.units), "")
        forms = {(unit, False), (unit, commas)}
        others = [value for form, value in self.first.items() if form not in forms]
        return sum(self.forms[form] - self.too_large[form] for form in forms), min(others, default=None)


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

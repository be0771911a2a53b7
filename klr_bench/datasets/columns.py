"""The values of one column of a user's table: which are missing, numbers with a unit, dates; a profile of them all."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import number

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""What stands for a missing value, in small letters."""
MOST_COUNTED = 1000
"""Different values of a column that are counted."""
SELDOM = 20
"""Different values that a text may have however few rows there are."""
LARGEST_WHOLE = 2**53
DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d))"
    r"([ T]\d{1,2}:\d\d(:\d\d(\.\d+)?)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?"
)
IDENTIFIER = re.compile(
    r"(?i:(.*[^a-z0-9])?(id|uuid|guid|key|index|row|rowid))|.*[a-z0-9](ID|Id|UUID|Guid|Key)"
    r"|(?i:(user|customer|client|patient|passenger|person|employee|student|subject|account|order|transaction|session"
    r"|product|item|record|sample|case|loan)id)"
)
"""Names of columns of identifiers: the last word is ``id`` or the like, but not in ``humid``."""
MOST_FORMS = 50
"""Different units of a column that are counted."""
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


class Form(NamedTuple):
    """What numbers of a column have in common."""

    unit: str
    comma: bool


PLAIN = Form("", comma=False)


@dataclass
class ColumnProfile:
    """Statistics of a column, collected over all rows."""

    n: int = 0
    n_missing: int = 0
    counts: Counter[str] | None = field(default_factory=Counter)
    """Of the values that are not missing; None where there are more than MOST_COUNTED."""
    dated: bool = False
    """Whether the first of them were dates, where there are more."""
    forms: Counter[Form | None] = field(default_factory=Counter)
    """Number of values of each form; of None those that are not numbers."""
    first: dict[Form | None, tuple[int, str]] = field(default_factory=dict)
    """Line and text of the first value of each form."""
    marks: set[str] = field(default_factory=set)
    """Roles of commas in numbers, and clues of numbers without one: ``point``, ``hundreds``, ``large`` (>= 1000)."""
    whole: bool = True
    """Whether all numbers are whole."""
    low: float = math.inf
    high: float = -math.inf
    total: float = 0.0
    """The sum of whole numbers."""
    stepped: bool = True
    """Whether each number is one more than that of the row before."""
    last: float = math.nan
    """The last number."""

    def add(self, lines: Sequence[int], texts: Sequence[str]) -> None:
        """Add some rows."""
        self.n += len(texts)
        numbers = numbers_of(texts)
        values = texts if numbers is not None else [text for text in texts if not is_missing(text)]
        self.n_missing += len(texts) - len(values)
        if self.counts is not None:
            self.counts.update(values)
            if len(self.counts) > MOST_COUNTED:
                self.dated, self.counts = _are_dates(self.counts), None
        numbers = numbers_of(values) if numbers is None else numbers
        there = ((line, text) for line, text in zip(lines, texts, strict=True) if not is_missing(text))
        if numbers is None:
            self.whole = False
            for line, text in there:
                self._add_text(line, text)
        elif len(numbers):
            self.first.setdefault(PLAIN, next(there))
            self._add_numbers(numbers)

    def _add_text(self, line: int, text: str) -> None:
        found = amount(text)
        form = Form(found.unit, comma=found.mark != "none") if found else None
        if form not in self.forms and len(self.forms) >= MOST_FORMS:
            form = None
        self.forms[form] += 1
        self.first.setdefault(form, (line, text))
        if found and found.mark != "none":
            self.marks.add(found.mark)
        elif found:
            size = abs(number(found.digits) or 0.0)
            self.marks |= {"point"} if "." in found.digits else {"hundreds"} if 100 <= size < 1000 else set()
            self.marks |= {"large"} if size >= 1000 else set()

    def _add_numbers(self, numbers: NDArray[np.float64]) -> None:
        self.forms[PLAIN] += len(numbers)
        self.whole = self.whole and bool((numbers == np.round(numbers)).all())
        if (np.abs(numbers) >= 1000).any():
            self.marks.add("large")
        if self.whole:
            self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
            self.total += float(numbers.sum())
            steps = np.diff(numbers, prepend=numbers[0] - 1 if math.isnan(self.last) else self.last)
            self.stepped, self.last = self.stepped and bool((steps == 1).all()), float(numbers[-1])

    def numbers_rows(self, place: int, name: str) -> bool:
        """Return True if whole numbers number the rows: in order, without gaps in the first column, or by the name.

        Numbers without gaps are those in between, each once, if their sum is that of these; others hardly have it.
        By the name they do if most of them differ.
        """
        if not self.whole or self.n < SELDOM:
            return False
        if IDENTIFIER.fullmatch(name):
            return self.counts is None or len(self.counts) > self.n_there / 2
        exact = not self.n_missing and max(-self.low, self.high) < LARGEST_WHOLE
        gapless = self.high - self.low == self.n - 1 and 2 * self.total == self.n * (self.low + self.high)
        return exact and (self.stepped or (place == 0 and gapless))

    def identifies(self, name: str) -> bool:
        """Return True if the name is that of identifiers, and the values are different texts or whole numbers."""
        different = self.counts is not None and len(self.counts) == self.n_there
        return different and IDENTIFIER.fullmatch(name) is not None and (self.whole or not self.forms[PLAIN])

    @property
    def n_there(self) -> int:
        """Number of values that are not missing."""
        return self.n - self.n_missing

    @property
    def commas(self) -> Literal["none", "thousands", "decimal", "either"]:
        """What commas in numbers are: ``either`` if all stand before three digits, and nothing else tells."""
        if "decimal" in self.marks:
            return "decimal"
        if not self.marks & {"thousands", "either"}:
            return "none"
        told = self.marks & {"thousands", "point"} or ("hundreds" in self.marks and "large" not in self.marks)
        return "thousands" if told else "either"

    @property
    def units(self) -> dict[str, int]:
        """Number of values with each unit, the most frequent first; "" is none."""
        counts: Counter[str] = Counter()
        for form, count in self.forms.items():
            if form:
                counts[form.unit] += count
        return dict(counts.most_common())

    def numbers(self, *, commas: bool) -> tuple[int, tuple[int, str] | None]:
        """Return how many values are numbers with the most frequent unit, and line and text of the first other one.

        Those with a comma are numbers if `commas` separate thousands.
        """
        unit = next(iter(self.units), "")
        taken = {Form(unit, comma=False), Form(unit, comma=commas)}
        others = [self.first[form] for form in self.first if form not in taken]
        return sum(self.forms[form] for form in taken), min(others, default=None)

    def dates(self) -> bool:
        """Say whether the values are dates, the first MOST_COUNTED of them where there are more."""
        return self.dated or _are_dates(self.counts or ())


def is_missing(text: str) -> bool:
    """Say whether a field stands for a missing value."""
    return len(text) <= 4 and text.lower() in MISSING


def numbers_of(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the numbers that all of some texts stand for, as `number` takes them; None where one is none, or NaN."""
    try:
        numbers = np.array(texts, dtype=np.float64)
    except ValueError:
        return None
    joined = "".join(texts)
    return numbers if joined.isascii() and "_" not in joined and not np.isnan(numbers).any() else None


def _are_dates(texts: Collection[str]) -> bool:
    return len(texts) > 0 and all(DATE.fullmatch(text) for text in texts)

"""The fields of a user's table one by one, and what a look at all those of a column tells."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from klr_bench.experiment.data.labels import number

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
DECIMAL_COMMA = re.compile(r"[+-]?\d[\d.]*,\d+")
WITH_UNIT = re.compile(r"([A-Z]{3}|[^\w\s]{1,2})? ?[+-]?\d[\d.,' ]* ?([A-Z]{3}|[^\w\s])?")
"""A number with a currency, a percent sign or separators of thousands."""
IDENTIFIER = re.compile(r"(.*[^a-z0-9])?(id|uuid|guid|index|row|rowid)", re.IGNORECASE)


@dataclass
class Seen:
    """What a first look at all rows tells of a column."""

    n: int = 0
    n_missing: int = 0
    n_numbers: int = 0
    counts: Counter[str] | None = field(default_factory=Counter)
    """Of the values that are not missing; None where there are more than MOST_COUNTED."""
    dated: bool = False
    """Whether the first of them were dates, where there are more."""
    n_commas: int = 0
    """Number of values that are numbers with a decimal comma."""
    odd: tuple[int, str] | None = None
    """The line and the text of the first value that is no number."""
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

    def take(self, lines: Sequence[int], texts: Sequence[str]) -> None:
        """Look at some rows more."""
        self.n += len(texts)
        numbers = numbers_of(texts)
        values = texts if numbers is not None else [text for text in texts if not is_missing(text)]
        self.n_missing += len(texts) - len(values)
        if self.counts is not None:
            self.counts.update(values)
            if len(self.counts) > MOST_COUNTED:
                self.dated, self.counts = _are_dates(self.counts), None
        numbers = numbers_of(values) if numbers is None else numbers
        if numbers is not None:
            self._takenumbers_of(numbers)
            return
        self.whole = False
        self.n_numbers += sum(number(text) is not None for text in values)
        self.n_commas += sum(DECIMAL_COMMA.fullmatch(text) is not None for text in values)
        if self.odd is None:
            self.odd = next((line, text) for line, text in zip(lines, texts, strict=True) if is_odd(text))

    def _takenumbers_of(self, numbers: NDArray[np.float64]) -> None:
        self.n_numbers += len(numbers)
        self.whole = self.whole and bool(
            (numbers == np.round(numbers)).all() and (np.abs(numbers) < LARGEST_WHOLE).all()
        )
        if self.whole and len(numbers):
            self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
            self.total += float(numbers.sum())
            steps = np.diff(numbers, prepend=numbers[0] - 1 if math.isnan(self.last) else self.last)
            self.stepped, self.last = self.stepped and bool((steps == 1).all()), float(numbers[-1])

    def numbers_rows(self, place: int, name: str) -> bool:
        """Say whether whole numbers number the rows: in their order, without gaps in the first column, or by the name.

        Numbers without gaps are those in between, each once, if their sum is that of these; others hardly have it.
        By the name they do if most of them differ.
        """
        if not self.whole or self.n_missing or self.n < SELDOM:
            return False
        if IDENTIFIER.fullmatch(name):
            return self.counts is None or len(self.counts) > self.n / 2
        gapless = self.high - self.low == self.n - 1 and 2 * self.total == self.n * (self.low + self.high)
        return self.stepped or (place == 0 and gapless)

    @property
    def n_there(self) -> int:
        """Number of values that are not missing."""
        return self.n - self.n_missing

    def decimal_commas(self) -> bool:
        """Say whether the values are numbers, and some of them have a decimal comma."""
        return self.n_commas > 0 and self.n_commas + self.n_numbers == self.n_there

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


def is_odd(text: str) -> bool:
    """Say whether a field is neither missing nor a number."""
    value = number(text)
    return (value is None or math.isnan(value)) and not is_missing(text)


def _are_dates(texts: Collection[str]) -> bool:
    return len(texts) > 0 and all(DATE.fullmatch(text) for text in texts)

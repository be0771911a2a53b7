"""What a metric is: its name, unit, direction, how it is compared and printed, and how it is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from klr_bench.errors import fail, nearest

if TYPE_CHECKING:
    from klr_bench.metrics.predictions import Predictions

UNITS = ("percent", "count", "s", "MB", "small", "")
DIRECTIONS = ("higher", "lower", "")
COMPARISONS = ("difference", "ratio", "")
LARGEST = 2**53
"""Of whole numbers: a float64 holds all up to this one."""
ROUNDING = 1e-6
"""How far a number may lie outside of its range: that of a mean in float32."""
DESCRIBED = ("name", "title", "unit", "better", "compared", "usual", "whole")


@dataclass(frozen=True)
class Metric:
    """One number of a fit.

    Parameters
    ----------
    name : the column of records.csv
    title : the heading of its column in a table
    unit : of print: "percent" (records hold fractions), "count", "s" (of a small time, min), "MB", "" for a plain
        number, "small" for one printed as 1.2e-05
    better : "higher", "lower", or "" where neither is
    compared : with a published number by "difference" (and a mark), by "ratio", or "" by the eye
    usual : whether a table shows it without being asked
    whole : whether it is a whole number
    low, high : the smallest and the largest value that there can be; infinite ones where nothing bounds it
    stored : whether it is a column of records.csv; the others are made by a report
    compares : for a number that compares two columns of a table, the metric that it is made of
    of : the function that computes it from `Predictions`, None for a number that is no metric of predictions; it
        returns None where the predictions have not what it needs
    """

    name: str
    title: str
    unit: str = ""
    better: str = ""
    compared: str = "difference"
    usual: bool = False
    whole: bool = False
    low: float = -math.inf
    high: float = math.inf
    stored: bool = True
    compares: str = ""
    of: Callable[[Predictions], float | None] | None = None

    def possible(self, value: float) -> bool:
        """Return True for a possible value of this metric, up to rounding.

        NaN never can, an infinite one where nothing bounds it.  Whole numbers are at most 2^53.
        """
        if self.whole and not (abs(value) <= LARGEST and abs(value - round(value)) <= ROUNDING):
            return False
        return self.low - ROUNDING <= value <= self.high + ROUNDING

    @property
    def range(self) -> str:
        """The possible values in words."""
        kind = "a whole number" if self.whole else "a number"
        if self.low == -math.inf:
            return kind
        return (
            f"{kind} of at least {self.low:g}"
            if self.high == math.inf
            else f"{kind} from {self.low:g} to {self.high:g}"
        )

    def described(self) -> dict[str, Any]:
        """Return all but the function, as plain values: for a manifest, so that a report need not run the file."""
        return {name: getattr(self, name) for name in DESCRIBED}

    @classmethod
    def from_description(cls, content: Any, where: str = "metric") -> Metric:
        """Return the metric that `described` has described, without its function; refuse anything else.

        `where` says in a message which file and key that was.
        """
        if not isinstance(content, Mapping):
            fail(f"{where}: expected keys and values, got {content!r}.")
        for key in content:
            if key not in DESCRIBED:
                fail(f"{where}: unknown key {key!r}.{nearest(str(key), DESCRIBED)}")
        missing = [key for key in ("name", "title") if key not in content]
        if missing:
            fail(f"{where}: expected the key {missing[0]!r}, got {', '.join(content) or 'none'}.")
        return cls(**content).checked(where)

    def checked(self, where: str) -> Metric:
        """Return the metric if all its fields have the types and values that they are to have, else refuse it."""
        for field in fields(self):
            value, kind = getattr(self, field.name), {"str": str, "bool": bool}.get(str(field.type))
            if kind is not None and type(value) is not kind:
                expected = "text" if kind is str else "true or false"
                fail(f"{where}: {field.name}: expected {expected}, got {value!r}.")
        if not self.name.isidentifier():
            fail(f"{where}: name: expected letters, digits and _, got {self.name!r}.")
        if not self.title.strip() or not self.title.isprintable():
            fail(f"{where}: title: expected a line of text, got {self.title!r}.")
        choices = {"unit": UNITS, "better": DIRECTIONS, "compared": COMPARISONS}
        for name, known in choices.items():
            value = getattr(self, name)
            if value not in known:
                fail(f"{where}: {name}: expected one of {', '.join(map(repr, known))}, got {value!r}.")
        return self

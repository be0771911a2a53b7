"""Description of a metric: name, unit, direction, format, and function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from klr_bench.errors import fail, nearest
from klr_bench.parsing import Check, refuse_first

LARGEST = 2**53
"""Largest integer value, up to which float64 represents all integers."""
ROUNDING = 1e-6
"""Tolerance of the range of values, for the rounding error of a float32 mean."""
DESCRIBED = ("name", "title", "unit", "better", "compared", "usual", "whole")


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Metric:
    """Measured value of a fit.

    Parameters
    ----------
    name : the column of records.csv
    title : the heading of its column in a table
    unit : printed unit: "percent" (records hold fractions), "count", "s" (of a small time, min), "MB", "" for a plain
        number, "small" for one printed as 1.2e-05
    better : "higher", "lower", or "" if neither is
    compared : with a published number by "difference" (and a mark), by "ratio", or "" for no comparison
    usual : True if a table shows it by default
    whole : True for a whole number
    low, high : the smallest and the largest possible value, infinite if there is no bound
    stored : True for a column of records.csv; a report computes the other metrics
    compares : for a number that compares two rows of a table, the metric that it is made of
    of : the function that computes it from `Predictions`, or None for a number that is no metric of predictions; it
        returns None if the predictions lack what it needs
    """

    name: Annotated[str, Check("letters, digits and _", str.isidentifier)]
    title: Annotated[str, Check("a line of text", lambda title: bool(title.strip()) and title.isprintable())]
    unit: Literal["percent", "count", "s", "min", "MB", "small", ""] = ""
    better: Literal["higher", "lower", ""] = ""
    compared: Literal["difference", "ratio", ""] = "difference"
    usual: bool = False
    whole: bool = False
    low: float = -math.inf
    high: float = math.inf
    stored: bool = True
    compares: str = ""
    of: Callable[[Any], float | None] | None = None

    def possible(self, value: float) -> bool:
        """Return True if a value is possible for this metric, up to rounding.

        NaN is never possible, infinity only without a bound.  Whole numbers are at most 2^53.
        """
        if self.whole and not (abs(value) <= LARGEST and abs(value - round(value)) <= ROUNDING):
            return False
        return self.low - ROUNDING <= value <= self.high + ROUNDING

    @property
    def range(self) -> str:
        """The range of possible values in words."""
        kind = "a whole number" if self.whole else "a number"
        if self.low == -math.inf:
            return kind
        return (
            f"{kind} of at least {self.low:g}"
            if self.high == math.inf
            else f"{kind} from {self.low:g} to {self.high:g}"
        )

    def described(self) -> dict[str, Any]:
        """Return all attributes except the function, as plain values for a manifest."""
        return {name: getattr(self, name) for name in DESCRIBED}

    @classmethod
    def from_description(cls, content: Any, where: str = "metric") -> Metric:
        """Return the metric described by `described`, without its function.

        Raises KlrBenchError for anything else.

        `where` stands before the keys in messages.
        """
        if not isinstance(content, Mapping):
            fail(f"{where}: expected keys and values, got {content!r}.")
        for key in content:
            if key not in DESCRIBED:
                fail(f"{where}: unknown key {key!r}.{nearest(key, DESCRIBED)}")
        try:
            return cls(**content)
        except ValidationError as error:
            refuse_first(error, dict(content), where, f"{where}.")

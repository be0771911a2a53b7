"""Description of a metric: its name, unit, direction, range and function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from klr_bench.errors import fail, nearest
from klr_bench.parsing import Check, refuse_first

LARGEST = 2**53
"""Largest integer up to which float64 represents all integers exactly."""
ROUNDING = 1e-6
"""Tolerance for values outside their range, due to rounding of float32 means."""
DESCRIPTION = ("name", "title", "unit", "better", "compared", "usual", "whole")


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Metric:
    """Description of a metric of fitted classifiers, such as accuracy or training time.

    Parameters
    ----------
    name : str
        Column in records.csv.
    title : str
        Heading of the column in a table.
    unit : {"percent", "count", "s", "min", "MB", "small", ""}
        Printed unit: "percent" for values stored as fractions, "min" instead of "s" if the paper prints minutes,
        "small" for values printed as 1.2e-05, "" for plain numbers.
    better : {"higher", "lower", ""}
        Which values are better, or "" if neither.
    compared : {"difference", "ratio", ""}
        How to compare with a published value: by difference, with a mark, by ratio, or not at all.
    usual : bool
        Whether tables show the metric by default.
    whole : bool
        Whether values are integers.
    low, high : float
        Smallest and largest possible value, infinite if unbounded.
    stored : bool
        Whether records.csv has the metric; reports compute the others.
    compares : str
        For a metric that compares two rows of a table, the metric that is compared.
    of : callable or None
        Function that computes the metric from `Predictions`, and returns None if it cannot be computed; None for
        metrics that do not depend on predictions.
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

    @property
    def of_machine(self) -> bool:
        """True if the metric depends on the machine: a time, the memory, or the load."""
        return self.unit in ("s", "min", "MB") or self.name == "load"

    def possible(self, value: float) -> bool:
        """Return True if the metric can have this value, with a tolerance for rounding errors.

        NaN is never in the range, and infinity only if there is no bound.  Integers are at most 2^53.
        """
        if self.whole and not (abs(value) <= LARGEST and abs(value - round(value)) <= ROUNDING):
            return False
        return self.low - ROUNDING <= value <= self.high + ROUNDING

    @property
    def range(self) -> str:
        """Phrase for the possible values, such as "a number from 0 to 1"."""
        kind = "a whole number" if self.whole else "a number"
        if self.low == -math.inf:
            return kind
        end = f"of at least {self.low:g}" if self.high == math.inf else f"from {self.low:g} to {self.high:g}"
        return f"{kind} {end}"

    def description(self) -> dict[str, Any]:
        """Return the attributes of the metric that are stored for reports, as a dict."""
        return {name: getattr(self, name) for name in DESCRIPTION}

    @classmethod
    def from_description(cls, content: Any, where: str = "metric") -> Metric:
        """Create a metric from a dict that the method `description` returned.

        `where` is the prefix of the keys in messages.  Raises KlrBenchError if the dict is invalid.
        """
        if not isinstance(content, Mapping):
            fail(f"{where}: expected keys and values, got {content!r}.")
        for key in content:
            if key not in DESCRIPTION:
                fail(f"{where}: unknown key {key!r}.{nearest(key, DESCRIPTION)}")
        try:
            return cls(**content)
        except ValidationError as error:
            refuse_first(error, dict(content), where, f"{where}.")

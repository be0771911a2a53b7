"""Variants of an algorithm: the values of the parameters that an experiment sweeps over."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import Any

from klr_bench.yaml_file import LARGEST_WHOLE

VariantOrder = tuple[tuple[str, bool, float, str], ...]


class Variant(Mapping[str, Any]):
    """Immutable mapping of swept parameters to their values, such as {"G": 1}.

    It is hashable, and empty without a sweep.  Equality does not depend on the order of the parameters.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        values = other._values if isinstance(other, Variant) else other
        return self._values == values and _truths(self._values) == _truths(values)  # True == 1

    def __hash__(self) -> int:
        return hash(frozenset(self._values))  # values may be lists

    def __repr__(self) -> str:
        return f"Variant({self._values})"

    def without(self, *names: str) -> Variant:
        """Return a copy of the variant without the parameters `names`."""
        return Variant({name: value for name, value in self.items() if name not in names})

    @cached_property
    def order(self) -> VariantOrder:
        """Sort key that places numbers, sorted by value, before strings: G=2, G=10, G=cv."""
        numbers = {name: to_number(value) for name, value in self.items()}
        return tuple((name, numbers[name] is None, numbers[name] or 0.0, str(value)) for name, value in self.items())


def _truths(values: Mapping[str, Any]) -> dict[str, list[bool]]:
    """Return for each value, or each item of a list, whether it is a Boolean."""
    return {name: [type(item) is bool for item in (v if type(v) is list else [v])] for name, v in values.items()}


@cache
def read_variant(text: str) -> Variant:
    """Parse a value of the column `variant` of records.csv; raise ValueError if it is not valid."""
    return Variant(json.loads(text))


def is_variant(values: Any) -> bool:
    """Return True if `values` maps printable names to numbers, strings, None or lists of these."""
    return isinstance(values, Mapping) and all(
        isinstance(name, str) and name.isprintable() and all(map(_is_plain, value if type(value) is list else [value]))
        for name, value in values.items()
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return value.isprintable()
    if isinstance(value, int):
        return abs(value) <= LARGEST_WHOLE
    return value is None or (isinstance(value, float) and not math.isnan(value))


def method_name(dataset: str, algorithm: str, variant: str) -> str:
    """Return the unique name of a method on a data set; `variant` is JSON."""
    return f"{algorithm} on {dataset}" if variant == "{}" else f"{algorithm} {variant} on {dataset}"


def method_of(name: str) -> tuple[str, str, Variant] | str:
    """Return the data set, algorithm and variant of a `method_name`.

    Any other string is returned as it is.
    """
    algorithm, _, rest = name.partition(" ")
    try:
        end = json.JSONDecoder().raw_decode(rest)[1] if rest.startswith("{") else 0
        variant = read_variant(rest[:end] or "{}")
    except (ValueError, TypeError, RecursionError):
        return name
    before, on, dataset = rest[end:].partition("on ")  # a data set may have "on" in its name
    return (dataset, algorithm, variant) if on and not before.strip() else name


def variant_text(values: Mapping[str, Any]) -> str:
    """Format a variant for printing, such as "G=1; loss=logit"."""
    return "; ".join(f"{name}={value_text(value)}" for name, value in values.items())


def value_text(value: Any) -> str:
    """Format a parameter value for printing; numbers are formatted with %g."""
    return str(value) if isinstance(value, bool) or to_number(value) is None else f"{value:g}"


def to_number(value: Any) -> float | None:
    """Return `value` as a float if it is a finite number other than a bool, or None."""
    if isinstance(value, bool | str):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None

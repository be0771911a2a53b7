"""The variants of an algorithm in an experiment: the values of the parameters that its sweep varies."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

VariantOrder = tuple[tuple[str, bool, float, str], ...]


class Variant(Mapping[str, Any]):
    """The swept parameters of one column of a table and their values, such as {"G": 1}; {} where nothing is swept.

    Immutable, and hashable, so that it may be part of a key.  Two are equal if they have equal values, in any order.
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
        return self._values == (other._values if isinstance(other, Variant) else other)

    def __hash__(self) -> int:
        return hash(frozenset(self._values))  # values may be lists

    def __repr__(self) -> str:
        return f"Variant({self._values})"

    def without(self, *names: str) -> Variant:
        """Return the other parameters."""
        return Variant({name: value for name, value in self.items() if name not in names})

    def order(self) -> VariantOrder:
        """Return a sort key for the natural order: G=2 before G=10 before G=cv, numbers by value."""
        return self._order

    @cached_property
    def _order(self) -> VariantOrder:
        return tuple(
            (name, number is None, number or 0.0, str(value))
            for name, value in self.items()
            for number in [as_number(value)]
        )

    @cached_property
    def json(self) -> str:
        """The variant as JSON."""
        return json.dumps(self._values)


def is_variant(values: Any) -> bool:
    """Return True for values of a variant: numbers, text, null and lists of these, by printable names."""
    return isinstance(values, Mapping) and all(
        isinstance(name, str) and name.isprintable() and _is_plain(value) for name, value in values.items()
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(not isinstance(entry, list) and _is_plain(entry) for entry in value)
    if isinstance(value, str):
        return value.isprintable()
    return value is None or isinstance(value, bool) or (isinstance(value, int | float) and abs(value) <= math.inf)


def variant_text(values: Mapping[str, Any]) -> str:
    """Return a variant in print, such as "G=1; loss=logit"; numbers as %g."""
    return "; ".join(f"{name}={value_text(value)}" for name, value in values.items())


def value_text(value: Any) -> str:
    """Return a value in print."""
    if isinstance(value, bool | str) or as_number(value) is None:
        return str(value)
    return f"{value:g}"


def as_number(value: Any) -> float | None:
    """Return the value if it is a finite number, else None; true and false are no numbers."""
    if isinstance(value, bool | str):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None

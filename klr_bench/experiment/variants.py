"""The variants of an algorithm in an experiment, as text: "", "G=1", "G=1; loss=logit", "lam=cv"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

VariantOrder = tuple[tuple[str, bool, float, str], ...]


def variant_text(values: Mapping[str, Any]) -> str:
    """Return the text of a variant; numbers as %g."""
    return "; ".join(f"{name}={_value_text(value)}" for name, value in values.items())


def parse_variant(text: str) -> dict[str, str]:
    """Return the values of a variant by name, as written.  Pairs may be joined by ``;`` or ``; ``."""
    pairs = (pair.strip().partition("=") for pair in text.split(";") if pair.strip())
    return {name: value for name, _, value in pairs}


def variant_order(text: str) -> VariantOrder:
    """Return a sort key for the natural order: G=2 before G=10 before G=cv, numbers by value."""
    return tuple(
        (name, number is None, number or 0.0, value)
        for name, value in parse_variant(text).items()
        for number in [as_number(value)]
    )


def same_value(a: Any, b: Any) -> bool:
    """Say whether two values, or their texts, are equal: numbers by value (1 == "1.0" == "1e0")."""
    numbers = as_number(a), as_number(b)
    if None in numbers:
        return str(a).strip() == str(b).strip()
    return numbers[0] == numbers[1]


def as_number(value: Any) -> float | None:
    """Return the finite number that a value or its text stands for, None where it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _value_text(value: Any) -> str:
    if isinstance(value, bool) or as_number(value) is None or isinstance(value, str):
        return str(value)
    return f"{value:g}"

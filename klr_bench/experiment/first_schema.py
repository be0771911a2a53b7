"""What files of schema version 1 mean in version 2.

In version 1 a variant was text ("G=1; loss=logit"), and in a cell the numbers of a fit stood beside what identifies it.
In version 2 a variant is a mapping ({"G": 1, "loss": "logit"}; JSON in records.csv), and a cell holds its numbers under
`metrics`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

WORDS = {"True": True, "False": False, "None": None}


def parse_variant(text: str) -> dict[str, Any]:
    """Return the values of a variant by name; what looks like a number or a truth value is one."""
    pairs = (pair.strip().partition("=") for pair in text.split(";") if pair.strip())
    return {name: _value(value) for name, _, value in pairs}


def upgraded_record(record: Mapping[str, Any], identity: Collection[str]) -> dict[str, Any]:
    """Return the fields of a record of version 2 from those of a cell of version 1; `identity` names those to keep."""
    kept = {name: value for name, value in record.items() if name in identity}
    metrics = {name: value for name, value in record.items() if name not in identity and value is not None}
    kept = {"seed": None, **kept}  # the first cells had none
    return {**kept, "variant": parse_variant(record["variant"]), "metrics": metrics}


def _value(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

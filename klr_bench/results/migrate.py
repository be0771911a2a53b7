"""What files of schema version 1 mean in version 2.

In version 1 a variant was text ("G=1; loss=logit"), and in a cell the numbers of a fit stood beside what identifies it.
In version 2 a variant is a mapping ({"G": 1, "loss": "logit"}; JSON in records.csv), and a cell holds its numbers under
`metrics`.  The solvers on a kernel matrix were algorithms of their own (l1_cgd_kernel), and are parameters now (l1_cgd
with features=kernel).  A manifest named the paper to compare with, and the paper's words for parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from klr_bench.instantiate import Parameters

WORDS = {"True": True, "False": False, "None": None}
ON_KERNEL = re.compile(r"(l1_\w+)_kernel")


def variant_values(text: str) -> Parameters:
    """Return the values of a variant in records.csv, which is JSON in version 2.  Raises ValueError."""
    return json.loads(text) if text.startswith("{") else parse_variant(text)


def parse_variant(text: str) -> Parameters:
    """Return the values of a variant by name; what looks like a number or a truth value is one."""
    pairs = (pair.strip().partition("=") for pair in text.split(";") if pair.strip())
    return {name: _value(value) for name, _, value in pairs}


def upgraded_record(record: Mapping[str, Any], identity: Collection[str]) -> dict[str, Any]:
    """Return the fields of a record of version 2 from those of a cell of version 1; `identity` names those to keep."""
    kept = {name: value for name, value in record.items() if name in identity}
    metrics = {name: value for name, value in record.items() if name not in identity and value is not None}
    kept = {"seed": None, **kept}  # the first cells had none
    renamed = {"algorithm": algorithm_name(record["algorithm"]), "variant": parse_variant(record["variant"])}
    return {**kept, **renamed, "metrics": metrics}


def algorithm_name(name: str) -> str:
    """Return the name in version 2 of an algorithm."""
    found = ON_KERNEL.fullmatch(name)
    return found[1] if found else name


def upgraded_manifest(content: Any) -> Any:
    """Return a manifest of version 2 from one of version 1; what is not of the shape of one is returned as it is."""
    config = content.get("config") if isinstance(content, Mapping) else None
    if not isinstance(config, Mapping):
        return content
    sections = {name: _by_algorithm(config.get(name)) for name in ("algorithms", "sweep") if name in config}
    if isinstance(sections.get("algorithms"), Mapping):
        sections["algorithms"] = {name: _without(entry, "terms") for name, entry in sections["algorithms"].items()}
    if isinstance(config.get("against"), Mapping):
        sections["against"] = {name: _plain(changes) for name, changes in config["against"].items()}
    labels = content.get("labels")
    if isinstance(labels, Mapping):
        labels = {**labels, "algorithms": _by_algorithm(labels.get("algorithms", {}))}
    return {**content, "labels": labels, "config": {**_without(config, "published"), **sections}}


def _by_algorithm(entries: Any) -> Any:
    return {_renamed(name): entry for name, entry in entries.items()} if isinstance(entries, Mapping) else entries


def _renamed(name: Any) -> Any:
    return algorithm_name(name) if isinstance(name, str) else name


def _without(entry: Any, key: str) -> Any:
    return {name: value for name, value in entry.items() if name != key} if isinstance(entry, Mapping) else entry


def _plain(changes: Any) -> Any:
    if not isinstance(changes, Mapping):
        return changes
    return {name: _value(value) if isinstance(value, str) else value for name, value in changes.items()}


def _value(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

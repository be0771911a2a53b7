"""Convert tables and manifests from schema version 1 to version 2.

In version 1 a variant was text ("G=1; loss=logit"); in version 2 it is a mapping ({"G": 1, "loss": "logit"}; JSON in
records.csv).  Solvers on a kernel matrix were separate algorithms (l1_cgd_kernel) and are parameters now (l1_cgd with
features=kernel).  The configuration in a manifest had the keys `published` and `algorithms.<name>.terms`.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from copy import deepcopy
from typing import Any

from klr_bench.instantiate import Parameters

ON_KERNEL = re.compile(r"(l1_\w+)_kernel")


def parse_variant_column(text: str) -> Parameters:
    """Parse the variant column of records.csv (either schema version).  Raises ValueError."""
    return json.loads(text) if text.startswith("{") else parse_variant(text)


def parse_variant(text: str) -> Parameters:
    """Parse a variant of version 1, such as "G=1; loss=logit", into a dict of typed values."""
    pairs = (pair.strip().partition("=") for pair in text.split(";") if pair.strip())
    return {name: _value(value) for name, _, value in pairs}


def algorithm_name(name: str) -> str:
    """Convert the name of an algorithm from version 1 to version 2."""
    match = ON_KERNEL.fullmatch(name)
    return match[1] if match else name


def upgrade_manifest(content: Any) -> Any:
    """Convert a manifest from version 1 to version 2; return anything else unchanged."""
    content = deepcopy(content)
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        config, labels = content["config"], content.get("labels") or {}
        config.pop("published", None)
        for section, key in ((config, "algorithms"), (config, "sweep"), (labels, "algorithms")):
            if section.get(key):
                section[key] = {algorithm_name(name): entry for name, entry in section[key].items()}
        for entry in (config.get("algorithms") or {}).values():
            entry.pop("terms", None)
        for changes in (config.get("against") or {}).values():
            changes |= {name: _value(value) for name, value in changes.items() if isinstance(value, str)}
    return content


def _value(text: str) -> Any:
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

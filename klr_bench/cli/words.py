"""Words of the command line: bare ones, key=value, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from klr_bench.errors import fail, nearest
from klr_bench.files import expanded
from klr_bench.printing import announce_renaming

RENAMED = {"against": "compare"}
"""Present keys by the former ones."""


def split_keys(arguments: Sequence[str], keys: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the bare words, and the values of key=value; refuse a key that is not among `keys`."""
    words: list[str] = []
    values: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if RENAMED.get(key) in keys:
            announce_renaming(f"{key}=", f"{RENAMED[key]}=")
            key = RENAMED[key]
        if equals or key.startswith("-"):
            if key not in keys:
                fail(f"unknown key {key!r}.{nearest(key.lstrip('-'), keys)}")
            if not equals or not value:
                fail(f"{key}: expected {key}=<value>, got none.")
            if key in values:
                fail(f"{key}: expected it once, got {values[key]!r} and {value!r}.")
            values[key] = str(expanded(value)) if value.startswith("~") else value
        else:
            words.append(argument)
    return words, values


def items(key: str, value: str) -> list[str]:
    """Return the items of ``a,b`` or ``[a,b]``; refuse an empty list."""
    bare = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    items = [item.strip() for item in bare.split(",") if item.strip()]
    if not items:
        fail(f"{key}: expected some names, as in {key}=a,b, got {value!r}.")
    return list(dict.fromkeys(items))


def is_true(key: str, values: Mapping[str, str]) -> bool:
    """Return the value of a key that is true or false, false if it is not given."""
    value = values.get(key, "false")
    if value not in ("true", "false"):
        fail(f"{key}: expected true or false, got {value!r}.")
    return value == "true"

"""Words of the command line: bare ones, key=value, lists."""

from __future__ import annotations

from collections.abc import Sequence

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.files import expanded


def split_keys(arguments: Sequence[str], keys: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the bare words, and the values of key=value; refuse a key that is not among `keys`."""
    words: list[str] = []
    values: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if equals or key.startswith("-"):
            if key not in keys:
                message = f"unknown key {key!r}.{nearest(key.lstrip('-'), keys)}"
                raise KlrBenchError(message)
            if not equals or not value:
                message = f"{key}: expected {key}=<value>, got none."
                raise KlrBenchError(message)
            if key in values:
                message = f"{key}: expected it once, got {values[key]!r} and {value!r}."
                raise KlrBenchError(message)
            values[key] = str(expanded(value)) if value.startswith("~") else value
        else:
            words.append(argument)
    return words, values


def items(key: str, value: str) -> list[str]:
    """Return the items of ``a,b`` or ``[a,b]``; refuse a list of none."""
    bare = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    items = [item.strip() for item in bare.split(",") if item.strip()]
    if not items:
        message = f"{key}: expected some names, as in {key}=a,b, got {value!r}."
        raise KlrBenchError(message)
    return list(dict.fromkeys(items))


def is_true(key: str, value: str) -> bool:
    """Return the value of a key that is true or false."""
    if value not in ("true", "false"):
        message = f"{key}: expected true or false, got {value!r}."
        raise KlrBenchError(message)
    return value == "true"

"""Former names of keys and values of a configuration, which are understood for one more version."""

from __future__ import annotations

import copy
import sys
from typing import Any

KEYS: dict[str, str] = {}
"""New dotted key by the former one."""
VALUES: dict[str, dict[str, str]] = {"parallel.backend": {"processes": "joblib", "loky": "joblib"}}
"""New value by the former one, by dotted key; configs/parallel has files that set the former ones."""
ENDS_WITH = "0.2.0"
_announced: set[str] = set()


def with_new_names(plain: dict[str, Any]) -> dict[str, Any]:
    """Return plain values with new names in place of former ones; each is announced once on standard error."""
    plain = copy.deepcopy(plain)
    for former, new in KEYS.items():
        section, name = _place(plain, former)
        if name in section:
            _announce(former, new)
            target, new_name = _place(plain, new)
            target[new_name] = section.pop(name)
    for key, names in VALUES.items():
        section, name = _place(plain, key)
        value = section.get(name)
        if isinstance(value, str) and value in names:
            _announce(f"{key}={value}", f"{key}={names[value]}")
            section[name] = names[value]
    return plain


def new_key(key: str) -> str:
    """Return the present name of a dotted key; a former one is announced."""
    if key in KEYS:
        _announce(key, KEYS[key])
    return KEYS.get(key, key)


def _place(plain: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    """Return the mapping that holds a dotted key, empty if there is none, and the key's last part."""
    *sections, name = key.split(".")
    for section in sections:
        inner = plain.get(section)
        plain = inner if isinstance(inner, dict) else {}
    return plain, name


def _announce(former: str, new: str) -> None:
    if former not in _announced:
        _announced.add(former)
        sys.stderr.write(f"{former} is renamed {new}; the old name ends with {ENDS_WITH}.\n")

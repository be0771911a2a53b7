"""Interpolations of a configuration, such as ``${budget}``: how large it becomes by them, before they are resolved.

A value that has two of a value that has two of another, and so on, doubles at each step.
"""

from __future__ import annotations

import re
from typing import Any

from klr_bench.errors import KlrBenchError

LARGEST = 100_000
"""Characters and values of a configuration, with every interpolation in its place."""
REFERENCE = re.compile(r"\$\{(\.*)([^{}:]*)\}")
NESTED = re.compile(r"\$\{[^{}]*\$\{")

Path = tuple[str, ...]


def check_interpolations(content: Any) -> None:
    """Refuse a configuration, not yet resolved, that interpolations would make endless.  Raises KlrBenchError."""
    _Sizes(content).of(())


class _Sizes:
    """The sizes of the values of a configuration, each counted once."""

    def __init__(self, content: Any) -> None:
        self._content = content
        self._known: dict[Path, int] = {}

    def of(self, path: Path) -> int:
        """Return the size of what stands at a path, 0 where there is nothing, or where it contains itself."""
        if path not in self._known:
            self._known[path] = 0
            self._known[path] = found = self._size(path, _at(self._content, path))
            if found > LARGEST:
                place = ".".join(path) or "the configuration"
                message = (
                    f"{place}: expected at most {LARGEST:,} values and characters, got more by interpolations, "
                    "${...}, of interpolations. Write the values out."
                )
                raise KlrBenchError(message)
        return self._known[path]

    def _size(self, path: Path, value: Any) -> int:
        if isinstance(value, dict | list):
            keys = value if isinstance(value, dict) else range(len(value))
            return 1 + sum(self.of((*path, str(key))) for key in keys)
        if not isinstance(value, str) or "${" not in value:
            return 1
        if NESTED.search(value):
            place = ".".join(path)
            message = f"{place}: expected no interpolation inside an interpolation, got {value[:100]!r}. Write it out."
            raise KlrBenchError(message)
        return len(value) + sum(self.of(_target(path, *found)) for found in REFERENCE.findall(value))


def _target(path: Path, dots: str, key: str) -> Path:
    """Return the path that a reference leads to; with dots it starts so many steps above."""
    parts = tuple(part for part in re.split(r"[.\[\]]+", key) if part)
    return (*path[: len(path) - len(dots)], *parts) if dots else parts


def _at(content: Any, path: Path) -> Any:
    for part in path:
        if isinstance(content, list):
            content = content[int(part)] if part.isdigit() and int(part) < len(content) else None
        else:
            content = (
                content.get(part, content.get(int(part)) if part.isdigit() else None)
                if isinstance(content, dict)
                else None
            )
    return content

"""The folders of YAML files: the one that ships with klr-bench, and ``./configs`` of the current folder.

This module imports nothing beyond the standard library at its top, so that completion is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from klr_bench.errors import fail, nearest

GROUPS = ("experiment", "dataset", "algorithm", "parallel")
"""Folders of files that a run chooses from, as in dataset=magic; Hydra composes them."""
KINDS = ("experiment", "dataset", "source", "algorithm")
"""Folders of files that `klr-bench list` and `show` know."""


def config_dir() -> Path:
    """Return the folder of the shipped configs: inside the package in a wheel, next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def folders() -> list[Path]:
    """Return the shipped folder and, if it is another folder, ``./configs``."""
    shipped, own = config_dir(), Path.cwd() / "configs"
    return [shipped, own] if own.is_dir() and own.resolve() != shipped.resolve() else [shipped]


def check_own(searched: Sequence[Path]) -> None:
    """Refuse a user's file that is invalid, that a shipped one hides, or whose keys would have another name."""
    shipped = searched[0]
    groups = sorted({*GROUPS, *KINDS, "hydra"})
    for folder in searched[1:]:
        for own in sorted(path for group in groups for path in (folder / group).glob("**/*.yaml")):
            relative = own.relative_to(folder)
            hiding, content = shipped / relative, read(own)
            sections = content.keys() & _sections() if relative.parent.name == "experiment" else ()
            for name in sections:
                if not isinstance(content[name], dict) and (content[name] is not None or name == "hydra"):
                    fail(f"{own}: {name}: expected keys and values, got {content[name]!r:.200}.")
            if hiding.is_file() and hiding.read_bytes() != own.read_bytes():
                fail(f"{hiding} would hide {own}. Give yours another name, or run from another folder.")
            header, lines = package_header(relative), own.read_text(encoding="utf-8").splitlines()
            if header and header not in lines[:10]:
                fail(f"{own}: expected {header!r} as its first line, got {''.join(lines[:1])!r:.80}. Put it there.")


@cache
def _sections() -> list[str]:
    return [name for name, value in read(config_dir() / "config.yaml").items() if isinstance(value, dict)]


def package_header(relative: Path) -> str | None:
    """Return the line that tells Hydra where the keys of a file, such as dataset/magic.yaml, belong."""
    group, stem = relative.parent.as_posix(), relative.stem
    if group in ("dataset", "algorithm"):
        return f"# @package {group}s.{stem}"
    return {"experiment": "# @package _global_", "parallel": "# @package parallel"}.get(group)


def names(group: str, searched: Sequence[Path]) -> list[str]:
    """Return the sorted names of a group: the stems of its YAML files in all folders."""
    return sorted({path.stem for folder in searched for path in (folder / group).glob("*.yaml")})


def find(group: str, name: str, searched: Sequence[Path]) -> Path:
    """Return the file of a name, or refuse the name with the nearest one."""
    known = names(group, searched)
    if name not in known:
        fail(f"unknown {group} {name!r}.{nearest(name, known)}")
    paths = (path for folder in searched for path in (folder / group).glob("*.yaml"))
    return next(path for path in paths if path.stem == name)


def read(path: Path) -> dict[str, Any]:
    """Return the content of a YAML file as Hydra reads it, without resolving interpolations."""
    from klr_bench.yaml_file import read_yaml

    content = read_yaml(path)
    if not isinstance(content, dict | None):
        fail(f"{path}: expected keys and values, got {type(content).__name__}.")
    return content or {}

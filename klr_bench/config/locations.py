"""Where the YAML files are: those that ship with klr-bench, and those in ``./configs`` of the current folder.

This module imports nothing beyond the standard library at its top, so that completion is quick.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from klr_bench.errors import fail, nearest

GROUPS = ("experiment", "dataset", "algorithm", "parallel")
"""Folders of files that a run chooses from, as in dataset=magic; Hydra composes them."""
KINDS = ("experiment", "dataset", "source", "algorithm")
"""Folders of files that `klr-bench list` and `show` know."""


def config_dir() -> Path:
    """Return the folder of the shipped configs: inside the package (a wheel), else beside it (a checkout)."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def folders() -> list[Path]:
    """Return the shipped folder, then ``./configs`` where that is another folder."""
    shipped, own = config_dir(), Path.cwd() / "configs"
    return [shipped, own] if own.is_dir() and own.resolve() != shipped.resolve() else [shipped]


def check_own(searched: Sequence[Path]) -> None:
    """Refuse a user's file that a shipped one would hide, that lands under another name, or that is a YAML bomb."""
    from klr_bench.yaml_file import read_text

    shipped = searched[0]
    for folder in searched[1:]:
        for own in sorted(
            path for group in sorted({*GROUPS, *KINDS, "hydra"}) for path in (folder / group).glob("**/*.yaml")
        ):
            relative = own.relative_to(folder)
            hiding, text = shipped / relative, read_text(own)
            _check_sections(own, read(own), relative)
            if hiding.is_file() and hiding.read_text(encoding="utf-8") != text:
                fail(
                    f"two different files for {relative.with_suffix('')}: {hiding} would hide {own}. "
                    "Give yours another name, or run from another folder."
                )
            header = package_header(relative)
            if header and header not in text.splitlines()[:10]:
                first = next(iter(text.splitlines()), "")
                fail(f"{own}: expected {header!r} as its first line, got {first!r:.80}. Put it there.")


def _check_sections(own: Path, content: Mapping[str, Any], relative: Path) -> None:
    """Refuse an experiment in which something else stands where keys and values belong; Hydra could not merge it."""
    if relative.parent.name != "experiment":
        return
    sections = [name for name, value in _root().items() if isinstance(value, dict)]
    for name in content.keys() & {*sections}:
        value = content[name]
        if not isinstance(value, dict) and (value is not None or name == "hydra"):
            fail(f"{own}: {name}: expected keys and values, got {value!r:.200}. Write them below it, or leave it out.")


@cache
def _root() -> dict[str, Any]:
    return read(config_dir() / "config.yaml")


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
    """Return the file of a name, or refuse the name and say which one is near."""
    known = names(group, searched)
    if name not in known:
        fail(f"unknown {group} {name!r}.{nearest(name, known)}")
    paths = [folder / group / f"{name}.yaml" for folder in searched]
    return next(path for path in paths if os.path.lexists(path))


def read(path: Path) -> dict[str, Any]:
    """Return the content of a YAML file as Hydra reads it, but for interpolations, which are not resolved."""
    from klr_bench.yaml_file import read_yaml

    content = read_yaml(path, as_hydra=True)
    if not isinstance(content, dict | None):
        fail(f"{path}: expected keys and values, got {type(content).__name__}.")
    return content or {}


KEYS: dict[str, str] = {}
"""New dotted key by the former one."""
VALUES: dict[str, dict[str, str]] = {"parallel.backend": {"processes": "joblib", "loky": "joblib"}}
"""New value by the former one, by dotted key; configs/parallel has files that set the former ones."""
GENERATORS = {"klr_bench.experiment.data.": "klr_bench.datasets."}
"""New start of the dotted name of a function that generates data, by the former one."""
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
    for key, values in VALUES.items():
        section, name = _place(plain, key)
        value = section.get(name)
        if isinstance(value, str) and value in values:
            _announce(f"{key}={value}", f"{key}={values[value]}")
            section[name] = values[value]
    datasets = plain.get("datasets")
    for dataset in datasets if isinstance(datasets, dict) else ():
        for key in ("source.generator", "derive"):
            section, name = _place(plain, f"datasets.{dataset}.{key}._target_")
            function = str(section.get(name))
            for former, new in GENERATORS.items():
                if function.startswith(former):
                    section[name] = function.replace(former, new)
                    _announce(function, section[name])
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

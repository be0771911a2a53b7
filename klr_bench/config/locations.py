"""Lookup of YAML files in the built-in configs and in the user's folder ``./configs``.

This module imports nothing beyond the standard library at its top, so that completion is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from klr_bench.errors import fail, nearest

GROUPS = ("experiment", "dataset", "algorithm", "parallel")
"""Groups of files that a run selects by keys such as dataset=magic; Hydra composes them."""
KINDS = ("experiment", "dataset", "source", "algorithm")
"""Groups of files that `klr-bench list` and `show` accept, beside papers, metrics and figures."""
FILES = {"paper": "paper/*/paper.yaml"}
"""Patterns of files that users select by the name of the folder, keyed by kind."""


def config_dir() -> Path:
    """Return the folder of the built-in configs, in the installed package or the checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def reference_results() -> Path:
    """Return the folder of the reference results, which only a checkout of the repository has."""
    return Path(__file__).resolve().parents[2] / "results" / "reference"


def is_reference(results_dir: Path) -> bool:
    """Return True if a results folder is that of the reference results of any checkout."""
    path = results_dir.resolve()
    return path.parts[-2:] == ("results", "reference") and (path.parents[1] / "klr_bench" / "__init__.py").is_file()


def folders() -> list[Path]:
    """Return the folders of YAML files: the built-in configs, and ``./configs`` if it exists."""
    shipped, user_folder = config_dir(), Path.cwd() / "configs"
    return [shipped, user_folder] if user_folder.is_dir() and user_folder.resolve() != shipped.resolve() else [shipped]


def check_own(searched: Sequence[Path]) -> None:
    """Check the YAML files in the user's folder ``./configs``.

    Raises KlrBenchError if a file is invalid, has the same name as a different built-in file, or lacks its header.
    """
    shipped = searched[0]
    groups = sorted({*GROUPS, *KINDS, "hydra"})
    for folder in searched[1:]:
        for file in sorted(path for group in groups for path in (folder / group).glob("**/*.yaml")):
            relative = file.relative_to(folder)
            hiding, content = shipped / relative, read(file)
            sections = content.keys() & _sections() if relative.parent.name == "experiment" else ()
            for name in sections:
                if not isinstance(content[name], dict) and (content[name] is not None or name == "hydra"):
                    fail(f"{file}: {name}: expected keys and values, got {content[name]!r:.200}.")
            if hiding.is_file() and hiding.read_bytes() != file.read_bytes():
                fail(f"{file} has the same name as {hiding}. Rename your file, or run from another folder.")
            header, lines = package_header(relative), file.read_text(encoding="utf-8").splitlines()
            if header and header not in lines[:10]:
                fail(
                    f"{file}: expected the first line to be {header!r}, got {''.join(lines[:1])!r:.80}. Add this line."
                )


@cache
def _sections() -> list[str]:
    return [name for name, value in read(config_dir() / "config.yaml").items() if isinstance(value, dict)]


def package_header(relative: Path) -> str | None:
    """Return the ``# @package`` line that Hydra requires in a YAML file, or None.

    `relative` is the path of the file inside its folder of configs, such as dataset/magic.yaml.
    """
    group, stem = relative.parent.as_posix(), relative.stem
    if group in ("dataset", "algorithm"):
        return f"# @package {group}s.{stem}"
    return {"experiment": "# @package _global_", "parallel": "# @package parallel"}.get(group)


def paths(group: str, searched: Sequence[Path]) -> dict[str, Path]:
    """Return the paths of a group's YAML files by name; later folders replace earlier ones."""
    found = [path for folder in searched for path in sorted(folder.glob(FILES.get(group, f"{group}/*.yaml")))]
    return {(path.parent.name if group in FILES else path.stem): path for path in found}


def names(group: str, searched: Sequence[Path]) -> list[str]:
    """Return the sorted names of the YAML files in a group, without the suffix .yaml."""
    return sorted(paths(group, searched))


def find(group: str, name: str, searched: Sequence[Path]) -> Path:
    """Return the path of a YAML file, given its group and name.

    Raises KlrBenchError, which suggests a similar name, if there is no such file.
    """
    found = paths(group, searched)
    if name not in found:
        fail(f"unknown {group} {name!r}.{nearest(name, found)}")
    return found[name]


def read(path: Path) -> dict[str, Any]:
    """Return the keys and values of a YAML file, without resolving ${...} references."""
    from klr_bench.yaml_file import read_yaml

    content = read_yaml(path)
    if not isinstance(content, dict | None):
        fail(f"{path}: expected keys and values, got {type(content).__name__}.")
    return content or {}

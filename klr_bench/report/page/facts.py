"""What a manifest says of the machine, the versions and the command, in words for a reader."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klr_bench.report.manifest import Manifest
from klr_bench.yaml_file import read_yaml

MACHINE = {
    "cpu": "Processor",
    "cores": "Cores",
    "workers": "Workers",
    "threads_per_worker": "Threads a worker",
    "memory_gb": "Memory (GB)",
    "platform": "Platform",
}
MOST_CHANGED = 5
"""Changed files that are named."""


def facts_of(folder: Path) -> list[tuple[str, str]]:
    """Return names and values: when, of what source, on what machine, with what versions; what is not there is not."""
    content = read_yaml(folder / "manifest.yaml")
    if not isinstance(content, Mapping):
        return []
    changed = content.get("changed") or []
    names = ", ".join(map(str, changed[:MOST_CHANGED])) + (" and more" if len(changed) > MOST_CHANGED else "")
    commit = content.get("git_commit")
    machine, versions = _mapping(content, "machine"), _mapping(content, "versions")
    config = _mapping(content, "config")
    found = {
        "Run": _between(content.get("started"), content.get("updated")),
        "Source": f"commit {commit}" + (f", with changes in {names}" if changed else "") if commit else None,
        "Seed": config.get("seed"),
        "Repeats": config.get("repeats"),
        **{title: machine.get(name) for name, title in MACHINE.items()},
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    return [(name, str(value)) for name, value in found.items() if value not in (None, "")]


def command_of(folder: Path, manifest: Manifest) -> list[str]:
    """Return the commands that make the results and the table again."""
    words = read_yaml(folder / "manifest.yaml").get("command")
    if not isinstance(words, list):  # an earlier version kept no command
        words = [f"experiment={manifest.chosen}", f"repeats={manifest.config.repeats}"]
    run = ["klr-bench", "run", *map(str, words)]
    if manifest.experiment != manifest.chosen and not any(word.startswith("name=") for word in run):
        run.append(f"name={manifest.experiment}")
    report = ["klr-bench", "report", f"experiment={folder.name}", f"results_dir={folder.parent}"]
    return [shlex.join(run), shlex.join(report)]


def _mapping(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = content.get(key)
    return value if isinstance(value, Mapping) else {}


def _between(started: Any, updated: Any) -> str:
    return str(started) if started == updated else " to ".join(str(one) for one in (started, updated) if one)

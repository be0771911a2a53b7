"""Collect the content of manifest.yaml: configuration, software versions and machine."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from joblib import cpu_count

from klr_bench.config import locations as config_files
from klr_bench.config.changes import changed_settings, recorded
from klr_bench.config.models import RunConfig
from klr_bench.metrics.labels import user_metrics
from klr_bench.results.store import texts
from klr_bench.runner.machine import cpu_name
from klr_bench.version import __version__

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "joblib", "hydra-core")
"""Libraries whose versions may affect results."""


def manifest(
    config: RunConfig,
    n_jobs: int,
    previous: Mapping[str, Any],
    overrides: Sequence[str] = (),
    configurations: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Return the manifest of a run as a dict.

    `previous` is the manifest of an earlier run in the same folder, or {}; `configurations` has the hashes of the
    configurations of all runs in the folder, keyed by method and data set.
    """
    own_metrics = user_metrics(config.metrics or (), config_files.folders())
    earlier_metrics = previous.get("own_metrics")
    commit, changed = git_state(Path(__file__).parents[1])
    now = datetime.now(UTC).isoformat(timespec="seconds")
    groups: dict[str, Mapping[str, Any]] = {"algorithms": config.algorithms, "datasets": config.datasets}
    labels = {group: _labels(previous, group) for group in groups}  # a run may cover only a part of the experiment
    return {
        "experiment": config.name,
        "started": str(previous.get("started", now)),
        "updated": now,
        "command": recorded(overrides),
        "changes": _changes(previous, labels, groups, changed_settings(overrides)),
        "git_commit": commit,
        "changed": changed,
        "versions": {
            "klr-bench": __version__,
            "python": platform.python_version(),
            **{library: version(library) for library in LIBRARIES},
        },
        "machine": {
            "platform": platform.platform(),
            "cpu": cpu_name(),
            "cores": cpu_count(),
            "workers": n_jobs,
            "threads_per_worker": "1, and more for the last cells" if config.parallel.spare_threads else 1,
            "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        },
        "configurations": dict(configurations or {}),
        "own_metrics": {
            **(earlier_metrics if isinstance(earlier_metrics, dict) else {}),
            **{name: metric.description() for name, metric in own_metrics.items()},
        },
        "labels": {
            group: labels[group] | {stem: entry.label for stem, entry in entries.items()}
            for group, entries in groups.items()
        },
        "config": config.model_dump(),
    }


def _changes(
    previous: Mapping[str, Any], labels: Mapping[str, Mapping[str, str]], groups: Mapping[str, Any], now: list[str]
) -> list[str]:
    """Return changed settings: `now`, and earlier ones if other methods or data were run."""
    before, has_others = previous.get("changes"), any(labels[group].keys() - groups[group].keys() for group in groups)
    return [*dict.fromkeys([*now, *(map(str, before) if has_others and isinstance(before, list) else ())])]


def _labels(previous: Mapping[str, Any], group: str) -> dict[str, str]:
    try:
        return texts(previous["labels"][group])
    except (KeyError, TypeError):
        return {}


def git_state(folder: Path) -> tuple[str | None, list[str]]:
    """Return the git commit of the package, and the files modified since that commit.

    Only files of the package and of `configs/` are listed.  Return (None, []) if the package is not in a git checkout.
    """
    root = folder.parent
    if not (root / ".git").exists():
        return None, []

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        output = subprocess.run(command, capture_output=True, check=True, timeout=10).stdout
        return output.decode("utf-8", "backslashreplace")  # the name of a file may be any bytes

    try:
        commit = git("rev-parse", "HEAD").strip()
        status = git("status", "--porcelain", "-z", "--no-renames", "-uall", "--", folder.name, "configs")
    except (OSError, subprocess.SubprocessError):
        return None, []
    return commit, sorted(line[3:] for line in status.split("\0") if line)

"""What a run was and on what machine: the content of manifest.yaml."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from joblib import cpu_count

import klr_bench
from klr_bench.config import locations as config_files
from klr_bench.config.models import RunConfig
from klr_bench.metrics.labels import METRICS, user_metrics
from klr_bench.runner.machine import cpu_name

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "joblib", "hydra-core")


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that numbers may depend on."""
    return {library: version(library) for library in LIBRARIES}


PLACES = ("results_dir", "data.cache", "data.mirror", "n_jobs", "parallel", "force", "shard", "quiet", "hydra")
"""Keys of the command line, with those inside of them, that no result depends on."""


def manifest(
    config: RunConfig, n_jobs: int, previous: Mapping[str, object], overrides: Sequence[str] = ()
) -> dict[str, object]:
    """Return the manifest of a run that goes on from a `previous` one, or {}; `overrides` are its words."""
    labels = {
        group: {
            **_labels(previous, group),
            **{stem: entry.label for stem, entry in entries.items()},
        }
        for group, entries in (("algorithms", config.algorithms), ("datasets", config.datasets))
    }
    metrics = [name for name in config.metrics or () if name not in METRICS]
    own = {name: metric.described() for name, metric in user_metrics(metrics, config_files.folders()).items()}
    commit, changed = git_state(Path(klr_bench.__file__).parent)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "experiment": config.name,
        "started": str(previous.get("started", now)),
        "updated": now,
        "command": [word for word in overrides if not _is_place(word)],
        "git_commit": commit,
        "changed": changed,
        "versions": {
            "klr-bench": klr_bench.__version__,
            "python": platform.python_version(),
            **library_versions(),
        },
        "machine": {
            "platform": platform.platform(),
            "cpu": cpu_name(),
            "cores": cpu_count(),
            "workers": n_jobs,
            "threads_per_worker": "1, and more for the last cells" if config.parallel.spare_threads else 1,
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        },
        "own_metrics": own,
        "labels": labels,  # of all runs so far: a later one may be of a part
        "config": config.model_dump(),
    }


def _is_place(word: str) -> bool:
    key = word.lstrip("+~").partition("=")[0]
    return any(key == place or key.startswith(f"{place}.") for place in PLACES)


def _labels(previous: Mapping[str, object], group: str) -> dict[str, str]:
    """Return the labels of a group in a previous manifest, without values that are not text in a damaged one."""
    labels = previous.get("labels")
    entries = labels.get(group) if isinstance(labels, Mapping) else None
    found = entries.items() if isinstance(entries, Mapping) else ()
    return {stem: label for stem, label in found if isinstance(stem, str) and isinstance(label, str)}


def git_state(folder: Path) -> tuple[str | None, list[str]]:
    """Return the commit of the checkout that a package runs from, and the package's files that differ from it.

    Of the checkout only the package and `configs/` count.  (None, []) where it is no checkout.
    """
    root = folder.parent
    if not (root / ".git").exists():
        return None, []
    try:
        commit = _git(root, "rev-parse", "HEAD").strip()
        status = _git(root, "status", "--porcelain", "-z", "--no-renames", "-uall", "--", folder.name, "configs")
    except (OSError, subprocess.SubprocessError):
        return None, []
    return commit, sorted(line[3:] for line in status.split("\0") if line)


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout

"""Settings on the command line that differ from those in the YAML file of the experiment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NEUTRAL_KEYS = ("results_dir", "data.cache", "data.mirror", "n_jobs", "parallel", "force", "shard", "quiet", "hydra")
"""Keys, including their subkeys, that do not affect results."""
FREE_KEYS = (
    *("experiment", "name", "title", "repeats", "seed", "algorithm", "dataset", "metrics", "figures", "trace"),
    *("data.path", "data.test_path"),
)
"""Further keys that leave the settings of each method as they are, including their subkeys."""


def recorded(overrides: Iterable[str]) -> list[str]:
    """Return the overrides that may affect results, in their order."""
    return [override for override in overrides if not _is_below(override, NEUTRAL_KEYS)]


def changed_settings(overrides: Iterable[Any]) -> list[str]:
    """Return the overrides that change settings of methods or data, as ``key=value``."""
    words = (str(override).lstrip("+") for override in overrides)
    return [word for word in words if not _is_below(word, (*NEUTRAL_KEYS, *FREE_KEYS))]


def _is_below(override: str, keys: Iterable[str]) -> bool:
    name = override.lstrip("+~").partition("=")[0]
    return any(name == key or name.startswith(f"{key}.") for key in keys)

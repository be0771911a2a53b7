"""Data sets: from a spec, the content of configs/dataset/<name>.yaml, to arrays in memory.

The names are imported when they are first used, so that a listing of the catalog needs neither SciPy nor
scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klr_bench.datasets.cache import default_cache
    from klr_bench.datasets.dataset import Dataset, dataset_hash, dataset_name, load

__all__ = ["Dataset", "dataset_hash", "dataset_name", "default_cache", "load"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    home = "cache" if name == "default_cache" else "dataset"
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)

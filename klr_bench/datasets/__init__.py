"""Download, parse, split and preprocess data sets.

The names are imported lazily, so that listing the catalog needs neither SciPy nor scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from klr_bench.datasets.cache import default_cache
    from klr_bench.datasets.dataset import Dataset, dataset_hash, dataset_name, load

__all__ = ["Dataset", "dataset_hash", "dataset_name", "default_cache", "load"]
EXPORTS = {"cache": ["default_cache"], "dataset": ["Dataset", "dataset_hash", "dataset_name", "load"]}
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs=EXPORTS)

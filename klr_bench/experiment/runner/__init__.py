"""Run an experiment: what is finished is skipped, what is missing runs in parallel, every result is written at once.

`plan` makes cells and folds of a configuration, `schedule` puts them in order, `executors` run them (joblib, serial or
dask), `work` scores a fold or fits a cell, `scores` and `records` keep the results, and `execute` ties them together.

The names are imported when they are first used, so that a worker starts quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klr_bench.experiment.runner.execute import Outcome, run

__all__ = ["Outcome", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.execute"), name)

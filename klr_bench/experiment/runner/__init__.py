"""Run an experiment: what is finished is skipped, what is missing runs in parallel, every result lands at once.

`plan` makes cells and folds of a configuration, `schedule` puts them in order, `pool` runs them in worker processes
(`process` is one of them seen from outside, `worker` from inside), `work` is what a worker does, `scores` and `records`
keep the results, and `execute` ties them together.  On a cluster `cluster` takes the place of the pool (`dask_cluster`
is one seen from the run), and `remote` is what a worker of it does: it runs each task in such a process (`dask_worker`
is what dask calls for it).

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

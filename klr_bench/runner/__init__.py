"""Running of experiments: finished work is skipped, missing work runs in parallel.

`plan` makes cells and folds of a configuration, `executors` run them (joblib, serial or dask), `fit` scores a fold or
fits a cell, `scores` and `results.store` keep the results, and `execute` ties them together.  The names are imported
when they are first used, so that a worker starts quickly.
"""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from klr_bench.runner.execute import Outcome as Outcome
    from klr_bench.runner.execute import run as run

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"execute": ["Outcome", "run"]})

"""Run experiments: compute unfinished cells in parallel, and save every result.

`plan` creates the cells and folds of a configuration, `executors` run them (joblib, serial or dask), `fit` scores a
fold or fits a cell, `scores` and `results.store` save the results, and `execute` ties everything together.  Names are
imported on first use, so that workers start quickly.
"""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from klr_bench.runner.execute import Outcome as Outcome
    from klr_bench.runner.execute import run as run

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"execute": ["Outcome", "run"]})

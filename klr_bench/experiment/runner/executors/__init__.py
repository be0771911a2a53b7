"""What runs the tasks of a run: joblib's processes (the default), this process, or a dask cluster.

All executors have the interface of `Executor`; code outside this package never asks which one is active.  A new
executor is one module here with a class, and a line in `open_executor`.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

from klr_bench.experiment.config.models import ParallelConfig

Say = Callable[[str], None]
"""Prints a line."""


class Task(NamedTuple):
    """A function with its arguments, and the fold or cell whose result it computes."""

    item: Any
    call: partial[Any]


class Executor(Protocol):
    """Runs tasks and yields their results as they end."""

    n_workers: int
    """The number of tasks that run at the same time."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result, or with a Failure if it raised or its worker died twice.

        `tasks` is consumed lazily, whenever a worker is free, and possibly in another thread.  If the iteration ends
        early, by an exception or by `close`, the tasks that are running are given up.
        """


def open_executor(parallel: ParallelConfig, n_jobs: int | None, say: Say) -> Executor:
    """Return the executor of a configuration, a context manager; `say` prints a line.

    n_jobs : number of workers, None or -1 for one per core
    Raises KlrBenchError if a cluster cannot be used.
    """
    if parallel.backend == "serial":
        from klr_bench.experiment.runner.executors.serial import SerialExecutor

        return SerialExecutor()
    if parallel.backend == "dask":
        from klr_bench.experiment.runner.executors.dask import DaskExecutor

        return DaskExecutor(parallel, n_jobs, say)
    from klr_bench.experiment.runner.executors.joblib import JoblibExecutor
    from klr_bench.experiment.runner.executors.serial import SerialExecutor

    if multiprocessing.current_process().name != "MainProcess":  # started by a Hydra launcher
        say("inside a worker process of a launcher: one task at a time.")
        return SerialExecutor()
    return JoblibExecutor(n_jobs)

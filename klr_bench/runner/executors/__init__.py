"""Executors of tasks: joblib processes (the default), the current process, or dask.

All executors have the interface of `Executor`; code outside this package never asks which one is active.  A new
executor is one module here, which has a function `open_executor`, and a file in configs/parallel.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

from klr_bench.config.models import ParallelConfig
from klr_bench.errors import KlrBenchError
from klr_bench.metrics.clock import KilledError, TimeLimitError
from klr_bench.printing import shortened

Say = Callable[[str], None]
"""Function that prints a line."""


class Task(NamedTuple):
    """Function with its arguments, and the fold or cell whose result it computes."""

    item: Any
    call: partial[Any]


class Executor(Protocol):
    """Interface of executors, which run tasks and yield the results as they finish."""

    n_workers: int
    """Number of tasks that run at the same time."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result, or with a Failure if it raised or lost two workers.

        `tasks` is consumed lazily, whenever a worker is free, and possibly in another thread.  If the iteration ends
        early, by an exception or by `close`, the tasks that are running are given up.
        """


def open_executor(parallel: ParallelConfig, n_jobs: int | None, say: Say) -> Executor:
    """Return the executor of a configuration as a context manager; `say` prints a line.

    n_jobs : number of workers, None or -1 for one per core
    Raises KlrBenchError if a cluster cannot be used.
    """
    module = importlib.import_module(f"{__name__}.{parallel.backend}")
    executor: Executor = module.open_executor(parallel, n_jobs, say)
    return executor


LONGEST = 2000
"""Maximum length of a message."""


@dataclass(frozen=True)
class Failure:
    """Reason why a task has no result."""

    status: str
    """"error", "killed" or "timeout"."""
    message: str


def run_guarded(task: Callable[[], Any], *, through: tuple[type[BaseException], ...] = ()) -> Any:
    """Run a task and return its result, or a Failure if it raises an exception not in `through`."""
    try:
        return task()
    except through:
        raise
    except TimeLimitError as error:
        return Failure("timeout", str(error))
    except KilledError as error:
        return Failure("killed", str(error))
    except BaseException as error:
        return Failure("error", exception_message(error))


def exception_message(error: BaseException) -> str:
    """Return the message of an exception, with its class unless it is a KlrBenchError."""
    text = str(error) if isinstance(error, KlrBenchError) else f"{type(error).__name__}: {error}"
    if isinstance(error, SystemExit):
        text += ". Take the call of exit out of the estimator, or out of the metric."
    return shortened(text, LONGEST).encode("utf-8", "backslashreplace").decode()

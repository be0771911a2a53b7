"""Run tasks in joblib processes (the default), in this process, or on a dask cluster.

All executors implement the protocol `Executor`; code outside this package does not depend on which one is active.  To
add an executor, add a module with a function `open_executor` to this package and a file to configs/parallel.
"""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

from klr_bench.config.models import ParallelConfig
from klr_bench.errors import exception_message
from klr_bench.metrics.clock import KilledError, TimeLimitError
from klr_bench.parsing import check_choice

Say = Callable[[str], None]
"""Type of a function that prints a message to the user."""
LONGEST_TRACEBACK = 20_000
"""Maximum number of characters of the traceback of a failed task."""


class Task(NamedTuple):
    """A fold or cell (`item`), and the function call that computes its result."""

    item: Any
    call: partial[Any]


class Executor(Protocol):
    """Interface of executors, which are context managers that run tasks on workers."""

    n_workers: int
    """Number of tasks that run at the same time."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result, or with a Failure, in order of completion.

        A task has failed if it raised an exception or if its worker died twice.  `tasks` is consumed lazily, whenever a
        worker is free, possibly in another thread.  Ending the iteration early cancels the running tasks.
        """


def check_executor(name: str) -> None:
    """Raise KlrBenchError unless `name` is that of an executor, a module of this package."""
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    check_choice("parallel.backend", name, modules)


def open_executor(parallel: ParallelConfig, n_jobs: int | None, say: Say) -> Executor:
    """Return the executor that a configuration selects; `say` is called to print messages.

    `n_jobs` is the number of workers; None or -1 means one per core.
    Raises KlrBenchError if the cluster cannot be used.
    """
    module = importlib.import_module(f"{__name__}.{parallel.backend}")
    executor: Executor = module.open_executor(parallel, n_jobs, say)
    return executor


@dataclass(frozen=True)
class Failure:
    """Status and error message of a task that has failed."""

    status: str
    """One of "error", "killed" and "timeout"."""
    message: str
    traceback: str = field(default="", compare=False)
    """Traceback of the exception, or ""."""


def call_safely(task: Callable[[], Any], *, through: tuple[type[BaseException], ...] = ()) -> Any:
    """Call a function; return its result, or a Failure if it raises an exception.

    Exceptions of the types in `through` are not caught.
    """
    try:
        return task()
    except through:
        raise
    except TimeLimitError as error:
        return Failure("timeout", str(error))
    except KilledError as error:
        return Failure("killed", str(error))
    except BaseException as error:
        return Failure("error", exception_message(error), traceback.format_exc()[-LONGEST_TRACEBACK:])

"""Run tasks one after the other in the current process."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Self

from klr_bench.config.models import ParallelConfig
from klr_bench.runner.executors import Say, Task, call_safely


def open_executor(parallel: ParallelConfig, n_jobs: int | None, say: Say) -> SerialExecutor:
    """Return a serial executor; the arguments are ignored."""
    return SerialExecutor()


class SerialExecutor:
    """Executor that uses the current process; a task that kills the process ends the run."""

    n_workers = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result, or with a Failure, in order."""
        for task in tasks:
            yield task, call_safely(task.call, through=(KeyboardInterrupt,))

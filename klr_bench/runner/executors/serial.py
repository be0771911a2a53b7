"""Executor that runs tasks one after the other in the current process."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from klr_bench.config.models import ParallelConfig
from klr_bench.runner.executors import Say, Task, run_guarded


def open_executor(parallel: ParallelConfig, n_jobs: int | None, say: Say) -> SerialExecutor:
    """Return the executor."""
    return SerialExecutor()


class SerialExecutor:
    """Executor without worker processes; a task that ends the process ends the run."""

    n_workers = 1

    def __enter__(self) -> SerialExecutor:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result or Failure."""
        for task in tasks:
            yield task, run_guarded(task.call, through=(KeyboardInterrupt,))

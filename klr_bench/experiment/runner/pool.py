"""Tasks in worker processes, with the ones that kill their worker found out and set apart."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool

from klr_bench.errors import KlrBenchError


@dataclass(frozen=True)
class Failure:
    """Why a task has no result."""

    status: str  # error, killed
    message: str


Task = Callable[[], Any]


def in_worker_process() -> bool:
    """Tell whether this process is somebody's worker already, which then should not start workers of its own."""
    return multiprocessing.current_process().name != "MainProcess"


def run_all(tasks: Sequence[Task], n_jobs: int) -> Iterator[tuple[int, Any]]:
    """Yield (position, result) of each task as it ends; a Failure where it raised or killed its worker twice.

    With n_jobs = 1 tasks run in this process, else in workers, however few they are.  When a worker dies, joblib gives
    up all that is in flight: those tasks run again, one at a time, so that the guilty one is known, and then the others
    go on.
    """
    if n_jobs == 1:
        yield from ((position, _guarded(task, None)) for position, task in enumerate(tasks))
        return
    waiting = list(range(len(tasks)))
    while waiting:
        started: list[int] = []
        finished: set[int] = set()
        try:
            for position, result in _parallel(tasks, waiting, n_jobs, started):
                finished.add(position)
                yield position, result
        except BrokenProcessPool:
            pass
        suspects = [position for position in started if position not in finished]
        for position in suspects:
            yield position, _alone(tasks[position])
        done = finished | set(suspects)
        waiting = [position for position in waiting if position not in done]


def stop_workers() -> None:
    """End all workers now, whatever they are doing."""
    get_reusable_executor().shutdown(wait=False, kill_workers=True)


def _parallel(
    tasks: Sequence[Task], positions: Sequence[int], n_jobs: int, started: list[int]
) -> Iterator[tuple[int, Any]]:
    n_jobs = max(2, min(n_jobs, len(positions)))  # joblib runs a single job in this process

    def calls() -> Iterator[Any]:
        for position in positions:
            started.append(position)
            yield delayed(_numbered)(position, tasks[position], os.getpid())

    # what an interrupted run gives up is no news
    warnings.filterwarnings("ignore", message=".*tasks which were still being processed by the workers")
    pool = Parallel(n_jobs=n_jobs, backend="loky", return_as="generator_unordered", pre_dispatch=n_jobs, batch_size=1)
    yield from pool(calls())


def _alone(task: Task) -> Any:
    """Run one task with no other in flight."""
    try:
        for _, result in _parallel([task], [0], 1, []):
            return result
    except BrokenProcessPool:
        pass
    return Failure("killed", "the worker process was killed twice while it ran this; it may need more memory.")


def _numbered(position: int, task: Task, parent: int) -> tuple[int, Any]:
    return position, _guarded(task, parent)


def _guarded(task: Task, parent: int | None) -> Any:
    """Return what a task returns, or a Failure; in a worker, leave when the parent is gone."""
    if parent is not None:
        _follow(parent)
    try:
        return task()
    except KlrBenchError as error:
        return Failure("error", str(error))
    except (Exception, SystemExit) as error:
        return Failure("error", f"{type(error).__name__}: {error}")


_following: set[int] = set()


def _follow(parent: int) -> None:
    """Watch the parent from a thread, once a process, and leave to it what Ctrl-C means."""
    if parent in _following:
        return
    _following.add(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

"""Tasks in worker processes, with the ones that kill their worker found out and set apart."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool

from klr_bench.errors import KlrBenchError

IDLE_S = 300
"""Seconds after which an idle worker leaves."""
LIBRARIES = ("OMP_NUM", "MKL_NUM", "OPENBLAS_NUM", "BLIS_NUM", "NUMEXPR_NUM", "NUMBA_NUM", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{library}_THREADS": "1" for library in LIBRARIES}


@dataclass(frozen=True)
class Failure:
    """Why a task has no result."""

    status: str  # error, killed
    message: str


Item = TypeVar("Item")
Task = Callable[[], Any]


def in_worker_process() -> bool:
    """Tell whether this process is somebody's worker already, which then should not start workers of its own."""
    return multiprocessing.current_process().name != "MainProcess"


def run_all(waiting: deque[Item], task: Callable[[Item], Task], n_jobs: int) -> Generator[tuple[Item, Any]]:
    """Yield (item, result) of the task of each waiting item as it ends; a Failure where it raised or was killed twice.

    Whoever takes a result may add items to `waiting`, at either end, before the next is asked for.  With n_jobs = 1
    tasks run in this process, else in workers, at most n_jobs at once.  When a worker dies, all that is in flight is
    given up: those tasks run again, one at a time, so that the guilty one is known, and then the others go on.  Where
    the iteration ends early, by an exception or by `close`, the workers are ended, whatever they are doing.
    """
    if n_jobs == 1:
        while waiting:
            item = waiting.popleft()
            yield item, _guarded(task(item))
        return
    flight: dict[Future[Any], Item] = {}
    try:
        while waiting or flight:
            while waiting and len(flight) < n_jobs:
                item = waiting.popleft()
                flight[_submit(task(item), n_jobs)] = item
            done, _ = wait(flight, return_when=FIRST_COMPLETED)
            if any(_was_killed(future) for future in done):
                done, _ = wait(flight)  # they have all been given up
            for future in [future for future in flight if future in done]:
                item = flight.pop(future)
                yield item, _alone(task(item), n_jobs) if _was_killed(future) else future.result()
    except BaseException:
        _workers(n_jobs).shutdown(wait=False, kill_workers=True)
        raise


def _workers(n_jobs: int) -> Any:
    """Return the worker processes, the same each time unless one of them has died since."""
    return get_reusable_executor(
        max_workers=n_jobs, timeout=IDLE_S, initializer=_follow, initargs=(os.getpid(),), env=ONE_THREAD
    )


def _submit(task: Task, n_jobs: int) -> Future[Any]:
    try:
        return _workers(n_jobs).submit(_guarded, task)  # type: ignore[no-any-return]
    except BrokenProcessPool:  # an idle worker has died in this very moment
        return _workers(n_jobs).submit(_guarded, task)  # type: ignore[no-any-return]


def _was_killed(future: Future[Any]) -> bool:
    return isinstance(future.exception(), BrokenProcessPool)


def _alone(task: Task, n_jobs: int) -> Any:
    """Run one task with no other in flight."""
    future = _submit(task, n_jobs)
    wait([future])
    if _was_killed(future):
        return Failure("killed", "the worker process was killed twice while it ran this; it may need more memory.")
    return future.result()


def _guarded(task: Task) -> Any:
    """Return what a task returns, or a Failure."""
    try:
        return task()
    except KlrBenchError as error:
        return Failure("error", str(error))
    except (Exception, SystemExit) as error:
        return Failure("error", f"{type(error).__name__}: {error}")


def _follow(parent: int) -> None:
    """Leave when the parent is gone, and leave to it what Ctrl-C means; called once in each worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

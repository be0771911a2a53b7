"""Run tasks in joblib's worker processes (loky), with one BLAS thread per worker.

If one worker dies, joblib aborts the whole call.  The tasks that were running are then retried one at a time, because
together they may have needed too much memory.  A task whose worker dies again has failed.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool

from klr_bench.config.models import ParallelConfig
from klr_bench.errors import memory_limit
from klr_bench.metrics.clock import interrupts_blocked
from klr_bench.runner import machine
from klr_bench.runner.executors import Failure, Say, Task, call_safely
from klr_bench.runner.executors.serial import SerialExecutor

# joblib warns about cancelled tasks when the results are no longer read, as after Ctrl-C.
warnings.filterwarnings("ignore", "\\d+ tasks which were still being processed", UserWarning, "joblib")
PARENT_CHECK_S = 0.5
"""Seconds between a worker's checks that its parent process is still running."""
EXIT_CODE = re.compile(r"\w+\(-?\d+\)")
"""Pattern of the exit codes in joblib's error message, such as SIGKILL(-9)."""


def open_executor(parallel: ParallelConfig, n_jobs: int | None, say: Say) -> JoblibExecutor | SerialExecutor:
    """Return a joblib executor, or a serial one in a worker process of a Hydra launcher."""
    if multiprocessing.current_process().name != "MainProcess":
        say("running one task at a time, because this is a worker process of a Hydra launcher.")
        return SerialExecutor()
    return JoblibExecutor(n_jobs)


class JoblibExecutor:
    """Executor that uses `n_jobs` worker processes; None or -1 means one per core."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n_workers = cpu_count() if n_jobs in (None, -1) else n_jobs
        self.n_started = 2
        """Number of worker processes that are started: as many as the tasks need so far, and at least two."""

    def __enter__(self) -> JoblibExecutor:
        """Shut down existing workers, whose environment variables may be out of date."""
        get_reusable_executor(reuse=True).shutdown(wait=True)
        return self

    def __exit__(self, *exception: object) -> None:
        """Shut down the workers, so that other code does not reuse them."""
        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result, or with a Failure, in order of completion."""
        waiting, lock = iter(tasks), threading.Lock()
        first = [*itertools.islice(waiting, self.n_workers)]
        waiting = itertools.chain(first, waiting)
        self.n_started = max(self.n_started, len(first))
        while True:
            started: dict[int, Task] = {}
            is_broken = threading.Event()
            with TemporaryDirectory(prefix="klr-bench-") as start_folder:
                try:
                    for number, result in self._parallel(_calls(waiting, lock, started, is_broken), start_folder):
                        yield started.pop(number), result
                    return
                except BrokenProcessPool as error:
                    is_broken.set()
                    reasons = EXIT_CODE.findall(str(error))
                started_numbers = {int(path.name) for path in Path(start_folder).iterdir()}
            with lock:
                unfinished = list(started.items())
            for number, task in unfinished:
                yield task, self._run_alone(task, reasons, n_tries=1 if number in started_numbers else 2)

    def _run_alone(self, task: Task, reasons: list[str], n_tries: int) -> Any:
        for _ in range(n_tries):
            try:
                [(_, result)] = self._parallel(iter([(0, task.call)]))
            except BrokenProcessPool as error:
                reasons = [*reasons, *EXIT_CODE.findall(str(error))]
            else:
                return result
        exit_codes = " and ".join(dict.fromkeys(reasons)) or "unknown exit status"
        memory = "; it may need more memory" if "SIGKILL" in exit_codes else ""
        message = f"the worker process died twice while running this task ({exit_codes}){memory}.{memory_limit()}"
        return Failure("killed", message)

    def _parallel(
        self, calls: Iterator[tuple[int, partial[Any]]], start_folder: str | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Run numbered calls in parallel; yield each number with the result of its call.

        Each call creates an empty file, named by its number, in the folder `start_folder` when it starts.  Raises
        BrokenProcessPool if a worker dies.
        """
        # With n_jobs=1, joblib would run tasks in this process; use two workers, and dispatch one task at a time.
        with parallel_config("loky", n_jobs=self.n_started, inner_max_num_threads=1):
            parallel = Parallel(return_as="generator_unordered", pre_dispatch=self.n_workers, batch_size=1)
            if os.name == "posix":
                ensure_running()  # Python's resource tracker, whose start by loky would end the blocking
            with interrupts_blocked():
                results = parallel(delayed(_run)(number, call, os.getpid(), start_folder) for number, call in calls)
            yield from results


def _calls(
    waiting: Iterator[Task], lock: threading.Lock, started: dict[int, Task], is_broken: threading.Event
) -> Iterator[tuple[int, partial[Any]]]:
    """Yield numbered calls, in a thread-safe way, and record their tasks in `started`."""
    for number in itertools.count():
        with lock:
            task = None if is_broken.is_set() else next(waiting, None)
            if task is None:
                return
            started[number] = task
        yield number, task.call


def _run(number: int, call: partial[Any], parent: int, start_folder: str | None) -> tuple[int, Any]:
    _prepare_worker(parent)
    if start_folder:
        Path(start_folder, str(number)).touch()
    return number, call_safely(call)


def _prepare_worker(parent: int) -> None:
    """Make this worker ignore Ctrl-C, and exit when its parent process has exited."""
    if getattr(_prepare_worker, "done", False):
        return
    _prepare_worker.done = True  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    machine.follow(parent)

    def watch() -> None:
        while os.getppid() == parent and psutil.pid_exists(parent):  # on Windows the first stays equal
            time.sleep(PARENT_CHECK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

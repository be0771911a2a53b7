"""Executor with joblib's worker processes (loky), one numerical thread per process.

joblib fails a whole call if one worker dies.  The tasks that were running then are repeated one at a time, because
together they may have needed too much memory; a task whose worker dies again has failed.
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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool

from klr_bench.config.models import ParallelConfig
from klr_bench.errors import memory_limit
from klr_bench.runner import machine
from klr_bench.runner.executors import Failure, Say, Task, run_guarded
from klr_bench.runner.executors.serial import SerialExecutor

warnings.filterwarnings("ignore", "\\d+ tasks which were still being processed", UserWarning, "joblib")
PARENT_CHECK_S = 0.5
"""Seconds between two checks of a worker whether its parent is running."""
EXIT_CODE = re.compile(r"\w+\(-?\d+\)")
"""Pattern of a worker's exit code in joblib's messages, such as SIGKILL(-9)."""


def open_executor(parallel: ParallelConfig, n_jobs: int | None, say: Say) -> JoblibExecutor | SerialExecutor:
    """Return the executor; inside a worker of a Hydra launcher it is a serial one."""
    if multiprocessing.current_process().name != "MainProcess":
        say("inside a worker process of a launcher: tasks run one at a time.")
        return SerialExecutor()
    return JoblibExecutor(n_jobs)


class JoblibExecutor:
    """Executor with `n_jobs` processes; None or -1 means one per core."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n_workers = cpu_count() if n_jobs in (None, -1) else n_jobs

    def __enter__(self) -> JoblibExecutor:
        """Shut down existing workers, which may use another folder or environment."""
        get_reusable_executor(reuse=True).shutdown(wait=True)
        return self

    def __exit__(self, *exception: object) -> None:
        """Shut down the workers, so that other code starts with new ones."""
        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result or Failure as it ends."""
        waiting, lock = iter(tasks), threading.Lock()
        while True:
            started: dict[int, Task] = {}
            is_broken = threading.Event()
            with TemporaryDirectory(prefix="klr-bench-") as marks:
                try:
                    for number, result in self._parallel(_calls(waiting, lock, started, is_broken), marks):
                        yield started.pop(number), result
                    return
                except BrokenProcessPool as error:
                    is_broken.set()
                    reasons = EXIT_CODE.findall(str(error))
                begun = {int(path.name) for path in Path(marks).iterdir()}
            with lock:
                unfinished = list(started.items())
            for number, task in unfinished:
                yield task, self._run_alone(task, reasons, n_tries=1 if number in begun else 2)

    def _run_alone(self, task: Task, reasons: list[str], n_tries: int) -> Any:
        """Run a single task up to `n_tries` times; `reasons` are the exit codes of earlier tries."""
        for _ in range(n_tries):
            try:
                [(_, result)] = self._parallel(iter([(0, task.call)]))
            except BrokenProcessPool as error:
                reasons = [*reasons, *EXIT_CODE.findall(str(error))]
            else:
                return result
        listed = " and ".join(dict.fromkeys(reasons)) or "unknown exit status"
        memory = "; it may need more memory" if "SIGKILL" in listed else ""
        message = f"the worker process ended twice while running this task ({listed}){memory}.{memory_limit()}"
        return Failure("killed", message)

    def _parallel(
        self, calls: Iterator[tuple[int, partial[Any]]], marks: str | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield index and result of each call as it finishes.

        Raises BrokenProcessPool if a worker dies.

        A call that starts leaves an empty file with its number in the folder `marks`.
        """
        # With one worker joblib would run tasks in this process, so two are started and run one task at a time.
        with parallel_config("loky", n_jobs=max(2, self.n_workers), inner_max_num_threads=1):
            parallel = Parallel(return_as="generator_unordered", pre_dispatch=self.n_workers, batch_size=1)
            yield from parallel(delayed(_run)(number, call, os.getpid(), marks) for number, call in calls)


def _calls(
    waiting: Iterator[Task], lock: threading.Lock, started: dict[int, Task], is_broken: threading.Event
) -> Iterator[tuple[int, partial[Any]]]:
    """Yield numbered calls and record their tasks in `started`; joblib consumes them in threads."""
    for number in itertools.count():
        with lock:
            task = None if is_broken.is_set() else next(waiting, None)
            if task is None:
                return
            started[number] = task
        yield number, task.call


def _run(number: int, call: partial[Any], parent: int, marks: str | None) -> tuple[int, Any]:
    _prepare_worker(parent)
    if marks:
        Path(marks, str(number)).touch()
    return number, run_guarded(call)


def _prepare_worker(parent: int) -> None:
    """Make this worker exit with its parent and ignore Ctrl-C, once per process."""
    if getattr(_prepare_worker, "done", False):
        return
    _prepare_worker.done = True  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    machine.follow(parent)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

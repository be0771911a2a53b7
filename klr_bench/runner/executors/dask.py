"""Run tasks on a dask cluster; each worker runs at most one task at a time.

Each task is assigned to one worker, to know which task was running on a worker that is lost.  Dask's own retries would
blame every task in the queue of the worker, and its joblib backend would wait forever for a task that dask abandons.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from klr_bench.config.models import ParallelConfig
from klr_bench.errors import KlrBenchError, StoppedError, fail, sanitize
from klr_bench.runner.executors import Failure, Say, Task
from klr_bench.runner.executors._dask_clusters import SETTINGS, job_cluster, local_cluster
from klr_bench.runner.executors._dask_worker import NO_DATA, OTHER_CODE, files_to_send, receive, run_here

if TYPE_CHECKING:
    from distributed import Client, Future

POLL_S = 0.5
"""Seconds between two queries for the list of workers."""
CONNECT_S = 30.0
"""Maximum seconds to wait for a scheduler to respond or to write its file."""
PATIENCE_S = 3.0
"""Seconds without any worker after which a message is printed."""
CHUNK = 2**23
"""Size in bytes of the chunks in which files are sent."""


@dataclass
class _Attempt:
    """A task that is running or waiting to be run again."""

    task: Task
    is_retry: bool = False
    """True if a worker was already lost while running the task."""
    future: Future | None = None
    started: float = 0.0


def open_executor(parallel: ParallelConfig, n_jobs: int | None, say: Say) -> DaskExecutor:
    """Return a dask executor.  Raises KlrBenchError if the cluster cannot be used."""
    return DaskExecutor(parallel, n_jobs, say)


class DaskExecutor:
    """Executor that uses the configured dask cluster, or a new one.

    A new cluster has `n_jobs` workers, on this machine or as jobs of the queueing system `parallel.jobqueue`.
    """

    _jobs: Any = None
    """Cluster of jobs that this executor has submitted, or None."""
    _n_jobs = 0
    """Number of jobs in this cluster."""

    def __init__(self, parallel: ParallelConfig, n_jobs: int | None, say: Say) -> None:
        try:
            import distributed
        except ImportError:
            fail("parallel=dask needs distributed, which is not installed. Run: pip install 'klr-bench[dask]'")
        self._say = say
        self._stack = ExitStack()
        self._stack.enter_context(distributed.utils.silence_logging_cmgr(logging.CRITICAL))
        self._client = self._connect(distributed, parallel, n_jobs)
        self._address = self._client.scheduler.address
        self._ended: SimpleQueue[tuple[str, Future]] = SimpleQueue()
        self._running: dict[str, _Attempt] = {}
        self._waiting: deque[_Attempt] = deque()
        """Tasks to run again, or the next task if there is no worker for it."""
        self._refused: dict[str, str] = {}
        self._sent: dict[tuple[str, str], float] = {}
        """Pairs (host, data set key) of the files already sent."""
        workers = self._workers()
        self.n_workers = max(1, len(workers), self._n_jobs)
        say(f"dask cluster {self._address}: {_format_workers(workers)}")

    def __enter__(self) -> DaskExecutor:
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(Exception):  # the scheduler may be gone
            self._stack.close()

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result, or with a Failure, in order of completion.

        A task has failed if two workers were lost while running it.  Raises StoppedError if the scheduler is gone, and
        KlrBenchError if none of the workers can be used.
        """
        attempts = (_Attempt(task) for task in tasks)
        polled, workers, absent_since = 0.0, self._workers(), None
        try:
            while True:
                while (worker := self._free_worker(workers)) is not None:
                    attempt = self._waiting.popleft() if self._waiting else next(attempts, None)
                    if attempt is None:
                        break
                    self._start(worker, attempt)
                if not self._running and not self._waiting:
                    attempt = next(attempts, None)
                    if attempt is None:
                        return
                    self._waiting.append(attempt)
                yield from self._results()
                if time.monotonic() - polled >= POLL_S:
                    polled, workers = time.monotonic(), self._workers()
                    yield from self._lost(workers)
                    absent_since = self._check_absence(workers, absent_since)
                    if len(workers) < self._n_jobs:
                        self._jobs.scale(self._n_jobs)  # submits jobs in place of those that have ended
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel([attempt.future for attempt in self._running.values()])
            self._running.clear()
            self._waiting.clear()

    def _free_worker(self, workers: Sequence[str]) -> str | None:
        """Return a worker that can start a task now, or None.

        A retried task gets a host without other tasks, because the first failure may have been due to lack of memory.
        """
        next_is_retry = bool(self._waiting) and self._waiting[0].is_retry
        hosts = {_host(worker) for worker, attempt in self._running.items() if next_is_retry or attempt.is_retry}
        used = {*self._running, *self._refused}
        return next((worker for worker in workers if worker not in used and _host(worker) not in hosts), None)

    def _start(self, worker: str, attempt: _Attempt) -> None:
        call = partial(run_here, attempt.task.item, attempt.task.call)
        future = self._client.submit(call, workers=[worker], key=f"klr-bench-{uuid4().hex}", pure=False)
        attempt.future, attempt.started = future, time.monotonic()
        self._running[worker] = attempt
        future.add_done_callback(lambda future: self._ended.put((worker, future)))

    def _results(self) -> Iterator[tuple[Task, Any]]:
        """Wait briefly for tasks to finish, and yield those that have a result."""
        timeout = POLL_S / 4
        while True:
            try:
                worker, future = self._ended.get(timeout=timeout)
            except Empty:
                return
            timeout = 0.0
            attempt = self._running.get(worker)
            if attempt and attempt.future is future:
                del self._running[worker]
                yield from self._result(worker, attempt, future)

    def _result(self, worker: str, attempt: _Attempt, future: Future) -> Iterator[tuple[Task, Any]]:
        """Yield a finished task with its result, or queue the task to run again."""
        try:
            result = future.result(timeout=CONNECT_S)
        except Exception:  # the result was lost with its worker, or dask has abandoned the task
            yield from self._retry(attempt)
            return
        status = result.status if isinstance(result, Failure) else ""
        if status == OTHER_CODE:
            self._refused[worker] = f"worker {worker} is not used: {result.message}"
            self._say(self._refused[worker])
            result = None
        elif status == NO_DATA:
            result = self._send_data(worker, attempt, result.message)
        if result is None:
            self._waiting.append(attempt)
        else:
            yield attempt.task, result

    def _retry(self, attempt: _Attempt) -> Iterator[tuple[Task, Any]]:
        """Queue a task again if its worker was lost; yield a Failure if this is the second loss."""
        if attempt.is_retry:
            message = "two workers were lost while running this task; it may need more memory."
            yield attempt.task, Failure("killed", message)
        else:
            attempt.is_retry = True
            self._waiting.append(attempt)

    def _lost(self, workers: Iterable[str]) -> Iterator[tuple[Task, Any]]:
        """Retry the tasks of lost workers; yield a Failure for tasks that were already retried."""
        for worker in {*self._running} - {*workers}:
            attempt = self._running.pop(worker)
            if attempt.future:
                attempt.future.cancel()
            yield from self._retry(attempt)

    def _workers(self) -> list[str]:
        """Return the addresses of the workers.  Raises StoppedError if the scheduler is gone."""
        try:
            if self._client.status != "running":
                message = "the connection is lost"
                raise OSError(message)
            return list(self._client.nthreads())
        except (OSError, TimeoutError) as error:
            gone = f"the scheduler at {self._address} is gone ({sanitize(error)})"
            message = f"{gone}. Start a scheduler and workers to continue."
            raise StoppedError(message) from error

    def _check_absence(self, workers: Sequence[str], since: float | None) -> float | None:
        """Check that there are usable workers; print a message after a while without workers.

        Return None if there are workers, 0 once the message is printed, else the time when the last worker disappeared.
        """
        self._refused = {worker: reason for worker, reason in self._refused.items() if worker in workers}
        if workers and len(self._refused) == len(workers):
            fail(f"{self._address}: no worker of this scheduler can be used. {next(iter(self._refused.values()))}")
        if workers:
            if since == 0.0:
                self._say(f"continuing with {_format_workers(workers)}")
            return None
        if since and time.monotonic() - since > PATIENCE_S:
            advice = "Its jobs are in the queue." if self._jobs else f"Start one with: dask worker {self._address}"
            self._say(f"waiting for a worker. {advice}")
            return 0.0
        return time.monotonic() if since is None else since

    def _send_data(self, worker: str, attempt: _Attempt, missing: str) -> Failure | None:
        """Send a task's data set to a worker's host, but only once; return a Failure if this fails.

        Tasks of other workers on this host may have begun before the data were there, and are run again.
        """
        source = attempt.task.item.source
        place = _host(worker), source.data_key
        if place in self._sent:
            if attempt.started < self._sent[place]:
                return None
            return Failure("error", f"{worker} cannot use the data that it has received: {missing}")
        self._say(f"sending {source.name} to {_host(worker)}")
        try:
            for name, path in files_to_send(source).items():
                with path.open("rb") as file:
                    for number, chunk in enumerate(iter(partial(file.read, CHUNK), b"")):
                        self._client.run(receive, source.cache, name, chunk, number, workers=[worker])
                self._client.run(receive, source.cache, name, b"", -1, workers=[worker])
        except (KlrBenchError, OSError, ValueError, TimeoutError) as error:
            return Failure("error", f"{source.name} cannot be sent to {worker} ({sanitize(error)}): {missing}")
        finally:
            self._sent[place] = time.monotonic()
        return None

    def _connect(self, distributed: Any, parallel: ParallelConfig, n_jobs: int | None) -> Client:
        address = parallel.address or (parallel.scheduler_file and _address_in(Path(parallel.scheduler_file)))
        if address is None:
            cluster = self._start_cluster(parallel, n_jobs)
            client = distributed.Client(cluster, set_as_default=False)
        else:
            try:
                client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
            except (OSError, ValueError, TypeError) as error:
                key = "address" if parallel.address else f"scheduler_file={sanitize(parallel.scheduler_file)}"
                fail(
                    f"parallel.{key}: no dask scheduler responds at {sanitize(address)} ({sanitize(error)}). Start one "
                    "with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`."
                )
        self._stack.callback(client.close, timeout=2)
        return client

    def _start_cluster(self, parallel: ParallelConfig, n_jobs: int | None) -> Any:
        import dask

        self._stack.enter_context(dask.config.set(SETTINGS))
        if parallel.jobqueue is None:
            cluster = local_cluster(n_jobs)
        else:
            cluster = self._jobs = job_cluster(parallel.jobqueue, n_jobs)
            self._n_jobs = n_jobs or 0
        self._stack.callback(cluster.close, timeout=10)
        return cluster


def _address_in(path: Path) -> str:
    end = time.monotonic() + CONNECT_S
    while True:
        try:
            return str(json.loads(path.read_text(encoding="utf-8"))["address"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if time.monotonic() > end:
                fail(
                    f"parallel.scheduler_file={sanitize(path)}: expected a dask scheduler file ({sanitize(error)}). "
                    f"Start a scheduler with `dask scheduler --scheduler-file {sanitize(path)}`."
                )
        time.sleep(POLL_S / 4)


def _host(worker: str) -> str:
    """Return the host in the address of a worker: 10.0.0.7 in tcp://10.0.0.7:40123."""
    return worker.rpartition("://")[2].rpartition(":")[0]


def _format_workers(workers: Sequence[str]) -> str:
    n_workers, n_hosts = len(workers), len({_host(worker) for worker in workers})
    if not n_workers:
        return "no worker yet"
    return f"{n_workers} worker{'s' * (n_workers != 1)} on {n_hosts} machine{'s' * (n_hosts != 1)}"

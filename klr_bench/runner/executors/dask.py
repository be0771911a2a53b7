"""Tasks on the workers of a dask cluster, at most one at a time per worker.

Each task is bound to one worker, so that it is known which task a lost worker had: dask's own retries blame every task
in the queue of a worker that dies, and its joblib backend waits forever for a task that dask has given up.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from klr_bench.config.models import ParallelConfig
from klr_bench.errors import KlrBenchError, StoppedError, fail, shown
from klr_bench.runner.executors import Failure, Say, Task
from klr_bench.runner.executors._dask_worker import MissingData, OtherCode, files_to_send, receive, run_here

if TYPE_CHECKING:
    from distributed import Client, Future

POLL_S = 0.5
"""Seconds between two looks at the workers of the cluster."""
CONNECT_S = 30.0
"""Seconds within which a scheduler has to answer, or to write its file."""
PATIENCE_S = 3.0
"""Seconds without a worker after which a line says so."""
CHUNK = 2**23
"""Bytes of a file that are sent at once."""


@dataclass
class _Attempt:
    """A task that runs or waits; `lost` is whether it has lost a worker."""

    task: Task
    lost: bool = False
    future: Future | None = None


def open_executor(parallel: ParallelConfig, n_jobs: int | None, say: Say) -> DaskExecutor:
    """Return the executor.  Raises KlrBenchError if the cluster cannot be used."""
    return DaskExecutor(parallel, n_jobs, say)


class DaskExecutor:
    """Runs tasks on the cluster of a configuration, or on one of `n_jobs` workers that it starts on this machine."""

    def __init__(self, parallel: ParallelConfig, n_jobs: int | None, say: Say) -> None:
        try:
            import distributed
        except ImportError:
            fail("parallel=dask needs distributed, which is not installed. Run: pip install 'klr-bench[dask]'")
        self._say = say
        self._stack = ExitStack()
        self._stack.enter_context(_quiet())
        self._client = self._connect(distributed, parallel, n_jobs)
        self._address = self._client.scheduler.address
        self._ended: SimpleQueue[tuple[str, Future]] = SimpleQueue()
        self._refused: dict[str, str] = {}
        self._sent: set[tuple[str, str]] = set()
        """(host, key of the data) of files that were sent."""
        self.n_workers = max(1, len(self._workers()))
        say(f"dask cluster {self._address}: {_counted(self._workers())}")

    def __enter__(self) -> DaskExecutor:
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(Exception):  # a scheduler that is gone cannot be told
            self._stack.close()

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result or Failure; a task that loses two workers has failed.

        Raises StoppedError if the scheduler is gone, and KlrBenchError if no worker can be used.
        """
        waiting = iter(tasks)
        again: deque[_Attempt] = deque()
        running: dict[str, _Attempt] = {}
        looked, workers = 0.0, self._workers()
        without_worker: float | None = None
        try:
            while True:
                for worker in self._free(workers, running, again):
                    attempt = again.popleft() if again else _next(waiting)
                    if attempt is None:
                        break
                    running[worker] = self._start(worker, attempt)
                if not running and not again and (attempt := _next(waiting)) is None:
                    return
                if not running and not again and attempt:
                    again.append(attempt)
                yield from self._results(running, again)
                if time.monotonic() - looked >= POLL_S:
                    looked, workers = time.monotonic(), self._workers()
                    yield from self._lost(workers, running, again)
                    without_worker = self._note_absence(workers, without_worker)
        finally:
            with suppress(Exception):  # a scheduler that is gone has given them up
                self._client.cancel([attempt.future for attempt in running.values()])

    def _free(self, workers: Iterable[str], running: Mapping[str, _Attempt], again: deque[_Attempt]) -> Iterator[str]:
        """Yield the workers that may start a task now.

        A task that has lost a worker is repeated on a host on which no other task runs, for all of them together may
        have needed too much memory.
        """
        busy = {_host(worker) for worker in running}
        alone = {_host(worker) for worker, attempt in running.items() if attempt.lost}
        for worker in workers:
            if worker in running or worker in self._refused or _host(worker) in alone:
                continue
            if again and again[0].lost and _host(worker) in busy:
                continue
            yield worker
            busy.add(_host(worker))
            alone |= {_host(worker)} if worker in running and running[worker].lost else set()

    def _start(self, worker: str, attempt: _Attempt) -> _Attempt:
        key = f"klr-bench-{uuid4().hex}"
        call = partial(run_here, attempt.task.item, attempt.task.call)
        attempt.future = self._client.submit(call, workers=[worker], key=key, pure=False)
        attempt.future.add_done_callback(lambda future: self._ended.put((worker, future)))
        return attempt

    def _results(self, running: dict[str, _Attempt], again: deque[_Attempt]) -> Iterator[tuple[Task, Any]]:
        """Wait a moment for tasks that end, and yield those that have; others are put back into `again`."""
        with suppress(Empty):
            worker, future = self._ended.get(timeout=POLL_S / 4)
            while True:
                attempt = running.get(worker)
                if attempt and attempt.future is future:
                    del running[worker]
                    result = self._result(worker, attempt, future)
                    if result is not None:
                        yield attempt.task, result
                    else:
                        again.append(attempt)
                worker, future = self._ended.get_nowait()

    def _result(self, worker: str, attempt: _Attempt, future: Future) -> Any:
        """Return the result of a task whose future is done, or None if it has to run again."""
        try:
            result = future.result(timeout=CONNECT_S)
        except Exception:  # the worker has died with its result, or dask has given the task up
            return self._repeat(attempt)
        if isinstance(result, OtherCode):
            self._refused[worker] = f"worker {worker} is not used: {result.message}"
            self._say(self._refused[worker])
            return None
        if isinstance(result, MissingData):
            return self._send_data(worker, attempt.task, result.message)
        return result

    def _repeat(self, attempt: _Attempt) -> Failure | None:
        """Return the failure of a task that has lost its worker twice; the first time note it and return None."""
        if attempt.lost:
            return Failure("killed", "two workers were lost while they ran this; it may need more memory.")
        attempt.lost = True
        return None

    def _lost(
        self, workers: Iterable[str], running: dict[str, _Attempt], again: deque[_Attempt]
    ) -> Iterator[tuple[Task, Any]]:
        """Yield the tasks that have lost their second worker; put those that have lost the first into `again`."""
        for worker in {*running} - {*workers}:
            attempt = running.pop(worker)
            if attempt.future:
                attempt.future.cancel()
            failure = self._repeat(attempt)
            if failure:
                yield attempt.task, failure
            else:
                again.append(attempt)

    def _workers(self) -> list[str]:
        """Return the addresses of the workers of the cluster.  Raises StoppedError if the scheduler is gone."""
        try:
            if self._client.status != "running":
                message = "the connection is lost"
                raise OSError(message)
            return list(self._client.nthreads())
        except (OSError, TimeoutError) as error:
            message = f"the scheduler at {self._address} is gone ({shown(error)}); start one, and workers, to go on."
            raise StoppedError(message) from error

    def _note_absence(self, workers: list[str], since: float | None) -> float | None:
        """Return since when there has been no worker, or None; say so after a while, and again when one has come."""
        self._refused = {worker: why for worker, why in self._refused.items() if worker in workers}
        if workers and len(self._refused) == len(workers):
            fail(f"{self._address}: none of its workers can be used. {next(iter(self._refused.values()))}")
        now = time.monotonic()
        if workers:
            if since == 0.0:
                self._say(f"going on with {_counted(workers)}")
            return None
        if since is None:
            return now
        if since and now - since > PATIENCE_S:
            self._say(f"no worker: folds and cells wait for one. Start one with: dask worker {self._address}")
            return 0.0
        return since

    def _send_data(self, worker: str, task: Task, missing: str) -> Failure | None:
        """Send the files of a task's data set to a worker's cache, once, so that the task can run again."""
        source = task.item.source
        if (_host(worker), source.data_key) in self._sent:
            return Failure("error", f"{worker} cannot use the data that were sent: {missing}")
        self._sent.add((_host(worker), source.data_key))
        self._say(f"sending {source.name} to {_host(worker)}")
        try:
            for place, path in files_to_send(source).items():
                with path.open("rb") as file:
                    chunks = iter(partial(file.read, CHUNK), b"")
                    for number, chunk in enumerate(chunks):
                        self._client.run(receive, source.cache, place, chunk, number, workers=[worker])
                self._client.run(receive, source.cache, place, b"", -1, workers=[worker])
        except (KlrBenchError, OSError, ValueError, TimeoutError) as error:
            return Failure("error", f"{source.name} cannot be sent to {worker} ({shown(error)}): {missing}")
        return None

    def _connect(self, distributed: Any, parallel: ParallelConfig, n_jobs: int | None) -> Client:
        address = parallel.address or (parallel.scheduler_file and _address_in(Path(parallel.scheduler_file)))
        if address is None:
            import dask

            # A fit may keep a worker from answering for longer than dask would wait; memory that is freed and
            # allocated again at once should not be returned to the system in between.
            settings = {
                "distributed.scheduler.worker-ttl": None,
                "distributed.worker.daemon": False,
                "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**30,
            }
            self._stack.enter_context(dask.config.set(settings))
            cluster = distributed.LocalCluster(
                n_workers=n_jobs if n_jobs and n_jobs > 0 else os.cpu_count(),
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            )
            self._stack.callback(cluster.close, timeout=10)
            client = distributed.Client(cluster, set_as_default=False)
        else:
            try:
                client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
            except (OSError, ValueError, TypeError) as error:
                key = "address" if parallel.address else f"scheduler_file={shown(parallel.scheduler_file)}"
                fail(
                    f"parallel.{key}: no scheduler of dask answers at {shown(address)} ({shown(error)}). Start one "
                    "with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`."
                )
        self._stack.callback(client.close, timeout=2)
        return client


def _next(waiting: Iterator[Task]) -> _Attempt | None:
    task = next(waiting, None)
    return None if task is None else _Attempt(task)


def _address_in(path: Path) -> str:
    """Return the address in the file that a scheduler has written, or writes within CONNECT_S."""
    end = time.monotonic() + CONNECT_S
    while time.monotonic() < end:
        with suppress(OSError, ValueError, KeyError, TypeError):
            return str(json.loads(path.read_text())["address"])
        time.sleep(POLL_S / 4)
    problem = "has no address of a scheduler" if path.is_file() else "does not exist"
    message = f"this file {problem}. Start a scheduler with `dask scheduler --scheduler-file {shown(path)}`."
    raise KlrBenchError(f"parallel.scheduler_file={shown(path)}: {message}")  # noqa: EM102


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence dask's own log messages: what matters to the run is printed by the run."""
    logging.getLogger("distributed")
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    nothing = logging.Filter("no logger has this name")
    for name in names:
        logging.getLogger(name).addFilter(nothing)
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeFilter(nothing)


def _host(worker: str) -> str:
    """Return the host of a worker's address, such as 10.0.0.7 of tcp://10.0.0.7:40123."""
    return worker.rpartition("://")[2].rpartition(":")[0]


def _counted(workers: Iterable[str]) -> str:
    """Return, for example, "4 workers on 2 machines"."""
    n_workers, n_hosts = len([*workers]), len({_host(worker) for worker in workers})
    if not n_workers:
        return "no worker yet"
    return f"{n_workers} worker{'s' * (n_workers != 1)} on {n_hosts} machine{'s' * (n_hosts != 1)}"

"""The workers of a dask cluster: which may be used, what each of them has to do, and what has become of it."""

from __future__ import annotations

import json
import logging
import math
import pickle
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from klr_bench.errors import KlrBenchError, StoppedError, shown
from klr_bench.experiment.config.schema import ParallelConfig
from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.experiment.runner import remote
from klr_bench.experiment.runner.cluster import GONE
from klr_bench.experiment.runner.dask_worker import serve
from klr_bench.experiment.runner.failure import Failure, Task, described, guarded
from klr_bench.experiment.runner.plan import Cell, classes_of
from klr_bench.experiment.runner.process import Ended

if TYPE_CHECKING:
    from distributed import Client, Future

POLL_S = 0.5
"""Seconds between two looks at who is there."""
CONNECT_S = 30.0
"""Seconds that a scheduler may take to answer first, or to write its file."""
ANSWER_S = 60.0
"""Seconds that it may take to answer later, and a worker to hand over a result."""
LOOK_S = 60.0
"""Seconds that a run waits at its start for what the workers say of themselves."""
PATIENCE_S = 3.0
"""Seconds without a worker after which this is said."""
PREFIX, SEPARATOR = "klr-bench", "/"
"""Of the keys of tasks: klr-bench/NAME/RANDOM; the same task of two runs is two tasks for dask."""
OTHERS_S, OTHERS_STAY_S = 0.02, 10.0
"""Seconds between two looks at what other runs have sent, and seconds that these go on after the last of them."""
CHUNK = 2**23
"""Bytes of a file that are sent at once."""


@contextmanager
def connected(
    parallel: ParallelConfig, n_jobs: int, cells: Sequence[Cell], say: Callable[[str], None]
) -> Iterator[DaskCluster]:
    """Connect to the cluster of a configuration, or start one of `n_jobs` workers on this machine, and look at it.

    Raises KlrBenchError where there is none, and where none of its workers may be used.
    """
    try:
        import distributed
    except ImportError as error:
        message = "parallel=dask needs distributed, which is not installed. Run: pip install 'klr-bench[dask]'"
        raise KlrBenchError(message) from error
    with _quiet():
        client, close = _client(distributed, parallel, n_jobs)
        try:
            cluster = DaskCluster(client, cells, say)
            cluster.look_first()
            yield cluster
        finally:
            with suppress(Exception):  # a scheduler that is gone cannot be told
                close()


def _client(distributed: Any, parallel: ParallelConfig, n_jobs: int) -> tuple[Client, Callable[[], None]]:
    """Return a client, and what closes it and the cluster that it has started."""
    address = parallel.address or (parallel.scheduler_file and _address(Path(parallel.scheduler_file)))
    if address is None:
        cluster = distributed.LocalCluster(
            n_workers=n_jobs,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        client = distributed.Client(cluster, set_as_default=False)

        def close() -> None:
            client.close(timeout=2)
            cluster.close(timeout=10)

        return client, close
    try:
        client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        message = (
            f"{_key(parallel)}: no scheduler of dask answers at {shown(address)} ({shown(error)}). Start one with "
            "`dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`."
        )
        raise KlrBenchError(message) from error
    return client, partial(client.close, timeout=2)


def _key(parallel: ParallelConfig) -> str:
    """Return the setting that has led to a cluster."""
    return "parallel.address" if parallel.address else f"parallel.scheduler_file={shown(parallel.scheduler_file)}"


def _address(path: Path) -> str:
    """Return the address in the file that a scheduler has written, or will write within CONNECT_S."""
    end = time.monotonic() + CONNECT_S
    while True:
        with suppress(OSError, ValueError, KeyError, TypeError):
            return str(json.loads(path.read_text())["address"])
        if time.monotonic() > end:
            break
        time.sleep(POLL_S / 4)
    what = "has no address of a scheduler" if path.is_file() else "is not there"
    message = (
        f"parallel.scheduler_file={shown(path)}: this file {what}. Start a scheduler with "
        f"`dask scheduler --scheduler-file {shown(path)}`."
    )
    raise KlrBenchError(message)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let dask say nothing on its own: what matters to the run is said by it."""
    logger = logging.getLogger("distributed")
    refuse = logging.Filter("nothing of this name")
    loggers = [logger, *(logging.getLogger(name) for name in logging.root.manager.loggerDict if "distributed." in name)]
    for one in loggers:
        one.addFilter(refuse)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(refuse)


@dataclass(frozen=True)
class _Sent:
    """A task that a worker has."""

    future: Future
    task: Task
    kind: Hashable
    name: str


class DaskCluster:
    """A `klr_bench.experiment.runner.cluster.Cluster` of dask.

    Each task is bound to its worker, and each worker has one at most, so that it is known who has lost what: dask's own
    retries, which blame all that waits in the queue of a worker that dies, have nothing to do.

    Parameters
    ----------
    client : the connection to the scheduler
    cells : what the run may send; the code that they need has to be with the workers as it is here
    say : prints a line
    """

    def __init__(self, client: Client, cells: Sequence[Cell], say: Callable[[str], None]) -> None:
        self.address = client.scheduler.address
        self._client = client
        self._say = say
        self._home = remote.home()
        targets, metrics = _code_of(cells)
        self._question = partial(remote.about, targets, metrics)
        self._here = self._question()
        self._events: SimpleQueue[tuple[str, Future]] = SimpleQueue()
        self._looks: dict[str, Future] = {}
        self._refused: dict[str, str] = {}
        self._used: dict[str, remote.Worker] = {}
        self._flights: dict[str, _Sent] = {}
        self._machines: dict[str, str] = {}
        self._processes: dict[str, tuple[int, ...]] = {}
        self._sent: set[tuple[str, str]] = set()
        self._said: set[str] = set()
        self._elsewhere: set[str] = set()
        self._seen = -math.inf
        """When there was another run last."""
        self._polled = -math.inf
        self._missed: float | None = None
        """Since when there is no worker, None where there is one."""
        self._said_missed = False

    def look_first(self) -> None:
        """Wait for what the workers that are there say of themselves; KlrBenchError where none of them may be used."""
        started = time.monotonic()
        self.workers()
        while self._looks and time.monotonic() - started < (PATIENCE_S if self._used else LOOK_S):
            self.ended(POLL_S / 4)
            self.workers()
        if self._refused and not self._looks and not self._used:
            message = f"{self.address}: none of its workers can be used. {next(iter(self._refused.values()))}"
            raise KlrBenchError(message)
        for line in self._refused.values():
            self._say(line)
        self._say(f"dask cluster {self.address}: {_counted(self._used)}")

    def workers(self) -> Mapping[str, str]:
        """Return the workers that may be used now, each with its machine; the same object if none has changed."""
        if self._client.status != "running" or time.monotonic() - self._polled >= POLL_S:
            self._poll()
        return self._machines

    def elsewhere(self) -> Set[str]:
        """Return the names of tasks that other runs have sent and that have not ended."""
        now = time.monotonic()
        if now - self._seen < OTHERS_STAY_S and now - self._polled > OTHERS_S:
            self._poll()
        return self._elsewhere

    def send(self, worker: str, task: Task, kind: Hashable, name: str) -> None:
        """Let a worker that has nothing to do begin with a task, in a process that runs nothing but this kind.

        The first argument of the task is a fold or a cell.
        """
        job = partial(remote.at_worker, task, self._processes[self._machines[worker]])
        future = self._submit(worker, remote.Errand(job, kind, self._home), name)
        self._flights[worker] = _Sent(future, task, kind, name)

    def ended(self, seconds: float) -> list[tuple[str, Ended]]:
        """Return the workers whose task has ended, and how; wait for the first of them, but not longer than this."""
        found: list[tuple[str, Ended]] = []
        with suppress(Empty):
            while True:
                worker, future = self._events.get(timeout=0 if found else seconds)
                flight = self._flights.get(worker)
                if self._looks.get(worker) is future:
                    self._look(worker, self._end(future))
                elif flight is not None and flight.future is future:
                    del self._flights[worker]
                    end = self._end(future)
                    if not isinstance(end.result, remote.Lacking):
                        found.append((worker, end))
                    elif failed := self._lend(worker, flight, end.result.message):
                        found.append((worker, failed))
        return found

    def missed(self, n_tasks: int) -> None:
        """Say once that there is no worker, and how many tasks wait for one."""
        now = time.monotonic()
        self._missed = now if self._missed is None else self._missed
        if now - self._missed > PATIENCE_S and not self._said_missed:
            self._said_missed = True
            busy = f"; {len(self._looks)} do not answer yet" if self._looks else ""
            advice = f"Start one with: dask worker {self.address} --nthreads 1"
            self._say(f"no worker{busy}: {n_tasks} folds and cells wait for one. {advice}")

    def cancel(self) -> None:
        """Give up the tasks in flight: their workers end them."""
        futures = [flight.future for flight in self._flights.values()] + [*self._looks.values()]
        self._flights.clear()
        self._looks.clear()
        with suppress(Exception):  # a scheduler that is gone has given them up
            self._client.cancel(futures)

    def _poll(self) -> None:
        """Look at who has come and who has gone."""
        keys = self._asked()
        self._polled = time.monotonic()
        there = {*keys}
        own = {flight.future.key for flight in self._flights.values()}
        others = [key.split(SEPARATOR) for key in {key for found in keys.values() for key in found} - own]
        self._elsewhere = {parts[1] for parts in others if len(parts) == 3 and parts[0] == PREFIX}
        self._seen = self._polled if self._elsewhere else self._seen
        for worker in there - {*self._looks, *self._refused, *self._used}:
            errand = remote.Errand(self._question, frozenset(), self._home)
            self._looks[worker] = self._submit(worker, errand, "look")
        for worker in {*self._looks, *self._refused} - there:
            self._looks.pop(worker, None)
            self._refused.pop(worker, None)
        gone = {*self._used} - there
        for worker in gone:
            del self._used[worker]
            if flight := self._flights.pop(worker, None):
                flight.future.cancel()
        if gone:
            self._count()

    def _asked(self) -> dict[str, list[str]]:
        """Return the addresses of all workers, and the keys of what each of them has to do.

        Raises StoppedError where the scheduler does not answer.
        """
        reason = "the connection is lost"
        if self._client.status == "running":
            try:
                return dict(self._client.sync(self._client.scheduler.processing, callback_timeout=ANSWER_S))
            except (OSError, TimeoutError) as error:
                reason = shown(error)
        message = f"the scheduler at {self.address} is gone ({reason}); start one, and workers, to go on."
        raise StoppedError(message)

    def _submit(self, worker: str, errand: remote.Errand, name: str) -> Future:
        key = SEPARATOR.join([PREFIX, name, uuid4().hex])
        future = self._client.submit(serve, pickle.dumps(errand), workers=[worker], key=key, pure=False)
        future.add_done_callback(lambda future: self._events.put((worker, future)))
        return future

    def _end(self, future: Future) -> Ended:
        """Return how a task has ended whose future is done."""
        from distributed import KilledWorker

        if future.status == "finished":
            try:
                pickled = future.result(timeout=ANSWER_S)
            except Exception:  # its worker has died after it
                return Ended(death=GONE)
            end = guarded(partial(pickle.loads, pickled))
            return end if isinstance(end, Ended) else Ended(end)
        if future.status != "error":  # cancelled, by whom and why ever
            self._asked()
            return Ended(death="the cluster has given it up")
        error = guarded(partial(future.exception, timeout=ANSWER_S))
        if isinstance(error, KilledWorker):
            return Ended(death=GONE)
        return Ended(error if isinstance(error, Failure) else Failure("error", described(error)))

    def _look(self, worker: str, end: Ended) -> None:
        """Take a worker into use, or refuse it, by what it says of itself."""
        del self._looks[worker]
        why = self._difference(end)
        if why:
            self._refused[worker] = f"worker {worker} is not used: {why}"
            if self._used or self._missed is not None:
                self._say(self._refused[worker])
            return
        self._used[worker] = end.result
        self._count()
        for library, version in self._here.versions.items():
            other = end.result.versions.get(library)
            line = f"{end.result.machine} has {library} {other}, here it is {version}: numbers may differ by rounding."
            if other != version and line not in self._said:
                self._said.add(line)
                self._say(line)
        if self._said_missed:
            self._say(f"going on with {_counted(self._used)}")
        self._missed, self._said_missed = None, False

    def _difference(self, end: Ended) -> str:
        """Return why a worker cannot be used, "" where it can."""
        if not isinstance(end.result, remote.Worker):
            return end.death or getattr(end.result, "message", "it gives no answer")
        code = {name: end.result.code.get(name, remote.NOT_THERE) for name in self._here.code}
        others = [
            f"its source of {name} has the hash {there}, here it is {self._here.code[name]}."
            for name, there in code.items()
            if there != self._here.code[name]
        ]
        advice = ["Give it what is here, or run with what it has, and start it again."]
        return " ".join(others + advice) if others else ""

    def _count(self) -> None:
        """Bring up to date what is known of the machines."""
        self._machines = {address: worker.machine for address, worker in self._used.items()}
        processes = {self._here.machine: [self._here.process]}
        for worker in self._used.values():
            processes.setdefault(worker.machine, []).append(worker.process)
        self._processes = {machine: tuple(sorted(found)) for machine, found in processes.items()}

    def _lend(self, worker: str, flight: _Sent, why: str) -> Ended | None:
        """Send the files of a data set to a machine that lacks them, and the task once more; None, or how that failed.

        why : what the worker says of the data
        """
        source = flight.task.args[0].source
        machine = self._used[worker].machine
        if (worker, source.data_key) in self._sent:
            return Ended(Failure("error", f"{machine} cannot use the data that were sent: {why}"))
        try:
            if (machine, source.data_key) not in self._sent:
                self._say(f"sending {source.name} to {machine}")
                for place, path in remote.files_to_send(source).items():
                    self._send_file(worker, source.cache, place, path)
        except (KlrBenchError, OSError, ValueError, TimeoutError) as error:
            return Ended(Failure("error", f"{source.name} cannot be sent to {machine} ({shown(error)}): {why}"))
        self._sent |= {(worker, source.data_key), (machine, source.data_key)}
        self.send(worker, flight.task, flight.kind, flight.name)
        return None

    def _send_file(self, worker: str, cache: Path, place: Path, path: Path) -> None:
        with path.open("rb") as file:
            start, end = 0, path.stat().st_size
            while start < end:
                chunk = file.read(CHUNK)
                first, last = start == 0, start + len(chunk) >= end
                self._client.run(remote.receive, cache, place, chunk, first=first, last=last, workers=[worker])
                start += len(chunk)


def _counted(workers: Mapping[str, remote.Worker]) -> str:
    machines = {worker.machine for worker in workers.values()}
    n_workers, n_machines = len(workers), len(machines)
    return (
        f"{n_workers} worker{'s' * (n_workers != 1)} on {n_machines} machine{'s' * (n_machines != 1)}"
        if workers
        else "no worker yet"
    )


def _code_of(cells: Sequence[Cell]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the dotted names of learners and makers of data of some cells, and the names of the user's metrics."""
    targets: set[str] = set()
    metrics: set[str] = set()
    for cell in cells:
        targets |= {*classes_of(cell.candidates), *cell.source.foreign}
        metrics |= {*cell.own_metrics, *({cell.selection.score} - {*METRICS})}
    return tuple(sorted(targets)), tuple(sorted(metrics))

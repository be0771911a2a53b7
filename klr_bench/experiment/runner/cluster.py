"""Tasks on the workers of a cluster: one at a time for each, done again elsewhere where a worker is lost.

What a cluster is stands in `Cluster`; `dask_cluster` has the one of dask.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Mapping, Set
from dataclasses import dataclass, replace
from random import randrange
from typing import Any, Generic, Protocol, TypeVar

from klr_bench.experiment.runner.failure import Failure, Task, killed
from klr_bench.experiment.runner.process import Ended

Item = TypeVar("Item")

TICK_S = 0.2
"""Seconds after which a cluster is looked at that says nothing."""
GONE = "the worker has left the cluster"
"""How a task has died whose worker is there no more."""


class Cluster(Protocol):
    """Workers that come and go."""

    def workers(self) -> Mapping[str, str]:
        """Return the workers that may be used now, each with the name of its machine; the same object if none changed.

        Raises StoppedError where the cluster is lost.
        """

    def elsewhere(self) -> Set[str]:
        """Return the names of tasks that other runs have sent and that have not ended."""

    def send(self, worker: str, task: Task, kind: Hashable, name: str) -> None:
        """Let a worker that has nothing to do begin with a task, in a process that runs nothing but this kind."""

    def ended(self, seconds: float) -> list[tuple[str, Ended]]:
        """Return the workers whose task has ended, and how; wait for the first of them, but not longer than this."""

    def missed(self, n_tasks: int) -> None:
        """Take note that there is no worker, and how many tasks wait for one; called at each look that finds none."""

    def cancel(self) -> None:
        """Give up the tasks in flight."""


@dataclass(frozen=True)
class _Trial(Generic[Item]):
    """An item whose task is to run or runs; of one that has died: how, and with which worker on which machine."""

    item: Item
    death: str = ""
    worker: str = ""
    machine: str = ""


class _Flight(Generic[Item]):
    """The workers, the tasks that they have, and which task may start next."""

    def __init__(self) -> None:
        self.trials: dict[str, _Trial[Item]] = {}
        self.suspects: deque[_Trial[Item]] = deque()
        self._machines: Mapping[str, str] = {}
        self._idle: dict[str, None] = {}
        self._closed: Counter[str] = Counter()
        """Machines on which a suspect runs."""

    def update(self, workers: Mapping[str, str]) -> list[str]:
        """Take note of the workers that there are now; return those that were lost with a task."""
        if workers is self._machines:
            return []
        self._machines = workers
        self._idle = {worker: None for worker in workers if worker not in self.trials}
        return [worker for worker in self.trials if worker not in workers]

    def start(self, worker: str, trial: _Trial[Item]) -> None:
        """Take note of a task that a worker has begun."""
        del self._idle[worker]
        machine = self._machines[worker]
        self.trials[worker] = replace(trial, worker=worker, machine=machine)
        if trial.death:
            self._closed[machine] += 1

    def end(self, worker: str, death: str = "") -> _Trial[Item] | None:
        """Return the task of a worker, which has ended or died; None where it is to run again."""
        trial = self.trials.pop(worker)
        if worker in self._machines:
            self._idle[worker] = None
        if trial.death:
            self._closed[trial.machine] -= 1
        elif death:
            self.suspects.append(replace(trial, death=death))
            return None
        return trial

    def take(self, waiting: deque[Item]) -> tuple[str, _Trial[Item]] | None:
        """Take the task that can start now, and its worker; None where there is none.

        A task that has lost its worker runs again with no other on its machine, for all of them together may have
        needed too much memory: on another machine, or with another worker, if there is one.
        """
        held = ""
        if self.suspects:
            suspect = self.suspects[0]
            held = self._machine_for(suspect)
            free = [worker for worker in self._idle if self._machines[worker] == held]
            if free and not any(trial.machine == held for trial in self.trials.values()):
                return min(free, key=lambda worker: worker == suspect.worker), self.suspects.popleft()
        open_ = (one for one in self._idle if self._machines[one] != held and not self._closed[self._machines[one]])
        worker = next(open_, None) if waiting else None
        return (worker, _Trial(waiting.popleft())) if worker else None

    def _machine_for(self, suspect: _Trial[Item]) -> str:
        """Return the machine that is kept free for a suspect: another one than before, with the fewest tasks."""
        n_tasks = Counter(trial.machine for trial in self.trials.values())
        machines = {*self._machines.values()}
        return min(machines, key=lambda one: (one == suspect.machine, n_tasks[one], one), default="")


def run_on(
    cluster: Cluster,
    waiting: deque[Item],
    task: Callable[[Item], Task | None],
    kind: Callable[[Item], Hashable],
    name: Callable[[Item], str],
) -> Generator[tuple[Item, Any]]:
    """Yield (item, result) of the task of each waiting item as it ends, as `pool.run_all` does in processes of its own.

    A task whose worker dies runs again; one that has lost two workers has failed.  Without a worker all waits until
    one comes.  What another run does under the same name is left to it as long as it does.  Raises StoppedError where
    the cluster is lost.  Where the iteration ends early the tasks are given up.
    """
    flight: _Flight[Item] = _Flight()
    try:
        while waiting or flight.suspects or flight.trials:
            workers = cluster.workers()
            lost = [(worker, Ended(death=GONE)) for worker in flight.update(workers)]
            if not workers:
                cluster.missed(len(waiting) + len(flight.suspects) + len(lost))
            left_to_others = []
            if waiting and cluster.elsewhere():
                waiting.rotate(randrange(len(waiting)))  # so that two runs seldom send the same at the same moment
            while not lost and (found := flight.take(waiting)) is not None:
                worker, trial = found
                if name(trial.item) in cluster.elsewhere():
                    left_to_others.append(trial)
                elif (job := task(trial.item)) is None:
                    yield trial.item, None
                else:
                    cluster.send(worker, job, kind(trial.item), name(trial.item))
                    flight.start(worker, trial)
            waiting.extend(trial.item for trial in left_to_others)
            for worker, end in lost or cluster.ended(TICK_S):
                if worker in flight.trials and (ended := flight.end(worker, end.death)) is not None:
                    yield ended.item, _killed(ended.death, end.death) if end.death else end.result
    finally:
        cluster.cancel()


def _killed(*deaths: str) -> Failure:
    """Return the failure of a task that has lost two workers."""
    causes = " and ".join(dict.fromkeys(deaths))
    return killed(f"two workers were lost while they ran this ({causes})", *deaths)

"""Tasks in worker processes, with the ones that kill their worker found out and set apart."""

from __future__ import annotations

import atexit
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

from klr_bench.experiment.runner.failure import Failure, Task, guarded, killed
from klr_bench.experiment.runner.process import Ended, Surroundings, Worker, surroundings

Item = TypeVar("Item")

_idle: list[tuple[Hashable, Worker]] = []
"""Workers that wait for the next task, and the kind of their tasks."""


@dataclass(frozen=True)
class _Trial(Generic[Item]):
    """An item whose task is to run, and how its first worker has died, if it has."""

    item: Item
    death: str = ""


def in_worker_process() -> bool:
    """Tell whether this process is a worker of a launcher already, where one worker of ours is enough."""
    return multiprocessing.current_process().name != "MainProcess"


def run_all(
    waiting: deque[Item],
    task: Callable[[Item], Task | None],
    n_jobs: int,
    here: Callable[[Item], bool] = lambda _: False,
    kind: Callable[[Item], Hashable] = lambda _: None,
) -> Generator[tuple[Item, Any]]:
    """Yield (item, result) of the task of each waiting item as it ends; a Failure where it has no result.

    An item that has no task, None, has the result None.  Whoever takes a result may add items to `waiting`, at either
    end, before the next is asked for.

    Tasks run in worker processes, at most n_jobs at once and each of one `kind` only, but for those that are to run
    `here`, in this one.  When a worker dies, its task runs again with no other in flight, for all of them together may
    have needed too much memory; one that kills its worker twice has failed.  Where the iteration ends early, by an
    exception or by `close`, the workers are ended, whatever they are doing.
    """
    flight: dict[Worker, _Trial[Item]] = {}
    suspects: deque[_Trial[Item]] = deque()
    try:
        while waiting or suspects or flight:
            while (trial := _next(waiting, suspects, flight, n_jobs)) is not None:
                job = task(trial.item)
                if job is None:
                    yield trial.item, None
                elif here(trial.item):
                    yield trial.item, guarded(job, through=(KeyboardInterrupt,))
                else:
                    flight[_started(job, kind(trial.item))] = trial
            for worker, end in _ends(flight):
                trial = flight.pop(worker)
                if worker.alive():
                    _idle.append((kind(trial.item), worker))
                if end.death and not trial.death:
                    suspects.append(replace(trial, death=end.death))
                else:
                    yield trial.item, _killed(trial.death, end.death) if end.death else end.result
    finally:
        for worker in flight:
            worker.end()


def _next(
    waiting: deque[Item], suspects: deque[_Trial[Item]], flight: Mapping[Worker, _Trial[Item]], n_jobs: int
) -> _Trial[Item] | None:
    """Take the item that can start now; None where there is none.  A suspect flies alone."""
    if suspects:
        return None if flight else suspects.popleft()
    if not waiting or len(flight) >= n_jobs or any(trial.death for trial in flight.values()):
        return None
    return _Trial(waiting.popleft())


def run_one(
    task: Task,
    kind: Hashable,
    report: Callable[[float], None],
    there: Surroundings | None = None,
    *,
    alone: bool = False,
) -> Ended:
    """Return the end of one task in a worker, in which nothing but this `kind` runs.

    `report` is called a few times a second with the seconds that the task has taken; where it raises the worker is
    ended.  `there` are the surroundings of the worker, None for those of this process.  Other idle workers stay, unless
    the new one is to be `alone`.
    """
    started = time.monotonic()
    worker = _started(task, kind, there, others_end=alone)
    try:
        while (end := worker.outcome()) is None:
            report(time.monotonic() - started)
            wait(worker.signs, worker.time_left)
    except BaseException:
        worker.end()
        raise
    if worker.alive():
        _idle.append((kind, worker))
    return end


def _started(task: Task, kind: Hashable, there: Surroundings | None = None, *, others_end: bool = True) -> Worker:
    """Return a worker, an idle one that has run nothing but this kind if there is one, that has begun with a task."""
    there = there or surroundings()
    worker = _idle_one(kind, there)
    if worker is None:
        if others_end:
            end_idle()  # they are of another kind, folder or environment
        worker = Worker(there)
    worker.start(task)
    return worker


def _idle_one(kind: Hashable, there: Surroundings) -> Worker | None:
    """Take an idle worker that has run nothing but this kind, if there is one."""
    fitting = [pair for pair in _idle if pair[0] == kind and pair[1].alive() and pair[1].surroundings == there]
    if not fitting:
        return None
    _idle.remove(fitting[0])
    return fitting[0][1]


def _ends(flight: Mapping[Worker, object]) -> Iterator[tuple[Worker, Ended]]:
    """Wait until something happens, and yield the workers whose task has ended."""
    if not flight:
        return
    wait([sign for worker in flight for sign in worker.signs], min(worker.time_left for worker in flight))
    for worker in list(flight):
        end = worker.outcome()
        if end is not None:
            yield worker, end


def _killed(*deaths: str) -> Failure:
    """Return the failure of a task that has killed its worker twice."""
    return killed(f"the worker process was killed twice while it ran this ({deaths[-1]})", *deaths)


@atexit.register
def end_idle() -> None:
    """End the workers that have nothing to do."""
    while _idle:
        _idle.pop()[1].end()

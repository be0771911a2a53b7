"""Tasks in workers, and in which order folds and cells run; the tasks are fakes that end when a test lets them."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.runner.pool import Failure, run_all
from klr_bench.experiment.runner.schedule import Schedule


@dataclass(frozen=True)
class FakeFold:
    key: str


@dataclass(frozen=True)
class FakeCell:
    key: str
    folds: list[FakeFold] = field(default_factory=list)


A, B, C, D = map(FakeFold, "ABCD")


def keys(items):
    return "".join(item.key for item in items)


def test_a_fold_comes_before_the_first_cell_that_needs_it():
    cells = [FakeCell("1", [A, B]), FakeCell("2"), FakeCell("3", [B, C])]
    schedule = Schedule(cells, [A, B, C])
    assert keys(schedule.waiting) == "AB2C"
    assert schedule.n_tasks == 6


def test_a_cell_whose_folds_are_scored_goes_ahead_of_other_folds():
    schedule = Schedule([FakeCell("1", [A, B]), FakeCell("2", [A]), FakeCell("3", [C, D])], [A, B, C, D])
    assert keys(schedule.waiting) == "ABCD"
    schedule.waiting.clear()
    schedule.waiting += [C, D]
    schedule.scored(A)
    assert keys(schedule.waiting) == "2CD"
    schedule.scored(B)
    assert keys(schedule.waiting) == "12CD"


def test_cells_that_become_ready_together_keep_their_order():
    schedule = Schedule([FakeCell("1", [A]), FakeCell("2", [A]), FakeCell("3", [A])], [A])
    schedule.waiting.clear()
    schedule.scored(A)
    assert keys(schedule.waiting) == "123"


def test_scored_folds_are_not_waited_for_and_failed_ones_take_their_cells_along():
    schedule = Schedule([FakeCell("1", [A, B]), FakeCell("2", [C]), FakeCell("3", [D])], [B, C])
    assert keys(schedule.waiting) == "BC3"
    assert keys(schedule.failed(B)) == "1"
    schedule.scored(B)
    assert keys(schedule.waiting) == "BC3", "a cell that was given up does not come back"


def touch_and_wait(folder: Path, name: str, awaited: str | None) -> str:
    """Leave a mark, and end when another one is there."""
    (folder / name).touch()
    while awaited and not (folder / awaited).exists():
        time.sleep(0.01)
    return name


def test_a_cell_lands_before_the_last_unrelated_fold_is_scored(tmp_path):
    cells = [FakeCell("1", [A]), FakeCell("2", [B])]
    schedule = Schedule(cells, [A, B])
    awaited = {"B": "landed"}  # the fold of cell 2 cannot end before cell 1 has landed
    landed = []

    def task(item):
        return partial(touch_and_wait, tmp_path, item.key, awaited.get(item.key))

    for item, _ in run_all(schedule.waiting, task, 2):
        landed.append(item.key)
        if isinstance(item, FakeFold):
            schedule.scored(item)
        elif item.key == "1":
            (tmp_path / "landed").touch()
    assert landed == ["A", "1", "B", "2"]


def fail(kind: str) -> str:
    if kind == "error":
        message = "no such data"
        raise KlrBenchError(message)
    if kind == "exit":
        raise SystemExit(3)
    return kind


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_a_task_raises_is_its_result(n_jobs):
    found = dict(run_all(deque(["error", "fine", "exit"]), lambda kind: partial(fail, kind), n_jobs))
    assert found == {
        "error": Failure("error", "no such data"),
        "fine": "fine",
        "exit": Failure("error", "SystemExit: 3. Take the call of exit out of the learner, or out of the metric."),
    }


def die(folder: Path, name: str, times: int) -> str:
    """Kill the own process the first `times` that this is called."""
    marks = len(list(folder.glob(f"{name}-*")))
    (folder / f"{name}-{marks}").touch()
    if marks < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def test_a_task_may_lose_its_worker_once_and_not_twice(tmp_path):
    deaths = {"a": 0, "b": 1, "c": 2, "d": 0, "e": 0}
    found = dict(run_all(deque(deaths), lambda name: partial(die, tmp_path, name, deaths[name]), 2))
    assert [name for name, result in found.items() if result != name] == ["c"]
    assert found["c"].status == "killed"
    assert set(found) == set(deaths)


def own_process(_: int) -> tuple[int, str]:
    return os.getpid(), os.environ["OMP_NUM_THREADS"]


def test_workers_are_other_processes_with_one_thread():
    found = [result for _, result in run_all(deque([1, 2, 3]), lambda n: partial(own_process, n), 2)]
    assert {threads for _, threads in found} == {"1"}
    assert os.getpid() not in {process for process, _ in found}


def test_an_early_end_ends_the_workers(tmp_path):
    tasks = {"fast": None, "endless": "never"}
    with closing(run_all(deque(tasks), lambda n: partial(touch_and_wait, tmp_path, n, tasks[n]), 2)) as results:
        assert next(results) == ("fast", "fast")
    again = run_all(deque(["next"]), lambda n: partial(touch_and_wait, tmp_path, n, None), 2)
    assert list(again) == [("next", "next")], "new ones come when they are wanted"

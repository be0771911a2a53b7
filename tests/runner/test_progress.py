"""progress.json: what a run says of itself, whatever its tasks run on, and that nothing depends on it."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.cli import main
from klr_bench.errors import KlrBenchError
from klr_bench.files import write_json
from klr_bench.results import progress
from klr_bench.results.merge import merge
from klr_bench.results.progress import NAME, Count, Progress, birth, is_alive, read_progress, standing
from klr_bench.runner import progress_file
from klr_bench.runner.progress_file import ProgressFile, _kind, _Rest
from tests.config.composing import altered
from tests.conftest import needs_proc
from tests.runner.test_interruptions import LEARNERS, Workplace, patiently

MIXED = {
    "first": {"_target_": f"{LEARNERS}.Watched", "tag": 1},
    "chosen": {"_target_": f"{LEARNERS}.Watched", "tag": 3},
    "failing": {"_target_": f"{LEARNERS}.Failing", "tag": 4},
}


def found(place: Workplace) -> Progress:
    there = read_progress(place.results)
    assert there is not None
    return there


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """An experiment of 3 learners, one of them with a grid, one that fails; the current folder is its own."""
    place = Workplace(tmp_path, MIXED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FITS_LOG", str(place.log))
    return place


@pytest.mark.parametrize("how", [["parallel=serial"], ["parallel=joblib", "n_jobs=2"]], ids=lambda how: how[0])
def test_a_run_says_how_it_has_ended(mixed: Workplace, how: list[str]) -> None:
    before = time.time()
    assert main(["run", "experiment=tiny", "repeats=2", *how]) == 1
    said = found(mixed)
    assert (said.experiment, said.state, said.message) == ("tiny", "finished", "")
    assert (said.cells, said.tasks) == (
        Count(total=6, done=4, failed=2),
        Count(total=6 + 2 * 2, done=8, failed=2),
    )  # two folds a repeat for `chosen`
    assert [failed.what for failed in said.failures] == [f"failing on small, repeat {n}" for n in (0, 1)]
    assert {(failed.status, failed.message) for failed in said.failures} == {
        ("error", "RuntimeError: this learner is broken")
    }
    assert (said.n_running, said.running, said.left_s) == (0, [], None)
    assert before <= said.started <= said.updated <= time.time()
    assert said.pid == os.getpid()
    Path(f"{mixed.log}.mended").touch()
    assert main(["run", "experiment=tiny", "repeats=2", *how]) == 0
    assert (found(mixed).cells, found(mixed).tasks, found(mixed).failures) == (
        Count(total=6, done=6, failed=0),
        Count(total=2, done=2, failed=0),
        [],
    )


def test_a_run_with_nothing_to_do_says_that_all_is_done(mixed: Workplace) -> None:
    arguments = ["run", "experiment=tiny", "repeats=1", "algorithm=[first]", "parallel=serial"]
    assert main(arguments) == main(arguments) == 0
    assert (found(mixed).state, found(mixed).cells, found(mixed).tasks) == ("finished", Count(total=1, done=1), Count())


@pytest.mark.exhaustive
def test_a_fold_that_fails_takes_its_cells_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Workplace(tmp_path, {"chosen": {"_target_": f"{LEARNERS}.Deadly", "tag": 3}})
    assert "killed" in place.finish("repeats=1", status=1)
    assert (found(place).cells, found(place).tasks.total) == (Count(total=1, done=0, failed=1), 3)
    assert found(place).tasks.failed == 3
    assert found(place).failures[0].message.startswith("in selection: ")


@pytest.mark.exhaustive
def test_a_run_at_work_says_what_runs_and_one_that_is_stopped_that_it_was(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.hold(4)
    run = place.start()
    place.wait_for(5)
    patiently(
        lambda: (place.results / NAME).exists() and found(place).n_running == 2 and found(place).left_s is not None
    )
    said = found(place)
    assert (said.state, standing(said)) == ("running", "running")
    assert (said.tasks.total, said.cells.total) == (12 + 2 * 4, 12)
    assert 1 <= said.tasks.done <= 4
    assert all(said.started <= task.started <= said.updated for task in said.running)
    assert [task.started for task in said.running] == sorted(task.started for task in said.running)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 130, output
    place.release()
    said = found(place)
    assert (said.state, said.message, said.running) == ("interrupted", "", [])
    assert f"{said.cells.done} of 12 cells are done" in output


@pytest.mark.exhaustive
def test_a_killed_run_is_told_from_one_at_work(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.hold(1)
    run = place.start()
    patiently(lambda: (place.results / NAME).exists())
    assert standing(found(place)) == "running"
    run.kill()
    run.wait()
    assert (found(place).state, standing(found(place))) == ("running", "killed")
    place.release()


def test_a_long_fit_in_the_process_of_the_run_is_no_silence(mixed: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit that lets other threads run, as most do, does not keep the word from being written again."""
    monkeypatch.setattr(progress_file, "INTERVAL_S", 0.01)
    monkeypatch.setattr(progress_file, "HEARTBEAT_S", 0.05)
    written: list[dict[str, Any]] = []
    monkeypatch.setattr(progress_file, "write_json", lambda path, content: written.append(content))
    Path(f"{mixed.log}.pace").write_text("1")
    assert main(["run", "experiment=tiny", "repeats=1", "algorithm=[first]", "parallel=serial"]) == 0
    at_work = [content for content in written if content["n_running"]]
    assert len(at_work) > 3
    assert {content["running"][0]["what"] for content in at_work} == {"first on small, repeat 0"}
    assert len({content["updated"] for content in at_work}) == len(at_work)


# That nothing depends on it


@pytest.mark.parametrize(
    "error", [KlrBenchError("no space left"), OSError(28, "no space left"), RuntimeError("json was taken apart")]
)
def test_a_run_does_not_fail_for_it(
    mixed: Workplace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(progress_file, "write_json", fails)
    assert main(["run", "experiment=tiny", "repeats=1", "algorithm=[first]", "parallel=serial"]) == 0
    assert not (mixed.results / NAME).exists()
    assert (mixed.results / "records.csv").exists()
    assert "no space" not in capsys.readouterr().err


@pytest.mark.parametrize("obstacle", ["folder", "pipe", "nonsense", "link"])
def test_what_stands_in_its_place_is_no_obstacle_to_a_run(mixed: Workplace, obstacle: str) -> None:
    path = mixed.results / NAME
    path.parent.mkdir(parents=True)
    makers = {
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "nonsense": lambda: path.write_bytes(b"\xff{"),
        "link": lambda: path.symlink_to(path),
    }
    makers[obstacle]()
    assert main(["run", "experiment=tiny", "repeats=1", "algorithm=[first]", "parallel=serial"]) == 0
    if obstacle != "folder":
        assert found(mixed).state == "finished"
    assert [entry.name for entry in path.parent.iterdir() if entry.name.endswith(".part")] == []


def test_it_is_no_result(mixed: Workplace) -> None:
    """Neither merged, nor a reason to compute anything again."""
    arguments = ["run", "experiment=tiny", "repeats=1", "algorithm=[first]", "parallel=serial"]
    assert main(arguments) == 0
    (mixed.results / NAME).unlink()
    mixed.forget_fits()
    assert main(arguments) == 0
    assert mixed.events("start") == []
    merge([Path("results")], Path("merged"))
    assert Path("merged/tiny/records.csv").exists()
    assert not Path("merged/tiny", NAME).exists()


def test_the_file_is_left_to_another_run_as_long_as_that_is_at_work(tmp_path: Path) -> None:
    with ProgressFile(tmp_path, 1, 0, 1):
        patiently((tmp_path / NAME).exists)
    ours = read_progress(tmp_path)
    assert ours is not None
    theirs = altered(ours, host="another", state="running", updated=time.time() + 3600)
    for there, taken in (
        (theirs, False),
        (altered(theirs, state="finished"), True),
        (altered(theirs, updated=1), True),
    ):
        write_json(tmp_path / NAME, there.model_dump())
        with ProgressFile(tmp_path, 7, 0, 1):
            pass
        said = read_progress(tmp_path)
        assert said is not None
        assert (said.cells.total == 7) == taken


# Whether a process is there


@needs_proc
def test_a_process_is_known_by_its_birth() -> None:
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    born = birth(child)
    assert born is not None
    assert is_alive(child, born)
    assert is_alive(child, None)
    assert not is_alive(child, born - 1)  # a later process that has its number
    os.kill(child, signal.SIGKILL)
    patiently(lambda: not is_alive(child, born))  # though its parent has not taken note of it yet
    os.waitpid(child, 0)
    assert not is_alive(child, born)
    assert not is_alive(child, None)


def test_without_proc_its_number_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(progress, "PROC", tmp_path)
    assert birth(os.getpid()) is None
    assert is_alive(os.getpid(), None)
    assert is_alive(os.getpid(), 12)  # written where there was a /proc
    assert is_alive(1, None)
    assert not is_alive(2**22 + 1, None)


# The time that is left

KINDS = [("cell", "a"), ("cell", "b"), ("fold", "a")]
TASKS = st.lists(st.tuples(st.sampled_from(KINDS), st.none() | st.floats(0, 1e3)), max_size=12)


@given(ended=TASKS, waiting=st.lists(st.sampled_from(KINDS), max_size=8), at_once=st.integers(1, 5))
def test_the_rest_takes_as_long_as_what_was_alike(
    ended: list[tuple[tuple[str, ...], float | None]], waiting: list[tuple[str, ...]], at_once: int
) -> None:
    rest = _Rest(at_once)
    for kind in [*(kind for kind, _ in ended), *waiting]:
        rest.add(kind)
    for kind, seconds in ended:
        rest.take(kind, seconds)
    known = [(kind, seconds) for kind, seconds in ended if seconds is not None]
    if not known:
        assert rest.seconds([]) is None
        return
    total = 0.0
    for kind in waiting:
        alike = [seconds for other, seconds in known if other == kind]
        near = [seconds for other, seconds in known if other[0] == kind[0]]
        chosen = alike or near or [seconds for _, seconds in known]
        total += sum(chosen) / len(chosen)
    assert rest.seconds([]) == pytest.approx(total / max(1, min(at_once, len(waiting))))


def test_what_has_run_already_is_not_left() -> None:
    rest = _Rest(2)
    for _ in range(4):
        rest.add(("cell", "a"))
    rest.take(("cell", "a"), 10.0)
    assert rest.seconds([(("cell", "a"), 4.0), (("cell", "a"), 99.0)]) == pytest.approx((10 - 4 + 0 + 10) / 2)


def test_tasks_are_counted_and_only_some_are_listed(tmp_path: Path) -> None:
    def task(number: int) -> Any:
        what = f"task {number}"
        return SimpleNamespace(key=what, describe=lambda: what, source=SimpleNamespace(name="small"), kernel=None)

    with ProgressFile(tmp_path, 0, 0, 149) as file:
        file.plan([task(number) for number in range(150)])
        for number in range(150):
            file.begin(task(number))
        patiently(lambda: (tmp_path / NAME).exists() and json.loads((tmp_path / NAME).read_text())["n_running"] == 149)
        said = read_progress(tmp_path)
        assert said is not None
        assert [running.what for running in said.running] == [f"task {n}" for n in range(100)]


def test_a_task_that_has_waited_for_a_worker_starts_when_another_ends(tmp_path: Path) -> None:
    tasks = [SimpleNamespace(key=key, source=SimpleNamespace(name="small"), kernel=None) for key in "abc"]
    file = ProgressFile(tmp_path, 0, 0, 2)
    for task in tasks:
        file._rest.add(_kind(task))  # type: ignore[arg-type]
        file.begin(task)  # type: ignore[arg-type]
    file._running = {key: (task, 1.0) for key, (task, _) in file._running.items()}
    file.end(tasks[0], failed=False)  # type: ignore[arg-type]
    assert [started == 1.0 for _, started in file._running.values()] == [True, False]

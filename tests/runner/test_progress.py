"""progress.json describes a run, whatever its tasks run on, and nothing depends on it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from klr_bench.cli import main
from klr_bench.files import write_json
from klr_bench.results.merge import merge
from klr_bench.results.progress import NAME, Count, Progress, birth, is_alive, read_progress, standing
from klr_bench.runner import progress_file
from klr_bench.runner.progress_file import ProgressFile
from tests.config.composing import altered
from tests.runner.test_interruptions import LEARNERS, Workplace, patiently

MIXED = {
    "first": {"_target_": f"{LEARNERS}.Watched", "tag": 1},
    "chosen": {"_target_": f"{LEARNERS}.Watched", "tag": 3},
    "failing": {"_target_": f"{LEARNERS}.Failing", "tag": 4},
}
ONE_CELL = ["run", "experiment=tiny", "repeats=1", "algorithm=[first]", "parallel=serial"]


def read(folder: Path) -> Progress:
    progress = read_progress(folder)
    assert progress is not None
    return progress


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """An experiment with 3 learners, one with a grid, one that fails, in the current folder."""
    place = Workplace(tmp_path, MIXED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FITS_LOG", str(place.log))
    return place


@pytest.mark.parametrize("options", [["parallel=serial"], ["parallel=joblib", "n_jobs=2"]], ids=lambda words: words[0])
def test_a_finished_run(mixed: Workplace, options: list[str]) -> None:
    before = time.time()
    assert main(["run", "experiment=tiny", "repeats=2", *options]) == 1
    said = read(mixed.results)
    assert (said.experiment, said.state, said.message, said.pid) == ("tiny", "finished", "", os.getpid())
    assert said.cells == Count(total=6, done=4, failed=2)
    assert said.tasks == Count(total=6 + 2 * 2, done=8, failed=2)  # two folds per repeat for `chosen`
    failures = [(failed.what, failed.status, failed.message) for failed in said.failures]
    message = "RuntimeError: this learner is broken"
    assert failures == [(f"failing on small, repeat {n}", "error", message) for n in (0, 1)]
    assert (said.n_running, said.running, said.left_s) == (0, [], None)
    assert before <= said.started <= said.updated <= time.time()
    Path(f"{mixed.log}.mended").touch()
    assert main(["run", "experiment=tiny", "repeats=2", *options]) == 0
    said = read(mixed.results)
    assert (said.cells, said.tasks, said.failures) == (Count(total=6, done=6), Count(total=2, done=2), [])
    assert main(["run", "experiment=tiny", "repeats=2", *options]) == 0
    said = read(mixed.results)
    assert (said.state, said.cells, said.tasks) == ("finished", Count(total=6, done=6), Count())


@pytest.mark.exhaustive
def test_a_running_and_an_interrupted_run(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.hold(4)
    run = place.start()
    place.wait_for(5)
    patiently(lambda: (place.results / NAME).exists() and read(place.results).n_running == 2)
    patiently(lambda: read(place.results).left_s is not None)
    said = read(place.results)
    assert (said.state, standing(said)) == ("running", "running")
    assert (said.tasks.total, said.cells.total) == (12 + 2 * 4, 12)
    assert 1 <= said.tasks.done <= 4
    times = [task.started for task in said.running]
    assert said.started <= times[0] <= times[1] <= said.updated
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 130, output
    said = read(place.results)
    assert (said.state, said.message, said.running) == ("interrupted", "", [])
    assert f"{said.cells.done} of 12 cells are done" in output


@pytest.mark.exhaustive
def test_a_killed_run(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.hold(1)
    run = place.start()
    patiently(lambda: (place.results / NAME).exists())
    assert standing(read(place.results)) == "running"
    run.kill()
    run.wait()
    assert (read(place.results).state, standing(read(place.results))) == ("running", "killed")
    place.release()


def test_the_file_is_written_during_a_long_fit(mixed: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_file, "INTERVAL_S", 0.01)
    monkeypatch.setattr(progress_file, "HEARTBEAT_S", 0.05)
    written: list[dict[str, Any]] = []
    monkeypatch.setattr(progress_file, "write_json", lambda path, content: written.append(content))
    Path(f"{mixed.log}.pace").write_text("1")
    assert main(ONE_CELL) == 0
    running = [content for content in written if content["n_running"]]
    assert {content["running"][0]["what"] for content in running} == {"first on small, repeat 0"}
    assert len({content["updated"] for content in running}) == len(running) > 3


def test_a_run_does_not_fail_for_the_file(
    mixed: Workplace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(progress_file, "write_json", fail)
    assert main(ONE_CELL) == 0
    assert not (mixed.results / NAME).exists()
    assert (mixed.results / "records.csv").exists()
    assert "no space" not in capsys.readouterr().err


@pytest.mark.parametrize("obstacle", [Path.mkdir, os.mkfifo, lambda path: path.write_bytes(b"\xff{")])
def test_an_obstacle_in_its_place_does_not_matter(mixed: Workplace, obstacle: Any) -> None:
    path = mixed.results / NAME
    path.parent.mkdir(parents=True)
    obstacle(path)
    assert main(ONE_CELL) == 0
    if obstacle is not Path.mkdir:
        assert read(mixed.results).state == "finished"
    assert [entry.name for entry in path.parent.iterdir() if entry.name.endswith(".part")] == []


def test_the_file_is_not_a_result(mixed: Workplace) -> None:
    assert main(ONE_CELL) == 0
    (mixed.results / NAME).unlink()
    mixed.forget_fits()
    assert main(ONE_CELL) == 0
    assert mixed.events("start") == []
    merge([Path("results")], Path("merged"))
    assert Path("merged/tiny/records.csv").exists()
    assert not Path("merged/tiny", NAME).exists()


def test_while_another_run_writes_the_file_this_one_does_not(tmp_path: Path) -> None:
    with ProgressFile(tmp_path, 1, 0, 1):
        patiently((tmp_path / NAME).exists)
    other = altered(read(tmp_path), host="another", state="running", updated=time.time() + 3600)
    for there, is_replaced in (
        (other, False),
        (altered(other, state="finished"), True),
        (altered(other, updated=1), True),
    ):
        write_json(tmp_path / NAME, there.model_dump())
        with ProgressFile(tmp_path, 7, 0, 1):
            pass
        assert (read(tmp_path).cells.total == 7) == is_replaced


def test_a_process_is_identified_by_its_start() -> None:
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    born = birth(child)
    assert born is not None
    assert is_alive(child, born)
    assert is_alive(child, None)
    assert not is_alive(child, born - 5)  # a later process with its id
    os.kill(child, signal.SIGKILL)
    patiently(lambda: not is_alive(child, born))  # a zombie
    os.waitpid(child, 0)
    assert not is_alive(child, born)


class FakeTask:
    def __init__(self, key: str) -> None:
        self.key = key

    def describe(self) -> str:
        return self.key


def test_running_tasks_are_counted_and_only_some_are_listed(tmp_path: Path) -> None:
    tasks: list[Any] = [FakeTask(f"task {number}") for number in range(152)]
    with ProgressFile(tmp_path, 0, 0, 149) as file:
        file.plan(152)
        for task in tasks:
            file.begin(task)
        patiently(lambda: (tmp_path / NAME).exists() and read(tmp_path).n_running == 149)
        assert [running.what for running in read(tmp_path).running] == [f"task {n}" for n in range(100)]
        begun = time.time()
        file.end(tasks[0], failed=False)
        patiently(lambda: read(tmp_path).tasks.done == 1)
        assert read(tmp_path).n_running == 149
        assert file._running["task 149"][1] >= begun > file._running["task 148"][1], "it has waited for a worker"


def test_the_remaining_time_is_in_proportion_to_the_tasks(tmp_path: Path) -> None:
    tasks: list[Any] = [FakeTask(str(number)) for number in range(3)]
    file = ProgressFile(tmp_path, 0, 0, 1)
    file._started -= 60
    file.plan(6)
    assert file._content().left_s is None
    file.begin(tasks[0])
    file.end(tasks[0], failed=False)
    file.begin(tasks[1])
    file.end(tasks[1], failed=True)
    file.end(tasks[2], failed=False)  # another run has done it
    assert file._content().left_s == pytest.approx(60 * 3 / 2, rel=0.1)

"""Tests of progress.json, with all executors."""

import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from klr_bench.cli import main
from klr_bench.files import write_json
from klr_bench.results.merge import merge
from klr_bench.results.progress import NAME, Count, Progress, birth, is_alive, read_progress, standing
from klr_bench.runner import progress_file
from klr_bench.runner.progress_file import ProgressFile
from tests.config.composing import altered
from tests.runner.test_interruptions import Workplace, ended, estimators, patiently

ONE_CELL = ["run", "experiment=tiny", "repeats=1", "algorithm=[first]", "parallel=serial"]


def read(folder: Path) -> Progress:
    progress = read_progress(folder)
    assert progress is not None
    return progress


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """Return an experiment with three algorithms: one has a grid, and one fails."""
    place = Workplace(tmp_path, estimators(first="Watched", chosen="Watched", failing="Failing"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FITS_LOG", str(place.log))
    return place


JOBLIB = pytest.param(["parallel=joblib", "n_jobs=2"], id="joblib", marks=pytest.mark.exhaustive)


@pytest.mark.parametrize("options", [pytest.param(["parallel=serial"], id="serial"), JOBLIB])
def test_a_finished_run(mixed: Workplace, options: list[str]) -> None:
    before, words = time.time(), ["run", "experiment=tiny", "repeats=2", *options]
    assert main(words) == 1
    said = read(mixed.results)
    assert (said.experiment, said.state, said.message, said.pid) == ("tiny", "finished", "", os.getpid())
    assert said.cells == Count(total=6, done=4, failed=2)
    assert said.tasks == Count(total=6 + 2 * 2, done=8, failed=2)  # two folds per repeat for `chosen`
    failures = [(failed.what, failed.status, failed.message.partition(" (")[0]) for failed in said.failures]
    message = "RuntimeError: this learner is broken"
    assert sorted(failures) == [(f"failing on small, repeat {n}", "error", message) for n in (0, 1)]
    assert (said.n_running, said.running, said.left_s) == (0, [], None)
    assert before <= said.started <= said.updated <= time.time()
    Path(f"{mixed.log}.mended").touch()
    assert main(words) == 0
    said = read(mixed.results)
    assert (said.cells, said.tasks, said.failures) == (Count(total=6, done=6), Count(total=2, done=2), [])
    assert main(words) == 0
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
    output = ended(run, 130)
    said = read(place.results)
    assert (said.state, said.message, said.running) == ("interrupted", "", [])
    assert f"{said.cells.done} of 12 cells are finished" in output


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


def test_a_run_does_not_fail_if_the_file_cannot_be_written(
    mixed: Workplace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_file, "write_json", lambda *_: os.read(-1, 1))
    assert main(ONE_CELL) == 0
    assert not (mixed.results / NAME).exists()
    assert (mixed.results / "records.csv").exists()
    assert "Bad file descriptor" not in capsys.readouterr().err


@pytest.mark.parametrize("obstacle", [Path.mkdir, os.mkfifo, lambda path: path.write_bytes(b"\xff{")])
def test_an_obstacle_in_its_place_does_not_matter(mixed: Workplace, obstacle: Any) -> None:
    path = mixed.results / NAME
    path.parent.mkdir(parents=True)
    obstacle(path)
    assert main(ONE_CELL) == 0
    assert obstacle is Path.mkdir or read(mixed.results).state == "finished"
    assert not [*path.parent.glob("*.part"), *path.parent.glob(".*.part")]


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
    for change, is_replaced in (({}, False), ({"state": "finished"}, True), ({"updated": 1}, True)):
        write_json(tmp_path / NAME, altered(other, **change).model_dump())
        with ProgressFile(tmp_path, 7, 0, 1):
            pass
        assert (read(tmp_path).cells.total == 7) == is_replaced


def test_a_process_is_identified_by_its_start() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        born = birth(child.pid)
        assert born is not None
        assert [is_alive(child.pid, start) for start in (born, None)] == [True, True]
        assert not is_alive(child.pid, born - 5)  # a later process with the same id
        child.kill()
        patiently(lambda: not is_alive(child.pid, born))  # a zombie
    assert not is_alive(child.pid, born)


def test_the_remaining_time_is_in_proportion_to_the_tasks(tmp_path: Path) -> None:
    tasks: list[Any] = [SimpleNamespace(key=str(number), describe=str) for number in range(3)]
    file = ProgressFile(tmp_path, 0, 0, 1)
    file._started -= 60
    file.plan(6)
    assert file._content().left_s is None
    file.begin(tasks[0])
    file.end(tasks[0], failed=False)
    file.begin(tasks[1])
    file.end(tasks[1], failed=True)
    file.end(tasks[2], failed=False)  # finished by another run
    assert file._content().left_s == pytest.approx(60 * 3 / 2, rel=0.1)

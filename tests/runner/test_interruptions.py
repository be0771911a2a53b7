"""Runs that are killed, interrupted, started twice or continued, as real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
import yaml

from klr_bench.results.progress import Count, read_progress
from tests.conftest import needs_proc
from tests.runner.small import MOONS, SMALL, made

pytestmark = pytest.mark.exhaustive
HERE = Path(__file__).parent
LEARNERS = "tests.runner.learners"
TIMES = ["fit_time_s", "predict_time_s", "peak_memory_mb", "load"]


def estimators(**kinds: str) -> dict[str, dict]:
    """Return algorithms with estimators from tests.runner.learners, keyed by name."""
    return {name: {"_target_": f"{LEARNERS}.{kind}", "tag": name} for name, kind in kinds.items()}


class Workplace:
    """A folder with an experiment `tiny`: three algorithms, one of them with a grid."""

    def __init__(self, folder: Path, algorithms: dict[str, dict] | None = None) -> None:
        self.folder = folder
        self.log = folder / "fits.log"
        self.results = folder / "results" / "tiny"
        algorithms = algorithms or estimators(first="Watched", second="Watched", chosen="Watched")
        for stem, estimator in algorithms.items():
            grid = {"choice": [1, 2]} if stem == "chosen" else {}
            entry = {"label": stem, "estimator": estimator, "grid": grid}
            self.write(f"algorithm/{stem}", f"algorithms.{stem}", entry)
        source = made(MOONS | {"n_samples": 200, "noise": 0.2})
        self.write("dataset/small", "datasets.small", SMALL | {"source": source})
        overrides = [{"override /dataset": ["small"]}, {"override /algorithm": list(algorithms)}, "_self_"]
        self.write("experiment/tiny", "_global_", {"defaults": overrides, "repeats": 4, "selection": {"folds": 2}})

    def write(self, name: str, package: str, content: dict) -> None:
        path = self.folder / "configs" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# @package {package}\n{yaml.safe_dump(content, sort_keys=False)}")

    def start(self, *overrides: str) -> subprocess.Popen:
        environment = os.environ | {"FITS_LOG": str(self.log), "PYTHONPATH": str(HERE.parents[1])}
        command = [sys.executable, "-m", "klr_bench", "run", "experiment=tiny", "n_jobs=2", *overrides]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in background processes
        )

    def finish(self, *overrides: str, status: int = 0) -> str:
        return ended(self.start(*overrides), status)

    def events(self, event: str) -> list[tuple[str, ...]]:
        """Return the fits that have started or ended, as (pid, tag, rows, seed)."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [tuple(line.split()[1:]) for line in lines if line.startswith(event)]

    def hold(self, n: int) -> None:
        """Block all fits from the n-th on, and release earlier ones."""
        unfinished = Path(f"{self.log}.hold.part")
        unfinished.write_text(str(n))
        unfinished.replace(f"{self.log}.hold")

    def release(self) -> None:
        Path(f"{self.log}.hold").unlink()

    def wait_for(self, n: int) -> None:
        """Wait until n fits have started."""
        patiently(lambda: len(self.events("start")) >= n)

    def records(self, name: str = "tiny") -> pd.DataFrame:
        """Return the records without columns that differ between runs."""
        return pd.read_csv(self.results.parent / name / "records.csv").drop(columns=TIMES)

    def forget_fits(self) -> None:
        self.log.unlink(missing_ok=True)


def ended(process: subprocess.Popen, status: int = 0) -> str:
    """Wait for a run to end; return its output as one line."""
    output, _ = process.communicate(timeout=120)
    assert process.returncode == status, output
    return " ".join(output.split())


def patiently(happens: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail if it never does."""
    for _ in range(6000):
        if happens():
            return
        time.sleep(0.01)
    pytest.fail("it does not happen")


def alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid: int) -> set[str]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[1] == str(pid):
                found.add(stat.parent.name)
    return found


@pytest.fixture
def place(tmp_path) -> Workplace:
    return Workplace(tmp_path)


@needs_proc
@pytest.mark.parametrize("moment", [1, 8, 27])
def test_a_killed_parent_loses_only_running_tasks(place, undisturbed, moment):
    place.hold(moment)
    process = place.start()
    place.wait_for(moment)
    workers = children(process.pid)  # including workers that have not started a fit
    process.kill()
    process.wait()
    place.release()
    patiently(lambda: not any(map(alive, workers)))  # workers do not outlive their parent
    finished = {path.stem for path in (place.results / "cells").glob("[!.]*.json")}
    scored = len(list((place.results / "selections").glob("*/[!.]*.json")))
    place.forget_fits()
    output = place.finish()
    assert f"({len(finished)} by earlier runs)" in output
    assert len(place.events("end")) == (12 - len(finished)) + 2 * (8 - scored)
    pd.testing.assert_frame_equal(place.records(), undisturbed)


def test_tasks_of_a_killed_worker_are_retried(place, undisturbed):
    place.hold(2)
    process = place.start()
    for n in (2, 14, 22):  # during selection and while fitting cells
        place.hold(n)
        place.wait_for(n)
        os.kill(int(place.events("start")[-1][0]), signal.SIGKILL)
    place.release()
    ended(process)
    pd.testing.assert_frame_equal(place.records(), undisturbed)


def test_a_cell_that_kills_two_workers_fails_and_the_others_continue(tmp_path):
    place = Workplace(tmp_path, estimators(first="Watched", deadly="Deadly", failing="Failing"))
    output = place.finish("repeats=2", status=1)
    status = place.records().groupby("algorithm").status.agg(set)
    assert status.to_dict() == {"first": {"ok"}, "deadly": {"killed"}, "failing": {"error"}}
    assert "killed: deadly on small, repeat 0: the worker process died twice" in output
    assert "error: failing on small, repeat 0: RuntimeError: this learner is broken" in output
    # two cells, twice each, unless the death of one ends the other between its mark and its fit
    assert [tag for _, tag, *_ in place.events("start")].count("deadly") in {3, 4}
    Path(f"{place.log}.mended").touch()
    assert "4 of 4 cells are finished (2 by earlier runs)" in place.finish("repeats=2", "algorithm=[first,failing]")
    alone = place.finish("repeats=1", "algorithm=[deadly]", "name=alone", status=1)
    assert "killed: deadly on small, repeat 0" in alone, "also as the last task of a run"


def test_a_selection_that_kills_workers_is_a_failed_cell(tmp_path):
    place = Workplace(tmp_path, estimators(chosen="Deadly"))
    place.finish("repeats=1", status=1)
    (row,) = place.records().itertuples()
    assert row.status == "killed"
    assert row.message.startswith("in selection: the worker process died twice")
    progress = read_progress(place.results)
    assert (progress.tasks, progress.cells) == (Count(total=3, failed=3), Count(total=1, failed=1))


def test_two_concurrent_runs_do_not_interfere(place, undisturbed):
    for process in [place.start(), place.start()]:
        ended(process)
    pd.testing.assert_frame_equal(place.records(), undisturbed)


def test_an_interrupted_run_can_be_continued(place, undisturbed):
    for number in (signal.SIGTERM, signal.SIGINT):
        awaited = len(place.events("start")) + 5
        place.hold(awaited)
        process = place.start()
        place.wait_for(awaited)
        process.send_signal(number)
        output = ended(process, 130)
        place.release()
        assert "Run the same command again to continue." in output
        assert "Traceback" not in output
    place.finish()
    pd.testing.assert_frame_equal(place.records(), undisturbed)


def test_each_run_of_a_multirun_has_its_own_results(place, undisturbed):
    place.finish("-m", "repeats=1,4")
    for repeats in (1, 4):
        expected = undisturbed[undisturbed["repeat"] < repeats].reset_index(drop=True)
        name = f"tiny-repeats-{repeats}"
        pd.testing.assert_frame_equal(place.records(name), expected.assign(experiment=name))
    assert sorted(path.name for path in place.folder.iterdir()) == ["configs", "fits.log", "results"]

"""Runs on a real dask cluster whose workers are killed, join late or have different code.

Each time the records are those of a run without a cluster that nobody disturbed.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import klr_bench
from klr_bench.cli import main
from klr_bench.runner.executors import _dask_worker, dask
from klr_bench.runner.fit import run_cell
from klr_bench.runner.plan import plan_cells
from tests.config.composing import composed
from tests.runner.test_interruptions import HERE, TIMES, Workplace, ended, estimators, patiently

pytestmark = pytest.mark.exhaustive


class Cluster:
    """A dask scheduler and its workers; there are none at first."""

    def __init__(self, place: Workplace) -> None:
        self.place = place
        self.folder = place.folder / f"cluster-{os.urandom(4).hex()}"
        self.folder.mkdir()
        self.file = self.folder / "scheduler.json"
        self.workers: list[subprocess.Popen] = []
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(self.file))
        patiently(self.file.exists)

    def _start(self, what: str, *arguments: str, **environment: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--no-dashboard", *arguments]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd=self.folder, env=os.environ | environment, **silent)

    def add(self, *path: Path) -> None:
        """Start a worker; `path` are folders to search for modules first."""
        options = ("--scheduler-file", str(self.file), "--no-nanny", "--nthreads", "1")
        python_path = os.pathsep.join(map(str, [*path, HERE.parents[1]]))
        self.workers.append(self._start("worker", *options, FITS_LOG=str(self.place.log), PYTHONPATH=python_path))

    def kill(self, pid: int) -> None:
        worker = next(worker for worker in self.workers if worker.pid == pid)
        self.workers.remove(worker)
        worker.kill()
        worker.wait()

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(Workplace(tmp_path))
    yield cluster
    cluster.close()


def fits(place: Workplace, event: str) -> list[list[str]]:
    """Return the fits that have started or ended, as [tag, rows, seed]."""
    return [fit for _, *fit in place.events(event)]


def on(cluster: Cluster) -> list[str]:
    return ["n_jobs=null", "parallel=dask", f"parallel.scheduler_file={cluster.file}"]


def test_lost_workers_and_late_workers(cluster, undisturbed):
    """Workers are killed during a fold and a cell, and for a while there are none."""
    place = cluster.place
    for _ in range(2):
        cluster.add()
    place.hold(2)
    process = place.start(*on(cluster))
    for n in (2, 20):
        place.hold(n)
        place.wait_for(n)
        pid, *lost = place.events("start")[-1]
        cluster.kill(int(pid))
        cluster.add()
    n_starts = fits(place, "start").count(lost)

    def is_repeated() -> bool:
        starts, ends = (fits(place, event).count(lost) for event in ("start", "end"))
        return starts > n_starts and starts == ends + 1

    n = 23
    while not is_repeated():  # otherwise the same fit might lose two workers
        n += 1
        place.hold(n)
        place.wait_for(n)
    for worker in [*cluster.workers]:
        cluster.kill(worker.pid)
    place.release()
    timer = threading.Timer(60, process.kill)
    timer.start()
    assert any("waiting for a worker. Start one with: dask worker tcp://" in line for line in process.stdout)
    timer.cancel()
    cluster.add()
    assert "continuing with 1 worker on 1 machine" in ended(process)
    pd.testing.assert_frame_equal(place.records(), undisturbed)


def test_a_task_that_loses_two_workers_has_failed(tmp_path):
    place = Workplace(tmp_path, estimators(first="Watched", deadly="Deadly"))
    output = place.finish("repeats=1", "parallel=dask", status=1)
    assert re.search(r"dask cluster tcp://\S+: 2 workers on 1 machine", output)
    assert place.records().set_index("algorithm").status.to_dict() == {"first": "ok", "deadly": "killed"}
    assert "two workers were lost while running this task" in output
    assert [tag for _, tag, *_ in place.events("start")].count("deadly") == 2


def test_a_worker_with_other_code_is_not_used(cluster, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(Path(klr_bench.__file__).parent, other / "klr_bench", ignore=shutil.ignore_patterns("__pycache__"))
    splits = next((other / "klr_bench").rglob("splits.py"))
    splits.write_text(f"{splits.read_text()}\nVERSION = 'another'\n")
    (other / "configs").symlink_to(Path(klr_bench.__file__).parents[1] / "configs")
    cluster.add(other)
    refused = ended(cluster.place.start(*on(cluster), "algorithm=[first]"), status=2)
    assert "no worker of this scheduler can be used" in refused
    assert (
        "the worker's code differs from the code of the run. Install the same code, and restart the worker." in refused
    )
    cluster.add()
    output = ended(cluster.place.start(*on(cluster), "algorithm=[first]"))
    assert "4 of 4 cells are finished" in output


def test_an_interrupted_run_and_a_lost_scheduler_keep_finished_cells(cluster, undisturbed):
    place = cluster.place
    for _ in range(2):
        cluster.add()
    for n, status in ((6, 130), (12, 1)):
        n += len(place.events("start")) - len(place.events("end"))  # tasks that were running
        place.hold(n)
        process = place.start(*on(cluster))
        place.wait_for(n)
        cluster.scheduler.kill() if status == 1 else process.send_signal(signal.SIGINT)
        output = ended(process, status)
        assert "Run the same command again to continue." in output
        assert ("is gone" in output) == (status == 1)
        assert "Traceback" not in output
        place.release()
    done = len(list((place.results / "cells").glob("[!.]*.json")))
    assert f"({done} by earlier runs)" in ended(place.start())
    pd.testing.assert_frame_equal(place.records(), undisturbed)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("address=tcp://127.0.0.1:9", r"address: no dask scheduler responds at tcp://127\.0\.0\.1:9 .* Start one"),
        ("scheduler_file=none.json", r"scheduler_file=none\.json: expected a dask scheduler file .*Start a scheduler"),
    ],
)
def test_an_unreachable_cluster_gives_one_message(tmp_path, monkeypatch, capsys, setting, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dask, "CONNECT_S", 0.5)
    assert main(["run", "experiment=quickstart", "parallel=dask", f"parallel.{setting}"]) == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))
    assert not (tmp_path / "results").exists()


def test_data_are_sent_once_to_a_machine_with_several_workers(monkeypatch):
    """The tasks of all workers begin before the data are there; only one that begins later cannot use them."""
    executor, said = object.__new__(dask.DaskExecutor), []
    executor._sent, executor._say, executor._client = {}, said.append, SimpleNamespace(run=lambda *_, **__: None)
    monkeypatch.setattr(dask, "files_to_send", lambda _: {})
    item = SimpleNamespace(source=SimpleNamespace(name="far", data_key="k", cache="c"))
    attempts = [dask._Attempt(SimpleNamespace(item=item), started=time.monotonic()) for _ in range(3)]
    for i, attempt in enumerate(attempts):
        assert executor._send_data(f"tcp://far:{i}", attempt, "missing") is None
    assert said == ["sending far to far"]
    attempts[0].started = time.monotonic()
    refused = executor._send_data("tcp://far:0", attempts[0], "missing")
    assert "cannot use the data that it has received" in refused.message


@pytest.mark.parametrize("what", ["own", "fetched"])
def test_data_are_sent_to_a_machine_without_them(tmp_path, monkeypatch, what):
    """Simulate, in this process, a worker that shares no disk with the run."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    if what == "own":
        (here / "own.csv").write_text("".join(f"{i % 7},{i % 3},{'ab'[i % 2]}\n" for i in range(60)))
        data = ["dataset=file", f"data.path={here / 'own.csv'}"]
    else:
        (here / "far").mkdir()
        (here / "far" / "far.txt").write_text("".join(f"{2 * (i % 2) - 1} 1:{i % 7} 2:{i % 3}\n" for i in range(60)))
        source = "{format: svmlight, name: far, train: {name: far/far.txt, sha256: unknown}}"
        settings = [f"source={source}", "source.generator=null", "source.n_samples=60"]
        data = ["dataset=moons", *(f"datasets.moons.{setting}" for setting in settings), f"data.mirror={here}"]
    config = composed(*data, "algorithm=nc", "repeats=1", f"data.cache={here / 'cache'}")
    (cell,) = plan_cells(config, here / "cache", construct=True)
    expected = run_cell(cell, cell.candidates[0].chosen)
    sent = [(place, path.read_bytes()) for place, path in _dask_worker.files_to_send(cell.source).items()]
    here.rename(tmp_path / "far away")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_dask_worker, "default_cache", lambda: tmp_path / "there")
    call = partial(_dask_worker.run_here, cell, partial(run_cell, cell, cell.candidates[0].chosen))
    for place, content in sent:
        half = len(content) // 2
        for part, number in ((content[:half], 0), (content[half:], 1), (b"", -1)):
            assert call().status == _dask_worker.NO_DATA
            _dask_worker.receive(here / "cache", place, part, number)
    found = call()
    assert found.record.key == expected.record.key
    metrics = [{k: v for k, v in result.record.metrics.items() if k not in TIMES} for result in (found, expected)]
    assert metrics[0] == metrics[1]

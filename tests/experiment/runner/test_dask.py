"""Runs on a cluster of dask: a real scheduler, real workers and a real driver, which are killed, lost and come late.

Each time the records are those of a run without a cluster that nobody has disturbed, and nothing is fitted twice that
was not in flight.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import klr_bench
from klr_bench.cli import main
from klr_bench.experiment.keys import package_hash
from klr_bench.experiment.progress import Count, read_progress
from klr_bench.experiment.runner import dask_cluster, remote
from klr_bench.experiment.runner.plan import plan_cells
from klr_bench.experiment.runner.work import run_cell
from tests.experiment.composing import altered, composed
from tests.experiment.runner.test_interruptions import HERE, LEARNERS, TIMES, Workplace, alive, children, patiently

pytest.importorskip("distributed")
N_FITS = 3 * 4 + 2 * 2 * 4
"""Cells, and the selection of one of them."""


class Cluster:
    """A scheduler of dask and its workers, which are none at first."""

    def __init__(self, place: Workplace, **environment: str) -> None:
        self.place = place
        self.elsewhere = place.folder / f"cluster-{os.urandom(4).hex()}"
        self.elsewhere.mkdir()
        self.file = self.elsewhere / "scheduler.json"
        self.environment = os.environ | {"DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "1h"} | environment
        self.workers: list[subprocess.Popen] = []
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file))
        patiently(self.file.exists)

    def _start(self, what: str, *arguments: str, **environment: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments],
            cwd=self.elsewhere,
            env=self.environment | environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def add(self, *path: Path) -> None:
        """Start a worker, with a path to search for modules before that of the tests."""
        worker = self._start(
            "worker",
            *("--scheduler-file", str(self.file), "--no-nanny", "--nthreads", "1", "--no-dashboard"),
            FITS_LOG=str(self.place.log),
            PYTHONPATH=os.pathsep.join(map(str, [*path, HERE.parents[2]])),
        )
        self.workers.append(worker)

    def have(self, n: int) -> None:
        """Start workers, or end some, so that there are n."""
        for worker in self.workers[n:]:
            worker.kill()
            worker.wait()
        del self.workers[n:]
        for _ in range(n - len(self.workers)):
            self.add()

    def kill(self, pid: int) -> None:
        """Kill a worker, and return when what it has started is gone, too."""
        started = children(pid)
        worker = next(worker for worker in self.workers if worker.pid == pid)
        self.workers.remove(worker)
        worker.kill()
        worker.wait()
        patiently(lambda: not any(map(alive, started)))

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def rapt(tmp_path_factory) -> Iterator[tuple[Workplace, subprocess.Popen]]:
    """A run whose only fit holds Python's lock four times as long as the heartbeat of its worker may take."""
    place = Workplace(tmp_path_factory.mktemp("rapt"), {"rapt": {"_target_": f"{LEARNERS}.Rapt", "seconds": 20}})
    cluster = Cluster(place, DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL="5s")
    cluster.have(1)
    yield place, place.start(*on(cluster, "rapt"), "repeats=1")
    cluster.close()


@pytest.fixture(scope="module")
def warm(tmp_path_factory, rapt) -> Iterator[Cluster]:
    algorithms = {
        **{name: {"_target_": f"{LEARNERS}.Watched", "tag": tag} for tag, name in enumerate(["first", "second"], 1)},
        "chosen": {"_target_": f"{LEARNERS}.Watched", "tag": 3},
        **{
            name: {"_target_": "mine.Mine", "choice": n, "tag": 4 + n}
            for n, name in enumerate(["mine", "deadly", "rapt"])
        },
    }
    cluster = Cluster(Workplace(tmp_path_factory.mktemp("cluster"), algorithms))
    cluster.have(2)
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(warm) -> Cluster:
    """A cluster of two workers, which may have worked for another test, with nothing left of that."""
    place = warm.place
    shutil.rmtree(place.results, ignore_errors=True)
    place.forget_fits()
    warm.have(2)
    return warm


@pytest.fixture
def place(cluster) -> Workplace:
    return cluster.place


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> pd.DataFrame:
    """The records of a run that nobody disturbed."""
    place = Workplace(tmp_path_factory.mktemp("undisturbed"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place.folder)
        patch.setenv("FITS_LOG", str(place.log))
        assert main(["run", "experiment=tiny", "parallel=serial"]) == 0
    return place.records()


def on(cluster: Cluster, *algorithms: str) -> list[str]:
    chosen = algorithms or ("first", "second", "chosen")
    return [
        "n_jobs=null", "parallel=dask", f"parallel.scheduler_file={cluster.file}", f"algorithm=[{','.join(chosen)}]"
    ]  # fmt: skip


def ended(process: subprocess.Popen, status: int = 0) -> str:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == status, output
    return " ".join(output.split())


def read_until(process: subprocess.Popen, text: str) -> None:
    """Read what a run prints until a line has this text."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    pytest.fail(f"it does not say {text!r}")


def worker_of(event: tuple[str, ...]) -> int | None:
    """Return the worker of dask that has started the process of a fit, None where that has ended."""
    try:
        return int(Path(f"/proc/{event[0]}/stat").read_text().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return None


def fitting(place: Workplace) -> set[str]:
    """Return the processes whose last fit has started and not ended."""
    lines = [line.split()[:2] for line in place.log.read_text().splitlines()]
    return {pid for pid, event in {pid: event for event, pid in lines}.items() if event == "start"}


def test_workers_that_are_lost_and_workers_that_come_late(cluster, place, undisturbed):
    """One run in which workers die in a cell and in a fold, and all are gone for a while."""
    cluster.have(1)
    place.hold(1)
    process = place.start(*on(cluster))
    for n in (1, 10):  # in a cell, and in a fold
        place.hold(n)
        place.wait_for(n)
        cluster.add()
        held, late = (worker.pid for worker in cluster.workers)
        patiently(lambda late=late: late in map(worker_of, place.events("start")))
        cluster.kill(held)
    place.hold(22)  # when those that had lost a worker have ended: who loses two has failed
    place.wait_for(22)
    for worker in [*cluster.workers]:
        cluster.kill(worker.pid)
    place.release()
    read_until(process, "folds and cells wait for one. Start one with: dask worker tcp://")
    cluster.have(2)
    assert "going on with 1 worker" in ended(process)
    said = read_progress(place.results)
    assert said is not None
    assert (said.state, said.tasks, said.cells) == ("finished", Count(12 + 2 * 4, 12 + 2 * 4), Count(12, 12))
    assert N_FITS <= len(place.events("end")) <= N_FITS + 2  # one of two fits of a fold may have ended
    pd.testing.assert_frame_equal(place.records(), undisturbed)


def test_two_runs_on_one_cluster_share_the_work(cluster, place, undisturbed):
    Path(f"{place.log}.pace").write_text("0.2")  # so that there is time to see what the other one has sent
    place.hold(1)
    processes = [place.start(*on(cluster)), place.start(*on(cluster))]
    place.wait_for(2)
    place.release()
    for process in processes:
        ended(process)
    assert len(place.events("end")) <= N_FITS + 4  # what both sent before they saw each other
    Path(f"{place.log}.pace").unlink()
    pd.testing.assert_frame_equal(place.records(), undisturbed)


@pytest.fixture(scope="module")
def other_source(tmp_path_factory) -> Path:
    """A folder with a klr-bench of another version."""
    folder = tmp_path_factory.mktemp("other")
    shutil.copytree(Path(klr_bench.__file__).parent, folder / "klr_bench", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "klr_bench" / "printing.py").open("a") as file:
        file.write("\n# of another version\n")
    (folder / "configs").symlink_to(Path(klr_bench.__file__).parents[1] / "configs")
    return folder


def test_refused_workers_and_a_task_that_kills_two_and_one_that_never_ends(cluster, place, other_source):
    (place.folder / "mine.py").write_text("from tests.experiment.runner.learners import Doomed as Mine\n")
    (other_source / "mine.py").write_text(
        "from tests.experiment.runner.learners import Doomed\n\nclass Mine(Doomed): pass\n"
    )
    run = (*on(cluster, "deadly", "rapt", "mine"), "repeats=1", "algorithms.rapt.time_limit_s=1")
    cluster.have(0)
    cluster.add(other_source)
    refused = ended(place.start(*run), status=2)
    assert "none of its workers can be used" in refused
    assert not place.results.exists()
    refused_worker = cluster.workers[0].pid
    for _ in range(2):
        cluster.add()  # which find the module in the folder of the run
    place.hold(1)
    process = place.start(*run)
    place.wait_for(1)
    assert refused_worker not in map(worker_of, place.events("start"))
    place.release()
    output = ended(process, status=1)
    there, here = re.search(r"its source of klr_bench has the hash (\w+), here it is (\w+)\.", output).groups()
    assert there != here == package_hash()
    there, here = re.search(r"its source of mine.Mine has the hash (\w+), here it is (\w+)\.", output).groups()
    assert there != here
    assert "killed: deadly on small, repeat 0: two workers were lost while they ran this (SIGKILL)" in output
    assert len([tag for _, tag, *_ in place.events("start") if tag == "5"]) == 2
    statuses = place.records().set_index("algorithm").status
    assert statuses.to_dict() == {"deadly": "killed", "rapt": "timeout", "mine": "ok"}


def test_a_run_that_ends_early_leaves_the_rest_to_the_next_one(cluster, place, undisturbed):
    """A driver is killed, the next one interrupted, the next one loses its scheduler; a cluster of its own goes on."""
    for n, status in ((6, -signal.SIGKILL), (12, 130), (18, 1)):
        n += len(place.events("start")) - len(place.events("end"))  # which were in flight
        place.hold(n)
        process = place.start(*on(cluster))
        place.wait_for(n)
        if status == 1:
            cluster.scheduler.kill()
        else:
            process.send_signal(signal.SIGINT if status == 130 else signal.SIGKILL)
        output = ended(process, status)
        assert status < 0 or "Run the same command again to go on." in output
        assert status != 1 or "is gone" in output
        assert "Traceback" not in output
        patiently(lambda: not any(map(alive, fitting(place))))  # though held: nobody waits for them any more
    place.release()
    done = len(list((place.results / "cells").glob("[!.]*.json")))
    output = ended(place.start("parallel=dask", "algorithm=[first,second,chosen]"))
    assert re.search(r"dask cluster tcp://\S+: \d workers? on 1 machine", output)
    assert f"({done} were there already)" in output
    assert N_FITS <= len(place.events("end")) <= N_FITS + 3 * 2
    pd.testing.assert_frame_equal(place.records(), undisturbed)


def test_a_fit_may_hold_the_lock_for_longer_than_the_heartbeat_may_take(rapt):
    place, process = rapt
    ended(process)
    (row,) = pd.read_csv(place.results / "records.csv").itertuples()
    assert row.status == "ok"
    assert row.fit_time_s >= 20


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "address=tcp://127.0.0.1:9",
            r"parallel\.address: no scheduler of dask answers at tcp://127\.0\.0\.1:9 .* Start",
        ),
        (
            "scheduler_file=none.json",
            r"parallel\.scheduler_file=none\.json: this file is not there\. Start a scheduler",
        ),
    ],
)
def test_a_cluster_that_is_not_there_is_one_message(tmp_path, monkeypatch, capsys, setting, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 0.5)
    assert main(["run", "experiment=quickstart", "parallel=dask", f"parallel.{setting}"]) == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("what", ["own", "fetched"])
def test_a_machine_without_the_data_gets_them(tmp_path, monkeypatch, what):
    """What happens with a worker that shares no disk with the run, played in this process."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    (here / "own.csv").write_text("".join(f"{i % 7},{i % 3},{'ab'[i % 2]}\n" for i in range(60)))
    text = "".join(f"{2 * (i % 2) - 1} 1:{i % 7} 2:{i % 3}\n" for i in range(60))
    monkeypatch.chdir(here)
    if what == "own":
        data = ["dataset=file", f"data.path={here / 'own.csv'}"]
    else:
        (here / "mirror" / "far").mkdir(parents=True)
        (here / "mirror" / "far" / "far.txt").write_text(text)
        data = ["dataset=moons", f"data.mirror={here / 'mirror'}"]
    config = composed(*data, "algorithm=nc", "repeats=1", f"data.cache={here / 'cache'}")
    if what == "fetched":
        source = {"format": "svmlight", "name": "far", "train": {"name": "far/far.txt", "sha256": "unknown"}}
        config = altered(config, datasets={"far": {"source": source, "split": {"test_size": 0.2}}})
    (cell,) = plan_cells(config, here / "cache")
    expected = run_cell(cell, cell.candidates[0].chosen)
    sent = [(place, path.read_bytes()) for place, path in remote.files_to_send(cell.source).items()]
    here.rename(tmp_path / "far away")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(remote, "default_cache", lambda: there)
    task: Callable[[], object] = remote.partial(
        remote.at_worker, remote.partial(run_cell, cell, cell.candidates[0].chosen), [os.getpid()]
    )
    assert isinstance(task(), remote.Lacking)
    for at, content in sent:
        half = len(content) // 2
        remote.receive(here / "cache", at, content[:half], first=True, last=False)
        assert isinstance(task(), remote.Lacking)
        remote.receive(here / "cache", at, content[half:], first=False, last=True)
    found = task()
    assert found.record.key == expected.record.key
    metrics = [{k: v for k, v in one.record.metrics.items() if k not in TIMES} for one in (found, expected)]
    assert metrics[0] == metrics[1]

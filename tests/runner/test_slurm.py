"""Runs whose workers are jobs of SLURM, with commands `sbatch` and `scancel` that start and end processes here."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pandas as pd
import psutil
import pytest

from klr_bench.cli import main
from tests.runner.test_interruptions import Workplace, ended, patiently

SBATCH = """#!/bin/sh
cp "$1" {folder}/$$.sh
setsid bash {folder}/$$.sh >{folder}/$$.log 2>&1 &
echo "$!" >>{folder}/jobs
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
kill -KILL -- "-$1"
"""
REFUSING = """#!/bin/sh
echo "sbatch: error: Invalid account or account/partition combination specified" >&2
exit 1
"""


class Slurm:
    """Folder with the commands of SLURM and the scripts of submitted jobs."""

    def __init__(self, folder: Path, **commands: str) -> None:
        self.folder = folder
        folder.mkdir()
        for name, script in commands.items():
            (folder / name).write_text(script.replace("{folder}", str(folder)))
            (folder / name).chmod(0o755)

    def jobs(self) -> list[int]:
        """Return the process ids of the submitted jobs."""
        file = self.folder / "jobs"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def running(self) -> list[int]:
        """Return the submitted jobs that have a process."""
        groups = set()
        for process in psutil.process_iter():
            with suppress(psutil.Error, ProcessLookupError):
                if process.status() != psutil.STATUS_ZOMBIE:
                    groups.add(os.getpgid(process.pid))
        return [job for job in self.jobs() if job in groups]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    slurm = Slurm(tmp_path / "slurm", sbatch=SBATCH, scancel=SCANCEL)
    monkeypatch.setenv("PATH", f"{slurm.folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DASK_JOBQUEUE__SLURM__WALLTIME", "12:00:00")
    monkeypatch.setenv("DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT", "1s")
    yield slurm
    for job in slurm.running():
        os.killpg(job, signal.SIGKILL)


ON_SLURM = ("parallel=dask", "parallel.jobqueue=slurm")


@pytest.mark.exhaustive
def test_jobs_run_the_cells_and_an_ended_job_is_replaced(slurm: Slurm, tmp_path: Path, undisturbed) -> None:
    place = Workplace(tmp_path)
    place.hold(6)
    process = place.start(*ON_SLURM)
    place.wait_for(6)
    assert len(slurm.jobs()) == 2
    os.killpg(slurm.jobs()[0], signal.SIGKILL)  # as at the end of its time
    patiently(lambda: len(slurm.jobs()) == 3)
    place.release()
    output = ended(process)
    assert "12 of 12 cells are finished" in output
    pd.testing.assert_frame_equal(place.records(), undisturbed)
    scripts = [path.read_text() for path in slurm.folder.glob("*.sh")]
    assert len(scripts) == 3
    for line in ("#SBATCH -n 1", "#SBATCH --cpus-per-task=1", "#SBATCH --mem=4G", "#SBATCH -t 12:00:00"):
        assert all(f"{line}\n" in script for script in scripts)
    assert all("--memory-limit 0" in script for script in scripts)
    patiently(lambda: not slurm.running())


@pytest.mark.parametrize(
    ("commands", "words", "message"),
    [
        (
            {"sbatch": REFUSING},
            ["n_jobs=1"],
            "sbatch has submitted no job (sbatch: error: Invalid account or account/par",
        ),
        ({}, ["n_jobs=1"], "parallel.jobqueue=slurm: the command sbatch was not found. Start the run where jobs are"),
        ({}, ["n_jobs=null"], "n_jobs: expected the number of jobs for parallel.jobqueue=slurm, as in n_jobs=20, got"),
        ({}, ["n_jobs=1", "parallel.address=tcp://a:1"], "parallel.address and parallel.jobqueue are both given;"),
        (
            {},
            ["n_jobs=1", "parallel.jobqueue=slurp"],
            "parallel.jobqueue: unknown value 'slurp'. Did you mean 'slurm'?",
        ),
    ],
    ids=["refused", "no command", "no number", "address", "unknown"],
)
def test_a_queue_that_cannot_be_used_gives_one_message(
    commands: dict[str, str],
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    slurm = Slurm(tmp_path / "slurm", **commands)
    monkeypatch.setenv("PATH", str(slurm.folder))
    monkeypatch.chdir(tmp_path)
    assert main(["run", "dataset=[moons]", "algorithm=[nc]", *ON_SLURM, *words]) == 2
    captured = capsys.readouterr()
    assert message in " ".join(captured.err.split())
    assert len(captured.err.splitlines()) == 1
    assert not (tmp_path / "results").exists()

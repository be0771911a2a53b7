"""Killed runs: after the same command again, results equal those of an uninterrupted run."""

import os
import signal
import time
from pathlib import Path
from random import Random

import pandas as pd
import pytest

from klr_bench.cli import main
from tests.runner.test_interruptions import Workplace, alive, children, patiently

pytestmark = pytest.mark.exhaustive
WHILE_IT_RUNS_S = 1.0
"""Seconds of a run of this size after its first fit has started."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    place = Workplace(tmp_path_factory.mktemp("undisturbed"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place.folder)
        patch.setenv("FITS_LOG", str(place.log))
        assert main(["run", "experiment=tiny", "parallel=serial"]) == 0
    return place.records()


@pytest.mark.drawn(1 / 5000)
def test_a_run_that_is_killed_at_any_moment_goes_on(draw: Random, undisturbed: pd.DataFrame, tmp_path: Path) -> None:
    """A run is continued after its driver, and in half of the cases first a worker, is killed during fits."""
    place = Workplace(tmp_path)
    process = place.start(f"n_jobs={draw.choice([1, 2])}")
    patiently(lambda: place.log.exists() or process.poll() is not None)
    time.sleep(draw.uniform(0, WHILE_IT_RUNS_S))
    workers = children(process.pid)
    if workers and draw.random() < 0.5:
        os.kill(int(draw.choice(sorted(workers))), draw.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM]))
    process.kill()
    process.communicate(timeout=60)
    patiently(lambda: not any(map(alive, workers)))
    place.finish("n_jobs=1")
    pd.testing.assert_frame_equal(place.records(), undisturbed)

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
N_FITS = 3 * 4 + 2 * 2 * 4
"""Number of fits of a run: of its cells, and of the selection of one algorithm."""


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
    place, last = Workplace(tmp_path), draw.randint(1, N_FITS)
    place.hold(last)  # so that the run does not end before it is killed
    process = place.start(f"n_jobs={draw.choice([1, 2])}")
    place.wait_for(max(last - 3, 1))
    time.sleep(draw.uniform(0, 0.2))
    workers = children(process.pid)
    if workers and draw.random() < 0.5:
        os.kill(int(draw.choice(sorted(workers))), draw.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM]))
    assert process.poll() is None
    process.kill()
    place.release()
    process.communicate(timeout=60)
    patiently(lambda: not any(map(alive, workers)))
    place.finish("n_jobs=1")
    pd.testing.assert_frame_equal(place.records(), undisturbed)

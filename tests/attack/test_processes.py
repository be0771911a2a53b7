"""Attacks of a learner on the process that fits it: each is a row with the reason, and the others' rows are right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from klr_bench.experiment.measure import supervision
from klr_bench.experiment.measure.supervision import fit_limit, keep, lifting, limited, restored
from klr_bench.experiment.runner.failure import LONGEST, Failure, guarded
from klr_bench.experiment.runner.pool import run_all
from klr_bench.experiment.selection import score_fold
from klr_bench.experiment.splits import Prepared
from tests.attack.hostile import ANSWERS, DEEDS, Endless, Hostile, Silent
from tests.attack.promise import check_message, refused
from tests.experiment.runner.test_interruptions import Workplace, alive, patiently

ROOT = Path(__file__).parents[2]
HOSTILE = "tests.attack.hostile.Hostile"
DEADLY = {
    "leave": "exit status 3",
    "segfault": "SIGSEGV",
    "stop": "SIGKILL); it may need more memory",
    "close_all": "exit status 1",
}
FAILING = {
    "exits": "SystemExit: 0",
    "interrupts": "KeyboardInterrupt: ",
    "generator_exit": "GeneratorExit: ",
    "base_exception": "NoException: nobody expects it",
    "exception_group": "ExceptionGroup: two (2 sub-exceptions)",
    "unspeakable": "Unspeakable: (its message cannot be made: NoException)",
    "unpicklable": "RuntimeError: <unlocked _thread.lock object",
    "one_way": "OneWay: one way",
    "surrogate": "RuntimeError: file \\udcff is bad",
    "huge_message": "RuntimeError: xxx",
    "recursion": "RecursionError: maximum recursion depth exceeded",
    "memory": "MemoryError: Unable to allocate 2.00 EiB",
    "predict_shape": "ValueError: predict returned an array of shape (41,), expected (40,)",
    "predict_table": "ValueError: predict returned an array of shape (40, 2), expected (40,)",
    "predict_nan": "ValueError: predict returned np.float64(nan), which is none of [-1, 1].",
    "predict_strings": "ValueError: predict returned np.str_('1'), which is none of [-1, 1].",
    "predict_objects": "ValueError: predict returned <object objec",
    "predict_other": "ValueError: predict returned np.int64(7), which is none of [-1, 1].",
    "predict_none": "ValueError: predict returned an array of shape (), expected (40,)",
    "predict_generator": "ValueError: predict returned an array of shape (), expected (40,)",
    "predict_raises": "NoException: nobody expects it",
}
HARMLESS = sorted({*DEEDS, *ANSWERS, "fit_none", "fit_other"} - {*DEADLY, *FAILING})
SURVIVORS = [*FAILING, *HARMLESS]
NC = {"_target_": "klr_bench.NonConservativeKLR", "R": 10.0}


def command(place: Workplace, *overrides: str, timeout: float = 200) -> subprocess.CompletedProcess[str]:
    """Run the experiment of a place as its user does; a pipe that somebody keeps open is a hang."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HOSTILE_PIDS": str(place.folder / "pids")}
    words = [sys.executable, "-m", "klr_bench", "run", "experiment=tiny", "repeats=1", *overrides]
    return subprocess.run(
        words, cwd=place.folder, env=environment, capture_output=True, text=True, errors="replace", timeout=timeout
    )


def rows(place: Workplace) -> pd.DataFrame:
    return pd.read_csv(place.results / "records.csv", keep_default_na=False).set_index("algorithm")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[pd.DataFrame, str]]:
    """The rows of one run of all hostile learners side by side, and an honest one behind them, and its output."""
    learners = {name: {"_target_": HOSTILE, "deed": name} for name in (*DEADLY, *SURVIVORS)}
    place = Workplace(tmp_path_factory.mktemp("attacked"), learners | {"honest": NC})
    (place.folder / "pids").touch()
    try:
        done = command(place, "n_jobs=1")
        assert done.returncode == 1, done.stderr
        yield rows(place), done.stdout + done.stderr
    finally:
        for process in (place.folder / "pids").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)


def hold(row: pd.Series[Any], status: str, message: str) -> None:
    assert row.status == status, row.message
    assert message in row.message
    assert len(row.message) <= LONGEST + 3
    assert (row.accuracy == "") == (status != "ok")
    if row.message:
        check_message(row.message)


@pytest.mark.parametrize("name", DEADLY)
def test_a_learner_that_ends_its_process_is_a_row(attacked: tuple[pd.DataFrame, str], name: str) -> None:
    hold(attacked[0].loc[name], "killed", f"was killed twice while it ran this ({DEADLY[name]}")


@pytest.mark.parametrize("name", FAILING)
def test_a_learner_that_raises_anything_is_a_row(attacked: tuple[pd.DataFrame, str], name: str) -> None:
    hold(attacked[0].loc[name], "error", FAILING[name])


@pytest.mark.parametrize("name", HARMLESS)
def test_a_learner_that_changes_its_process_has_its_result(attacked: tuple[pd.DataFrame, str], name: str) -> None:
    hold(attacked[0].loc[name], "ok", "")


def test_the_learner_behind_the_hostile_ones_has_the_numbers_that_it_has_alone(
    attacked: tuple[pd.DataFrame, str], tmp_path: Path
) -> None:
    place = Workplace(tmp_path, {"honest": NC})
    assert command(place, "parallel=serial").returncode == 0
    times = ["fit_time_s", "predict_time_s", "peak_memory_mb"]
    pd.testing.assert_series_equal(attacked[0].drop(columns=times).loc["honest"], rows(place).drop(columns=times).loc["honest"])


def test_the_run_of_hostile_learners_says_how_it_went(attacked: tuple[pd.DataFrame, str]) -> None:
    _, output = attacked
    assert f"{len(HARMLESS) + 1} of {len(DEADLY) + len(SURVIVORS) + 1} cells are done" in output
    assert "Traceback" not in output
    assert "z" * 1000 in output, "what a learner prints is printed"


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The rows of a run in its own process of those that do not end it."""
    left_out = {"interrupts", "close_streams", "no_streams", "thread_stays", "prints", "fork_stays", "fork_returns"}
    names = [name for name in SURVIVORS if name not in left_out | {"service_stays", "thread_exits"}]
    place = Workplace(
        tmp_path_factory.mktemp("serial"), {name: {"_target_": HOSTILE, "deed": name} for name in names} | {"honest": NC}
    )
    done = command(place, "parallel=serial")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return rows(place)


def test_in_the_process_of_the_run_they_are_rows_too(serial: pd.DataFrame) -> None:
    for name, row in serial.iterrows():
        hold(row, "error" if name in FAILING else "ok", FAILING.get(str(name), ""))


def test_a_time_limit_holds_for_learners_without_a_callback(tmp_path: Path) -> None:
    endless = "tests.attack.hostile.Endless"
    place = Workplace(
        tmp_path,
        {
            "endless": {"_target_": endless, "deed": "spin"},
            "searched": {"_target_": endless, "deed": "sleep"},
            "quick": {"_target_": "sklearn.svm.SVC"},
        },
    )
    limits = [f"+algorithms.{stem}.time_limit_s=1.5" for stem in ("endless", "searched", "quick")]
    grid = "algorithms.searched.grid={deed: [sleep, '', spin]}"
    for overrides in (["n_jobs=2"], ["parallel=serial", f"results_dir={tmp_path / 'serial'}"]):
        done = command(place, *limits, grid, *overrides)
        assert done.returncode == 0, done.stdout + done.stderr
        place.results = tmp_path / "results" / "tiny" if "n_jobs=2" in overrides else tmp_path / "serial" / "tiny"
        found = rows(place)
        assert found.status.to_dict() == {"endless": "timeout", "searched": "ok", "quick": "ok"}
        hold(found.loc["endless"], "timeout", "stopped after 1.5 s, without a classifier: it takes no callback")
        assert '"deed": ""' in found.loc["searched"].params
        assert 0 < float(found.loc["quick"].fit_time_s) < 1.5

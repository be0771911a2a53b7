"""Attacks of a learner on the process that fits it: each is a row with the reason, and the others' rows are right."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from klr_bench.cli import main
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.models import AlgorithmEntry
from klr_bench.experiment.config.parsing import parse
from klr_bench.experiment.measure import supervision
from klr_bench.experiment.measure.supervision import fit_limit, restored
from klr_bench.experiment.runner import process
from klr_bench.experiment.runner.failure import LONGEST, Failure
from klr_bench.experiment.runner.pool import end_idle, run_all
from klr_bench.experiment.selection import score_fold
from klr_bench.experiment.splits import Prepared
from tests.attack.hostile import (
    ANSWERS,
    DEEDS,
    Endless,
    Silent,
    kept_and_endless,
    kept_and_quick,
    left_behind,
    returns_generator,
    returns_lock,
    returns_one_way,
    surroundings,
)
from tests.attack.promise import check_message, refused, rejected
from tests.experiment.runner.test_interruptions import TIMES, Workplace, alive, patiently

ROOT = Path(__file__).parents[2]
HOSTILE = "tests.attack.hostile.Hostile"
DEADLY = {
    "leave": "exit status 3",
    "segfault": "SIGSEGV",
    "stop": "stopped for 0.5 s",
    "close_all": "exit status 1",
}
FAILING = {
    "exits": "SystemExit: 0. Take the call of exit out of the learner",
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
SURVIVING = [name for name in SURVIVORS if name in DEEDS]
NC = {"_target_": "klr_bench.NonConservativeKLR", "R": 10.0}


def command(place: Workplace, *overrides: str, timeout: float = 200) -> subprocess.CompletedProcess[str]:
    """Run the experiment of a place as its user does; a pipe that somebody keeps open is a hang."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HOSTILE_PIDS": str(place.folder / "pids")}
    words = [sys.executable, "-m", "klr_bench", "run", "experiment=tiny", "repeats=1", *overrides]
    return subprocess.run(
        words, cwd=place.folder, env=environment, capture_output=True, text=True, errors="replace", timeout=timeout
    )


def rows(place: Workplace) -> pd.DataFrame:
    return pd.read_csv(place.results / "records.csv", keep_default_na=False, dtype=str).set_index("algorithm")


SPOILER = """
import ctypes

import numpy as np


class Patches:
    def fit(self, X, y):
        np.mean = lambda *a, **k: 0.123
        np.exp = np.cos
        return self

    def predict(self, X):
        return [1] * len(X)


class Overwrites(Patches):
    def fit(self, X, y):
        ctypes.memset(X.ctypes.data, 0, X.nbytes)
        return self


class Writes(Patches):
    def fit(self, X, y):
        import os

        for descriptor in range(3, 12):
            if os.path.exists(f"/proc/self/fd/{descriptor}"):
                os.write(descriptor, b"x" * 50)
        return self


class TakesApart(Patches):
    def fit(self, X, y):
        import sys

        sys.modules.clear()
        return self
"""
SPOILING = ("Patches", "Overwrites", "Writes", "TakesApart")
ENDLESS = "tests.attack.hostile.Endless"
LIMITED = {
    "endless": {"_target_": ENDLESS, "deed": "spin"},
    "searched": {"_target_": ENDLESS, "deed": "sleep"},
    "quick": {"_target_": "sklearn.svm.SVC"},
}
"""Learners with a time limit that take no callback; the second is chosen from a grid."""
LIMIT_S = 2
"""Their limit: a slow machine needs more than half a second for the fit to four rows that comes first."""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, str]:
    """The rows of one run of all hostile learners side by side, and an honest one behind them, and its output."""
    learners = {name: {"_target_": HOSTILE, "deed": name} for name in ("leave", *SURVIVORS)}
    learners |= LIMITED | {name: {"_target_": f"spoiler.{name}"} for name in SPOILING}
    place = Workplace(tmp_path_factory.mktemp("attacked"), learners | {"honest": NC})
    (place.folder / "spoiler.py").write_text(SPOILER, encoding="utf-8")
    limits = [f"+algorithms.{name}.time_limit_s={LIMIT_S}" for name in LIMITED]
    with left_behind(place.folder / "pids"):
        done = command(place, "n_jobs=1", *limits, "algorithms.searched.grid={deed: [sleep, '']}")
    assert done.returncode == 1, done.stderr
    return rows(place), done.stdout + done.stderr


def hold(row: pd.Series[Any], status: str, message: str) -> None:
    assert row.status == status, row.message
    assert message in row.message
    assert len(row.message) <= LONGEST + 3
    assert (row.accuracy == "") == (status != "ok")
    if row.message:
        check_message(row.message)


def test_a_learner_that_ends_its_process_is_a_row(attacked: tuple[pd.DataFrame, str]) -> None:
    hold(attacked[0].loc["leave"], "killed", f"was killed twice while it ran this ({DEADLY['leave']}).")


def pooled(*tasks: Callable[[], object]) -> list[Any]:
    """Return the results of tasks in one worker, in their order."""
    found = dict(run_all(deque(range(len(tasks))), lambda position: tasks[position], 1))
    return [found[position] for position in range(len(tasks))]


@pytest.mark.parametrize("name", DEADLY)
def test_a_process_that_is_ended_or_stopped_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STOPPED_S", 0.5)
    before, killed, after = pooled(os.getpid, DEEDS[name], os.getpid)
    assert before != after
    assert killed == Failure("killed", f"the worker process was killed twice while it ran this ({DEADLY[name]}).")
    check_message(killed.message)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, ...]]:
    """Of each deed, done in the same worker one after the other: the surroundings before and after, and its result."""
    with pytest.MonkeyPatch.context() as patch, left_behind(tmp_path_factory.mktemp("worked") / "pids") as pids:
        patch.setenv("HOSTILE_PIDS", str(pids))
        tasks = [task for name in SURVIVING for task in (DEEDS[name], surroundings)]
        first, *results = pooled(surroundings, *tasks)
    befores = [first, *results[1::2]]
    return dict(zip(SURVIVING, zip(befores, results[1::2], results[::2], strict=False), strict=True))


@pytest.mark.parametrize("name", SURVIVING)
def test_a_worker_is_afterwards_as_it_was(name: str, worked: dict[str, tuple[Any, ...]]) -> None:
    before, after, result = worked[name]
    assert before == after
    assert isinstance(result, Failure) == (name in FAILING), result
    if isinstance(result, Failure):
        assert FAILING.get(name, "") in result.message
        check_message(result.message)


def test_what_learners_have_started_ends_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with left_behind(tmp_path / "pids") as pids:
        monkeypatch.setenv("HOSTILE_PIDS", str(pids))
        pooled(DEEDS["fork_stays"])
        end_idle()
        (process,) = pids.read_text().split()
        patiently(lambda: not alive(process))


@pytest.mark.parametrize("result", [returns_lock, returns_one_way, returns_generator])
def test_a_result_that_cannot_be_sent_is_a_failure(result: Callable[[], object]) -> None:
    failure, after = pooled(result, bool)
    assert failure.status == "error"
    assert "TypeError: " in failure.message
    check_message(failure.message)
    assert after is False


@pytest.mark.parametrize(
    "name", ["chdir", "environment", "recursion_limit", "filters", "floating_point", "module_path"]
)
def test_a_fit_in_the_same_process_leaves_it_as_it_was(name: str) -> None:
    before = surroundings()
    with restored():
        DEEDS[name]()
    assert surroundings() == before


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", ["floating_point", "filters"])
def test_a_candidate_does_not_spoil_the_next(name: str) -> None:
    learners = [{"_target_": HOSTILE, "deed": name}, {"_target_": "tests.attack.hostile.Delicate"}]
    X, y = np.ones((12, 2), np.float32), np.tile([-1, 1], 6).astype(np.int8)
    assert score_fold(learners, None, Prepared(X, y, X, y), 0, folds=2, seed=0) == [0.5, 0.5]


def test_a_limit_is_of_one_fit_and_what_is_kept_outlives_it() -> None:
    """What a fold has scored before a fit that never ends is not lost."""
    stopped, after = pooled(partial(kept_and_endless, 0.3), partial(kept_and_quick, 0.3))
    assert stopped == Failure("timeout", "stopped after 0.3 s, for a reason", ("first", "second", "instead"))
    assert after == "in time"


def test_who_takes_a_callback_is_given_time_to_call_it() -> None:
    assert fit_limit(Endless("spin"), None) == (None, "")
    assert fit_limit(Endless("spin"), 5.0) == (5.0, "without a classifier: it takes no callback")
    seconds, reason = fit_limit(Silent(), 5.0)
    assert seconds == supervision.patient(5.0) > 10 * 5.0
    assert "it does not call its callback" in reason


NO_LIMITS = [".nan", ".inf", "-.inf", "1e+400", "0", "-1", "-0.0", "true", "abc", "1s", "[1]", "{a: 1}", "'5'"]


@pytest.mark.parametrize("value", NO_LIMITS)
def test_a_time_limit_in_a_file_is_a_positive_number(value: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(f"time_limit_s: {value}\n")
    rejected(lambda: parse(AlgorithmEntry, config_files.read(tmp_path / "mine.yaml")), "time_limit_s")


@pytest.mark.parametrize("value", ["nan", ".nan", "inf", "1e400", "-1"])
def test_a_time_limit_on_the_command_line_is_a_positive_number(capsys: pytest.CaptureFixture[str], value: str) -> None:
    refused(capsys, ["run", "--dry-run", f"+algorithms.nc.time_limit_s={value}"], "algorithms.nc.time_limit_s")


@pytest.mark.parametrize("name", FAILING)
def test_a_learner_that_raises_anything_is_a_row(attacked: tuple[pd.DataFrame, str], name: str) -> None:
    hold(attacked[0].loc[name], "error", FAILING[name])


@pytest.mark.parametrize("name", HARMLESS)
def test_a_learner_that_changes_its_process_has_its_result(attacked: tuple[pd.DataFrame, str], name: str) -> None:
    hold(attacked[0].loc[name], "ok", "")


def test_the_learner_behind_the_hostile_ones_has_the_numbers_that_it_has_alone(
    attacked: tuple[pd.DataFrame, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Workplace(tmp_path, {"honest": NC})
    monkeypatch.chdir(tmp_path)
    assert main(["run", "experiment=tiny", "repeats=1", "parallel=serial"]) == 0
    among, alone = (found.drop(columns=TIMES).loc["honest"] for found in (attacked[0], rows(place)))
    pd.testing.assert_series_equal(among, alone)


def test_the_run_of_hostile_learners_says_how_it_went(attacked: tuple[pd.DataFrame, str]) -> None:
    found, output = attacked[0].status.value_counts(), attacked[1]
    assert f"{found['ok'] + found['timeout']} of {len(attacked[0])} cells are done" in output
    assert "Traceback" not in output
    assert "z" * 1000 in output, "what a learner prints is printed"


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The rows of a run in its own process of those that do not end it."""
    left_out = {"interrupts", "close_streams", "no_streams", "thread_stays", "prints", "fork_stays", "fork_returns"}
    names = [name for name in SURVIVORS if name not in left_out | {"service_stays", "thread_exits"}]
    place = Workplace(
        tmp_path_factory.mktemp("serial"),
        {name: {"_target_": HOSTILE, "deed": name} for name in names} | {"honest": NC},
    )
    done = command(place, "parallel=serial")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return rows(place)


def test_in_the_process_of_the_run_they_are_rows_too(serial: pd.DataFrame) -> None:
    for name, row in serial.iterrows():
        hold(row, "error" if name in FAILING else "ok", FAILING.get(str(name), ""))


def test_a_time_limit_holds_for_learners_without_a_callback(attacked: tuple[pd.DataFrame, str]) -> None:
    found = attacked[0].loc[list(LIMITED)]
    assert found.status.to_dict() == {"endless": "timeout", "searched": "ok", "quick": "ok"}
    hold(found.loc["endless"], "timeout", f"stopped after {LIMIT_S} s, without a classifier: it takes no callback")
    assert '"deed": ""' in found.loc["searched"].params
    assert 0 < float(found.loc["quick"].fit_time_s) < 0.5


def test_what_a_learner_does_to_its_process_reaches_no_other(attacked: tuple[pd.DataFrame, str]) -> None:
    """Patched modules, memory written behind numpy's back, the channel of the worker: one process for each class."""
    found = attacked[0]
    assert found.loc["honest"].status == "ok"
    assert float(found.loc["honest"].accuracy) > 0.9
    assert float(found.loc["honest"].ece) > 0.01
    assert {found.loc[name].status for name in ("Writes", "TakesApart")} == {"killed"}


def test_a_file_whose_name_is_no_text_has_its_rows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL")  # a log with such a name could not be sent from one process of the tests to another
    monkeypatch.chdir(tmp_path)
    numbers = np.random.default_rng(0).random(60)
    lines = [f"{number},{int(number > 0.5)}\n" for number in numbers]
    Path(os.fsdecode(b"rows\xff.csv")).write_text("a,label\n" + "".join(lines))
    words = ["dataset=file", "data.path=rows\udcff.csv", "algorithm=[perceptron]", "algorithms.perceptron.grid={}"]
    more = ["repeats=1", "parallel=serial", "data.cache=cache", "results_dir=out\udcff"]
    assert main(["run", *words, *more]) == 0
    output = capsys.readouterr()
    assert "rows\ufffd-" in output.out
    assert "Results: out\\udcff/quickstart/records.csv" in output.out
    assert "rows\ufffd-" in Path("out\udcff/quickstart/records.csv").read_text(encoding="utf-8")

"""Attacks of a user's modules, constructors and makers of data on the run: each is one message, or a row with a reason.

Each module is one file of a folder; the questions about it are asked as a run asks them, in worker processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.runner import questions
from klr_bench.experiment.runner.descendants import descendants
from klr_bench.experiment.runner.failure import Failure
from klr_bench.experiment.runner.plan import Source, check_candidates
from klr_bench.experiment.runner.pool import end_idle, run_all
from klr_bench.experiment.runner.questions import Questions
from klr_bench.experiment.strangers import PATIENCE, answered_by, asked, is_foreign, patience_s
from klr_bench.experiment.targets import Parameter, parameters
from tests.experiment.composing import dataset_of
from tests.attack.hostile import Calls, leaves_services, left_behind
from tests.attack.promise import files_in, refused, rejected
from tests.experiment.runner.test_interruptions import Workplace, alive, patiently

ROOT = Path(__file__).parents[2]
MODULE = """
import atexit
import os
import sys
import threading
import time

import numpy as np


class Learner:
    def __init__(self, a=1, *, wait=None):
        {constructed}

    def fit(self, X, y):
        return self

    def predict(self, X):
        return [1] * X.shape[0]


DATA_SOURCES = ("rows",)


def rows(n=20):
    {made}
    return np.array([[float(i), 1.0] for i in range(n)]), ["yes", "no"] * (n // 2)


{imported}
"""
ENDED, LONG = "has ended its process (exit status 0)", "did not come to an end within 0.7 s"
DEEDS = {
    "leaves": ("os._exit(0)", ENDED),
    "sleeps": ("time.sleep(1e9)", LONG),
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "exits": ("sys.exit(0)", "SystemExit: 0"),
    "raises": ("raise BaseException('no')", "BaseException: no"),
    "is killed": ("os.kill(os.getpid(), 9)", "has ended its process (SIGKILL)"),
}
HARMLESS = {
    "starts a thread": "threading.Thread(target=time.sleep, args=(1e9,)).start()",
    "waits at exit": "atexit.register(time.sleep, 1e9)",
    "prints": "print('z' * 200_000)",
    "leaves the folder": "os.chdir('/')",
    "reads": "sys.stdin.read()",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules can be imported, and questions that other processes answer."""
    monkeypatch.syspath_prepend(str(tmp_path))
    with answered_by(Questions()):
        yield tmp_path
    end_idle()


def written(folder: Path, *, imported: str = "", constructed: str = "pass", made: str = "") -> str:
    """Write a module that does something when it is imported, when its class is called, or when it makes data."""
    (folder / "own_module.py").write_text(MODULE.format(imported=imported, constructed=constructed, made=made))
    return "own_module.Learner"


def source(folder: Path) -> Source:
    """Return the data set that the module makes."""
    generator = {"_target_": "own_module.rows", "n": 20}
    spec = dataset_of({"source": {"format": "generated", "generator": generator}})
    return Source("mine", "mine", spec, "key", folder, None, 0, 0)


@pytest.mark.parametrize("deed", DEEDS)
def test_what_a_module_does_when_it_is_imported_is_one_message(
    deed: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if deed == "sleeps":
        monkeypatch.setenv(PATIENCE, "0.7")
    code, reason = DEEDS[deed]
    rejected(lambda: parameters(written(place, imported=code)), "own_module.Learner", reason)
    assert "own_module" not in sys.modules


@pytest.mark.parametrize("deed", ["leaves", "interrupts"])
def test_what_a_constructor_does_is_one_message(deed: str, place: Path) -> None:
    code, reason = DEEDS[deed]
    spec = {"_target_": written(place, constructed=code)}
    check_candidates("mine", [spec], construct=False)  # as --dry-run does: nothing is called
    rejected(lambda: check_candidates("mine", [spec], construct=True), "algorithms.mine.estimator", reason)


@pytest.mark.parametrize("deed", ["leaves", "interrupts"])
def test_what_a_maker_of_data_does_is_one_message(deed: str, place: Path) -> None:
    code, reason = DEEDS[deed]
    written(place, made=code)
    rejected(source(place).look, "own_module.rows", reason)


def test_harmless_deeds_have_their_answer(place: Path) -> None:
    """All in one module: threads, handlers and folders of the worker are not those of the run."""
    here, process = os.getcwd(), os.getpid()
    deeds = "; ".join(HARMLESS.values())
    target = written(place, imported=deeds, constructed=deeds, made="os.fork(); " + deeds)
    assert parameters(target) == {"a": Parameter(), "wait": Parameter()}
    check_candidates("mine", [{"_target_": target, "a": value} for value in range(3)], construct=True)
    found = source(place).look()
    assert found.X.shape == (20, 2)
    assert found.classes == ("no", "yes")
    np.testing.assert_array_equal(found.y, [1, -1] * 10)
    assert (os.getcwd(), os.getpid()) == (here, process)
    assert "own_module" not in sys.modules


def test_a_class_keeps_its_worker_and_no_other_class_gets_it(place: Path) -> None:
    first, second = written(place), "tests.attack.hostile.Hostile"
    workers = [asked(target, os.getpid) for target in (first, second)]
    assert len({*workers, os.getpid()}) == 3
    assert dict(run_all(deque([first]), lambda _: os.getpid, 1, kind=lambda one: frozenset({one}))) == {
        first: workers[0]
    }


def test_questions_about_known_classes_and_without_answerers_start_no_process(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "run_one", None)
    assert asked("klr_bench.OSKL", os.getpid) == asked("sklearn.svm.SVC", os.getpid) == os.getpid()
    with answered_by(None):
        assert asked("own_module.Learner", os.getpid) == os.getpid()
    assert is_foreign("klr_benchmark.Own")


def test_a_question_is_asked_once_and_a_refusal_again(place: Path) -> None:
    target = written(place)
    assert "a" in parameters(target)
    written(place, imported="os._exit(0)")
    assert "a" in parameters(target)


def test_what_takes_long_is_said(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(questions, "LONG_S", 0.1)
    monkeypatch.setenv(PATIENCE, "0.7")
    with pytest.raises(KlrBenchError):
        parameters(written(place, imported="time.sleep(1e9)"))
    assert capsys.readouterr().err.count("waiting for own_module.Learner, at most 0.7 s") == 1


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e400", "abc", "1 s", "x" * 10**5])
def test_a_patience_that_is_no_number_of_seconds_is_one_message(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATIENCE, value)
    rejected(patience_s, f"{PATIENCE}: expected a number of seconds")


def command(place: Workplace) -> tuple[int, str]:
    """Run the experiment of a place; return its exit status and output."""
    words = [sys.executable, "-m", "klr_bench", "run", "experiment=tiny", "repeats=1", "n_jobs=1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), PATIENCE: "60"}
    done = subprocess.run(words, cwd=place.folder, env=environment, capture_output=True, text=True, timeout=200)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


def test_a_run_says_what_a_module_has_done_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Workplace(tmp_path, {"mine": {"_target_": written(tmp_path, imported="os._exit(0)")}})
    monkeypatch.chdir(tmp_path)
    before = set(files_in(tmp_path))
    refused(capsys, ["run", "experiment=tiny"], "algorithms.mine.estimator", "own_module.Learner has ended its process")
    assert set(files_in(tmp_path)) == before


def test_a_run_with_modules_that_stay_ends_with_its_rows(tmp_path: Path) -> None:
    """Threads and handlers of a module, and of a maker of data, do not keep the run alive."""
    deeds = f"{HARMLESS['starts a thread']}; {HARMLESS['waits at exit']}; os.fork()"
    place = Workplace(tmp_path, {"mine": {"_target_": written(tmp_path, imported=deeds, made="pass")}})
    entry = yaml.safe_load((tmp_path / "configs/dataset/small.yaml").read_text())
    entry["source"]["generator"] = {"_target_": "own_module.rows", "n": 40}
    place.write("dataset/small", "datasets.small", entry)
    status, output = command(place)
    assert status == 0, output
    assert "small: 40 rows, 2 features" in output
    assert output.count("1 of 1 cells are done") == 1


def test_a_fit_that_calls_its_callback_once_and_never_returns_is_ended() -> None:
    """Calls of the callback renew the limit, as long as it does not say stop."""
    found = dict(run_all(deque(["once", "on", "stopped"]), lambda name: partial(Calls(name).run, 0.6), 1))
    assert found.pop("on") == "ended"
    for failure in found.values():
        assert isinstance(failure, Failure)
        assert failure.message == "stopped after 0.6 s, in vain"


def test_services_of_a_learner_end_with_its_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In sessions of their own, also where their parent has ended."""
    with left_behind(tmp_path / "pids") as pids:
        monkeypatch.setenv("HOSTILE_PIDS", str(pids))
        ((_, result),) = run_all(deque([0]), lambda _: leaves_services, 1)
        assert result is None
        services = pids.read_text().split()
        assert len(services) == 2
        assert all(map(alive, services))
        end_idle()
        patiently(lambda: not any(map(alive, services)))


def test_descendants_are_children_and_theirs() -> None:
    code = "import subprocess, sys; subprocess.Popen(['sleep', '60']); print('there', flush=True); sys.stdin.read()"
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        parent.stdout.readline()
        assert parent.pid in descendants(os.getpid())
        (child,) = descendants(parent.pid)
        assert child in descendants(os.getpid())
        os.kill(child, 9)
    finally:
        parent.kill()
        parent.communicate()

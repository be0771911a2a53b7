"""Tests of executors, the order of a run, and fits in a child process."""

import itertools
import multiprocessing
import os
import pkgutil
import signal
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from sklearn.linear_model import LogisticRegression

from klr_bench.config.models import ParallelConfig
from klr_bench.errors import KlrBenchError
from klr_bench.metrics.clock import KilledError, TimeLimitError, fit_in_child
from klr_bench.runner import executors
from klr_bench.runner.execute import rounds
from klr_bench.runner.executors import Failure, Task, open_executor
from klr_bench.runner.executors.joblib import JoblibExecutor
from tests.conftest import ROOT
from tests.cover import usually

EXECUTORS = [name for _, name, _ in pkgutil.iter_modules(executors.__path__) if not name.startswith("_")]
HERE = Path(__file__).relative_to(ROOT)
LINE = 1 + Path(__file__).read_text(encoding="utf-8").splitlines().index("        raise SystemExit(3)")
ONE_WORKER = pytest.param("joblib", 1, marks=pytest.mark.exhaustive)


def outcome(kind: str) -> str:
    if kind == "error":
        message = "no such data"
        raise KlrBenchError(message)
    if kind == "exit":
        raise SystemExit(3)
    if kind == "slow":
        raise TimeLimitError(2.0)
    return kind


@pytest.mark.parametrize(("backend", "n_jobs"), [*((name, 2) for name in EXECUTORS if name != "dask"), ONE_WORKER])
def test_each_task_has_its_result_or_its_failure(backend, n_jobs):
    tasks = (Task(kind, partial(outcome, kind)) for kind in ("error", "fine", "exit", "slow"))
    with open_executor(ParallelConfig(backend=backend), n_jobs, print) as executor:
        found = {task.item: result for task, result in executor.run(tasks)}
    assert found == {
        "error": Failure("error", "no such data"),
        "fine": "fine",
        "exit": Failure(
            "error", f"SystemExit: 3 ({HERE}:{LINE}). Remove the call to exit from the estimator or metric."
        ),
        "slow": Failure("timeout", "stopped after 2 s without a classifier, because fit does not accept a callback"),
    }


def die(folder: Path, name: str, times: int) -> str:
    """Kill the current process in the first `times` calls."""
    n_calls = len(list(folder.glob(f"{name}-*")))
    (folder / f"{name}-{n_calls}").touch()
    if n_calls < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


@pytest.mark.parametrize("n_jobs", usually([1, 2], [2]))
def test_a_task_whose_worker_dies_is_repeated_once(tmp_path, n_jobs):
    deaths = {"a": 0, "b": 1, "c": 2, "d": 0, "e": 0}
    tasks = (Task(name, partial(die, tmp_path, name, times)) for name, times in deaths.items())
    found = {task.item: result for task, result in JoblibExecutor(n_jobs).run(tasks)}
    assert found.pop("c") == Failure(
        "killed", "the worker process died twice while running this task (SIGKILL(-9)); it may need more memory."
    )
    assert found == {name: name for name in "abde"}


def own_process(_: int) -> tuple[int, str, str, str]:
    return os.getpid(), os.environ["OMP_NUM_THREADS"], type(multiprocessing.current_process()).__name__, os.getcwd()


def test_workers_are_lokys_own_processes_with_one_thread(tmp_path, monkeypatch):
    """Workers started by other code are not reused."""
    Parallel(n_jobs=2)(delayed(os.getpid)() for _ in range(2))
    monkeypatch.chdir(tmp_path)
    with JoblibExecutor(2) as executor:
        results = [result for _, result in executor.run(Task(n, partial(own_process, n)) for n in range(3))]
    assert {result[1:] for result in results} == {("1", "LokyProcess", str(tmp_path))}
    assert os.getpid() not in {process for process, *_ in results}


def test_closing_the_iterator_cancels_tasks_but_not_the_executor():
    executor, taken = JoblibExecutor(2), []
    tasks = (Task(n, partial(outcome, "fine")) for n in range(10**5) if not taken.append(n))
    with closing(executor.run(tasks)) as results:
        assert next(results)[1] == "fine"
    assert len(taken) < 10**5, "tasks are taken when a worker is free"
    assert [result for _, result in executor.run([Task("next", partial(outcome, "next"))])] == ["next"]


def fake_cell(name: str, repeat: int, *folds: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(name=name, folds=folds, source=SimpleNamespace(stem="data", repeat=repeat))


A, B, C, D = (SimpleNamespace(key=key) for key in "ABCD")
CELLS = [fake_cell("1", 0, A), fake_cell("2", 0), fake_cell("3", 1, B), fake_cell("4", 2, A, C), fake_cell("5", 2)]


def test_a_round_has_whole_repeats_and_their_folds():
    def names(folds, n_cells):
        found = rounds(CELLS, folds, n_cells)
        return [("".join(fold.key for fold in folds), "".join(cell.name for cell in cells)) for folds, cells in found]

    assert names([A, B, C, D], 1) == [("A", "12"), ("B", "3"), ("C", "45")]
    assert names([A, B, C, D], 3) == [("AB", "123"), ("C", "45")]
    assert names([A, B, C, D], 4) == names([A, B, C, D], 9) == [("ABC", "12345")]
    assert "".join(folds for folds, _ in names([C], 1)) == "C", "scored folds are in no round"
    assert list(rounds([], [], 1)) == []


class Slow(LogisticRegression):
    """Estimator that sleeps, prints, raises or exits before it is fitted."""

    def __init__(self, seconds=0.0, deed=""):
        super().__init__()
        self.seconds = seconds
        self.deed = deed

    def fit(self, X, y):
        if len(y) > 4:  # not the warm-up
            sys.stdout.write("a line of the estimator\n")
            time.sleep(self.seconds)
            if self.deed == "raise":
                message = "a rule that refuses an example"
                raise ArithmeticError(message)
            if self.deed == "leave":
                os._exit(3)
        return super().fit(X, y)


X = np.random.RandomState(0).randn(50, 2).astype(np.float32)
Y = np.where(X[:, 0] > 0, 1, -1).astype(np.int8)


def test_a_fit_in_a_child_process_gives_the_same_classifier(capfd):
    fitted = fit_in_child(Slow(0.2), X, Y, 30.0)
    np.testing.assert_array_equal(fitted.estimator.coef_, LogisticRegression().fit(X, Y).coef_)
    assert 0.2 <= fitted.seconds < 30
    assert fitted.memory_mb > 10
    assert "a line of the estimator" in capfd.readouterr().err


def test_options_of_fit_reach_the_child_process():
    weights = np.linspace(1, 2, len(Y))
    fitted = fit_in_child(LogisticRegression(), X, Y, 30.0, sample_weight=weights)
    np.testing.assert_array_equal(fitted.estimator.coef_, LogisticRegression().fit(X, Y, weights).coef_)


@pytest.mark.parametrize(
    ("learner", "error", "message"),
    [
        (Slow(60.0), TimeLimitError, r"stopped after 2 s without a classifier, because fit does not accept a callback"),
        (Slow(deed="raise"), ArithmeticError, "a rule that refuses an example"),
        (Slow(deed="leave"), KilledError, r"the child process of the fit ended \(exit status 3\)"),
    ],
    ids=["slow", "raise", "leave"],
)
def test_the_error_of_a_fit_in_a_child_process_is_raised(learner, error, message):
    with pytest.raises(error, match=message):
        fit_in_child(learner, X, Y, 2.0 if error is TimeLimitError else 30.0)


def blocked_signals(_: int) -> set[int]:
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, []))


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs masks of signals")
@pytest.mark.parametrize("counts", usually([(0, 1), (1, 3), (3, 1), (2, 9, 4)], [(2, 9, 4)]))
def test_as_many_workers_as_tasks_are_started_without_ctrl_c(counts):
    executor = JoblibExecutor(4)
    with executor:
        for n, most in zip(counts, itertools.accumulate(counts, max), strict=True):
            masks = [mask for _, mask in executor.run(Task(i, partial(blocked_signals, i)) for i in range(n))]
            assert len(masks) == n
            assert all(signal.SIGINT in mask for mask in masks)
            assert len(get_reusable_executor(reuse=True)._processes) <= max(2, min(most, 4))
    assert signal.SIGINT not in blocked_signals(0)


class Masked(LogisticRegression):
    """Estimator that stores which signals are blocked."""

    def fit(self, X, y):
        self.blocked_ = blocked_signals(0)
        return super().fit(X, y)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs masks of signals")
def test_ctrl_c_does_not_reach_the_child_process_of_a_fit():
    assert signal.SIGINT in fit_in_child(Masked(), X, Y, 60.0).estimator.blocked_
    assert signal.SIGINT not in blocked_signals(0)

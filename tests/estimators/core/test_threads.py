"""Threads: results are in order, errors are raised, and BLAS uses one thread meanwhile."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import ThreadpoolController, threadpool_limits

from klr_bench import OSKL, BudgetOSKL, DualCDKLR, KernelOGD, NonConservativeKLR, PrimalCDKLR, fit_many
from klr_bench.estimators.core import expansion
from klr_bench.estimators.core.threads import parallel_map, single_threaded_blas
from klr_bench.estimators.kernel_values import operand_base
from tests.estimators.online.cases import toy as toy_of_many
from tests.estimators.samples import LAYOUTS, laid_out, suited, toy

BLAS = ThreadpoolController().select(user_api="blas")


def blas_threads():
    return {library.num_threads for library in BLAS.lib_controllers}


def names(n_items):
    """Return the names of the threads that `parallel_map` uses for some items, all of which meet."""
    meeting = threading.Barrier(n_items, timeout=30)

    def name(_):
        meeting.wait()
        return threading.current_thread().name

    return set(parallel_map(name, range(n_items)))


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 5])
def test_results_come_in_order_by_as_many_threads(n_jobs):
    with single_threaded_blas(n_jobs):
        assert parallel_map(lambda i: i * i, range(100)) == [i * i for i in range(100)]
        assert parallel_map(abs, []) == []
        assert len(names(n_jobs)) == n_jobs
    assert parallel_map(lambda i: threading.current_thread().name, range(9)) == 9 * [threading.current_thread().name]
    with threadpool_limits(min(n_jobs, 2), user_api="blas"), single_threaded_blas(None):  # as many as BLAS may use
        assert len(names(min(n_jobs, 2))) == min(n_jobs, 2)


def test_blas_has_one_thread_until_the_last_one_ends():
    begun, may_end = threading.Event(), threading.Event()

    def work():
        with single_threaded_blas(1):
            begun.set()
            may_end.wait(30)

    other = threading.Thread(target=work)
    with threadpool_limits(3, user_api="blas"):
        with single_threaded_blas(2):
            assert blas_threads() == {1}
            other.start()
            begun.wait(30)
            with single_threaded_blas(3):
                assert len(names(2)) == 2
        assert blas_threads() == {1}  # the other one still works
        may_end.set()
        other.join()
        assert blas_threads() == {3}


@pytest.mark.parametrize("place", [0, 5, 9])
def test_an_error_comes_through_and_leaves_nothing_behind(place):
    def fail(i):
        if i == place:
            raise KeyError(i)
        return i

    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(KeyError), single_threaded_blas(3):
            parallel_map(fail, range(10))
        assert blas_threads() == {2}
    with single_threaded_blas(2):
        assert parallel_map(abs, range(5)) == list(range(5))


def learners(n_jobs):
    made = [NonConservativeKLR, OSKL, KernelOGD, DualCDKLR, PrimalCDKLR]
    options = {DualCDKLR: {"cache_size": 0.05, "tol": 0.1}, PrimalCDKLR: {"cache_size": 0.05, "tol": 0.1}}
    return [kind(gamma=0.7, n_jobs=n_jobs, random_state=0, **options.get(kind, {})) for kind in made]


@pytest.mark.filterwarnings("ignore:cache_size")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "layout", [pytest.param(layout, marks=[pytest.mark.exhaustive] if "index" in layout else []) for layout in LAYOUTS]
)
def test_results_do_not_depend_on_the_number_of_threads(layout, dtype, monkeypatch):
    monkeypatch.setattr(operand_base, "TILE", 33)
    monkeypatch.setattr(expansion, "COLUMNS", 50)
    monkeypatch.setattr(expansion, "WORTH_THREADS", 0)
    X, y = toy(n=600)
    X = laid_out(suited(X, layout).astype(dtype), layout, monkeypatch)
    expected = [learner.fit(X, y) for learner in learners(1)]
    for n_jobs in (2, 3, None):
        for serial, learner in zip(expected, learners(n_jobs), strict=True):
            learner.fit(X, y)
            np.testing.assert_array_equal(learner.dual_coef_, serial.dual_coef_)
            np.testing.assert_array_equal(learner.decision_function(X), serial.decision_function(X))


def test_learners_of_several_classes_do_not_depend_on_the_number_of_threads():
    X, y = toy_of_many(n=300)
    serial, *others = (BudgetOSKL(budget=20, random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3, None))
    for other in others:
        np.testing.assert_array_equal(other.dual_coef_, serial.dual_coef_)
        np.testing.assert_array_equal(other.support_vectors_, serial.support_vectors_)


def test_shared_passes_and_learners_in_threads_do_not_depend_on_it_either():
    X, y = toy(n=600)
    expected = [OSKL(G=G, random_state=0, n_jobs=1).fit(X, y).dual_coef_ for G in (1, 4)]
    for n_jobs in (1, 3):
        together = fit_many([OSKL(G=G, random_state=0, n_jobs=n_jobs) for G in (1, 4)], X, y)
        for learner, coef in zip(together, expected, strict=True):
            np.testing.assert_allclose(learner.dual_coef_, coef, rtol=1e-9)
    with threadpool_limits(2, user_api="blas"):
        with ThreadPoolExecutor(6) as pool:
            learners = pool.map(lambda G: OSKL(G=G, random_state=0).fit(X, y), [1, 4] * 3)
        for i, learner in enumerate(learners):
            np.testing.assert_array_equal(learner.dual_coef_, expected[i % 2])
        assert blas_threads() == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_forked_after_a_fit_has_threads_of_its_own():
    X, y = toy(n=600)
    learner = OSKL(random_state=0, n_jobs=2).fit(X, y)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        again = pool.submit(clone(learner).fit, X, y).result(timeout=60)
    np.testing.assert_array_equal(again.dual_coef_, learner.dual_coef_)

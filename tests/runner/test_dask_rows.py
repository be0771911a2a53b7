"""NystroemKLR with its rows on dask workers."""

import os
import signal
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_classification

from klr_bench import NystroemKLR, dask_rows
from klr_bench.errors import KlrBenchError
from klr_bench.estimators.kernel_values import row_blocks
from klr_bench.runner.executors import _dask_rows as module

MORE_CASES = [(2, True, False), (3, False, False), (2, False, True), (3, True, True)]


def n_parts():
    return len(module._parts)


def forget_all():
    module._parts.clear()


CASES = [(2, False, False), *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in MORE_CASES)]


@pytest.mark.parametrize(("n_classes", "mapped", "death"), CASES)
def test_two_workers_give_the_fit_of_one_process_to_the_last_bit(n_classes, mapped, death, client, tmp_path):
    X, y = make_classification(9000, 8, n_informative=5, n_classes=n_classes, flip_y=0.1, random_state=0)
    model = NystroemKLR(1e-6, 60, gamma=0.1, cache_size=0.1, random_state=0)
    expected = model.fit(X, y).dual_coef_
    np.save(tmp_path / "X.npy", X)
    rows = np.load(tmp_path / "X.npy", mmap_mode="r") if mapped else X
    pids = client.run(os.getpid)

    sent = []

    def kill(_, t):
        if not death or t == 1:
            sent.append(sum(client.run(n_parts).values()))
        if death and t == 1:
            os.kill(min(pids.values()), signal.SIGKILL)

    found = model.set_params(map_rows=dask_rows).fit(rows, y, callback=kill)
    np.testing.assert_array_equal(found.dual_coef_, expected)
    assert max(sent) > 0
    if death:
        assert min(pids.values()) not in client.run(os.getpid).values()
    assert set(client.run(n_parts).values()) == {0}


def test_a_worker_without_the_earlier_calls_makes_them_again(client):
    """Forget the rows of one worker between two calls of one Newton step."""
    X, y = make_classification(9000, 8, random_state=0)
    make = partial(row_blocks.Rows, row_blocks.Centers(NystroemKLR(n_centers=1).fit(X, y)._operands, X[:60], 9000, 0.1))
    signs, shares = np.where(y, 1, -1)[None].astype(np.int8), np.full(9000, 1 / 9000)
    a, step = np.random.default_rng(0).standard_normal((3, 1, 60)), np.array([0.5])
    calls = [("gradient", a[0]), ("hessian", a[1], 0 * step), ("hessian", a[2], step), ("slopes", step[None], step)]
    sums = []
    for map_rows in (row_blocks.in_this_process, dask_rows):
        with map_rows(make, X, signs, shares, 4096) as call:
            for name, *arguments in calls:
                if name == "slopes" and map_rows is dask_rows:
                    client.run(forget_all, workers=[next(iter(client.nthreads()))])
                nodes = []
                for node in call(name, *arguments):
                    row_blocks.add_neighbors(nodes, *node)
                sums.append(sum(value for _, _, value in nodes))
    for local, remote in zip(sums[:4], sums[4:], strict=True):
        np.testing.assert_array_equal(local, remote)


def test_rows_that_cost_each_worker_its_life_are_refused(client, monkeypatch):
    monkeypatch.setattr(module._Parts, "_result", lambda *_: None)
    X, y = make_classification(900, 8, random_state=0)
    with pytest.raises(KlrBenchError, match=r"dask_rows: 6 workers were lost with the same rows"):
        NystroemKLR(n_centers=20, map_rows=dask_rows).fit(X, y)


def test_rows_of_a_memory_mapped_file_are_named_by_their_place(tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 3))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r").view(np.ndarray)[10:]
    reference = module.reference(mapped[5:20])
    assert isinstance(reference, module._Mapped)
    np.testing.assert_array_equal(module.make_from(lambda rows: rows, reference), X[15:30])
    assert module.reference(X) is X
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")
    changed /= 2
    assert module.reference(changed) is changed

"""PartitionedKLR with its leaves on dask workers."""

import os
import signal
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from klr_bench import PartitionedKLR, dask_leaves
from klr_bench.runner.executors import _dask_leaves as module

pytestmark = pytest.mark.usefixtures("short_search")


CASES = [(2, "mapped", True), (3, "dense", False), (2, "sparse", True), (3, "mapped", False)]


@pytest.mark.parametrize(
    ("n_classes", "layout", "death"),
    [CASES[0], *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in CASES[1:])],
)
def test_two_workers_give_the_fit_of_one_process_to_the_last_bit(
    n_classes, layout, death, client, tmp_path, monkeypatch
):
    X, y = make_classification(1200, 8, n_informative=5, n_classes=n_classes, flip_y=0.1, random_state=0)
    model = PartitionedKLR(100, max_rounds=0, cv=2, random_state=0)
    expected = model.fit(X, y).decision_function(X)
    pids, sizes = client.run(os.getpid), []
    np.save(tmp_path / "X.npy", X)
    rows = {"mapped": np.load(tmp_path / "X.npy", mmap_mode="r"), "dense": X, "sparse": sp.csr_matrix(X)}[layout]
    expected = expected if layout != "sparse" else model.fit(rows, y).decision_function(X)

    def dying(job):
        os.kill(min(pids.values()), signal.SIGKILL)
        return job()

    def leaves(X, jobs):
        sizes.append(len(jobs))
        return dask_leaves(X, [*jobs[:5], partial(dying, jobs[5]), *jobs[6:]] if death else jobs)

    monkeypatch.setattr(module, "make_from", lambda make, X: pytest.fail("a leaf was fitted in this process"))
    found = model.set_params(map_leaves=leaves).fit(rows, y).decision_function(X)
    np.testing.assert_array_equal(found, expected)
    assert sizes == [32]
    if death:
        assert min(pids.values()) not in client.run(os.getpid).values()


def test_an_error_in_a_leaf_is_raised(client):
    def job():
        return np.arange(3), partial(np.linalg.cholesky)

    with pytest.raises(np.linalg.LinAlgError):
        dask_leaves(-np.eye(3), [job])

"""Fit the models of leaves of `PartitionedKLR` on dask workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.estimators.core.threads import single_threaded_blas
from klr_bench.runner.executors._dask_rows import client_with_workers, make_from, reference, submit

Job = Callable[[], tuple[NDArray[np.int64], Callable[[Any], Any]]]
AHEAD = 2
"""Number of tasks per thread of the workers that are submitted at a time."""


def dask_leaves(X: Any, jobs: Sequence[Job]) -> list[Any]:
    """Fit models to leaves on dask workers, for ``PartitionedKLR(map_leaves=dask_leaves)``.

    The workers are those of the dask client that was created last.  A task fits the model of a leaf.  A worker receives
    the rows of the leaf, or, if X is a memory-mapped file, its path and the indices of the rows, which it reads from
    there.  If a worker is lost, dask gives its tasks to another one; workers may join late.  The fit is the same as in
    one process, to the last bit if the processors are the same.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        All rows.
    jobs : list of callables
        Each job() returns the indices of the rows of a leaf, and a function that fits a model to these rows.

    Returns
    -------
    models : list
        The model of each job.

    Raises
    ------
    KlrBenchError
        If distributed is not installed.
    ValueError
        If there is no dask client.

    Examples
    --------
    >>> from klr_bench import PartitionedKLR, dask_leaves
    >>> from distributed import Client
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
    ...     model = PartitionedKLR(200, max_rounds=0, random_state=0, map_leaves=dask_leaves).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """
    client, rows = client_with_workers("dask_leaves"), reference(X)
    from distributed import as_completed

    places: dict[str, int] = {}
    models, waiting, futures = [None] * len(jobs), iter(enumerate(jobs)), as_completed()
    while True:
        room = AHEAD * max(sum(client.nthreads().values()), 1) - len(places)
        for place, job in (pair for _, pair in zip(range(room), waiting, strict=False)):
            leaf, fit = job()
            arguments = (X[leaf], slice(None)) if rows is X else (rows, leaf)
            future = submit(client, _fit, fit, *arguments)
            places[future.key] = place
            futures.add(future)
        if not places:
            return models
        future = next(futures)
        models[places.pop(future.key)] = future.result()


def _fit(fit: Callable[[Any], Any], rows: Any, part: Any) -> Any:
    with single_threaded_blas(1):
        return make_from(lambda X: fit(X[part]), rows)

"""Keep the rows of `NystroemKLR` on dask workers, which compute their sums there."""

from __future__ import annotations

import mmap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from klr_bench.errors import fail
from klr_bench.estimators.core.threads import single_threaded_blas
from klr_bench.runner.executors.dask import POLL_S

if TYPE_CHECKING:
    from distributed import Client, Future

Call = tuple[Any, ...]
"""Name of a method of `Block`, and its arguments."""


@contextmanager
def dask_rows(
    make: Callable[..., Any], X: Any, signs: NDArray[Any], shares: NDArray[Any], block_rows: int
) -> Iterator[Callable[..., Any]]:
    """Divide the rows of a fit among dask workers, for ``NystroemKLR(map_rows=dask_rows)``.

    The workers are those of the dask client that was created last.  Each receives the same number of blocks of rows
    once; of a memory-mapped file it receives the path, and reads its rows from there.  If a worker is lost, another one
    makes its last calls again.  The fit is the same as in one process, to the last bit if the processors are the same.

    Parameters
    ----------
    make : callable
        make(X, signs, shares, first) makes the object that computes sums over some consecutive blocks of rows, the
        first of which has the number `first`.
    X : array or CSR matrix of shape (n_samples, n_features)
        All rows.
    signs : array of shape (n_problems, n_samples)
        Labels -1 and 1.
    shares : array of shape (n_samples,)
        Share of each row in the loss.
    block_rows : int
        Number of rows per block.

    Returns
    -------
    context manager
        It provides call(name, *arguments), which yields the sums of the results of a method of all blocks.

    Raises
    ------
    KlrBenchError
        If distributed is not installed, or the workers of the same rows are lost again and again.
    ValueError
        If there is no dask client.

    Examples
    --------
    >>> from klr_bench import NystroemKLR, dask_rows
    >>> from distributed import Client
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
    ...     model = NystroemKLR(n_centers=30, gamma=2.0, random_state=0, map_rows=dask_rows).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """
    client, key = client_with_workers("dask_rows"), uuid4().hex
    workers = list(client.nthreads())
    n_blocks = -(-X.shape[0] // block_rows)
    ends = [n_blocks * i // len(workers) for i in range(len(workers) + 1)]
    parts = []
    for first, end in pairwise(ends):
        if first < end:
            rows = slice(first * block_rows, end * block_rows)
            parts.append(partial(make_from, make, reference(X[rows]), signs[:, rows], shares[rows], first))
    try:
        yield _Parts(client, key, parts, workers).call
    finally:
        with suppress(Exception):  # a worker may be gone, and its rows with it
            client.run(_forget, key, on_error="ignore")


MOST_LOST = 5
"""Number of times that the rows of a part are sent to another worker for the same sums."""


class _Parts:
    """Rows of a fit, divided into parts that are stored on dask workers."""

    def __init__(self, client: Client, key: str, parts: Sequence[partial[Any]], workers: Sequence[str]) -> None:
        self._client, self._key, self._parts, self._workers = client, key, parts, list(workers)
        self._calls: list[Call] = []

    def call(self, name: str, *arguments: Any) -> Iterator[tuple[int, int, Any]]:
        """Call a method of every part of the rows, and yield the computed sums part by part."""
        if name == "gradient":  # the calls before a gradient are no longer needed
            self._calls = []
        self._calls.append((name, *arguments))
        futures = [self._submit(place, self._calls[-1:], None) for place in range(len(self._parts))]
        for place, future in enumerate(futures):
            n_lost = 0
            while (sums := self._result(place, future)) is None:
                n_lost += 1
                if n_lost > MOST_LOST:
                    fail(f"dask_rows: {n_lost} workers were lost with the same rows; they may need more memory.")
                self._client.wait_for_workers(1)
                alive = list(self._client.nthreads())
                if self._workers[place] not in alive:
                    self._workers[place] = alive[place % len(alive)]
                future = self._submit(place, self._calls, self._parts[place])
            yield from sums

    def _submit(self, place: int, calls: Sequence[Call], part: partial[Any] | None) -> Future:
        arguments = self._key, place, len(self._calls) - len(calls), calls, part
        return submit(self._client, _work, *arguments, workers=[self._workers[place]])

    def _result(self, place: int, future: Future) -> Any:
        """Return the result of a task, or None if its worker is lost or missed earlier calls."""
        while True:
            try:
                return future.result(timeout=POLL_S)
            except TimeoutError:
                if self._workers[place] not in self._client.nthreads():
                    future.cancel()
                    return None


_parts: dict[str, dict[int, tuple[Any, int]]] = {}
"""Parts of the rows on this worker, each with the number of calls since the last gradient.

The outer dict is keyed by fit, the inner ones by the index of the part.
"""


def _work(key: str, place: int, n_before: int, calls: Sequence[Call], part: partial[Any] | None) -> Any:
    """Make calls on a part of the rows on this worker; return the last result.

    Return None if this worker has not made the `n_before` calls that precede them.
    """
    parts = _parts.setdefault(key, {})
    with single_threaded_blas():
        if part is not None:
            parts[place] = part(), 0
        rows, n_calls = parts.get(place, (None, 0))
        if rows is None or n_before not in (0, n_calls):
            return None
        for name, *arguments in calls:
            result = rows.sums(name, *arguments)
    parts[place] = rows, n_before + len(calls)
    return result


def _forget(key: str) -> None:
    _parts.pop(key, None)


def client_with_workers(name: str) -> Client:
    """Return the dask client that was created last, once it has a worker.

    `name` is the function that needs it.  Raises KlrBenchError without distributed, and ValueError without a client.
    """
    try:
        from distributed import default_client
    except ImportError:
        fail(f"{name} needs distributed, which is not installed. Run: pip install 'klr-bench[dask]'")
    client = default_client()
    client.wait_for_workers(1)
    return client


def submit(client: Client, function: Callable[..., Any], *arguments: Any, **options: Any) -> Future:
    """Submit a task whose arguments may be large."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # dask warns about large arguments
        return client.submit(function, *arguments, pure=False, **options)


@dataclass
class _Mapped:
    """Location of a memory-mapped array in its file."""

    path: str
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def reference(X: Any) -> Any:
    """Return the location of a memory-mapped array in its file, or any other array unchanged.

    The file of a copy-on-write map (mode "c") may have other values.
    """
    base = X
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and isinstance(base.base, mmap.mmap):
            if base.mode == "c":
                return X
            return _Mapped(str(base.filename), base.offset + X.ctypes.data - base.ctypes.data, X.dtype, X.shape)
        base = base.base
    return X


def make_from(make: Callable[..., Any], X: Any, *arguments: Any) -> Any:
    if isinstance(X, _Mapped):
        X = np.memmap(X.path, X.dtype, "r", X.offset, X.shape).view(np.ndarray)
    return make(X, *arguments)

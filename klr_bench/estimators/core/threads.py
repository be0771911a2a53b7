"""Parallel computation in threads that use one BLAS thread each.

BLAS would cut every product in parts, one per core, and wait for the last part in a busy loop: next to another process
that takes several times as long as one thread.  Here a thread takes one tile after the other, and sleeps when there is
none.  Products and compiled loops release the interpreter lock.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import repeat
from operator import attrgetter
from pathlib import Path

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

QUIET = {"over": "ignore", "invalid": "ignore", "divide": "ignore"}
"""Settings of numpy's warnings, which are off because results are checked."""
MOST_THREADS = 256
PACKAGE = str(Path(__file__).parents[2]) + os.sep
"""Folder of klr_bench."""


class _Local(threading.local):
    allowed = None
    """Setting of `single_threaded_blas` in this thread: (number of BLAS threads allowed, n_jobs), or None."""
    caller = None
    """Result of `outside` for the caller of the `parallel_map` that runs in this thread, or None."""


_local = _Local()


class _Limit:
    """Limit BLAS to one thread while any thread of this package is computing.

    The first thread sets the limit and the last one removes it.  Most libraries have one limit per process.  OpenBLAS
    with OpenMP has one per thread, set and restored in each.
    """

    def __init__(self):
        self._lock, self._inside, self._before = threading.Lock(), 0, []

    def enter(self):
        """Set the limit; return the previous number of BLAS threads, and the argument for `leave`."""
        shared, openmp = _libraries()
        before = _numbers(openmp)
        _set(openmp, repeat(1))
        with self._lock:
            if self._inside == 0:
                self._before = _numbers(shared)
                _set(shared, repeat(1))
            self._inside += 1
            return max([*self._before, *before], default=0) or effective_n_jobs(-1), before

    def leave(self, before):
        """Restore this thread's BLAS setting, and that of the process if no other thread computes."""
        shared, openmp = _libraries()
        _set(openmp, before)
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _set(shared, self._before)


_found = {}


def _libraries():
    """Return BLAS libraries with a thread limit per process, and those with one per thread.

    SciPy has a library of its own, which may be loaded later than NumPy's.
    """
    loaded = "scipy.linalg" in sys.modules
    if loaded not in _found:
        libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        openmp = [library for library in libraries if getattr(library, "threading_layer", None) == "openmp"]
        _found[loaded] = [library for library in libraries if library not in openmp], openmp
    return _found[loaded]


def _numbers(libraries):
    return list(map(attrgetter("num_threads"), libraries))


def _set(libraries, numbers):
    for library, number in zip(libraries, numbers, strict=False):
        if library.num_threads == number:
            continue
        clear = getattr(library, "clear_controlling_thread", None)  # threadpoolctl 3.8 affects only the calling thread
        if clear:
            clear(force=True)
        library.set_num_threads(number)
        if clear:
            clear(force=True)


def _start():
    global _limit, _pool
    _limit = _Limit()
    _pool = ThreadPoolExecutor(MOST_THREADS, "klr-bench", lambda: _set(_libraries()[1], repeat(1)))


_start()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start)  # threads do not survive a fork


@contextmanager
def single_threaded_blas(n_jobs=None):
    """Run a code block in which BLAS uses one thread and `parallel_map` uses several.

    Warnings of numpy about overflow and invalid values are ignored in the block. `n_jobs` is the number of threads, as
    in scikit-learn; None is as many as BLAS may use. A block within another has the threads of the outer one.
    """
    if _local.allowed is not None:
        yield
        return
    allowed, before = _limit.enter()
    try:
        _local.allowed = allowed, n_jobs  # n_jobs has not been validated yet
        with np.errstate(**QUIET):
            yield
    finally:
        _local.allowed = None
        _limit.leave(before)


def outside():
    """Return the stack frame of the code that called klr_bench.

    In a thread of `parallel_map`, it is that of its caller.
    """
    if _local.caller is not None:
        return _local.caller
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def n_threads(n_items):
    """Return the number of threads that `parallel_map` uses for a number of items."""
    blas, n_jobs = _local.allowed or (1, None)
    return min(blas if n_jobs is None else effective_n_jobs(n_jobs), n_items, MOST_THREADS)


def parallel_map(function, items):
    """Apply a function to each item, in parallel threads, and return the list of results."""
    items = list(items)
    n = n_threads(len(items))
    if n <= 1:
        return [function(item) for item in items]
    results, places, caller = [None] * len(items), deque(range(len(items))), outside()

    def work():
        before, _local.allowed = _local.allowed, (1, None)  # a nested `parallel_map` runs in this thread only
        _local.caller = caller
        try:
            with np.errstate(**QUIET):
                while places:
                    try:
                        place = places.popleft()
                    except IndexError:  # another thread took the last item
                        return
                    results[place] = function(items[place])
        finally:
            _local.allowed, _local.caller = before, None

    helpers = [_pool.submit(work) for _ in range(n - 1)]
    try:
        work()
    finally:
        places.clear()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    return results

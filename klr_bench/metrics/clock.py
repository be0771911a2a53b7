"""Measurement of the time and memory of a fit, with checkpoints and time limits.

The clock is paused during checkpoints.  An estimator with a time limit whose `fit` does not accept a callback is fitted
in a child process.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import psutil

from klr_bench import protocols
from klr_bench.errors import exception_text, memory_limit


class Checkpoint(NamedTuple):
    """Value of a metric at one moment during a fit."""

    t: int
    """Number of examples or iterations, depending on the estimator."""
    elapsed_s: float
    """Seconds of training before this point."""
    metric: str
    value: float


class Clock:
    """Callback for ``fit`` that measures time, records checkpoints and enforces a time limit.

    The clock starts when the object is created.

    Parameters
    ----------
    last : int
        Largest t that the fit is expected to reach.
    points : int
        Number of checkpoints up to `last`, or 0 for none.  If the fit continues, further checkpoints follow at the same
        spacing.
    evaluate : callable
        Returns metric values by name for an estimator.
    time_limit_s : float or None, default=None
        Seconds of training after which the fit is stopped.
    spacing : {"even", "log"}, default="even"
        Spacing of the checkpoints; "log" starts at t = `first`, unless even spacing starts earlier.
    first : int
        First t of logarithmic spacing.
    now : callable, default=time.perf_counter
        Returns the current time in seconds.
    """

    def __init__(
        self,
        last: int,
        points: int,
        evaluate: Callable[[Any], Mapping[str, float]],
        time_limit_s: float | None = None,
        spacing: str = "even",
        first: int = protocols.FIRST,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.checkpoints: list[Checkpoint] = []
        self.timed_out = False
        self._due = last / points if points else math.inf
        self._ratio, self._step = 1.0, self._due
        if points > 1 and spacing == "log":
            self._due = min(self._due, first)
            self._ratio, self._step = max(last / self._due, 2.0) ** (1 / (points - 1)), 0.0
        self._evaluate = evaluate
        self._limit = time_limit_s
        self._now = now
        self._paused = 0.0
        self._started = now()

    def elapsed(self) -> float:
        """Return the seconds of training so far, without the time spent on checkpoints."""
        return self._now() - self._started - self._paused

    def end(self, estimator: Any, t: int) -> None:
        """Add a checkpoint at the final step t of a fit with checkpoints, if there is none yet."""
        if math.isfinite(self._due) and (not self.checkpoints or self.checkpoints[-1].t < t):
            self._add_checkpoints(estimator, t, self.elapsed())

    def __call__(self, estimator: Any, t: int) -> bool:
        """Add a checkpoint if one is due at step t; return True if the time limit is exceeded."""
        elapsed = self.elapsed()
        if t >= self._due * (1 - 1e-9):
            while self._due * (1 - 1e-9) <= t:
                self._due = self._due * self._ratio + self._step
            self._add_checkpoints(estimator, t, elapsed)
        self.timed_out = self._limit is not None and elapsed > self._limit
        self._paused += self.elapsed() - elapsed
        return self.timed_out

    def _add_checkpoints(self, estimator: Any, t: int, elapsed: float) -> None:
        values = self._evaluate(estimator).items()
        self.checkpoints += [Checkpoint(t, elapsed, name, float(value)) for name, value in values]


MARK = b"."
"""Written by the child process when the fit begins and ends; no pickle begins like this."""
LONGEST_S = 4e6
"""Longest time limit in seconds; Windows cannot wait longer than 49 days."""
PROGRAM = "import sys; sys.path[:] = {!r}; from klr_bench.metrics.clock import main; main()"


class TimeLimitError(Exception):
    """Raised when a fit in a child process exceeds its time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:g} s without a classifier, because fit does not accept a callback")


class KilledError(Exception):
    """Raised when the child process of a fit ends without a result."""

    def __init__(self, status: int) -> None:
        names = {-number: number.name for number in signal.Signals}
        reason = names.get(status, f"exit status {status}")
        memory = "; it may need more memory" if reason == "SIGKILL" else ""
        super().__init__(f"the child process of the fit ended ({reason}){memory}.{memory_limit()}")


class Fitted(NamedTuple):
    """Fitted estimator, its fit time in seconds, and the peak memory of the process in MB."""

    estimator: Any
    seconds: float
    memory_mb: float


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block.

    Child processes that are started there are never interrupted.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def fit_in_child(estimator: Any, X: Any, y: Any, time_limit_s: float, **options: Any) -> Fitted:
    """Fit an estimator in a child process that is stopped after `time_limit_s` seconds.

    `options` are those of `fit`, whose exceptions are raised again.  Raises TimeLimitError if the fit exceeds the time
    limit, and KilledError if the process ends without a result for another reason.
    """
    timed_out, limit = threading.Event(), min(time_limit_s, LONGEST_S)
    command = [sys.executable, "-c", PROGRAM.format(sys.path)]
    with interrupts_blocked():
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        try:
            output = _output(process, pickle.dumps((estimator, X, y, limit, options)), limit, timed_out)
        finally:
            process.kill()
    if timed_out.is_set():
        raise TimeLimitError(time_limit_s)
    if process.returncode:
        raise KilledError(process.returncode)
    result = pickle.loads(output)
    if isinstance(result, Exception):
        raise result
    return result  # type: ignore[no-any-return]


def _output(process: subprocess.Popen[bytes], task: bytes, time_limit_s: float, timed_out: threading.Event) -> bytes:
    """Send the task to a process, and return its output; kill it after `time_limit_s`."""

    def stop() -> None:
        timed_out.set()
        process.kill()

    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError), process.stdin:  # the process may have ended already
        process.stdin.write(task)
    first = process.stdout.read(1)
    if first == MARK:
        timer = threading.Timer(time_limit_s, stop)
        timer.start()
        first = process.stdout.read(1)  # the second mark, or b"" after the end of the process
        timer.cancel()
    output = first + process.stdout.read()
    process.wait()
    return output.removeprefix(MARK)


def main() -> None:
    """Fit the pickled estimator from standard input; write the result to standard output.

    The output is a mark when the fit begins, a mark when it has ended, and the pickled result or exception.
    """
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # redirect the output of the estimator to standard error
        try:
            pickled = pickle.dumps(_fit(output, *pickle.load(sys.stdin.buffer)))
        except Exception as error:
            try:
                pickled = pickle.dumps(error)
                pickle.loads(pickled)
            except Exception:  # some exceptions cannot be pickled
                pickled = pickle.dumps(RuntimeError(exception_text(error)))
        output.write(pickled)


def _fit(output: BinaryIO, estimator: Any, X: Any, y: Any, time_limit_s: float, options: Mapping[str, Any]) -> Fitted:
    import scipy.sparse as sp
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        protocols.warm_up(estimator, sparse=sp.issparse(X))
        reset_peak_memory()
        if hasattr(signal, "alarm"):
            signal.alarm(math.ceil(time_limit_s) + 1)  # ends this process even if its parent was killed
        _write_mark(output)
        start = time.perf_counter()
        estimator.fit(X, y, **options)
        seconds = time.perf_counter() - start
        _write_mark(output)
        if hasattr(signal, "alarm"):
            signal.alarm(0)
    return Fitted(estimator, seconds, peak_memory_mb())


def _write_mark(output: BinaryIO) -> None:
    output.write(MARK)
    output.flush()


def reset_peak_memory() -> None:
    """Reset the peak memory counter of this process (Linux only)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float:
    """Return the peak resident memory of this process in MB.

    On Linux it is measured since the last reset, on Windows since the process started.  macOS does not report it: there
    the present memory is returned.
    """
    with suppress(OSError):
        if peak_kb := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return int(peak_kb[1]) / 1024
    memory = psutil.Process().memory_info()
    return float(getattr(memory, "peak_wset", memory.rss)) / 2**20

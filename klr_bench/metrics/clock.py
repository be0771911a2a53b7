"""Time and memory of fits, checkpoints with a paused clock, and fits in a child process.

A child process fits an estimator that has a time limit but takes no callback to stop it.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from klr_bench import protocols
from klr_bench.errors import memory_limit, raised


class Checkpoint(NamedTuple):
    """Metric of a classifier at some point of its fit."""

    t: int
    """Number of examples or iterations, as counted by the estimator."""
    elapsed_s: float
    """Seconds of fitting up to this point."""
    metric: str
    value: float


class Clock:
    """Callback for ``fit`` that measures time, evaluates checkpoints and enforces a time limit.

    The clock starts when the object is made.

    Parameters
    ----------
    last : the largest t that the fit is expected to reach
    points : number of checkpoints until then, 0 for none; further ones have the same spacing
    evaluate : function from the estimator to values by name
    time_limit_s : seconds of fitting after which the fit is stopped, or None
    spacing : "even", or "log": from t = `first` on, unless even spacing starts earlier
    now : function that returns the time in seconds
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
        """Return the seconds of fitting since the start."""
        return self._now() - self._started - self._paused

    def end(self, estimator: Any, t: int) -> None:
        """Evaluate at the end of a fit, unless the last checkpoint was there."""
        if self.checkpoints and self.checkpoints[-1].t < t:
            self._keep(estimator, t, self.elapsed())

    def __call__(self, estimator: Any, t: int) -> bool:
        """Evaluate if a checkpoint is reached; return True if the time limit is exceeded."""
        elapsed = self.elapsed()
        if t >= self._due * (1 - 1e-9):
            while self._due * (1 - 1e-9) <= t:
                self._due = self._due * self._ratio + self._step
            self._keep(estimator, t, elapsed)
        self.timed_out = self._limit is not None and elapsed > self._limit
        self._paused += self.elapsed() - elapsed
        return self.timed_out

    def _keep(self, estimator: Any, t: int, elapsed: float) -> None:
        numbers = self._evaluate(estimator).items()
        self.checkpoints += [Checkpoint(t, elapsed, name, float(value)) for name, value in numbers]


PROGRAM = "import sys; sys.path[:] = {!r}; from klr_bench.metrics.clock import main; main()"


class TimeLimitError(Exception):
    """Raised if a fit exceeded its time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:g} s without a classifier, because fit has no callback")


class KilledError(Exception):
    """Raised if the child process of a fit ended without a result."""

    def __init__(self, status: int) -> None:
        names = {-number: number.name for number in signal.Signals}
        memory = "; it may need more memory" if status == -signal.SIGKILL else ""
        reason = names.get(status, f"exit status {status}")
        super().__init__(f"the process of the fit ended ({reason}){memory}.{memory_limit()}")


class Fitted(NamedTuple):
    """Fitted estimator, seconds of the fit, and peak memory of its process in MB."""

    estimator: Any
    seconds: float
    memory_mb: float


def fit_in_child(estimator: Any, X: Any, y: Any, time_limit_s: float) -> Fitted:
    """Fit in a child process, which is stopped after `time_limit_s` seconds.

    Raises what the fit raises; TimeLimitError if it takes too long, KilledError if the process ends otherwise.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(sys.path)],
        input=pickle.dumps((estimator, X, y, time_limit_s)),
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode == -signal.SIGALRM:
        raise TimeLimitError(time_limit_s)
    if done.returncode:
        raise KilledError(done.returncode)
    result = pickle.loads(done.stdout)
    if isinstance(result, Exception):
        raise result
    return result  # type: ignore[no-any-return]


def main() -> None:
    """Read a pickled fit from standard input, run it, and write the result to standard output."""
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # redirect output of the estimator to standard error
        try:
            output.write(pickle.dumps(_fit(*pickle.load(sys.stdin.buffer))))
        except Exception as error:
            try:
                pickled = pickle.dumps(error)
                pickle.loads(pickled)
            except Exception:  # the arguments of the exception cannot be pickled
                pickled = pickle.dumps(RuntimeError(raised(error)))
            output.write(pickled)


def _fit(estimator: Any, X: Any, y: Any, time_limit_s: float) -> Fitted:
    import scipy.sparse as sp
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        protocols.warm_up(estimator, sparse=sp.issparse(X))
        reset_peak_memory()
        signal.setitimer(signal.ITIMER_REAL, time_limit_s)  # SIGALRM ends the process at any point
        started = time.perf_counter()
        estimator.fit(X, y)
        seconds = time.perf_counter() - started
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Fitted(estimator, seconds, peak_memory_mb())


def reset_peak_memory() -> None:
    """Reset the peak memory of this process, if the kernel supports it (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float:
    """Return the peak resident memory in MB, since the reset on Linux, else since the start."""
    with suppress(OSError):
        if peak_kb := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return int(peak_kb[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)

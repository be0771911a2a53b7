"""A timed fit in a child process, for an estimator that has a time limit but takes no callback to stop it."""

from __future__ import annotations

import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from klr_bench.errors import memory_limit, raised

PROGRAM = "import sys; sys.path[:] = {!r}; from klr_bench.experiment.measure.child import main; main()"


class TimeLimitError(Exception):
    """A fit was stopped because it took longer than its time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:g} s without a classifier: it takes no callback")


class KilledError(Exception):
    """The child process of a fit ended without a result."""

    def __init__(self, status: int) -> None:
        memory = "; it may need more memory" if status == -signal.SIGKILL else ""
        super().__init__(f"the process of the fit ended ({exit_reason(status)}){memory}.{memory_limit()}")


class Fitted(NamedTuple):
    """A fitted estimator, the seconds of its fit, and the peak memory of its process in MB."""

    estimator: Any
    seconds: float
    memory_mb: float


def fit_in_child(estimator: Any, X: Any, y: Any, time_limit_s: float) -> Fitted:
    """Fit in a child process, which ends when the fit takes longer than `time_limit_s` seconds.

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


def exit_reason(status: int) -> str:
    """Return the name of the signal that ended a process, or its exit status."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def main() -> None:
    """Read a fit from standard input, run it and write the result to standard output."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the estimator prints goes to standard error
    estimator, X, y, time_limit_s = pickle.load(sys.stdin.buffer)
    with output:
        output.write(_result(estimator, X, y, time_limit_s))


def _result(estimator: Any, X: Any, y: Any, time_limit_s: float) -> bytes:
    """Return the pickled Fitted, or the pickled exception of the fit."""
    import scipy.sparse as sp
    from threadpoolctl import threadpool_limits

    from klr_bench import protocols

    try:
        with threadpool_limits(1):
            protocols.warm_up(estimator, sparse=sp.issparse(X))
            reset_peak_memory()
            signal.setitimer(signal.ITIMER_REAL, time_limit_s)  # SIGALRM ends the process, whatever it does
            started = time.perf_counter()
            estimator.fit(X, y)
            seconds = time.perf_counter() - started
            signal.setitimer(signal.ITIMER_REAL, 0)
        return pickle.dumps(Fitted(estimator, seconds, peak_memory_mb()))
    except Exception as error:
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)
        except Exception:  # an exception with arguments that cannot be pickled
            return pickle.dumps(RuntimeError(raised(error)))
        return pickled


def reset_peak_memory() -> None:
    """Let the kernel measure the peak memory of this process from now on, if it can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float:
    """Return the largest resident memory of this process in MB: since the reset on Linux, else since its start."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return int(found[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)

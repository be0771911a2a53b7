"""Learners that do to their process what nobody should: one class, and a deed by name.

A deed is done in each fit, but for the fit to four rows that warms a learner up.  The name of a file in HOSTILE_PIDS
takes the processes that a learner leaves behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from klr_bench.experiment.measure import supervision
from klr_bench.experiment.measure.supervision import keep, limited, renewing

DEEDS: dict[str, Callable[[], object]] = {}
ANSWERS: dict[str, Callable[[int], object]] = {
    "predict_shape": lambda n: np.ones(n + 1),
    "predict_table": lambda n: np.ones((n, 2)),
    "predict_nan": lambda n: np.full(n, np.nan),
    "predict_strings": lambda n: np.full(n, "1"),
    "predict_objects": lambda n: np.array([object()] * n),
    "predict_other": lambda n: np.full(n, 7),
    "predict_none": lambda n: None,
    "predict_generator": lambda n: (1 for _ in range(n)),
    "predict_raises": lambda n: DEEDS["base_exception"](),
}
RETURNS: dict[str, object] = {"fit_none": None, "fit_other": "fitted"}


class Hostile:
    """Predicts the label 1 for each row, and does its deed in `fit`, or gives a strange answer in `predict`."""

    def __init__(self, deed: str = "") -> None:
        self.deed = deed

    def fit(self, X: Any, y: Any) -> object:
        if len(y) > 4:
            DEEDS.get(self.deed, bool)()
        return RETURNS.get(self.deed, self)

    def predict(self, X: Any) -> object:
        return ANSWERS.get(self.deed, np.ones)(X.shape[0])


class Endless(Hostile):
    """Never ends a fit with the deed "sleep" or "spin"; the others end at once."""

    def fit(self, X: Any, y: Any) -> object:
        while len(y) > 4 and self.deed:
            if self.deed == "sleep":
                time.sleep(3600)
        return self


class Silent(Hostile):
    """Takes a callback, and neither calls it nor ends."""

    def fit(self, X: Any, y: Any, callback: object = None) -> object:
        while len(y) > 4:
            time.sleep(3600)
        return self


class Delicate(Hostile):
    """Divides by 0, which is allowed as long as nobody has forbidden it."""

    def fit(self, X: Any, y: Any) -> object:
        np.ones(1) / np.zeros(1)
        return self


def surroundings() -> tuple[object, ...]:
    """Return what a learner may change of its process and must not leave to the next."""
    handlers = [repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())]
    streams = [tuple(os.fstat(descriptor)[1:3]) for descriptor in (0, 1, 2)]
    state = os.getcwd(), dict(os.environ), list(sys.path), sys.getrecursionlimit(), np.geterr(), list(warnings.filters)
    return os.getpid(), *state, handlers, streams


def kept_and_endless(seconds: float) -> None:
    keep("first")
    with limited(60, "never", "not this"):
        keep("second")
    with limited(seconds, "for a reason", "instead"):
        time.sleep(3600)


def kept_and_quick(seconds: float) -> str:
    with limited(seconds, "in vain"):
        pass
    return "in time"


class Calls:
    """Calls its callback once, on and on until it has gone on for twice the limit, or again after it has said stop."""

    def __init__(self, how: str) -> None:
        self.how = how

    def run(self, seconds: float) -> str:
        supervision.RENEWAL_S = seconds / 10
        callback = renewing(lambda estimator, t: self.how == "stopped")
        started = time.monotonic()
        with limited(seconds, "in vain"):
            callback(None, 1)
            while self.how != "on" or time.monotonic() < started + 2 * seconds:
                time.sleep(seconds / 20)
                if self.how != "once":
                    callback(None, 2)
        return "ended"


def leaves_services() -> None:
    """Leave two processes in sessions of their own: a child, and one whose parent has ended."""
    service_stays()
    code = (
        "import subprocess; "
        "print(subprocess.Popen(['sleep', '3600'], start_new_session=True, stdout=subprocess.DEVNULL).pid)"
    )
    remember(int(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout))


@contextmanager
def left_behind(pids: Path) -> Iterator[Path]:
    """End, at the end, the processes that learners have left behind."""
    pids.touch()
    try:
        yield pids
    finally:
        for process in pids.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)


def returns_lock() -> object:
    return threading.Lock()


def returns_generator() -> object:
    return (number for number in range(3))


def returns_one_way() -> object:
    return OneWay(1, 2)


def deed(function: Callable[[], object]) -> Callable[[], object]:
    DEEDS[function.__name__] = function
    return function


class NoException(BaseException):
    """What `except Exception` does not catch."""


class Unspeakable(Exception):
    """An exception that has no message."""

    def __str__(self) -> str:
        raise NoException

    __repr__ = __str__


class OneWay(Exception):
    """An exception that can be pickled and not be made again from its pickle."""

    def __init__(self, first: object, second: object) -> None:
        super().__init__("one way")


def remember(process: int) -> None:
    with Path(os.environ["HOSTILE_PIDS"]).open("a") as file:
        file.write(f"{process}\n")


@deed
def leave() -> None:
    os._exit(3)


@deed
def segfault() -> None:
    ctypes.string_at(0)


@deed
def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@deed
def close_all() -> None:
    os.closerange(0, 4096)


@deed
def thread_exits() -> None:
    threading.Thread(target=sys.exit).start()


@deed
def thread_stays() -> None:
    threading.Thread(target=time.sleep, args=(3600,)).start()


@deed
def fork_stays() -> None:
    process = os.fork()
    if not process:
        time.sleep(3600)
    remember(process)


@deed
def fork_returns() -> None:
    os.fork()


@deed
def service_stays() -> None:
    remember(subprocess.Popen(["sleep", "3600"], start_new_session=True, close_fds=False).pid)


@deed
def exits() -> None:
    sys.exit(0)


@deed
def interrupts() -> None:
    raise KeyboardInterrupt


@deed
def generator_exit() -> None:
    raise GeneratorExit


@deed
def base_exception() -> None:
    raise NoException("nobody expects it")


@deed
def exception_group() -> None:
    raise ExceptionGroup("two", [ValueError(1), KeyError(2)])


@deed
def unspeakable() -> None:
    raise Unspeakable


@deed
def unpicklable() -> None:
    raise RuntimeError(threading.Lock())


@deed
def one_way() -> None:
    raise OneWay(1, 2)


@deed
def surrogate() -> None:
    raise RuntimeError("file \udcff is bad")


@deed
def huge_message() -> None:
    raise RuntimeError("x" * 100_000_000)


@deed
def recursion() -> None:
    recursion()


@deed
def memory() -> None:
    np.empty(2**58)


@deed
def chdir() -> None:
    os.chdir("/")


@deed
def environment() -> None:
    os.environ.clear()
    os.environ["PATH"] = "/nowhere"


@deed
def close_streams() -> None:
    sys.stdout.close()
    sys.stderr.close()
    for descriptor in (0, 1, 2):
        os.close(descriptor)


@deed
def no_streams() -> None:
    sys.stdout = sys.stderr = sys.stdin = None  # type: ignore[assignment]


@deed
def prints() -> None:
    sys.stdout.write("z" * 5_000_000)
    sys.stderr.write("\udcff")


@deed
def signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, lambda *_: os._exit(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05)


@deed
def recursion_limit() -> None:
    sys.setrecursionlimit(sys.getrecursionlimit() // 2)


@deed
def filters() -> None:
    warnings.simplefilter("error")


@deed
def floating_point() -> None:
    np.seterr(all="raise")


@deed
def module_path() -> None:
    sys.path.clear()

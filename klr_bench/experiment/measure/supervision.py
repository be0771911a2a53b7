"""A fit of anybody's code: a limit to its time that it cannot ignore, and a process that is afterwards as it was.

A worker is supervised by the process that has started it.  It says when a fit starts that has a limit, and when it
ends; if that takes too long the worker is ended, and what it has kept until then is all that is left of its task.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from klr_bench.estimators.core import contract
from klr_bench.experiment.strangers import patience_s

Callback = Callable[[Any, int], bool]

PATIENCE, PATIENCE_S = 10.0, 60.0
"""A limit that the fit itself is expected to keep is enforced after PATIENCE times as long and PATIENCE_S."""

RENEWAL_S = 1.0
"""Seconds after which a fit says again that it goes on."""

_tell: list[Callable[..., None]] = []


def connect(tell: Callable[..., None]) -> None:
    """Name the function that takes the messages to the supervisor: ("limit", ...), ("again",), ("part", ...)."""
    _tell[:] = [tell]


def keep(part: Any) -> None:
    """Keep a part of the result of the task, should the rest be stopped."""
    _say("part", part)


@contextmanager
def limited(seconds: float | None, reason: str, otherwise: Any = None) -> Iterator[None]:
    """Have this process ended where the block takes longer; `otherwise` is then kept.  Without a supervisor: no limit.

    seconds : None for no limit
    reason : of the message "stopped after ... s, <reason>"
    """
    if seconds is not None:
        _say("limit", seconds, reason, otherwise)
    try:
        yield
    finally:
        if seconds is not None:
            _say("limit", None, "", None)


def patiently(reason: str, *, foreign: bool, otherwise: Any = None) -> AbstractContextManager[None]:
    """Have this process ended where a block that runs `foreign` code takes longer than such code may."""
    return limited(patience_s() if foreign else None, reason, otherwise)


def fit_limit(estimator: Any, time_limit_s: float | None) -> tuple[float | None, str]:
    """Return what `limited` is to know of a fit.

    A learner that takes a callback is stopped by it: it is ended only if it does not call it for long.
    """
    if time_limit_s is None:
        return None, ""
    if contract.takes_callback(estimator):
        return patient(
            time_limit_s
        ), "without a classifier: it does not call its callback, or goes on where that says stop"
    return time_limit_s, "without a classifier: it takes no callback"


def patient(time_limit_s: float | None) -> float | None:
    """Return the limit for what has none of its own and ends by itself, unless something is wrong."""
    return None if time_limit_s is None else PATIENCE * time_limit_s + PATIENCE_S


def renewing(callback: Callback) -> Callback:
    """Return a callback that lets the limit of its fit begin anew after each call, unless it says stop.

    So the limit bounds the time between two calls, and the time that the fit takes to end after it is told to stop.
    """
    told = -RENEWAL_S

    def call(estimator: Any, t: int) -> bool:
        nonlocal told
        stop = callback(estimator, t)
        if not stop and time.monotonic() - told >= RENEWAL_S:
            told = time.monotonic()
            _say("again")
        return stop

    return call


def _say(*message: Any) -> None:
    for tell in _tell:
        tell(*message)


@contextmanager
def restored() -> Iterator[None]:
    """Undo at the end what the block has changed of this process and what the next learner would notice.

    That is the folder, the environment, the path of modules, the recursion limit, numpy's floating-point errors, the
    filters of warnings, the handlers of signals and the alarm.
    """
    folder = Path.cwd()
    environment, path, recursion = dict(os.environ), list(sys.path), sys.getrecursionlimit()
    filters = list(warnings.filters)
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    alarmed = signal.getitimer(signal.ITIMER_REAL)[0] > 0
    try:
        with np.errstate():
            yield
    finally:
        with suppress(OSError):
            os.chdir(folder)
        if os.environ != environment:
            os.environ.clear()
            os.environ.update(environment)
        sys.path[:] = path
        sys.setrecursionlimit(recursion)
        if warnings.filters != filters:
            warnings.filters[:] = filters  # type: ignore[index]
            with warnings.catch_warnings():  # lets Python know that they have changed
                pass
        if not alarmed:
            signal.setitimer(signal.ITIMER_REAL, 0)
        with suppress(ValueError, TypeError):  # in another thread; and a handler that is not Python's
            for number, handler in handlers.items():
                if signal.getsignal(number) is not handler:
                    signal.signal(number, handler)

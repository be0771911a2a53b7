"""Checkpoints of a fit, with the clock stopped while they are evaluated."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from klr_bench.protocols import FIRST


class Checkpoint(NamedTuple):
    """One number of a classifier that is still being fitted."""

    t: int
    """What the estimator counts: examples, or iterations."""
    elapsed_s: float
    """Seconds of fitting until then."""
    metric: str
    value: float


class Clock:
    """A callback for ``fit`` that keeps the time, evaluates at `points` checkpoints and stops at a time limit.

    The clock starts when the object is made.

    Parameters
    ----------
    last : the largest t that the fit is expected to reach
    points : number of checkpoints until then, 0 for none; beyond it they go on in the same way
    evaluate : function from the estimator to numbers by name
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
        first: int = FIRST,
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
        """Evaluate where a watched fit has ended, unless its last checkpoint was there."""
        if self.checkpoints and self.checkpoints[-1].t < t:
            self._keep(estimator, t, self.elapsed())

    def __call__(self, estimator: Any, t: int) -> bool:
        """Evaluate if a checkpoint has been reached; return True where the time is up."""
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

"""Checkpoints of a fit, with the clock stopped while they are evaluated."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

FIRST = 256
"""Examples at the first of logarithmic checkpoints, where even ones would not begin sooner."""

Point = tuple[int, float, str, float]
"""(examples seen, seconds of fitting, metric, value)"""


class Trace:
    """A callback for ``fit`` that keeps the time, evaluates at `points` checkpoints and stops at a time limit.

    The clock starts when the object is made.

    Parameters
    ----------
    n_examples : number of examples that the fit will see
    points : number of checkpoints, 0 for none
    evaluate : function from the estimator to metrics by name
    time_limit_s : seconds of fitting after which the fit is stopped, or None
    spacing : "even", or "log" from the `first` example on; beyond n_examples they go on in the same way
    """

    def __init__(
        self,
        n_examples: int,
        points: int,
        evaluate: Callable[[Any], Mapping[str, float]],
        time_limit_s: float | None = None,
        spacing: str = "even",
        first: int = FIRST,
    ) -> None:
        self.points: list[Point] = []
        self.timed_out = False
        self._due = n_examples / points if points else math.inf
        self._ratio, self._step = 1.0, self._due
        if points > 1 and spacing == "log":
            self._due = min(self._due, first)
            self._ratio, self._step = max(n_examples / self._due, 2.0) ** (1 / (points - 1)), 0.0
        self._evaluate = evaluate
        self._limit = time_limit_s
        self._paused = 0.0
        self._started = time.perf_counter()

    def elapsed(self) -> float:
        """Return the seconds of fitting since the start."""
        return time.perf_counter() - self._started - self._paused

    def end(self, estimator: Any, t: int) -> None:
        """Evaluate where a fit has ended, unless its last checkpoint was there."""
        if self.points and self.points[-1][0] < t:
            elapsed = self.elapsed()
            self.points += [(t, elapsed, name, float(value)) for name, value in self._evaluate(estimator).items()]

    def __call__(self, estimator: Any, t: int) -> bool:
        """Evaluate if a checkpoint has been reached; return True where the time is up."""
        elapsed = self.elapsed()
        if t >= self._due * (1 - 1e-9):
            while self._due * (1 - 1e-9) <= t:
                self._due = self._due * self._ratio + self._step
            self.points += [(t, elapsed, name, float(value)) for name, value in self._evaluate(estimator).items()]
        self.timed_out = self._limit is not None and elapsed > self._limit
        self._paused += self.elapsed() - elapsed
        return self.timed_out

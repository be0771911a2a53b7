"""Checkpoints of a fit, with the clock stopped while they are evaluated."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

Point = tuple[int, float, str, float]
"""(examples seen, seconds of fitting, metric, value)"""


class Trace:
    """A callback for ``fit`` that keeps the time, evaluates at `points` checkpoints and stops at a time limit.

    The clock starts when the object is made.

    Parameters
    ----------
    n_examples : number of examples that the fit will see; the checkpoints divide it evenly
    points : number of checkpoints, 0 for none
    evaluate : function from the estimator to metrics by name
    time_limit_s : seconds of fitting after which the fit is stopped, or None
    """

    def __init__(
        self,
        n_examples: int,
        points: int,
        evaluate: Callable[[Any], Mapping[str, float]],
        time_limit_s: float | None = None,
    ) -> None:
        self.points: list[Point] = []
        self.timed_out = False
        self._n_examples = n_examples
        self._n_points = points
        self._evaluate = evaluate
        self._limit = time_limit_s
        self._taken = 0
        self._paused = 0.0
        self._started = time.perf_counter()

    def elapsed(self) -> float:
        """Return the seconds of fitting since the start."""
        return time.perf_counter() - self._started - self._paused

    def __call__(self, estimator: Any, t: int) -> bool:
        """Evaluate if a checkpoint has been reached; return True where the time is up."""
        elapsed = self.elapsed()
        if self._n_points and t * self._n_points >= (self._taken + 1) * self._n_examples:
            self._taken += 1
            self.points += [(t, elapsed, name, float(value)) for name, value in self._evaluate(estimator).items()]
        self.timed_out = self._limit is not None and elapsed > self._limit
        self._paused += self.elapsed() - elapsed
        return self.timed_out

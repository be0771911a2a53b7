"""Questions about foreign code, answered by worker processes: whatever that code does is an answer or one message."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from klr_bench.errors import KlrBenchError, raised
from klr_bench.experiment.measure.supervision import limited
from klr_bench.experiment.runner.failure import Failure
from klr_bench.experiment.runner.pool import run_one
from klr_bench.experiment.strangers import PATIENCE, patience_s

LONG_S = 10.0
"""Seconds after which a line says what is waited for."""


class Questions:
    """Answers of worker processes, one process for each module or class; a question is asked once."""

    def __init__(self) -> None:
        self._answers: dict[bytes, Any] = {}

    def __call__(self, target: str, question: Callable[[], Any]) -> Any:
        """Return the answer to a question about `target`; the same worker will fit learners of this class.

        Raises KlrBenchError: that of the question, or one that says what has happened to the process.
        """
        key = pickle.dumps((target, question))
        if key not in self._answers:
            self._answers[key] = _answer(target, question)
        return self._answers[key]


def _answer(target: str, question: Callable[[], Any]) -> Any:
    seconds = patience_s()
    task = partial(_answered, target, question, seconds)
    end = run_one(task, frozenset({target}), _Waiting(target, seconds))
    advice = "See what its module does when it is imported, and its constructor or function when it is called."
    if end.death:
        message = f"{target} has ended its process ({end.death}). {advice}"
    elif not isinstance(end.result, Failure):
        return end.result
    elif end.result.status == "timeout":
        message = (
            f"{target} did not come to an end within {seconds:g} s. {advice} {PATIENCE}=SECONDS gives it more time."
        )
    else:
        message = end.result.message
    raise KlrBenchError(message)


def _answered(target: str, question: Callable[[], Any], seconds: float) -> Any:
    """Answer a question, in a worker.  Raises KlrBenchError whatever the foreign code raises."""
    with limited(seconds, "while it was looked at"):
        try:
            return question()
        except KlrBenchError:
            raise
        except BaseException as error:
            message = f"{target} raised {raised(error)}"
            raise KlrBenchError(message) from error


class _Waiting:
    """Says once, on stderr, that something takes long."""

    def __init__(self, target: str, most: float) -> None:
        self._said = False
        self._line = f"waiting for {target}, at most {most:g} s ({PATIENCE} changes that)\n"

    def __call__(self, seconds: float) -> None:
        if seconds > LONG_S and not self._said:
            self._said = True
            sys.stderr.write(self._line)
            sys.stderr.flush()

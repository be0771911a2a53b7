"""Why a task has no result, in words that can be stored and printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from klr_bench.errors import KlrBenchError, memory_limit

Task = partial[Any]
"""A call of a function that a worker can import."""
LONGEST = 2000
"""Characters of a message."""


@dataclass(frozen=True)
class Failure:
    """Why a task has no result; `parts` is what it had kept when it was stopped."""

    status: str  # error, killed, timeout
    message: str
    parts: tuple[Any, ...] = ()


def killed(said: str, *deaths: str) -> Failure:
    """Return the failure of a task that has lost its process each time it ran."""
    memory = "; it may need more memory" if "SIGKILL" in deaths else ""
    return Failure("killed", f"{said}{memory}.{memory_limit()}")


def guarded(task: Callable[[], Any], *, through: tuple[type[BaseException], ...] = ()) -> Any:
    """Return what a task returns, or a Failure whatever it raises, but for exceptions that go `through`."""
    try:
        return task()
    except through:
        raise
    except BaseException as error:
        return Failure("error", described(error))


def described(error: BaseException) -> str:
    """Return the message of one of ours; the class of any other exception and its message, as far as it has one."""
    try:
        text = str(error)
    except BaseException as second:
        text = f"(its message cannot be made: {type(second).__name__})"
    text = text if isinstance(error, KlrBenchError) else f"{type(error).__name__}: {text}"
    if isinstance(error, SystemExit):
        text += ". Take the call of exit out of the learner, or out of the metric."
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return text.encode("utf-8", "backslashreplace").decode()

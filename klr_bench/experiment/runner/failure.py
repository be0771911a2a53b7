"""Why a task has no result, in words that can be stored and printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.measure.child import KilledError, TimeLimitError

LONGEST = 2000
"""Characters of a message."""


@dataclass(frozen=True)
class Failure:
    """Why a task has no result."""

    status: str  # error, killed, timeout
    message: str


def guarded(task: Callable[[], Any], *, through: tuple[type[BaseException], ...] = ()) -> Any:
    """Return what a task returns, or a Failure if it raises, except for exceptions listed in `through`."""
    try:
        return task()
    except through:
        raise
    except TimeLimitError as error:
        return Failure("timeout", str(error))
    except KilledError as error:
        return Failure("killed", str(error))
    except BaseException as error:
        return Failure("error", described(error))


def described(error: BaseException) -> str:
    """Return the message of an exception, with its class unless it is a KlrBenchError."""
    text = str(error) if isinstance(error, KlrBenchError) else f"{type(error).__name__}: {error}"
    if isinstance(error, SystemExit):
        text += ". Take the call of exit out of the estimator, or out of the metric."
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return text.encode("utf-8", "backslashreplace").decode()

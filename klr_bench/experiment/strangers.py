"""Code of neither klr-bench nor scikit-learn, here called foreign: what is asked about it, and who answers.

Importing a module, or calling a constructor, may do anything to its process: end it, fork it, never return.  While a
run is planned, questions about foreign code are therefore answered by worker processes, as plain values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from klr_bench.errors import KlrBenchError

P = ParamSpec("P")
Answer = TypeVar("Answer")
Ask = Callable[[str, Callable[[], Any]], Any]

KNOWN = ("klr_bench", "sklearn")
PATIENCE = "KLR_BENCH_PATIENCE_S"
"""Environment variable: seconds that importing and constructing foreign code, and making data with it, may take."""
PATIENCE_S = 300.0

_asks: list[Ask] = []


def is_own(target: str) -> bool:
    """Say whether a dotted name is of klr-bench."""
    return str(target).partition(".")[0] == KNOWN[0]


def is_foreign(target: str) -> bool:
    """Say whether a dotted name is of neither klr-bench nor scikit-learn."""
    return str(target).partition(".")[0] not in KNOWN


def asked(target: str, question: Callable[P, Answer], *arguments: P.args, **named: P.kwargs) -> Answer:
    """Return `question(*arguments)`, which runs code of the module or class `target`.

    Inside `answered_by`, and where the target is foreign, another process calls it: question, arguments and answer
    are then pickled.
    """
    call = partial(question, *arguments, **named)
    if _asks and is_foreign(target):
        return _asks[-1](target, call)  # type: ignore[no-any-return]
    return call()


@contextmanager
def answered_by(ask: Ask | None) -> Iterator[None]:
    """Let `ask(target, question)` answer questions about foreign code inside; None: this process answers."""
    before = list(_asks)
    _asks[:] = [ask] if ask else []
    try:
        yield
    finally:
        _asks[:] = before


def patience_s() -> float:
    """Return the seconds that foreign code may take before or beside a fit.  Raises KlrBenchError."""
    text = os.environ.get(PATIENCE) or str(PATIENCE_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        message = f"{PATIENCE}: expected a number of seconds, more than 0, got {text[:50]!r}."
        raise KlrBenchError(message)
    return seconds

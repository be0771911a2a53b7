"""Exceptions for errors that users can correct, and functions for their messages."""

from __future__ import annotations

import difflib
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from klr_bench.printing import printable, shortened

MAX_MESSAGE_LENGTH = 2000
"""Maximum number of characters of the message of a failed fit."""


class KlrBenchError(Exception):
    """Error that the user can correct, such as bad input, a missing file or a full disk.

    The message says what is wrong, what was expected, what was got and what to do.  The command line prints it without
    a traceback and exits with status 2.
    """


class UnavailableError(KlrBenchError):
    """Error of a data file that no source has."""


class StoppedError(KlrBenchError):
    """Error that stops a run even though its input is valid; the exit status is 1."""


def fail(message: str) -> NoReturn:
    """Raise a KlrBenchError with the given message."""
    raise KlrBenchError(message)


def nearest(name: object, options: Iterable[object]) -> str:
    """Return a hint for an unknown name: a similar known name, or all known names."""
    names = sorted(filter(None, map(str, options)))
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" Known: {', '.join(names)}." if names else ""


def sanitize(text: object, most: int = 200) -> str:
    """Convert an object to one printable line of at most `most` characters."""
    return printable(shortened(str(text), most)).replace("\n", "\\n").replace("\t", "\\t")


def memory_limit() -> str:
    """Return a sentence about the memory limit of this process, or "" if there is no limit.

    Libraries fail in many ways when they run out of memory, some with exit status 1.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return ""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return f" The memory limit of {limit // 2**20:,} MiB (ulimit -v) may be too low."


def exception_text(error: BaseException) -> str:
    """Return the class name and message of an exception, even if its `__str__` fails."""
    try:
        text = sanitize(error)
    except Exception:
        text = "(without a message)"
    return f"{type(error).__name__}: {text}"


def exception_message(error: BaseException) -> str:
    """Return the message of an exception, with its class and the user's line of code.

    A KlrBenchError has its message only.
    """
    try:
        text = str(error)
    except Exception:
        text = "(without a message)"
    text = text if isinstance(error, KlrBenchError) else f"{type(error).__name__}: {text}{place_of(error)}"
    if isinstance(error, SystemExit):
        text += ". Remove the call to exit from the estimator or metric."
    return shortened(text, MAX_MESSAGE_LENGTH).encode("utf-8", "backslashreplace").decode()


def place_of(error: BaseException) -> str:
    """Return the user's line that led to an exception, as in " (my_learner.py:12)", or "".

    It is the last line of the traceback outside of klr-bench and the installed libraries.
    """
    libraries = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    libraries.add(Path(__file__).parent)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_file() and libraries.isdisjoint(path.parents):
            shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
            return f" ({shown}:{frame.lineno})"
    return ""


@contextmanager
def error_context(where: object, advice: str = "") -> Iterator[None]:
    """Add a path or key and advice to the message of each KlrBenchError raised in the block."""
    try:
        yield
    except KlrBenchError as error:
        fail(f"{where}: {error} {advice}".rstrip())


def environment_message(error: Exception) -> str:
    """Return the message of an exception, with advice for an OSError or MemoryError."""
    if isinstance(error, MemoryError):
        reason = str(error) or "an allocation failed"
        return f"not enough memory for this command ({reason}). Free some memory, or use smaller data.{memory_limit()}"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    place = sanitize(error.filename) if error.filename else "standard output or a file"
    return f"{place}: cannot be used ({error.strerror}). Fix the problem, or choose another path."

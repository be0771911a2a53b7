"""The one exception of the runner side, and the "did you mean" that goes into its messages."""

from __future__ import annotations

import difflib
import resource
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from klr_bench.printing import printable, shortened


class KlrBenchError(Exception):
    """A mistake that the user can mend: bad input, a missing file, a full disk.

    The message says what, what was expected, what was got and what to do.  The command line prints it
    without a traceback and leaves with exit status 2.
    """


class StoppedError(KlrBenchError):
    """A run that cannot go on, though nothing is wrong with its input: the command line leaves with exit status 1."""


def fail(message: str) -> NoReturn:
    """Raise a KlrBenchError."""
    raise KlrBenchError(message)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'magic'?``, or a list of all that is known where nothing is near, for a message."""
    names = sorted(filter(None, known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" Known: {', '.join(names)}." if names else ""


def shown(text: object, most: int = 200) -> str:
    """Return text of unknown origin for a message: without control characters and line ends, cut where it is long."""
    return printable(shortened(str(text), most)).replace("\n", "\\n").replace("\t", "\\t")


def memory_limit() -> str:
    """Return a sentence about `ulimit -v` if it limits this process, else "".

    Libraries that get no memory end in many ways, some with an exit status of 1.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return f" The limit of {limit // 2**20:,} MiB on its memory (ulimit -v) may be too low."


def raised(error: BaseException) -> str:
    """Return the class and the text of an exception of other code; making the text may itself fail."""
    try:
        text = shown(error)
    except Exception:
        text = "(without a text)"
    return f"{type(error).__name__}: {text}"


@contextmanager
def located(where: object, advice: str = "") -> Iterator[None]:
    """Put a place, such as a path, before the message of each KlrBenchError raised inside, and advice behind it."""
    try:
        yield
    except KlrBenchError as error:
        fail(f"{where}: {error} {advice}".rstrip())


def environment_message(error: Exception) -> str:
    """Return what could not be used, and what to do about it; the text of any error but OSError and MemoryError."""
    if isinstance(error, MemoryError):
        reason = str(error) or "an allocation failed"
        return f"memory: not enough for this command ({reason}). Free some, or use smaller data.{memory_limit()}"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    reason = error.strerror
    if error.filename:
        return f"{shown(error.filename)}: cannot be used ({reason}). Choose another path, or mend this one."
    if reason.startswith("No usable temporary directory"):
        return "TMPDIR: expected a folder for temporary files, found none that can be written. Set TMPDIR to one."
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        return f"standard output: cannot be written ({reason}). Redirect it to another file."
    return f"cannot be used ({reason}). Choose another path, or mend this one."

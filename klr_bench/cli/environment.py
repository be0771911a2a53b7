"""Faults of the environment: closed streams, a full standard output, no folder for temporary files, no memory."""

from __future__ import annotations

import os
import sys

from klr_bench.errors import memory_limit, shown


def open_closed_streams() -> None:
    """Connect standard streams that the caller has closed to /dev/null; a file opened later would take their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


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

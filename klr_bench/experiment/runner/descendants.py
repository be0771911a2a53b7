"""Processes that a worker has left behind in sessions of their own, on Linux: found by their parents, and ended."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become, on Linux, the parent of each descendant whose parent ends; it stays one of the descendants."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants(process: int) -> None:
    """End all processes that descend from one; nothing where there is no /proc."""
    for descendant in descendants(process):
        with suppress(OSError):
            os.kill(descendant, signal.SIGKILL)


def descendants(process: int) -> list[int]:
    """Return the ids of all processes that descend from one, parents first."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            children.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    found = [process]
    for parent in found:
        found += children.get(parent, [])
    return found[1:]

"""The peak memory of this process."""

from __future__ import annotations

import re
import resource
import sys
from contextlib import suppress
from pathlib import Path


def reset_peak_memory() -> None:
    """Let the kernel measure the peak memory of this process from now on, if it can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float:
    """Return the largest resident memory of this process in MB: since the reset on Linux, else since its start."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return int(found[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)

"""Describe the machine's hardware and load, which affect measured times."""

from __future__ import annotations

import platform
import time
from collections import deque
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import psutil
from threadpoolctl import threadpool_info

WINDOW_S = 1.0
"""Minimum seconds over which the load is averaged, because system counters have a resolution of 10 ms."""


class Usage(NamedTuple):
    """Processor time used since the machine started, in seconds summed over all cores."""

    at: float
    """Time of the measurement in seconds."""
    inside: float
    """Time used by the processes of the run."""
    busy: float
    """Time used by all processes, including time taken by the host of a virtual machine."""
    total: float


class OutsideLoad:
    """Measures the fraction of processor time used by processes outside the run.

    Parameters
    ----------
    run : ids of the processes of the run; their descendants are included
    """

    def __init__(self, *run: int) -> None:
        self.run = run
        self._history: deque[Usage] = deque()
        self.fraction()

    def fraction(self) -> float | None:
        """Return the fraction of CPU time that other processes used in the latest time window.

        The window starts at the latest call at least WINDOW_S ago.  Return None if the fraction is unknown.
        """
        try:
            now = usage(*self.run)
        except (psutil.Error, OSError):
            return None
        while len(self._history) > 1 and now.at - self._history[1].at >= WINDOW_S:
            self._history.popleft()
        self._history.append(now)
        return fraction_outside_run(self._history[0], now)


def fraction_outside_run(before: Usage, after: Usage) -> float | None:
    """Return the fraction of CPU time used by other processes between two measurements.

    Return None if no time has passed.
    """
    total = after.total - before.total
    others = (after.busy - before.busy) - (after.inside - before.inside)
    return min(1.0, max(0.0, others / total)) if total > 0 else None


def usage(*run: int) -> Usage:
    """Return the current processor times.  Raises psutil.Error or OSError.

    `run` are the ids of the processes of the run.
    """
    times = psutil.cpu_times()
    total = sum(times[:8])  # on Linux, `user` already includes the other fields
    roots = [psutil.Process(pid) for pid in run]
    of_run = 0.0
    for process in {*roots, *(child for root in roots for child in root.children(recursive=True))}:
        try:
            of_run += sum(process.cpu_times()[:4])  # user and system time, including that of finished child processes
        except psutil.Error:  # the process has just exited
            continue
    return Usage(time.monotonic(), of_run, total - times.idle - getattr(times, "iowait", 0.0), total)


@lru_cache(maxsize=1)
def host() -> str:
    """Return the host name of this machine."""
    return platform.node()


def processor() -> str:
    """Return processor, BLAS and threads, as in "AMD EPYC, OpenBLAS SkylakeX, 1 thread"."""
    libraries = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    numpy_libraries = [library for library in libraries if "numpy" in library["filepath"]] or libraries
    parts = [cpu_name()]
    for library in numpy_libraries[:1]:
        n_threads = library["num_threads"]
        parts.append(f"{library['internal_api']} {library.get('architecture') or ''}".strip())
        parts.append(f"{n_threads} thread{'s' if n_threads > 1 else ''}")
    return ", ".join(filter(None, parts))


def cpu_name() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


_load: list[OutsideLoad] = []


def follow(*run: int) -> None:
    """Exclude the given processes and their descendants from the measured load."""
    if not _load or _load[0].run != run:
        _load[:] = [OutsideLoad(*run)]


def load() -> float | None:
    """Return the fraction of CPU time used by other processes, or None if it is unknown."""
    return _load[0].fraction() if _load else None

"""Description of the machine and its load from other processes, to judge measured times."""

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
"""Minimum seconds over which the load is measured, because the system counts in hundredths of a second."""


class Usage(NamedTuple):
    """CPU seconds of all cores since the machine was started."""

    at: float
    """Time of the measurement in seconds."""
    own: float
    """CPU seconds used by the run."""
    busy: float
    """CPU seconds used by any process, or taken by the host of a virtual machine."""
    total: float


class OtherLoad:
    """Measurement of the fraction of CPU time that other processes use.

    Parameters
    ----------
    run : ids of processes of the run; their descendants belong to the run, too
    """

    def __init__(self, *run: int) -> None:
        self.run = run
        self._history: deque[Usage] = deque()
        self.fraction()

    def fraction(self) -> float | None:
        """Return the fraction since the latest call at least WINDOW_S ago, or None if unknown."""
        try:
            now = usage(*self.run)
        except (psutil.Error, OSError):
            return None
        while len(self._history) > 1 and now.at - self._history[1].at >= WINDOW_S:
            self._history.popleft()
        self._history.append(now)
        return fraction_of_others(self._history[0], now)


def fraction_of_others(before: Usage, after: Usage) -> float | None:
    """Return the fraction of CPU time used by others between two measurements.

    None if no time has passed.
    """
    total = after.total - before.total
    others = (after.busy - before.busy) - (after.own - before.own)
    return min(1.0, max(0.0, others / total)) if total > 0 else None


def usage(*run: int) -> Usage:
    """Return the current CPU counters.

    Raises psutil.Error or OSError.
    """
    times = psutil.cpu_times()
    total = sum(times[:8])  # on Linux the remaining fields are included in user
    roots = [psutil.Process(pid) for pid in run]
    own = 0.0
    for process in {*roots, *(child for root in roots for child in root.children(recursive=True))}:
        try:
            own += sum(process.cpu_times()[:4])  # user, system, and both for ended child processes
        except psutil.Error:  # it has just ended
            continue
    return Usage(time.monotonic(), own, total - times.idle - getattr(times, "iowait", 0.0), total)


@lru_cache(maxsize=1)
def host() -> str:
    """Return the name of this machine."""
    return platform.node()


def processor() -> str:
    """Return CPU, BLAS and number of threads, such as "AMD EPYC, OpenBLAS SkylakeX, 1 thread"."""
    libraries = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    of_numpy = [library for library in libraries if "numpy" in library["filepath"]] or libraries
    parts = [cpu_name()]
    for library in of_numpy[:1]:
        n_threads = library["num_threads"]
        parts.append(f"{library['internal_api']} {library.get('architecture') or ''}".strip())
        parts.append(f"{n_threads} thread{'s' if n_threads > 1 else ''}")
    return ", ".join(filter(None, parts))


def cpu_name() -> str:
    """Return the name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


_load: list[OtherLoad] = []


def follow(*run: int) -> None:
    """From now on count these processes and their descendants as part of the run."""
    if not _load or _load[0].run != run:
        _load[:] = [OtherLoad(*run)]


def load() -> float | None:
    """Return the fraction of the machine recently used by other processes, or None if unknown."""
    return _load[0].fraction() if _load else None

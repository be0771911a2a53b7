"""Where a fit runs, and how busy others keep the machine: what tells whether two times can be compared."""

from __future__ import annotations

import platform
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_info

PROC = Path("/proc")
WINDOW_S = 1.0
"""Seconds over which the share of others is taken, at least: the kernel counts in hundredths of a second."""
IDLE = (3, 4)
"""Places of the columns idle and iowait in /proc/stat."""
COLUMNS = 8
"""Of /proc/stat up to steal; what follows is counted in user already."""


class Look(NamedTuple):
    """Processor time in ticks since the machine started, of all its cores."""

    at: float
    """Seconds of a clock."""
    own: int
    """Used by the processes of this run."""
    busy: int
    """Used by anybody, or taken away by the host of a virtual machine."""
    total: int


class Others:
    """Tells the share of the machine's processor time that others than this run used just now.

    Parameters
    ----------
    run : processes of the run; they and all that they have started, workers and what learners start, are no others
    """

    def __init__(self, *run: int) -> None:
        self.run = run
        self._looks: deque[Look] = deque()
        self.share()

    def share(self) -> float | None:
        """Return the share in [0, 1] since the newest earlier call that is at least WINDOW_S old, else the first call.

        None where the system does not tell (it does on Linux).
        """
        try:
            now = look(*self.run)
        except (OSError, ValueError, IndexError):
            return None
        while len(self._looks) > 1 and now.at - self._looks[1].at >= WINDOW_S:
            self._looks.popleft()
        self._looks.append(now)
        return share(self._looks[0], now)


def share(before: Look, after: Look) -> float | None:
    """Return the share of the processor time between two looks that others used; None where no time has passed."""
    total = after.total - before.total
    if total <= 0:
        return None
    others = (after.busy - before.busy) - (after.own - before.own)
    return min(1.0, max(0.0, others / total))


def look(*run: int) -> Look:
    """Read the counters of the kernel.  Raises OSError, ValueError or IndexError where it has none of them."""
    ticks = [int(number) for number in (PROC / "stat").read_text().splitlines()[0].split()[1 : COLUMNS + 1]]
    total = sum(ticks)
    return Look(time.monotonic(), _used(run, set()), total - sum(ticks[place] for place in IDLE), total)


def _used(processes: Iterable[int], seen: set[int]) -> int:
    """Return the ticks that some processes, their living descendants and their ended children have used."""
    used = 0
    for process in {*processes} - seen:
        seen.add(process)
        folder = PROC / str(process)
        behind_name = (folder / "stat").read_text().rpartition(")")[2].split()
        used += sum(map(int, behind_name[11:15]))  # utime, stime, cutime, cstime
        for thread in (folder / "task").iterdir():
            for child in (thread / "children").read_text().split():
                with suppress(OSError):  # it has just ended
                    used += _used([int(child)], seen)
    return used


@lru_cache(maxsize=1)
def host() -> str:
    """Return the name of this machine."""
    return platform.node()


def processor() -> str:
    """Return what times depend on: "AMD EPYC, OpenBLAS SkylakeX, 1 thread"; call it under the limit of threads."""
    libraries = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    of_numpy = [library for library in libraries if "numpy" in library["filepath"]] or libraries
    parts = [cpu_name()]
    for library in of_numpy[:1]:
        threads = library["num_threads"]
        parts.append(f"{library['internal_api']} {library.get('architecture') or ''}".strip())
        parts.append(f"{threads} thread{'s' if threads > 1 else ''}")
    return ", ".join(filter(None, parts))


def cpu_name() -> str:
    """Return the processor's name as the system gives it."""
    try:
        lines = (PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


_followed: list[Others] = []


def follow(*run: int) -> None:
    """Count from now on all processes of a run, given by its first ones on this machine, as its own."""
    if not _followed or _followed[0].run != run:
        _followed[:] = [Others(*run)]


def load() -> float | None:
    """Return the share of the machine that others than this run used just now, None where that is not known."""
    return _followed[0].share() if _followed else None

"""Progress of the latest run in a results folder, as read by other processes.

results/<experiment>/progress.json    counts, running tasks, failures, estimated remaining time

The file is not a result: nothing is computed from it, and `merge` ignores it.
"""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path
from typing import Annotated, Literal

import psutil
from pydantic import Field

from klr_bench.errors import error_context, fail
from klr_bench.files import read_regular
from klr_bench.parsing import OpenModel, between, parse

NAME = "progress.json"
LARGEST = 4 * 10**6
"""Maximum size of the file in bytes."""
MOST_LISTED = 100
"""Maximum number of running tasks, and of failures, listed in the file; all are counted."""
HEARTBEAT_S = 5.0
"""Seconds after which a run rewrites the file even without news."""
SILENT_S = 4 * HEARTBEAT_S
"""Seconds without a write after which a run on another machine counts as silent."""

Amount = Annotated[int, between(0, 10**9)]
Time = Annotated[float, between(0, 10**11)]
"""Seconds, or seconds since 1970."""
State = Literal["running", "finished", "interrupted"]
Standing = Literal["running", "silent", "killed", "finished", "interrupted"]
"""State of a run: a "running" run may also be silent (on another machine) or killed (its process is gone)."""


class Count(OpenModel):
    """Number of tasks or cells: total, successful, and failed."""

    total: Amount = 0
    done: Amount = 0
    failed: Amount = 0


class Running(OpenModel):
    """A running task."""

    what: str
    started: Time


class Failed(OpenModel):
    """Failed cell."""

    what: str
    status: str
    message: str


class Progress(OpenModel):
    """Content of progress.json.

    Times are seconds since 1970 by the clock of the run's machine.
    """

    experiment: str
    state: State
    host: str
    pid: Annotated[int, between(1, 2**31)]
    born: Time | None
    """Time when the process started."""
    started: Time
    updated: Time
    tasks: Count
    """Number of selection folds and cells that this run computes."""
    cells: Count
    """Number of cells of the experiment, including those finished by earlier runs."""
    n_running: Amount = 0
    running: list[Running] = Field(default_factory=list)
    """Running tasks, at most MOST_LISTED."""
    failures: list[Failed] = Field(default_factory=list)
    """Failed cells of this run, at most MOST_LISTED."""
    left_s: Time | None = None
    """Estimated remaining seconds, counted from `updated`; None before the first task ends."""
    message: str = ""
    """Reason for an interruption."""


def read_progress(folder: Path) -> Progress | None:
    """Return the progress of the latest run in a results folder, or None if there is none.

    Raises KlrBenchError if the file is damaged, too large or of other types.
    """
    path = folder / NAME
    with error_context(path, "The next run writes the file again."):
        try:
            content = json.loads(read_regular(path, LARGEST))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            fail("expected keys and values, got no JSON.")
        return parse(Progress, content)


def standing(progress: Progress, now: float | None = None) -> Standing:
    """Return the state of a run at the time `now` (seconds since 1970)."""
    if progress.state != "running":
        return progress.state
    if progress.host == platform.node():
        return "running" if is_alive(progress.pid, progress.born) else "killed"
    silence = (time.time() if now is None else now) - progress.updated
    return "running" if silence <= SILENT_S else "silent"


def birth(pid: int) -> float | None:
    """Return the time when a process started, or None if it is not running."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def is_alive(pid: int, born: float | None) -> bool:
    """Return True if a local process is running.

    `born` distinguishes it from a later process with the same id.
    """
    now = birth(pid)
    return now is not None and (born is None or abs(now - born) < 1.0)

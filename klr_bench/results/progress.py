"""progress.json: what a run says of itself while it works, for those who watch its results folder.

    results/<experiment>/progress.json    the latest run there: counts, what runs now, failures, an estimate of the rest

It describes a run and is no result: nothing is computed from it, and nothing merges or keeps it.
"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from klr_bench.errors import fail, located
from klr_bench.files import read_regular
from klr_bench.parsing import OpenModel, between, parse

NAME = "progress.json"
LARGEST = 4 * 10**6
"""Bytes of the file: twenty times those of MOST_LISTED tasks and failures with the longest messages."""
MOST_LISTED = 100
"""Tasks that run, and failures, that are listed; all of them are counted."""
HEARTBEAT_S = 5.0
"""A run with nothing new to say writes the file again after so many seconds."""
SILENT_S = 4 * HEARTBEAT_S
"""A run that has not written for so many seconds says nothing: it was killed, or something keeps it from writing."""
PROC = Path("/proc")

Amount = Annotated[int, between(0, 10**9)]
Time = Annotated[float, between(0, 10**11)]
"""Seconds, or seconds since 1970."""
State = Literal["running", "finished", "interrupted"]
Standing = Literal["running", "silent", "killed", "finished", "interrupted"]
"""How a run stands now: what it has said of itself, and whether one that said "running" still does.

silent: on another machine, and without a word for longer than SILENT_S.  killed: its process, on this machine, is gone.
"""


class Count(OpenModel):
    """Tasks or cells; `done` of them ended well, `failed` without a result."""

    total: Amount = 0
    done: Amount = 0
    failed: Amount = 0


class Running(OpenModel):
    """A task that runs now, in words as `Cell.describe` has them."""

    what: str
    started: Time


class Failed(OpenModel):
    """A cell without a result."""

    what: str
    status: str
    message: str


class Progress(OpenModel):
    """All that progress.json holds; times are seconds since 1970 by the clock of the run's machine."""

    experiment: str
    state: State
    host: str
    pid: Annotated[int, between(1, 2**31)]
    born: Amount | None
    """When the process started, in ticks since its machine did; None where the system does not tell."""
    started: Time
    updated: Time
    tasks: Count
    """Folds of selection and cells that this run computes."""
    cells: Count
    """All cells of the experiment; those that earlier runs have finished are done."""
    n_running: Amount = 0
    running: list[Running] = Field(default_factory=list)
    """The first MOST_LISTED tasks that run now; it is the run's knowledge: one that waits for its turn after its worker
    has died counts as well."""
    failures: list[Failed] = Field(default_factory=list)
    """The first MOST_LISTED cells that failed in this run."""
    left_s: Time | None = None
    """Estimated seconds until the end, from `updated` on; None before a task has ended."""
    message: str = ""
    """Why it was interrupted."""


def read_progress(folder: Path) -> Progress | None:
    """Return what the latest run in a results folder has said of itself, None where none has.

    Raises KlrBenchError where the file is damaged, too large or not of its declared types.
    """
    path = folder / NAME
    try:
        content = json.loads(read_regular(path, LARGEST))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        fail(f"{path}: expected what a run says of itself, got no JSON. The next run writes it anew.")
    with located(path, "The next run writes it anew."):
        return parse(Progress, content)


def standing(progress: Progress, now: float | None = None) -> Standing:
    """Return the present state of a run; `now` is in seconds since 1970.

    On this machine its process tells whether a run is alive, on another one the time since it wrote.
    """
    if progress.state != "running":
        return progress.state
    if progress.host == platform.node():
        return "running" if is_alive(progress.pid, progress.born) else "killed"
    silence = (time.time() if now is None else now) - progress.updated
    return "running" if silence <= SILENT_S else "silent"


def birth(pid: int) -> int | None:
    """Return when a process started, in ticks since the machine did.

    None where it is not there, has ended and only waits for its parent to notice, or the system does not tell.
    """
    try:
        fields: list[Any] = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def is_alive(pid: int, born: int | None) -> bool:
    """Return True if a process of this machine still runs; `born` tells it from a later one with its number."""
    if born is not None and birth(os.getpid()) is not None:
        return birth(pid) == born
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is there, and somebody else's
    return True

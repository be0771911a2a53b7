"""The file progress.json, which reports the progress of the latest run in a results folder.

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
MAX_BYTES = 4 * 10**6
"""Maximum size of the file in bytes."""
MOST_LISTED = 100
"""Maximum number of running tasks and of failures that the file lists; the counts include all of them."""
HEARTBEAT_S = 5.0
"""Maximum seconds between two writes of the file, even if nothing has changed."""
SILENT_S = 4 * HEARTBEAT_S
"""Seconds without a write after which a run on another machine is reported as silent."""

Amount = Annotated[int, between(0, 10**9)]
Time = Annotated[float, between(0, 10**11)]
"""A duration in seconds, or a time in seconds since 1970."""
State = Literal["running", "finished", "interrupted"]
CurrentState = Literal["running", "silent", "killed", "finished", "interrupted"]
"""Current state of a run; "silent": no recent write from another machine; "killed": its process no longer exists."""


class Count(OpenModel):
    """Numbers of tasks or cells: total, successful and failed."""

    total: Amount = 0
    done: Amount = 0
    failed: Amount = 0


class Running(OpenModel):
    """A running task and the time when it started."""

    what: str
    started: Time


class Failed(OpenModel):
    """A failed cell with its status and error message."""

    what: str
    status: str
    message: str


class Progress(OpenModel):
    """Content of progress.json; times are in seconds since 1970."""

    experiment: str
    state: State
    host: str
    pid: Annotated[int, between(1, 2**31)]
    born: Time | None
    """Time when the process of the run started."""
    started: Time
    updated: Time
    tasks: Count
    """Selection folds and cells that this run computes."""
    cells: Count
    """All cells of the experiment; cells finished by earlier runs count as done."""
    n_running: Amount = 0
    running: list[Running] = Field(default_factory=list)
    """Running tasks, at most MOST_LISTED."""
    failures: list[Failed] = Field(default_factory=list)
    """Failed cells of this run, at most MOST_LISTED."""
    left_s: Time | None = None
    """Estimated seconds remaining at the time `updated`; None until the first task has finished."""
    message: str = ""
    """Error message of an interrupted run."""


def read_progress(folder: Path) -> Progress | None:
    """Read progress.json in a results folder; return None if the file does not exist.

    Raises KlrBenchError if the file is damaged or too large, or has values of the wrong type.
    """
    path = folder / NAME
    with error_context(path, "The next run writes the file again."):
        try:
            content = json.loads(read_regular(path, MAX_BYTES))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            fail("expected a JSON object, got invalid JSON.")
        return parse(Progress, content)


def standing(progress: Progress, now: float | None = None) -> CurrentState:
    """Return the current state of a run.

    `now` is the time in seconds since 1970, by default the present.
    """
    if progress.state != "running":
        return progress.state
    if progress.host == platform.node():
        return "running" if is_alive(progress.pid, progress.born) else "killed"
    silence = (time.time() if now is None else now) - progress.updated
    return "running" if silence <= SILENT_S else "silent"


def birth(pid: int) -> float | None:
    """Return the start time of a process, or None if the process is not running."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def is_alive(pid: int, born: float | None) -> bool:
    """Return True if the process `pid`, started at the time `born`, is still running.

    The start time distinguishes it from a later process with the same id.
    """
    now = birth(pid)
    return now is not None and (born is None or abs(now - born) < 1.0)

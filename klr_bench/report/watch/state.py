"""What the live view says: how the run stands, and the report of its results so far."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError, raised
from klr_bench.results.progress import SILENT_S, Progress, read_progress, standing

FILES = ("records.csv", "traces.csv", "reliability.csv", "rows.csv", "manifest.yaml")
"""What a report is made of."""
INTERVAL_S, SHARE = 2.0, 0.05
"""Seconds between two reports, at least, and the share of a processor that making them may take beside the fits."""
LONGEST_LINE = 10**6
"""Bytes that are read of a line."""
BROKEN = (KlrBenchError, OSError, ValueError, RecursionError, MemoryError)
"""Errors from files that are damaged, replaced or removed while they are read."""
AGAIN = "Run the same command again to go on."


class Watched:
    """A results folder, which need not exist yet, read for any number of browsers at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._results = {"version": "", "html": "", "message": ""}
        self._due = 0.0

    def state(self) -> dict[str, Any]:
        """Return what the header shows, and the version of the results, as values of JSON."""
        state: dict[str, Any] = {"experiment": self.folder.name, "version": self._version(), "problem": ""}
        try:
            progress = read_progress(self.folder)
        except (KlrBenchError, OSError) as error:
            sentence = "How the run stands cannot be read."
            return state | {"standing": "unknown", "sentence": sentence, "problem": str(error)}
        if progress is not None:
            return state | describe(progress, time.time())
        sentence = f"Waiting for a run: klr-bench run experiment={self.folder.name}"
        if (self.folder / "records.csv").exists():
            sentence = "No run is at work here; earlier ones have left the table."
        return state | {"standing": "none", "sentence": sentence}

    def results(self) -> dict[str, str]:
        """Return the version of the results, and their report as HTML or a message, as values of JSON.

        It is made once per version.  If that fails, the message says why, and the next request tries again.
        """
        from klr_bench.report.page.content import experiment_part  # takes a second, which is not that of a report
        from klr_bench.report.page.html import fragment

        with self._lock:
            version, started = self._version(), time.thread_time()
            if version != self._results["version"]:
                found = {"version": version, "html": "", "message": ""}
                try:
                    if _has_rows(self.folder / "records.csv"):
                        found["html"] = fragment([experiment_part(self.folder)], self.folder.name)
                    else:
                        found["message"] = "Waiting for the first result."
                except BROKEN as error:
                    message = str(error) if isinstance(error, KlrBenchError) else raised(error)
                    found |= {"version": "", "message": message}
                self._results = found
                self._due = time.monotonic() + max(INTERVAL_S, (time.thread_time() - started) / SHARE)
            return self._results

    def _version(self) -> str:
        """Return what changes with the files; beside a run only as often as reports are to be made."""
        if time.monotonic() < self._due and self._is_running():
            return self._results["version"]
        return " ".join(_stamp(self.folder / name) for name in FILES)

    def _is_running(self) -> bool:
        try:
            progress = read_progress(self.folder)
        except (KlrBenchError, OSError):
            return False
        return progress is not None and standing(progress) == "running"


def _stamp(path: Path) -> str:
    """Return what changes when a file is replaced."""
    try:
        stat = os.stat(path)
    except OSError:
        return "-"
    return f"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{stat.st_size:x}"


def _has_rows(path: Path) -> bool:
    """Return False if there are no records yet, or only a header; of anything but a file the reader says what it is."""
    if not path.is_file():
        return os.path.lexists(path)
    with path.open("rb") as file:
        return bool(file.readline(LONGEST_LINE) and file.readline(LONGEST_LINE))


def describe(progress: Progress, now: float) -> dict[str, Any]:
    """Return what the header of the page shows of a run; `now` is in seconds since 1970."""
    stands = standing(progress, now)
    cells, is_alive = progress.cells, stands == "running"
    left = progress.left_s if is_alive else None
    running = [(task.what, span(now - task.started)) for task in progress.running] if is_alive else []
    return {
        "standing": stands,
        "sentence": _sentence(progress, now),
        "numbers": {
            "cells done": f"{cells.done:,} of {cells.total:,}",
            "cells failed": f"{cells.failed:,}",
            "tasks running": f"{progress.n_running:,}" if is_alive else "-",
            "time left": f"about {span(left - (now - progress.updated))}" if left is not None else "-",
        },
        "done": cells.done,
        "failed": cells.failed,
        "total": cells.total,
        "running": running,
        "more_running": max(0, progress.n_running - len(running)) if is_alive else 0,
        "failures": [(failed.what, failed.status, failed.message) for failed in progress.failures],
        "more_failures": max(0, cells.failed - len(progress.failures)),
    }


def _sentence(progress: Progress, now: float) -> str:
    """Return one or two sentences on how a run stands."""
    process = f"process {progress.pid} on {progress.host}"
    lasted, silence = span(progress.updated - progress.started), span(now - progress.updated)
    match standing(progress, now):
        case "running":
            tasks = f"{progress.tasks.done + progress.tasks.failed:,} of {progress.tasks.total:,} folds and cells"
            quiet = f" No word for {silence}: a fit keeps it from writing." if now - progress.updated > SILENT_S else ""
            return f"Running for {span(now - progress.started)} ({process}): {tasks}.{quiet}"
        case "silent":
            return f"No word for {silence} from {process}: it was killed, or a fit keeps it from writing."
        case "killed":
            return f"The run is gone: {process} was killed after {lasted}, {silence} ago at the most. {AGAIN}"
        case "interrupted":
            why = f" {progress.message}" if progress.message else ""
            return f"The run was stopped after {lasted}, {silence} ago.{why} {AGAIN}"
        case "finished":
            retry = " Run the same command again to try the failed cells once more." if progress.cells.failed else ""
            return f"The run has ended after {lasted}, {silence} ago.{retry}"


def span(seconds: float) -> str:
    """Return a span of time: "8 s", "12 min", "3 h 5 min", "2 d 4 h"."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    if minutes < 2 * 1440:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"

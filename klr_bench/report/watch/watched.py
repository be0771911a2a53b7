"""The results folder that is watched: how its run stands, and its table as HTML, made anew when the files change."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError, raised
from klr_bench.experiment.progress import read_progress
from klr_bench.report.watch.words import described

FILES = ("records.csv", "traces.csv", "reliability.csv", "rows.csv", "manifest.yaml")
"""What a table is made of."""
INTERVAL_S, SHARE = 2.0, 0.05
"""Seconds between two tables, at least, and the share of a processor that making them may take beside the fits."""

FAILED = "failed"
"""The beginning of the version of a table that could not be made, which is no version of the files."""
BROKEN = (KlrBenchError, OSError, ValueError, RecursionError, MemoryError)
"""What files can end in that are damaged, replaced or removed while they are read."""
Body = Callable[[Path], str]
"""Returns the HTML of what a results folder holds; raises KlrBenchError."""


class Watched:
    """A results folder, read for any number of browsers at once: a table is made once for all of them.

    Parameters
    ----------
    folder : results/<experiment>; it need not be there yet
    body : what makes the HTML of its table
    """

    def __init__(self, folder: Path, body: Body) -> None:
        self.folder = folder
        self._body = body
        self._announced = ""
        self._due = 0.0
        self._made = ("", "")
        self._looking, self._making = threading.Lock(), threading.Lock()

    def state(self) -> dict[str, Any]:
        """Return what the header shows, and the version of the table; JSON can hold it."""
        now = time.time()
        state: dict[str, Any] = {"experiment": self.folder.name, "version": self.version(), "problem": ""}
        try:
            progress = read_progress(self.folder)
        except (KlrBenchError, OSError) as error:
            return state | {
                "standing": "unknown",
                "sentence": "How the run stands cannot be read.",
                "problem": f"{error}",
            }
        if progress is not None:
            return state | described(progress, now)
        if (self.folder / "records.csv").exists():
            return state | {"standing": "none", "sentence": "No run is at work here; earlier ones have left the table."}
        command = f"klr-bench run experiment={self.folder.name}"
        return state | {"standing": "none", "sentence": f"Waiting for a run: {command}"}

    def version(self) -> str:
        """Return what is different when the table may be, but not oftener than tables are to be made."""
        with self._looking:
            if time.monotonic() >= self._due:
                self._announced = " ".join(_stamp(self.folder / name) for name in FILES)
            return self._announced

    def hurry(self) -> None:
        """Let the next version be told without delay."""
        with self._looking:
            self._due = 0.0

    def table(self) -> tuple[str, str]:
        """Return a version, and the HTML of the table, made anew if the one at hand is of another version.

        In place of a table that cannot be made there is the message that says why; the next call tries again.
        """
        with self._making:
            version, started = self.version(), time.thread_time()
            failed, first = self._made[0].startswith(FAILED), not self._made[0]
            if self._made[0] != version and (time.monotonic() >= self._due or not failed):
                try:
                    self._made = version, self._body(self.folder)
                except BROKEN as error:
                    text = str(error) if isinstance(error, KlrBenchError) else raised(error)
                    self._made = f"{FAILED} {version}", f'<p class="problem">{escape(text)}</p>\n'
                spent = 0.0 if first else time.thread_time() - started  # the first one imports what it needs
                with self._looking:
                    self._due = time.monotonic() + max(INTERVAL_S, spent / SHARE)
            return self._made


def _stamp(path: Path) -> str:
    """Return what changes when a file is replaced."""
    try:
        stat = os.stat(path)
    except OSError:
        return "-"
    return f"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{stat.st_size:x}"

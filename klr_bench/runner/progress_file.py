"""Report the progress of a run in progress.json, and as a bar or lines on the console."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import rich.progress
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from klr_bench.errors import KlrBenchError, exception_message
from klr_bench.files import write_json
from klr_bench.printing import printable, shortened
from klr_bench.results.progress import (
    HEARTBEAT_S,
    MOST_LISTED,
    NAME,
    Count,
    Failed,
    Progress,
    Running,
    State,
    birth,
    read_progress,
    standing,
)
from klr_bench.results.record import Record
from klr_bench.runner.plan import Cell, Fold

INTERVAL_S, SHARE = 1.0, 0.05
"""Minimum seconds between two writes of the file, and the maximum fraction of time spent on writing."""
END_TIMEOUT_S = 5.0
"""Maximum seconds to wait for an unresponsive disk at the end of a run."""
LONGEST_SHOWN = 500
"""Maximum number of characters of a message."""
PLAIN_INTERVAL_S = 5.0
"""Minimum seconds between two progress lines on a console that is not a terminal."""


class ProgressFile:
    """Context manager that keeps progress.json up to date during a run.

    A background thread writes the file after each change, but at most every INTERVAL_S and at least every HEARTBEAT_S
    seconds.  Errors in writing are ignored.  Nothing is written while another run is writing the same file.

    Parameters
    ----------
    folder : the results folder of the experiment
    n_cells : total number of cells of the run
    n_found : number of cells finished by earlier runs
    n_workers : number of tasks that run at the same time; other submitted tasks are waiting for a worker
    """

    def __init__(self, folder: Path, n_cells: int, n_found: int, n_workers: int) -> None:
        self._folder = folder
        self._n_workers = n_workers
        self._process: dict[str, Any] = {"host": platform.node(), "pid": os.getpid(), "born": birth(os.getpid())}
        self._started = time.time()
        self._state: State = "running"
        self._message = ""
        self._n_tasks = Counter[str]()
        self._n_cells = Counter(total=n_cells, done=n_found)
        self._n_computed = 0
        self._running: dict[str, tuple[str, float]] = {}
        self._failures: list[Failed] = []
        self._has_changed = True
        self._written = 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, name=NAME, daemon=True)

    def __enter__(self) -> ProgressFile:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ended.set()
        self._thread.join(END_TIMEOUT_S)
        self._state = "interrupted" if error else "finished"
        if error is not None and not isinstance(error, KeyboardInterrupt):
            self._message = _truncate(exception_message(error))
        if not self._thread.is_alive():
            self._write()

    def plan(self, n_tasks: int) -> None:
        """Set the total number of tasks of this run."""
        self._n_tasks["total"] = n_tasks

    def begin(self, task: Fold | Cell) -> None:
        """Record the start of a task."""
        with self._lock:
            self._running[task.key] = task.describe(), time.time()
            self._has_changed = True

    def end(self, task: Fold | Cell, failed: Record | bool) -> None:
        """Record the end of a task.

        `failed` is the record of a failed cell, True for a failed fold, and False otherwise.
        """
        outcome = "failed" if failed else "done"
        with self._lock:
            self._n_computed += self._running.pop(task.key, None) is not None
            for key in list(self._running)[self._n_workers - 1 : self._n_workers]:  # the next task to start
                self._running[key] = self._running[key][0], time.time()
            self._n_tasks[outcome] += 1
            self._n_cells[outcome] += isinstance(task, Cell)
            if isinstance(failed, Record) and len(self._failures) < MOST_LISTED:
                message = _truncate(failed.message)
                self._failures.append(Failed(what=task.describe(), status=failed.status, message=message))
            self._has_changed = True

    def _keep_writing(self) -> None:
        while True:
            started = time.monotonic()
            if self._has_changed or started - self._written >= HEARTBEAT_S:
                self._write()
            if self._ended.wait(max(INTERVAL_S, (time.monotonic() - started) / SHARE)):
                return

    def _write(self) -> None:
        with suppress(Exception):
            self._written, self._has_changed = time.monotonic(), False
            if not self._has_other_writer():
                with self._lock:
                    content = self._content().model_dump()
                write_json(self._folder / NAME, content)

    def _has_other_writer(self) -> bool:
        try:
            other = read_progress(self._folder)
        except KlrBenchError:
            return False
        if other is None or {name: getattr(other, name) for name in self._process} == self._process:
            return False
        return standing(other) == "running"

    def _content(self) -> Progress:
        running = sorted(list(self._running.values())[: self._n_workers], key=lambda entry: entry[1])
        n_left = self._n_tasks["total"] - self._n_tasks["done"] - self._n_tasks["failed"]
        left_s = (time.time() - self._started) * n_left / self._n_computed if self._n_computed else None
        is_running = self._state == "running"
        return Progress(
            experiment=self._folder.name,
            state=self._state,
            **self._process,
            started=self._started,
            updated=time.time(),
            tasks=Count(**self._n_tasks),
            cells=Count(**self._n_cells),
            n_running=len(running) if is_running else 0,
            running=[Running(what=what, started=at) for what, at in running[:MOST_LISTED]] if is_running else [],
            failures=list(self._failures),
            left_s=left_s if is_running else None,
            message=self._message,
        )


def _truncate(text: str) -> str:
    return shortened(printable(text), LONGEST_SHOWN)


class Display:
    """Context manager that shows how many tasks are finished.

    It is a progress bar on a terminal, and an occasional line elsewhere.
    """

    def __init__(self, console: Console, title: str, total: int, *, quiet: bool) -> None:
        self._console = console
        self._title = title
        self._total = total
        self._done = 0
        self._printed = time.monotonic()
        self._plain = not quiet and not console.is_terminal
        self._bar = rich.progress.Progress(
            TextColumn("{task.fields[title]}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left", markup=False, table_column=Column(no_wrap=True)),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False, style="dim", table_column=Column(no_wrap=True, ratio=1)),
            console=console,
            expand=True,
            transient=True,
            disable=quiet or self._plain,
        )
        self._task = self._bar.add_task("", total=total, title=title)

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def advance(self, description: str) -> None:
        """Count a finished task, and update the display."""
        self._done += 1
        self._bar.update(self._task, advance=1, description=description)
        is_due = time.monotonic() - self._printed >= PLAIN_INTERVAL_S or self._done == self._total
        if self._plain and is_due:
            self._printed = time.monotonic()
            self._console.print(f"{self._title}: {self._done} of {self._total}, last {description}")

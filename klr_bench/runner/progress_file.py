"""Keeps progress.json of a run up to date, whatever its tasks run on."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import rich.progress
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from klr_bench.errors import KlrBenchError
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
from klr_bench.results.store import Record
from klr_bench.results.variants import variant_text
from klr_bench.runner.executors import described
from klr_bench.runner.plan import Cell, Fold

Kind = tuple[str, ...]
"""What tasks have in common that may take equally long."""
INTERVAL_S, SHARE = 1.0, 0.05
"""Seconds between two writes, at least, and the share of a run that they may take."""
PATIENCE_S = 5.0
"""Seconds that the end of a run waits for a disk that does not answer."""
LONGEST_SHOWN = 500
"""Characters of a message."""


class ProgressFile:
    """A context manager around the work of a run, which tells it what begins and what ends.

    A thread writes: at once, then when something is new, but not sooner than INTERVAL_S, and else every HEARTBEAT_S.
    A fit in this process that holds Python's lock delays it.  What cannot be written is not written: a run never fails
    or waits for that.  As long as another run writes in this folder, the file is left to it.

    Parameters
    ----------
    folder : that of the experiment's results
    n_cells : all cells of the run
    n_found : those that earlier runs have finished
    n_workers : number of tasks that run at the same time; tasks that began beyond that wait for a worker
    """

    def __init__(self, folder: Path, n_cells: int, n_found: int, n_workers: int) -> None:
        self._folder = folder
        self._n_workers = n_workers
        self._pid = os.getpid()
        self._born = birth(self._pid)
        self._started = time.time()
        self._state: State = "running"
        self._message = ""
        self._n_tasks = Counter[str]()
        self._n_cells = Counter(total=n_cells, done=n_found)
        self._running: dict[str, tuple[Fold | Cell, float]] = {}
        self._failures: list[Failed] = []
        self._rest = _Rest(n_workers)
        self._new = True
        self._written = 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="progress.json", daemon=True)

    def __enter__(self) -> ProgressFile:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:  # a copy of this process that a learner has made
            return
        self._ended.set()
        self._thread.join(PATIENCE_S)
        self._state = "interrupted" if error else "finished"
        self._message = "" if error is None or isinstance(error, KeyboardInterrupt) else _shown(described(error))
        if not self._thread.is_alive():
            self._write()

    def plan(self, tasks: Iterable[Fold | Cell]) -> None:
        """Take note of the tasks that this run is to do."""
        with self._lock:
            for task in tasks:
                self._n_tasks["total"] += 1
                self._rest.add(_kind(task))

    def begin(self, task: Fold | Cell) -> None:
        """Take note that a task starts now, be it for the second time."""
        with self._lock:
            self._running[task.key] = (task, time.time())
            self._new = True

    def end(self, task: Fold | Cell, failed: Record | bool) -> None:
        """Take note that a task has ended; `failed` is the record of a cell without a result, True for a fold."""
        with self._lock:
            _, started = self._running.pop(task.key, (task, None))
            for following, _ in list(self._running.values())[self._n_workers - 1 : self._n_workers]:
                self._running[following.key] = (following, time.time())  # it has waited until now
            self._rest.take(_kind(task), None if started is None else max(0.0, time.time() - started))
            how = "failed" if failed else "done"
            self._n_tasks[how] += 1
            if isinstance(task, Cell):
                self._n_cells[how] += 1
            if isinstance(failed, Record) and len(self._failures) < MOST_LISTED:
                self._failures.append(
                    Failed(what=task.describe(), status=failed.status, message=_shown(failed.message))
                )
            self._new = True

    def _keep(self) -> None:
        while True:
            started = time.monotonic()
            if self._new or started - self._written >= HEARTBEAT_S:
                self._write()
            if self._ended.wait(max(INTERVAL_S, (time.monotonic() - started) / SHARE)):
                return

    def _write(self) -> None:
        # Exception: a learner in this process may have taken anything apart, and no run fails for this file
        with suppress(Exception):
            self._written, self._new = time.monotonic(), False
            if not self._left_to_another():
                with self._lock:
                    content = self._content().model_dump()
                write_json(self._folder / NAME, content)

    def _left_to_another(self) -> bool:
        """Return True if another run, which still works, writes the file."""
        try:
            found = read_progress(self._folder)
        except KlrBenchError:
            return False
        if found is None or (found.host, found.pid, found.born) == (platform.node(), self._pid, self._born):
            return False
        return standing(found) == "running"

    def _content(self) -> Progress:
        now = time.time()
        at_work = list(self._running.values())[: self._n_workers] if self._state == "running" else []
        at_work.sort(key=lambda entry: entry[1])
        left_s = self._rest.seconds([(_kind(task), now - started) for task, started in at_work])
        return Progress(
            experiment=self._folder.name,
            state=self._state,
            host=platform.node(),
            pid=self._pid,
            born=self._born,
            started=self._started,
            updated=now,
            tasks=Count(**self._n_tasks),
            cells=Count(**self._n_cells),
            n_running=len(at_work),
            running=[Running(what=task.describe(), started=started) for task, started in at_work[:MOST_LISTED]],
            failures=list(self._failures),
            left_s=left_s if self._state == "running" else None,
            message=self._message,
        )


class _Rest:
    """What is left to do, and how long it may take: each task as long as the mean of those of its kind that have ended.

    Kinds are tuples; where none of a kind has ended, the mean is that of those with its first entry, or of all.
    """

    def __init__(self, n_workers: int) -> None:
        self._n_workers = n_workers
        self._open = Counter[Kind]()
        self._n = Counter[Kind]()
        self._seconds = defaultdict[Kind, float](float)

    def add(self, kind: Kind) -> None:
        """Take note of a task that is to be done."""
        self._open[kind] += 1

    def take(self, kind: Kind, seconds: float | None) -> None:
        """Take note of a task that has ended; None where it took no time, because another run has done it."""
        self._open[kind] -= 1
        if seconds is not None:
            for wider in (kind, kind[:1], ()):
                self._n[wider] += 1
                self._seconds[wider] += seconds

    def seconds(self, running: Iterable[tuple[Kind, float]]) -> float | None:
        """Return the estimate; `running` are the tasks at work and the seconds that they have taken so far."""
        if not self._n[()]:
            return None
        left = sum(n * self._mean(kind) for kind, n in self._open.items())
        left -= sum(min(taken, self._mean(kind)) for kind, taken in running)
        at_once = max(1, min(self._n_workers, sum(self._open.values())))
        return max(0.0, left / at_once)

    def _mean(self, kind: Kind) -> float:
        known = next(wider for wider in (kind, kind[:1], ()) if self._n[wider])
        return self._seconds[known] / self._n[known]


def _kind(task: Fold | Cell) -> Kind:
    if isinstance(task, Cell):
        return "cell", task.source.name, task.algorithm, variant_text(task.variant)
    return "fold", task.source.name, repr(task.kernel)


def _shown(text: str) -> str:
    return shortened(printable(text), LONGEST_SHOWN)


PLAIN_INTERVAL_S = 5.0


class Display:
    """A context manager; `advance` is called once per finished task."""

    def __init__(self, console: Console, title: str, total: int, *, quiet: bool) -> None:
        self._console = console
        self._title = title
        self._total = total
        self._done = 0
        self._said = time.monotonic()
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def advance(self, description: str) -> None:
        """Count one more finished task."""
        self._done += 1
        self._bar.update(self._task, advance=1, description=description)
        due = time.monotonic() - self._said >= PLAIN_INTERVAL_S
        if self._plain and (due or self._done == self._total):
            self._said = time.monotonic()
            self._console.print(f"{self._title}: {self._done} of {self._total}, last {description}")

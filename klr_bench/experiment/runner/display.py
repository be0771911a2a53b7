"""What a run shows while it works: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

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
        self._bar = Progress(
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

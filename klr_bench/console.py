"""The console that klr-bench prints to: it takes a text as it is, whoever wrote it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from klr_bench.printing import printable


def is_unlimited(console: Console) -> bool:
    """Return True where nothing limits the width of a table: no terminal, and no environment variable COLUMNS."""
    return not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit()


class PlainConsole(Console):
    """A console that reads no markup, emoji code or escape sequence in what it prints."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> None:
        """Raise, so that the command line ends as it does for other output; rich would raise SystemExit(1)."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as it is, with what is not printable spelled out; rich would drop some of it."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return what is written of anything that rich can print, such as a cell of a table."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

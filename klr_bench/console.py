"""Console that prints untrusted text literally."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from klr_bench.printing import printable


def is_unlimited(console: Console) -> bool:
    """Return True if tables may have any width: no terminal, and COLUMNS is not set."""
    return not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit()


class PlainConsole(Console):
    """Console that does not interpret markup, emoji codes or escape sequences."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, which the command line handles; rich would raise SystemExit(1)."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text in which unprintable characters are escaped; rich would drop some of them."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments of a renderable with unprintable characters escaped."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

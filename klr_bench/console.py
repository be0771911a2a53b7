"""Console that prints strings from untrusted files without interpreting them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from klr_bench.printing import printable


def is_unlimited(console: Console) -> bool:
    """Return True if tables may be arbitrarily wide, as when output goes to a file."""
    return not console.is_terminal and not os.environ.get("COLUMNS", "").strip("0").isdigit()


class PlainConsole(Console):
    """Rich console that prints markup, emoji codes and escape sequences as they are."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)
        if self.width < 1:  # COLUMNS=0, which means that the width is unknown
            self.width = shutil.get_terminal_size().columns

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, which the command line handles; rich would raise SystemExit."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a rich `Text` object in which unprintable characters are escaped."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a rich renderable, with unprintable characters escaped."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

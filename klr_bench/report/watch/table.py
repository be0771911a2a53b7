"""What a page that watches a run holds: the report of its results so far."""

from __future__ import annotations

import os
from pathlib import Path

from klr_bench.files import open_regular

LONGEST_LINE = 10**6
"""Bytes that are read of a line."""
WAITING = '<p class="waiting">Waiting for the first result.</p>\n'


def held(folder: Path) -> str:
    """Return the HTML of a results folder, as its report has it; raises KlrBenchError where it cannot be read."""
    from klr_bench.report.page.content import experiment_part  # the server is to answer at once: this takes a second
    from klr_bench.report.page.spelling import inside

    if not os.path.lexists(folder / "records.csv") or _is_empty(folder / "records.csv"):
        return WAITING
    return inside([experiment_part(folder)], folder.name)


def _is_empty(path: Path) -> bool:
    """Say whether a file of records has no row yet, as that of a run which was stopped before its first cell."""
    try:
        with open_regular(path) as file:
            return not (file.readline(LONGEST_LINE) and file.readline(LONGEST_LINE))
    except OSError:
        return False  # the reader says what is wrong

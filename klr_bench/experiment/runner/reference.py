"""How long an experiment took where the references were made, which lie beside the package in a checkout."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import klr_bench

FOLDER = Path(klr_bench.__file__).parent.parent / "results" / "reference"
TIMES = ("fit_time_s", "predict_time_s")


class Reference(NamedTuple):
    """The cells of a committed run, and the seconds that their fits and predictions took, one after the other."""

    n_cells: int
    seconds: float

    def sentence(self) -> str:
        """Return it in words."""
        duration = _duration(self.seconds)
        return f"reference: {self.n_cells} cells, whose fits and predictions took {duration} in all, without selection"


def reference(experiment: str) -> Reference | None:
    """Return what the committed records of an experiment say; None where there are none that can be read."""
    try:
        with (FOLDER / experiment / "records.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return Reference(len(rows), sum(float(row[name] or 0) for row in rows for name in TIMES))
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return None


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"

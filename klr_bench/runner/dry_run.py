"""A dry run: what would run and what is done, in words."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

import klr_bench
from klr_bench.config.models import RunConfig
from klr_bench.results.store import Store
from klr_bench.runner.plan import Cell
from klr_bench.runner.scores import ScoreStore


def dry_run_of(cells: Sequence[Cell], folder: Path, config: RunConfig, console: Console, *, quiet: bool) -> int:
    """Print what would run and return the number of cells that are done; fetch, parse and write nothing."""
    store, scores = Store(folder), ScoreStore(folder, fresh=config.force)
    waiting = [cell for cell in cells if config.force or not store.finished(cell.key)]
    folds = scores.to_score(waiting)
    n_fits = sum(len(fold.candidates) for fold in folds)
    place = Path(config.results_dir) / config.name
    console.print(f"{config.name}: {len(cells)} cells, {len(cells) - len(waiting)} of them done, in {place}")
    found = reference(config.name)
    if found and config.data.path is None:  # that of a user's file is of another one
        console.print(found.sentence())
    end = "" if quiet or not waiting else ":"
    console.print(f"would run {len(folds)} folds of selection ({n_fits} fits) and {len(waiting)} cells{end}")
    for cell in [] if quiet else waiting:
        console.print(f"  {cell.describe()}")
    return len(cells) - len(waiting)


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

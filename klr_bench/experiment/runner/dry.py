"""A dry run: what would run and what is done, in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from klr_bench.experiment.config.models import RunConfig
from klr_bench.experiment.records import Store
from klr_bench.experiment.runner.plan import Cell
from klr_bench.experiment.runner.reference import reference
from klr_bench.experiment.runner.scores import ScoreStore


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

"""Estimate how long a run takes, from its reference results or the last run in its folder."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from joblib import cpu_count

from klr_bench.config.models import RunConfig
from klr_bench.config.needs import Measured, reference_times
from klr_bench.errors import KlrBenchError
from klr_bench.parsing import parse
from klr_bench.results.progress import read_progress
from klr_bench.results.store import Store
from klr_bench.results.variants import read_variant
from klr_bench.runner.plan import Cell, Fold, group_folds, plan_cells

UNREADABLE = (KlrBenchError, OSError, ValueError, KeyError, TypeError, OverflowError)
"""Exceptions for stored files that are missing or invalid."""


class Estimate(NamedTuple):
    """Estimated time of a run on a number of cores, and the source of the estimate."""

    seconds: float
    cores: int
    source: str

    def sentence(self) -> str:
        """Return the estimate as text for the console."""
        return f"time: about {duration(self.seconds)} on {self.cores} cores, estimated from {self.source}"


class _Reference:
    """Times of a reference run.  Raises an exception in UNREADABLE if its files cannot be used.

    Parameters
    ----------
    measured : folder and time of the whole run
    cache : folder of the data
    """

    def __init__(self, measured: Measured, cache: Path) -> None:
        seconds = defaultdict[tuple[object, ...], list[float]](list)
        with (measured.folder / "records.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                method = row["dataset"], row["algorithm"], read_variant(row["variant"])
                for n in range(4):
                    seconds[method[:n]].append(float(row["fit_time_s"] or 0) + float(row["predict_time_s"] or 0))
        self._means = {prefix: mean(values) for prefix, values in seconds.items()}
        self._of_cells = sum(seconds[()])
        self._rest = max(0.0, measured.seconds * measured.cores - self._of_cells)
        """Seconds of selection, and of everything else that the records do not include."""
        config = parse(RunConfig, Store(measured.folder).read_manifest()["config"])
        self._selection = self._work(group_folds(plan_reference(config, cache)))

    def has(self, cell: Cell) -> bool:
        """Return True if the reference has cells of this method on this data set."""
        return (cell.source.name, cell.algorithm, cell.variant) in self._means

    def cell_s(self, cell: Cell) -> float:
        """Return the mean seconds of cells of the method, or else the algorithm, data set or all."""
        method = cell.source.name, cell.algorithm, cell.variant
        return next(self._means[method[:n]] for n in (3, 2, 1, 0) if method[:n] in self._means)

    def total(self, cells: Sequence[Cell], folds: Sequence[Fold]) -> float:
        """Return the estimated seconds of cells and selection folds, summed over the cores."""
        of_cells = sum(map(self.cell_s, cells))
        share = self._work(folds) / self._selection if self._selection else of_cells / self._of_cells
        return of_cells + self._rest * share

    def _work(self, folds: Sequence[Fold]) -> float:
        """Return the fits of folds, weighted by the mean seconds of the cells of their data set."""
        means = self._means
        return sum(len(fold.candidates) * means.get((fold.source.name,), means[()]) for fold in folds)


def estimate(
    cells: Sequence[Cell], folds: Sequence[Fold], folder: Path, config: RunConfig, cache: Path
) -> Estimate | None:
    """Return the estimated time of cells and selection folds, or None without stored times.

    A run on a user's own file has no reference.  `folder` is the results folder of the run.
    """
    cores = config.n_jobs if config.n_jobs and config.n_jobs > 0 else cpu_count()
    if not cells:
        return Estimate(0.0, cores, "")
    measured = None if config.data.path else reference_times().get(config.experiment)
    reference = None
    with suppress(*UNREADABLE):
        reference = _Reference(measured, cache) if measured else None
    if measured and reference:
        seconds = max([reference.total(cells, folds) / cores, *map(reference.cell_s, cells)])
        source = f"the reference run ({duration(measured.seconds)} on {measured.cores} cores)"
        n_missing = sum(not reference.has(cell) for cell in cells)
        return Estimate(seconds, cores, f"{source}, which lacks {n_missing} of the cells" if n_missing else source)
    with suppress(*UNREADABLE):
        if (latest := read_progress(folder)) and (n_tasks := latest.tasks.done + latest.tasks.failed):
            seconds = (latest.updated - latest.started) * int(Store(folder).read_manifest()["machine"]["workers"])
            left = seconds / n_tasks * (len(cells) + len(folds)) / cores
            return Estimate(left, cores, f"the {n_tasks} folds and cells of the latest run in this folder")
    return None


def plan_reference(config: RunConfig, cache: Path) -> list[Cell]:
    """Return the cells of a reference run, without algorithms whose class no longer exists."""
    cells = []
    for stem, algorithm in config.algorithms.items():
        with suppress(KlrBenchError):
            cells += plan_cells(config.model_copy(update={"algorithms": {stem: algorithm}}), cache)
    return cells


def duration(seconds: float) -> str:
    """Return a duration in a suitable unit, such as "12 min"."""
    unit, length = ("s", 1) if seconds < 60 else ("min", 60) if seconds < 3600 else ("h", 3600)
    return f"{seconds / length:.{int(unit == 'h')}f} {unit}"

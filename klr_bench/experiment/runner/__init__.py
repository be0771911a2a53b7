"""Run an experiment: what is finished is skipped, what is missing runs in parallel, every result lands at once."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from joblib import cpu_count
from rich.console import Console

from klr_bench.errors import KlrBenchError
from klr_bench.estimators.core import contract
from klr_bench.experiment.config.splitting import read_split
from klr_bench.experiment.config.validate import Config
from klr_bench.experiment.data import Dataset, default_cache
from klr_bench.experiment.data.commands import progress
from klr_bench.experiment.records import FINISHED, CellFile, Record, Store
from klr_bench.experiment.runner.display import Display
from klr_bench.experiment.runner.manifest import manifest
from klr_bench.experiment.runner.plan import Cell, Fold, Source, plan_cells
from klr_bench.experiment.runner.pool import Failure, Task, in_worker_process, run_all, stop_workers
from klr_bench.experiment.runner.scores import ScoreStore
from klr_bench.experiment.runner.work import failed_cell, run_cell, run_fold
from klr_bench.experiment.selection import Spec
from klr_bench.experiment.splits import make_split
from klr_bench.experiment.targets import build
from klr_bench.experiment.variants import variant_text

REBUILD_INTERVAL_S = 1.0

Item = TypeVar("Item", Cell, Fold)


@dataclass
class Outcome:
    """What a run has done: cells computed, found finished, and failed."""

    n_computed: int = 0
    n_found: int = 0
    failed: list[Record] = field(default_factory=list)

    @property
    def n_failed(self) -> int:
        """Number of cells without a result."""
        return len(self.failed)


def run(config: Config, *, console: Console, quiet: bool = False, dry_run: bool = False) -> Outcome:
    """Compute what the results folder does not have yet, and write the tables and manifest.yaml.

    Raises KlrBenchError for bad input, before anything is written; KeyboardInterrupt passes through, with what is
    finished kept.
    """
    cache = Path(config.data.cache) if config.data.cache else default_cache()
    folder = Path(config.results_dir) / config.name
    if dry_run:
        return _dry_run(plan_cells(config, cache), folder, config, console)
    return _Run(config, plan_cells(config, cache), folder, console, quiet=quiet).run()


class _Run:
    """One run: the state that its steps share."""

    def __init__(self, config: Config, cells: list[Cell], folder: Path, console: Console, *, quiet: bool) -> None:
        self.config = config
        self.console = console
        self.quiet = quiet
        self.n_jobs = self._workers()
        self.cells = cells
        self.store = Store(folder)
        self.scores = ScoreStore(folder, fresh=config.force)
        self.outcome = Outcome()
        self.rebuilt = 0.0

    def run(self) -> Outcome:
        started = time.monotonic()
        cells = [cell for cell in self.cells if self.config.force or not self.store.finished(cell.key)]
        self._fetch(cells)
        previous = self.store.read_manifest()
        self.store.write_manifest(manifest(self.config.name, self.config.plain(), self.n_jobs, previous))
        self.outcome.n_found = len(self.cells) - len(cells)
        try:
            self._fit(self._select(cells))
        except BaseException:
            stop_workers()
            self._rebuild()
            self._say(f"[yellow]stopped[/]: {self._count()}. Run the same command again to go on.")
            raise
        self._close(time.monotonic() - started)
        return self.outcome

    def _workers(self) -> int:
        if self.config.parallel.backend == "serial":
            return 1
        if in_worker_process():
            self._say("inside a worker process of a launcher: running serially.")
            return 1
        return self.config.n_jobs or cpu_count()

    def _fetch(self, cells: Sequence[Cell]) -> None:
        """Have each data set parsed in the cache, and say how its labels are read."""
        for source in {cell.source.stem: cell.source for cell in cells}.values():
            with progress(Console(quiet=True) if self.quiet else self.console) as report:
                dataset = source.load(report)
            self._check_split(dataset, source)
            if len(dataset.classes) > 2:
                self._check_learners(dataset, [cell for cell in cells if cell.source.stem == source.stem])
            rows, features = dataset.X.shape
            self._say(f"{dataset.name}: {rows:,} rows, {features:,} features; {_described(dataset.classes)}")

    def _check_split(self, dataset: Dataset, source: Source) -> None:
        """Refuse a data set with too few rows to train on."""
        n_folds = self.config.selection.folds
        labels = np.unique(dataset.y)
        for repeat in range(self.config.repeats):
            y = dataset.y[make_split(dataset, read_split(source.spec["split"]), source.seed, repeat).train]
            rarer = min(int((y == label).sum()) for label in labels)
            if rarer < 1 or len(y) < 2 * n_folds:
                message = (
                    f"{dataset.name}: repeat {repeat} has {len(y)} training rows, {rarer} of the rarest class; at "
                    f"least one of each class and {2 * n_folds} in all (two a fold) are needed: use more data, or "
                    f"fewer folds (selection.folds={n_folds})."
                )
                raise KlrBenchError(message)

    def _check_learners(self, dataset: Dataset, cells: Sequence[Cell]) -> None:
        """Refuse learners of two classes for a data set with more."""
        for cell in {cell.algorithm: cell for cell in cells}.values():
            if not contract.takes_many_classes(build(cell.candidates[0])):
                message = (
                    f"{cell.algorithm}: takes two classes, {dataset.name} has {len(dataset.classes)}. Leave it out of "
                    "algorithm=[...], or choose one class against the rest (of your own file: data.positive=LABEL)."
                )
                raise KlrBenchError(message)

    def _select(self, cells: Sequence[Cell]) -> list[tuple[Cell, Spec]]:
        """Score what the cells have to choose from; return the cells whose choice can be made, with it."""
        folds = self.scores.to_score(cells)
        failures: dict[str, Failure] = {}
        tasks = [partial(run_fold, fold) for fold in folds]
        for fold, result in self._execute("selection", folds, tasks):
            if isinstance(result, Failure):
                failures[fold.key] = result
            else:
                self.scores.write(fold, result)
        ready = []
        for cell in cells:
            failure = next((failures[fold.key] for fold in cell.folds() if fold.key in failures), None)
            if failure:
                self._land(failed_cell(cell, failure.status, f"in selection: {failure.message}"))
            elif chosen := self.scores.choice(cell):
                ready.append((cell, chosen))
            else:
                message = f"none of the {len(cell.candidates)} candidates of the grid could be fitted in every fold"
                self._land(failed_cell(cell, "error", message))
        return ready

    def _fit(self, cells: Sequence[tuple[Cell, Spec]]) -> None:
        tasks = [partial(run_cell, cell, chosen) for cell, chosen in cells]
        for cell, result in self._execute("cells", [cell for cell, _ in cells], tasks):
            failed = isinstance(result, Failure)
            self._land(failed_cell(cell, result.status, result.message) if failed else result)

    def _execute(self, title: str, items: Sequence[Item], tasks: Sequence[Task]) -> Iterator[tuple[Item, Any]]:
        """Yield (item, result) for each item and its task as the task ends."""
        if not tasks:
            return
        with Display(self.console, title, len(tasks), quiet=self.quiet) as display:
            for position, result in run_all(tasks, self.n_jobs):
                display.advance(items[position].describe())
                yield items[position], result

    def _land(self, cell: CellFile) -> None:
        """Write a finished cell, and the tables at most once a second."""
        self.store.write_cell(cell)
        if cell.record.status in FINISHED:
            self.outcome.n_computed += 1
        else:
            self.outcome.failed.append(cell.record)
        if time.monotonic() - self.rebuilt > REBUILD_INTERVAL_S:
            self._rebuild()

    def _rebuild(self) -> list[str]:
        notes = self.store.rebuild({cell.config_hash for cell in self.cells}).notes()
        self.rebuilt = time.monotonic()
        return notes

    def _count(self) -> str:
        done = self.outcome.n_computed + self.outcome.n_found
        counts = f"{done} of {len(self.cells)} cells are done ({self.outcome.n_found} were there already)"
        return counts + (f", {self.outcome.n_failed} failed" if self.outcome.failed else "")

    def _close(self, seconds: float) -> None:
        for note in self._rebuild():
            self._say(note)
        for record in self.outcome.failed:
            name = f"{record.algorithm} {variant_text(record.variant)}".strip()
            self.console.print(
                f"[red]{record.status}[/]: {name} on {record.dataset}, repeat {record.repeat}: {record.message}"
            )
        self._say(f"{self._count()}; {seconds:.1f} s. Results: {self.store.folder}/records.csv")
        if self.outcome.failed:
            self._say("Run the same command again to try the failed cells once more.")
        place = "" if self.config.results_dir == "results" else f" results_dir={shlex.quote(self.config.results_dir)}"
        self._say(f"Next: klr-bench report experiment={self.config.name}{place}")

    def _say(self, text: str) -> None:
        if not self.quiet:
            self.console.print(text, highlight=False)


def _described(classes: Sequence[str]) -> str:
    """Return a few words on how the labels are read."""
    if len(classes) > 2:
        return f"{len(classes)} classes: {', '.join(classes)}"
    negative, positive = classes
    return f"{negative!r} is -1, {positive!r} is +1"


def _dry_run(cells: Sequence[Cell], folder: Path, config: Config, console: Console) -> Outcome:
    """Say what would run and what is done; fetch, parse and write nothing."""
    store, scores = Store(folder), ScoreStore(folder, fresh=config.force)
    waiting = [cell for cell in cells if config.force or not store.finished(cell.key)]
    folds = scores.to_score(waiting)
    n_fits = sum(len(fold.learners) for fold in folds)
    console.print(f"{config.name}: {len(cells)} cells, {len(cells) - len(waiting)} of them done, in {folder}")
    console.print(f"would run {len(folds)} folds of selection ({n_fits} fits) and {len(waiting)} cells:")
    for cell in waiting:
        console.print(f"  {cell.describe()}", highlight=False)
    return Outcome(n_found=len(cells) - len(waiting))

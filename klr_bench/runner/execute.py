"""Execution of an experiment: fetch data, compute results, store them, print a summary."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import scipy.sparse as sp
from rich.console import Console

from klr_bench.config.models import RunConfig
from klr_bench.console import PlainConsole
from klr_bench.datasets import Dataset, default_cache
from klr_bench.datasets.catalog import progress
from klr_bench.datasets.dataset import Streamed
from klr_bench.datasets.splits import scaling
from klr_bench.printing import shortened
from klr_bench.results.store import FINISHED, CellFile, Record, Store
from klr_bench.results.variants import variant_text
from klr_bench.runner import machine
from klr_bench.runner.bandwidth import kernel_warnings
from klr_bench.runner.dry_run import print_plan
from klr_bench.runner.executors import Executor, Failure, Task, open_executor
from klr_bench.runner.fit import failed_cell, run_cell, run_fold
from klr_bench.runner.manifest import manifest
from klr_bench.runner.plan import Cell, Fold, cells_of_shard, group_folds, plan_cells
from klr_bench.runner.prequential import remove_state, run_stream
from klr_bench.runner.progress_file import Display, ProgressFile
from klr_bench.runner.scores import ScoreStore
from klr_bench.runner.validation import check_data, check_many_classes, check_stream_learners

Item = TypeVar("Item", Fold, Cell)

REBUILD_INTERVAL_S, REBUILD_SHARE = 1.0, 0.05
"""Minimum seconds between two rebuilds of the tables, and maximum fraction of a run's time that they take."""
SCALED = {
    None: "",
    "standard": ", each scaled to mean 0 and deviation 1",
    "minmax": ", each scaled to [0, 1]",
    "auto": ", each scaled to mean 0 and deviation 1, any with a long tail by its ranks",
}
"""Description of the feature scaling, for messages."""
LONGEST_SHOWN = 500
"""Maximum length of the printed message of a failed cell."""
TASKS_PER_WORKER = 4
"""Minimum number of cells per worker in a round, so that few workers idle at its end."""


@dataclass
class Outcome:
    """Result of a run: numbers of computed and already finished cells, and failed records."""

    n_computed: int = 0
    n_found: int = 0
    failed: list[Record] = field(default_factory=list)
    score: float | None = None
    """Mean selection metric over all finished cells, if any, for sweepers that search for the best value."""

    @property
    def n_failed(self) -> int:
        """Number of cells without a result."""
        return len(self.failed)


def run(
    config: RunConfig,
    *,
    console: Console,
    quiet: bool = False,
    dry_run: bool = False,
    executor: Executor | None = None,
    overrides: Sequence[str] = (),
) -> Outcome:
    """Compute the results that are missing in the results folder, and write tables and manifest.

    The cells run on the `executor`, by default that of the configuration.  `overrides` are the arguments of the command
    line, for the manifest.  With `quiet` cells are only counted.
    With `dry_run`, print what would run and how long the committed reference took: estimators are imported and not
    called, and nothing is fetched, generated or written.
    Raises KlrBenchError for bad input, before anything is written.  After KeyboardInterrupt finished work is kept.
    """
    cache = (Path(config.data.cache) if config.data.cache else default_cache()).absolute()
    folder = (Path(config.results_dir) / config.name).absolute()
    cells = cells_of_shard(plan_cells(config, cache, construct=not dry_run), config.shard)
    for warning in kernel_warnings(config):
        console.print(warning, style="yellow")
    if dry_run:
        return Outcome(n_found=print_plan(cells, folder, config, console, quiet=quiet))
    check_stream_learners(cells)
    machine.follow(os.getpid())
    this = _Run(config, cells, folder, console, quiet=quiet)
    with executor or open_executor(config.parallel, config.n_jobs, this.say) as opened:
        return this.run(opened, overrides)


class _Run:
    """State shared by the steps of a run."""

    def __init__(self, config: RunConfig, cells: list[Cell], folder: Path, console: Console, *, quiet: bool) -> None:
        self.config = config
        self.console = console
        self.quiet = quiet
        self.cells = cells
        self.store = Store(folder)
        self.scores = ScoreStore(folder, fresh=config.force)
        self.outcome = Outcome()
        self.next_rebuild = 0.0

    def run(self, executor: Executor, overrides: Sequence[str]) -> Outcome:
        started = time.monotonic()
        self.executor = executor
        cells = [cell for cell in self.cells if self.config.force or not self.store.finished(cell.key)]
        previous = self.store.read_manifest()
        self._fetch(cells)
        self.store.write_manifest(manifest(self.config, executor.n_workers, previous, overrides))
        self.outcome.n_found = n_found = len(self.cells) - len(cells)
        with ProgressFile(self.store.folder, len(self.cells), n_found, executor.n_workers) as self.progress:
            try:
                self._compute(cells)
            except BaseException:
                self._rebuild()
                n_folds, n_open = len(group_folds(cells)), len(self.scores.to_score(cells))
                folds = f"; {n_folds - n_open} of {n_folds} folds of selection are scored" if n_folds else ""
                self.say(f"stopped: {self._count()}{folds}. Run the same command again to continue.", style="yellow")
                raise
            self._close(time.monotonic() - started)
        self.outcome.score = self._mean_score()
        return self.outcome

    def _fetch(self, cells: Sequence[Cell]) -> None:
        """Download missing data sets, check all of them, and print their sizes and classes."""
        for source in {cell.source.stem: cell.source for cell in cells}.values():
            of_source = [cell for cell in self.cells if cell.source.stem == source.stem]
            with progress(PlainConsole(quiet=True) if self.quiet else self.console) as report:
                load = source.streamed if source.is_stream else source.load
                data: Streamed | Dataset = load(progress=report)
            classes = f"{len(data.classes)} classes: {', '.join(data.classes)}"
            if len(data.classes) == 2:
                classes = "{!r} is -1, {!r} is +1".format(*data.classes)
            if isinstance(data, Streamed):
                check_many_classes(data.name, len(data.classes), of_source)
                self.say(f"{data.name}: a stream of rows with {data.rows.n_features:,} features; {classes}")
                continue
            check_data(data, of_source)
            rows, features = data.X.shape
            scaled = SCALED[scaling(data.name, source.spec.scale, sparse=sp.issparse(data.X))]
            self.say(f"{data.name}: {rows:,} rows, {features:,} features{scaled}; {classes}")
            for line in data.said:
                self.say(f"  {line}")

    def _compute(self, cells: Sequence[Cell]) -> None:
        """Score folds and fit cells in rounds: the folds of some repeats, then their cells."""
        if not cells:
            return
        folds = self.scores.to_score(cells)
        n_tasks = len(folds) + len(cells)
        self.progress.plan(n_tasks)
        with Display(self.console, "folds and cells", n_tasks, quiet=self.quiet) as self.display:
            for round_folds, round_cells in rounds(cells, folds, TASKS_PER_WORKER * self.executor.n_workers):
                self._fit(round_cells, self._score(round_folds))

    def _score(self, folds: Sequence[Fold]) -> dict[str, Failure]:
        """Score the candidates of folds; return the failures, keyed by fold."""
        failures = {}
        for fold, result in self._results(folds):
            if isinstance(result, Failure):
                failures[fold.key] = result
            else:
                self.scores.write(fold, result)
            self._end(fold, failed=isinstance(result, Failure))
        return failures

    def _fit(self, cells: Sequence[Cell], failures: Mapping[str, Failure]) -> None:
        """Fit cells and store their results; `failures` are the failed folds, by key."""
        ready = []
        for cell in cells:
            failure = next((failures[fold.key] for fold in cell.folds if fold.key in failures), None)
            if failure:
                self._store(cell, failed_cell(cell, failure.status, f"in selection: {failure.message}"))
            else:
                ready.append(cell)
        for cell, result in self._results(ready):
            if isinstance(result, Failure):
                result = failed_cell(cell, result.status, result.message, self.scores.choice(cell))
            self._store(cell, result)

    def _results(self, items: Sequence[Item]) -> Iterator[tuple[Item, Any]]:
        """Yield folds or cells with their results as they finish.

        Those that another run in the same folder has finished in the meantime are counted and not computed.
        """
        finished: list[Item] = []
        with closing(self.executor.run(self._tasks(items, finished))) as results:
            for task, result in results:
                yield task.item, result
        for item in finished:
            self.outcome.n_found += isinstance(item, Cell)
            self._end(item)

    def _tasks(self, items: Sequence[Item], finished: list[Item]) -> Iterator[Task]:
        """Yield the tasks of folds or cells, and append items that need none to `finished`."""
        for item in items:
            call = self._call(item)
            if call is None:
                finished.append(item)
            else:
                self.progress.begin(item)
                yield Task(item, call)

    def _call(self, item: Fold | Cell) -> partial[Any] | None:
        """Return the call that computes a fold or a cell, or None if it is already finished."""
        if isinstance(item, Fold):
            return partial(run_fold, item) if self.scores.unscored(item, again=True) else None
        if not self.config.force and self.store.finished(item.key):
            return None
        chosen = self.scores.choice(item)
        if chosen is None:
            return partial(failed_cell, item, "error", self.scores.failure_message(item))
        if item.source.is_stream:
            return partial(run_stream, item, chosen, self.store.folder)
        n_left = len(self.cells) - self.outcome.n_found - self.outcome.n_computed - self.outcome.n_failed
        spare_threads = max(self.executor.n_workers // max(n_left, 1), 1)
        return partial(run_cell, item, chosen, spare_threads if self.config.parallel.spare_threads else 1)

    def _end(self, item: Fold | Cell, failed: Record | bool = False) -> None:
        self.display.advance(item.describe())
        self.progress.end(item, failed)

    def _store(self, item: Cell, result: CellFile) -> None:
        """Store a finished cell, and rebuild the tables at intervals."""
        result = result.checked()
        self.store.write_cell(result)
        if result.record.status in FINISHED:
            remove_state(self.store.folder, item.key)
            self.outcome.n_computed += 1
            self._end(item)
        else:
            self.outcome.failed.append(result.record)
            self._end(item, result.record)
        if time.monotonic() > self.next_rebuild:
            self._rebuild()

    def _rebuild(self) -> list[str]:
        started = time.monotonic()
        notes = self.store.rebuild({cell.config_hash for cell in self.cells}).notes()
        ended = time.monotonic()
        self.next_rebuild = ended + max(REBUILD_INTERVAL_S, (ended - started) / REBUILD_SHARE)
        return notes

    def _count(self) -> str:
        done = self.outcome.n_computed + self.outcome.n_found
        counts = f"{done} of {len(self.cells)} cells are done ({self.outcome.n_found} from earlier runs)"
        return counts + (f", {self.outcome.n_failed} failed" if self.outcome.failed else "")

    def _close(self, seconds: float) -> None:
        for note in self._rebuild():
            self.say(note)
        for record in self.outcome.failed:
            method = f"{record.algorithm} {variant_text(record.variant)}".strip()
            text = f"{record.status}: {method} on {record.dataset}, repeat {record.repeat}: {record.message}"
            self.console.print(shortened(text, LONGEST_SHOWN), style="red")
        records = Path(self.config.results_dir) / self.config.name / "records.csv"
        self.say(f"{self._count()}; {seconds:.1f} s. Results: {records}")
        if self.outcome.failed:
            self.say("Run the same command again to retry the failed cells.")

    def _mean_score(self) -> float | None:
        keys, metric = {cell.key for cell in self.cells}, self.config.selection.score
        with (self.store.folder / "records.csv").open(encoding="utf-8", newline="") as file:
            values = [float(row[metric]) for row in csv.DictReader(file) if row["key"] in keys and row.get(metric)]
        return sum(values) / len(values) if values else None

    def say(self, text: str, style: str | None = None) -> None:
        if not self.quiet:
            self.console.print(text, style=style)


def rounds(cells: Sequence[Cell], folds: Sequence[Fold], n_cells: int) -> Iterator[tuple[list[Fold], list[Cell]]]:
    """Yield cells in rounds of whole repeats, each with the folds that must be scored first.

    cells : all cells of a run, those of a data set and repeat in sequence
    folds : folds without scores
    n_cells : minimum number of cells in each round but the last
    """
    unscored = {fold.key: fold for fold in folds}
    repeats = [list(group) for _, group in groupby(cells, lambda cell: (cell.source.stem, cell.source.repeat))]
    round_cells: list[Cell] = []
    for i, repeat in enumerate(repeats):
        round_cells += repeat
        if len(round_cells) >= n_cells or i == len(repeats) - 1:
            keys = dict.fromkeys(fold.key for cell in round_cells for fold in cell.folds)
            yield [unscored.pop(key) for key in keys if key in unscored], round_cells
            round_cells = []

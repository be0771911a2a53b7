"""One run: fetch the data, compute what is missing, land each result, and say how it went."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import scipy.sparse as sp
from rich.console import Console

from klr_bench.config.models import RunConfig
from klr_bench.console import PlainConsole
from klr_bench.datasets import default_cache
from klr_bench.datasets.catalog import progress
from klr_bench.datasets.splits import scaling
from klr_bench.printing import shortened
from klr_bench.results.store import FINISHED, CellFile, Record, Store
from klr_bench.results.variants import variant_text
from klr_bench.runner import machine
from klr_bench.runner.bandwidth import kernel_warnings
from klr_bench.runner.dry_run import dry_run_of
from klr_bench.runner.executors import Executor, Failure, Task, open_executor
from klr_bench.runner.fit import failed_cell, run_cell, run_fold
from klr_bench.runner.manifest import manifest
from klr_bench.runner.plan import Cell, Fold, group_folds, of_shard, plan_cells
from klr_bench.runner.prequential import forget, run_stream
from klr_bench.runner.progress_file import Display, ProgressFile
from klr_bench.runner.scores import ScoreStore
from klr_bench.runner.validation import check_data, check_many_classes, check_stream_learners

Item = TypeVar("Item", Fold, Cell)

REBUILD_INTERVAL_S, REBUILD_SHARE = 1.0, 0.05
"""Seconds between two rebuilds of the tables, at least, and the share of a run that they may take."""
SCALED = {
    None: "",
    "standard": ", each scaled to mean 0 and deviation 1",
    "minmax": ", each scaled to [0, 1]",
    "auto": ", each scaled to mean 0 and deviation 1, any with a long tail by its ranks",
}
"""What is said of the features of a data set; it is done by the training rows of each split."""
LONGEST_SHOWN = 500
"""Characters of a failed cell's message."""
TASKS_PER_WORKER = 4
"""Cells per worker that a round has, at least, so that few workers wait at its end."""


@dataclass
class Outcome:
    """What a run has done: cells computed, found finished, and failed."""

    n_computed: int = 0
    n_found: int = 0
    failed: list[Record] = field(default_factory=list)
    score: float | None = None
    """Mean over the finished cells of the metric that selection goes by, None where no cell has it: for sweepers that
    look for the best."""

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
    """Compute what the results folder does not have yet, and write the tables and manifest.yaml.

    The cells run on the `executor`, or else on the one that the configuration names.  `overrides` are the words of the
    command line, for the manifest.
    With `dry_run` say what would run and what is done, and how long the committed reference took: estimators are
    imported and not called, and nothing is fetched, generated or written.  With `quiet` the cells are only counted.
    Raises KlrBenchError for bad input, before anything is written; KeyboardInterrupt passes through, with what is
    finished kept.
    """
    cache = (Path(config.data.cache) if config.data.cache else default_cache()).absolute()
    folder = (Path(config.results_dir) / config.name).absolute()
    cells = of_shard(plan_cells(config, cache, construct=not dry_run), config.shard)
    for warning in kernel_warnings(config):
        console.print(warning, style="yellow")
    if dry_run:
        return Outcome(n_found=dry_run_of(cells, folder, config, console, quiet=quiet))
    check_stream_learners(cells)
    return _Run(config, cells, folder, console, quiet=quiet, overrides=overrides).run(executor)


class _Run:
    """One run: the state that its steps share."""

    def __init__(
        self,
        config: RunConfig,
        cells: list[Cell],
        folder: Path,
        console: Console,
        *,
        quiet: bool,
        overrides: Sequence[str],
    ) -> None:
        self.config = config
        self.overrides = overrides
        self.console = console
        self.quiet = quiet
        self.cells = cells
        self.store = Store(folder)
        self.scores = ScoreStore(folder, fresh=config.force)
        self.outcome = Outcome()
        self.next_rebuild = 0.0

    def run(self, executor: Executor | None) -> Outcome:
        machine.follow(os.getpid())
        cells = [cell for cell in self.cells if self.config.force or not self.store.finished(cell.key)]
        with executor or open_executor(self.config.parallel, self.config.n_jobs, self._say) as self.executor:
            return self._run(cells)

    def _run(self, cells: Sequence[Cell]) -> Outcome:
        started = time.monotonic()
        previous = self.store.read_manifest()
        self._fetch(cells)
        self.store.write_manifest(manifest(self.config, self.executor.n_workers, previous, self.overrides))
        self.outcome.n_found = len(self.cells) - len(cells)
        with ProgressFile(
            self.store.folder, len(self.cells), self.outcome.n_found, self.executor.n_workers
        ) as self.progress:
            try:
                self._compute(cells)
            except BaseException:
                self._rebuild()
                kept = self._kept_selection(cells)
                self._say(f"stopped: {self._count()}{kept}. Run the same command again to go on.", style="yellow")
                raise
            self._close(time.monotonic() - started)
        self.outcome.score = self._score_of_all()
        return self.outcome

    def _fetch(self, cells: Sequence[Cell]) -> None:
        """Have each data set parsed in the cache, check it, and say how its labels are read."""
        for source in {cell.source.stem: cell.source for cell in cells}.values():
            of_source = [cell for cell in self.cells if cell.source.stem == source.stem]
            with progress(PlainConsole(quiet=True) if self.quiet else self.console) as report:
                if source.is_stream:
                    data = source.streamed(progress=report)
                    check_many_classes(data.name, len(data.classes), of_source)
                    features, labels = data.rows.n_features, _described(data.classes)
                    self._say(f"{data.name}: a stream of rows with {features:,} features; {labels}")
                    continue
                dataset = source.load(report)
            check_data(dataset, of_source)
            rows, features = dataset.X.shape
            kind = scaling(dataset.name, source.spec.scale, sparse=sp.issparse(dataset.X))
            classes = _described(dataset.classes)
            self._say(f"{dataset.name}: {rows:,} rows, {features:,} features{SCALED[kind]}; {classes}")
            for line in dataset.said:
                self._say(f"  {line}")

    def _compute(self, cells: Sequence[Cell]) -> None:
        """Score the folds and fit the cells, in rounds: the folds of some repeats, then their cells."""
        if not cells:
            return
        folds = self.scores.to_score(cells)
        self.progress.plan(len(folds) + len(cells))
        n_tasks = len(folds) + len(cells)
        with Display(self.console, "folds and cells", n_tasks, quiet=self.quiet) as self.display:
            for round_ in rounds(cells, folds, TASKS_PER_WORKER * self.executor.n_workers):
                failed = self._score(round_.folds)
                self._fit(round_.cells, failed)

    def _score(self, folds: Sequence[Fold]) -> dict[str, Failure]:
        """Score the candidates of folds, and return why folds have failed, by their keys."""
        failed = {}
        for fold, result in self._results(folds):
            if isinstance(result, Failure):
                failed[fold.key] = result
            else:
                self.scores.write(fold, result)
            self._ended(fold, failed=isinstance(result, Failure))
        return failed

    def _fit(self, cells: Sequence[Cell], failed: Mapping[str, Failure]) -> None:
        """Fit cells and keep their results; `failed` are folds without scores, by key."""
        ready = []
        for cell in cells:
            failures = [failed[fold.key] for fold in cell.folds if fold.key in failed]
            if failures:
                self._land(cell, failed_cell(cell, failures[0].status, f"in selection: {failures[0].message}"))
            else:
                ready.append(cell)
        for cell, result in self._results(ready):
            if isinstance(result, Failure):
                result = failed_cell(cell, result.status, result.message, self.scores.choice(cell))
            self._land(cell, result)

    def _results(self, items: Sequence[Item]) -> Iterator[tuple[Item, Any]]:
        """Yield folds or cells with their results as they end.

        What another run in the same folder has finished in the meantime is counted, and not computed.
        """
        done: list[Item] = []
        with closing(self.executor.run(self._tasks(items, done))) as results:
            for task, result in results:
                yield task.item, result
        for item in done:
            self.outcome.n_found += isinstance(item, Cell)
            self._ended(item)

    def _tasks(self, items: Sequence[Item], done: list[Item]) -> Iterator[Task]:
        """Yield the tasks of folds or cells; those that are finished already are added to `done`."""
        for item in items:
            call = self._call(item)
            if call is None:
                done.append(item)
            else:
                self.progress.begin(item)
                yield Task(item, call)

    def _call(self, item: Fold | Cell) -> partial[Any] | None:
        """Return the call that computes a fold or a cell, or None if it is finished."""
        if isinstance(item, Fold):
            return partial(run_fold, item) if self.scores.missing(item, again=True) else None
        if not self.config.force and self.store.finished(item.key):
            return None
        chosen = self.scores.choice(item)
        if chosen is None:
            return partial(failed_cell, item, "error", self.scores.none_fitted(item))
        if item.source.is_stream:
            return partial(run_stream, item, chosen, self.store.folder)
        return partial(run_cell, item, chosen, self._threads())

    def _ended(self, item: Fold | Cell, failed: Record | bool = False) -> None:
        self.display.advance(item.describe())
        self.progress.end(item, failed)

    def _threads(self) -> int:
        """Return the number of threads of a cell that starts now: 1, or its share of the cores if few are left."""
        left = len(self.cells) - self.outcome.n_found - self.outcome.n_computed - self.outcome.n_failed
        return max(self.executor.n_workers // max(left, 1), 1) if self.config.parallel.spare_threads else 1

    def _land(self, item: Cell, result: CellFile) -> None:
        """Write a finished cell, and the tables now and then."""
        result = result.checked()
        self.store.write_cell(result)
        if result.record.status in FINISHED:
            forget(self.store.folder, item.key)
            self.outcome.n_computed += 1
            self._ended(item)
        else:
            self.outcome.failed.append(result.record)
            self._ended(item, result.record)
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
        counts = f"{done} of {len(self.cells)} cells are done ({self.outcome.n_found} were there already)"
        return counts + (f", {self.outcome.n_failed} failed" if self.outcome.failed else "")

    def _kept_selection(self, cells: Sequence[Cell]) -> str:
        """Return how many folds of selection are scored, "" where nothing is selected."""
        n_folds, n_open = len(group_folds(cells)), len(self.scores.to_score(cells))
        return f"; {n_folds - n_open} of {n_folds} folds of selection are scored" if n_folds else ""

    def _close(self, seconds: float) -> None:
        for note in self._rebuild():
            self._say(note)
        for record in self.outcome.failed:
            name = f"{record.algorithm} {variant_text(record.variant)}".strip()
            said = f"{record.status}: {name} on {record.dataset}, repeat {record.repeat}: {record.message}"
            self.console.print(shortened(said, LONGEST_SHOWN), style="red")
        records = Path(self.config.results_dir) / self.config.name / "records.csv"
        self._say(f"{self._count()}; {seconds:.1f} s. Results: {records}")
        if self.outcome.failed:
            self._say("Run the same command again to try the failed cells once more.")

    def _score_of_all(self) -> float | None:
        metric = self.config.selection.score
        numbers = (self.store.metric(cell.key, metric) for cell in self.cells)
        found = [number for number in numbers if number is not None]
        return sum(found) / len(found) if found else None

    def _say(self, text: str, style: str | None = None) -> None:
        if not self.quiet:
            self.console.print(text, style=style)


def _described(classes: Sequence[str]) -> str:
    """Return a few words on how the labels are read."""
    if len(classes) > 2:
        return f"{len(classes)} classes: {', '.join(classes)}"
    negative, positive = classes
    return f"{negative!r} is -1, {positive!r} is +1"


class Round(NamedTuple):
    """Folds, and cells whose folds are scored in this round or before."""

    folds: list[Fold]
    cells: list[Cell]


def rounds(cells: Sequence[Cell], folds: Sequence[Fold], n_cells: int) -> Iterator[Round]:
    """Yield all cells in their order, in rounds of whole repeats with `n_cells` cells or more, the last perhaps fewer.

    cells : cells of a run, those of a data set and repeat one after the other
    folds : folds that have no scores yet
    """
    unscored = {fold.key: fold for fold in folds}
    taken: list[Cell] = []
    for _, group in groupby(cells, lambda cell: (cell.source.stem, cell.source.repeat)):
        taken += group
        if len(taken) >= n_cells:
            yield _round(taken, unscored)
            taken = []
    if taken:
        yield _round(taken, unscored)


def _round(cells: list[Cell], unscored: dict[str, Fold]) -> Round:
    """Return a round with the folds that its cells need, and take these out of `unscored`."""
    needed = dict.fromkeys(fold.key for cell in cells for fold in cell.folds)
    return Round([unscored.pop(key) for key in needed if key in unscored], cells)

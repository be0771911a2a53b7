"""The main loop of a run: fetch data, compute missing cells, store results, print a summary."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import scipy.sparse as sp
from rich.console import Console

from klr_bench.config import locations as config_files
from klr_bench.config.models import RunConfig
from klr_bench.console import PlainConsole
from klr_bench.datasets import Dataset, default_cache
from klr_bench.datasets.catalog import progress
from klr_bench.datasets.dataset import Streamed
from klr_bench.datasets.splits import scaling
from klr_bench.errors import KlrBenchError, fail
from klr_bench.metrics.labels import user_metrics
from klr_bench.printing import shortened, warn, warning_lines
from klr_bench.results.keys import forget_edited
from klr_bench.results.record import FINISHED, CellFile, Record
from klr_bench.results.store import LockedError, Store, damaged_cells, texts
from klr_bench.results.variants import method_name, method_of, variant_text
from klr_bench.runner import machine
from klr_bench.runner.bandwidth import kernel_warnings
from klr_bench.runner.dry_run import print_plan
from klr_bench.runner.estimate import Estimate
from klr_bench.runner.executors import Executor, Failure, Task, open_executor
from klr_bench.runner.fit import failed_cell_file, run_cell, run_fold
from klr_bench.runner.manifest import manifest
from klr_bench.runner.plan import Cell, Fold, group_folds, is_current, plan_cells, select_shard
from klr_bench.runner.prequential import remove_state, run_stream
from klr_bench.runner.progress_file import LONGEST_SHOWN, Display, ProgressFile
from klr_bench.runner.scores import ScoreStore
from klr_bench.runner.validation import (
    check_data,
    check_many_classes,
    check_named,
    check_stream_learners,
    parameter_warning,
)

Item = TypeVar("Item", Fold, Cell)

REBUILD_INTERVAL_S, REBUILD_SHARE = 1.0, 0.05
"""Minimum seconds between two rebuilds of the tables, and the maximum fraction of time spent on them."""
SCALED = {
    None: "",
    "standard": ", each scaled to mean 0 and standard deviation 1",
    "minmax": ", each scaled to [0, 1]",
    "auto": ", each scaled to mean 0 and standard deviation 1, or by its ranks if its tail is long",
}
"""Printed descriptions of the scaling of features, which is fitted to the training rows of each split."""
EDITED = "its source code or a metric's file has changed since the run was planned; run the same command again."
"""Message of a failed fold or cell whose key stands for other code."""
TASKS_PER_WORKER = 4
"""Minimum number of cells per worker in a round; a larger value leaves fewer workers idle at the end of a round."""


@dataclass
class Outcome:
    """Result of a run: the failures, and how many cells were computed or already finished."""

    n_computed: int = 0
    n_found: int = 0
    failed: list[Record] = field(default_factory=list)
    score: float | None = None
    """Mean of the selection metric over all finished cells, or None; Hydra sweepers optimize this value."""
    time_left: Estimate | None = None
    """Estimated time of a dry run's unfinished cells, or None if it is unknown."""

    @property
    def n_failed(self) -> int:
        """Number of failed cells."""
        return len(self.failed)


def run(
    config: RunConfig,
    *,
    console: Console,
    quiet: bool = False,
    dry_run: bool = False,
    verbose: bool = False,
    debug: bool = False,
    executor: Executor | None = None,
    overrides: Sequence[str] = (),
) -> Outcome:
    """Compute the cells that are not finished yet, and write the tables and manifest.yaml.

    The cells run on `executor`, by default the one in the configuration.  `overrides` are the command-line arguments,
    which are recorded in the manifest.  With `quiet`, progress is not printed; with `debug`, the tracebacks of failed
    fits are.

    With `dry_run`, only print what would run and about how long it will take: estimators are imported but not called,
    and nothing is fetched, generated or written; with `verbose`, each cell is listed.
    Raises KlrBenchError for invalid input, before anything is written.  A KeyboardInterrupt keeps all finished work.
    """
    cache = (Path(config.data.cache) if config.data.cache else default_cache()).absolute()
    folder = (Path(config.results_dir) / config.name).absolute()
    check_named(config)
    score = config.selection.score
    of_user = user_metrics([*(config.metrics or ()), score], config_files.folders())  # refuses an invalid file
    if score in of_user and not of_user[score].better:
        fail(f"selection.score={score}: expected a metric with better='higher' or 'lower' in its file, got none.")
    with progress(PlainConsole(quiet=True) if quiet else console) as report:
        planned = plan_cells(config, cache, construct=not dry_run, progress=report)
    cells = select_shard(planned, config.shard)
    unchecked = (
        parameter_warning(stem, entry, config.sweep.get(stem, ())) for stem, entry in config.algorithms.items()
    )
    for warning in [*kernel_warnings(config), *filter(None, unchecked)]:
        console.print(warning, style="yellow")
    if dry_run:
        n_found, time_left = print_plan(cells, folder, config, cache, console, quiet=quiet, verbose=verbose)
        return Outcome(n_found=n_found, time_left=time_left)
    check_stream_learners(cells)
    identified = {cell.source.stem: cell.source.spec for cell in planned}
    config = config.model_copy(update={"datasets": {**config.datasets, **identified}})  # for the manifest
    machine.follow(os.getpid())
    runner = _Run(config, planned, cells, folder, console, quiet=quiet, debug=debug)
    with executor or open_executor(config.parallel, config.n_jobs, runner.say) as opened:
        return runner.run(opened, overrides)


class _Run:
    """State shared by the steps of a run."""

    def __init__(
        self,
        config: RunConfig,
        planned: Sequence[Cell],
        cells: list[Cell],
        folder: Path,
        console: Console,
        *,
        quiet: bool,
        debug: bool,
    ) -> None:
        self.config = config
        self.console = console
        self.quiet = quiet
        self.debug = debug
        self.cells = cells
        self.store = Store(folder)
        self.configurations = configurations(planned)
        self.scores = ScoreStore(folder, fresh=config.force)
        self.outcome = Outcome()
        self.next_rebuild = 0.0
        self.edited = False
        """True if a source file or metric file has changed since it was hashed."""
        self.failed_candidates: list[str] = []
        """Descriptions of the cells for which some candidates, but not all, have failed."""

    def run(self, executor: Executor, overrides: Sequence[str]) -> Outcome:
        started = time.monotonic()
        self.executor = executor
        cells = [cell for cell in self.cells if self.config.force or not self.store.finished(cell.key)]
        if damaged := self.store.damaged(cell.key for cell in cells):
            self.say(f"{damaged_cells(damaged)} They are computed again.", style="yellow")
        self._fetch(cells)
        previous = self.store.read_manifest()  # now, because another run may have changed it
        new = {method_of(name) for name in self.configurations}
        earlier = texts(previous.get("configurations")).items()
        # A variant of this run may be there with another spelling, such as G=1.0.
        self.configurations |= {name: config for name, config in earlier if method_of(name) not in new}
        if cells and (self.store.folder / "records.csv").exists():
            self._rebuild()  # without rows of other settings than those of the manifest
        content = manifest(self.config, executor.n_workers, previous, overrides, self.configurations)
        self.store.write_manifest(content)
        self.outcome.n_found = n_found = len(self.cells) - len(cells)
        with ProgressFile(self.store.folder, len(self.cells), n_found, executor.n_workers) as self.progress:
            try:
                self._compute(cells)
            except BaseException:
                with suppress(KlrBenchError):  # the reason for the stop is more important
                    self._rebuild()
                n_folds, n_open = len(group_folds(cells)), len(self.scores.to_score(cells))
                folds = f"; {n_folds - n_open} of {n_folds} selection folds have been scored" if n_folds else ""
                self.say(f"stopped: {self._count()}{folds}. {self._again('continue')}", style="yellow")
                raise
            self._close(time.monotonic() - started)
        self.outcome.score = self._mean_score()
        return self.outcome

    def _fetch(self, cells: Sequence[Cell]) -> None:
        for source in {cell.source.stem: cell.source for cell in cells}.values():
            of_source = [cell for cell in self.cells if cell.source.stem == source.stem]
            with progress(PlainConsole(quiet=True) if self.quiet else self.console) as report:
                load = source.streamed if source.is_stream else source.load
                with warning_lines():
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
                if line.startswith("warning: "):
                    warn(line)
                else:
                    self.say(f"  {line}")

    def _compute(self, cells: Sequence[Cell]) -> None:
        """Process a few repeats per round; in each round, score the folds, then fit the cells."""
        if not cells:
            return
        folds = self.scores.to_score(cells)
        n_tasks = len(folds) + len(cells)
        self.progress.plan(n_tasks)
        with Display(self.console, "folds and cells", n_tasks, quiet=self.quiet) as self.display:
            for round_folds, round_cells in rounds(cells, folds, TASKS_PER_WORKER * self.executor.n_workers):
                self._fit(round_cells, self._score(round_folds))

    def _score(self, folds: Sequence[Fold]) -> dict[str, Failure]:
        failures = {}
        for fold, result in self._results(folds):
            if isinstance(result, Failure):
                failures[fold.key] = result
            else:
                self.scores.write(fold, result)
            self._end(fold, failed=isinstance(result, Failure))
        return failures

    def _fit(self, cells: Sequence[Cell], failures: Mapping[str, Failure]) -> None:
        ready = []
        for cell in cells:
            failure = next((failures[fold.key] for fold in cell.folds if fold.key in failures), None)
            if failure:
                message = f"in selection: {failure.message}"
                self._store(cell, failed_cell_file(cell, failure.status, message, failure.traceback))
            else:
                ready.append(cell)
        for cell, result in self._results(ready):
            if isinstance(result, Failure):
                chosen = self.scores.choice(cell)
                result = failed_cell_file(cell, result.status, result.message, result.traceback, chosen)
            self._store(cell, result)

    def _results(self, items: Sequence[Item]) -> Iterator[tuple[Item, Any]]:
        """Run folds or cells, and yield each one with its result as soon as it has finished.

        Items that another run in the same folder has finished in the meantime are counted but not computed.
        """
        skipped: list[tuple[Item, Failure | None]] = []
        with closing(self.executor.run(self._tasks(items, skipped))) as results:
            for task, result in results:
                self.edited = forget_edited() or self.edited
                yield task.item, self._failure(task.item) or result
        for item, failure in skipped:
            if failure:
                yield item, failure
                continue
            self.outcome.n_found += isinstance(item, Cell)
            self._end(item)

    def _tasks(self, items: Sequence[Item], skipped: list[tuple[Item, Failure | None]]) -> Iterator[Task]:
        """Yield a task for each fold or cell; append those already finished or refused to `skipped`."""
        for item in items:
            call = self._call(item)
            failure = self._failure(item) if call else None
            if call is None or failure:
                skipped.append((item, failure))
            else:
                self.progress.begin(item)
                yield Task(item, call)

    def _failure(self, item: Fold | Cell) -> Failure | None:
        """Return a failure if the code or metric files of a key have been edited during the run."""
        if not self.edited:
            return None
        with suppress(KlrBenchError):  # a file is invalid or was removed
            if is_current(item):
                return None
        return Failure("error", EDITED)

    def _call(self, item: Fold | Cell) -> partial[Any] | None:
        """Return the call that computes a fold or cell, or None if it is already finished."""
        if isinstance(item, Fold):
            return partial(run_fold, item) if self.scores.unscored(item, again=True) else None
        if not self.config.force and self.store.finished(item.key):
            return None
        chosen = self.scores.choice(item)
        if chosen is None:
            return partial(failed_cell_file, item, "error", self.scores.failure_message(item))
        if failures := self.scores.failures(item):
            self.failed_candidates.append(
                f"{item.describe()} ({len(failures)} of {len(item.candidates)}: {failures[0]})"
            )
        if item.source.is_stream:
            return partial(run_stream, item, chosen, self.store.folder)
        n_left = len(self.cells) - self.outcome.n_found - self.outcome.n_computed - self.outcome.n_failed
        spare_threads = max(self.executor.n_workers // max(n_left, 1), 1)
        return partial(run_cell, item, chosen, spare_threads if self.config.parallel.spare_threads else 1)

    def _end(self, item: Fold | Cell, failed: Record | bool = False) -> None:
        self.display.advance(item.describe())
        self.progress.end(item, failed)

    def _store(self, item: Cell, result: CellFile) -> None:
        """Save the result of a cell, and rebuild the tables from time to time.

        A failure does not replace a finished cell, which another run in the same folder may have written.
        """
        result = result.checked()
        is_finished = result.record.status in FINISHED
        if is_finished or not self.store.finished(item.key):
            self.store.write_cell(result)
        if is_finished:
            remove_state(self.store.folder, item.key)
            self.outcome.n_computed += 1
            self._end(item)
        else:
            self.outcome.failed.append(result.record)
            if self.debug and result.traceback:
                self.console.print(result.traceback, style="red", markup=False)
            self._end(item, result.record)
        if time.monotonic() > self.next_rebuild:
            with suppress(LockedError):  # the next rebuild lists the cell
                self._rebuild(timeout_s=REBUILD_INTERVAL_S)

    def _rebuild(self, timeout_s: float | None = None) -> list[str]:
        started = time.monotonic()
        try:
            return self.store.rebuild(self.configurations, timeout_s).notes()
        finally:
            ended = time.monotonic()
            self.next_rebuild = ended + max(REBUILD_INTERVAL_S, (ended - started) / REBUILD_SHARE)

    def _count(self) -> str:
        done = self.outcome.n_computed + self.outcome.n_found
        counts = f"{done} of {len(self.cells)} cells are finished ({self.outcome.n_found} by earlier runs)"
        return counts + (f", {self.outcome.n_failed} failed" if self.outcome.failed else "")

    def _again(self, purpose: str) -> str:
        """Return advice to run the same command again."""
        again = "; with force=true it computes all cells again, without it earlier results stay" * self.config.force
        return f"Run the same command again to {purpose}{again}."

    def _close(self, seconds: float) -> None:
        for note in self._rebuild():
            self.say(note)
        if self.failed_candidates:
            cells = shortened(", ".join(self.failed_candidates), LONGEST_SHOWN)
            advice = "Add force=true to compute all cells again."
            self.say(f"Another candidate was chosen where some have failed: {cells}. {advice}", style="yellow")
        for record in self.outcome.failed:
            method = f"{record.algorithm} {variant_text(record.variant)}".strip()
            text = f"{record.status}: {method} on {record.dataset}, repeat {record.repeat}: {record.message}"
            self.console.print(shortened(text, LONGEST_SHOWN), style="red")
        records = Path(self.config.results_dir) / self.config.name / "records.csv"
        self.say(f"{self._count()}; {seconds:.1f} s. Results: {records}")
        if self.outcome.failed:
            self.say(self._again("retry the failed cells"))

    def _mean_score(self) -> float | None:
        keys, metric = {cell.key for cell in self.cells}, self.config.selection.score
        with (self.store.folder / "records.csv").open(encoding="utf-8", newline="") as file:
            values = [float(row[metric]) for row in csv.DictReader(file) if row["key"] in keys and row.get(metric)]
        return sum(values) / len(values) if values else None

    def say(self, text: str, style: str | None = None) -> None:
        if not self.quiet:
            self.console.print(text, style=style)


def configurations(cells: Sequence[Cell]) -> dict[str, str]:
    """Return the hashes of the configurations of cells, keyed by method and data set."""
    named = {method_name(cell.source.name, cell.algorithm, json.dumps(dict(cell.variant))): cell for cell in cells}
    return {name: cell.config_hash for name, cell in named.items()}


def rounds(cells: Sequence[Cell], folds: Sequence[Fold], n_cells: int) -> Iterator[tuple[list[Fold], list[Cell]]]:
    """Split a run into rounds of whole repeats; yield the folds and cells of each round.

    cells : all cells of a run, ordered by data set and repeat
    folds : folds that have not been scored; each one is yielded in the first round that needs it
    n_cells : minimum number of cells in every round except the last
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

"""One run: fetch the data, compute what is missing, land each result, and say how it went."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from joblib import cpu_count
from rich.console import Console

from klr_bench.console import PlainConsole
from klr_bench.estimators.core import contract
from klr_bench.experiment.config.validate import Config
from klr_bench.experiment.data import default_cache
from klr_bench.experiment.data.commands import progress
from klr_bench.experiment.keys import content_hash
from klr_bench.experiment.records import FINISHED, CellFile, Record, Store
from klr_bench.experiment.runner import machine
from klr_bench.experiment.runner.checks import check_data, check_many_classes, check_stream_learners
from klr_bench.experiment.runner.cluster import Cluster, run_on
from klr_bench.experiment.runner.display import Display
from klr_bench.experiment.runner.dry import dry_run_of
from klr_bench.experiment.runner.failure import Failure, Task
from klr_bench.experiment.runner.manifest import manifest
from klr_bench.experiment.runner.plan import Cell, Fold, classes_of, group_folds, of_shard, plan_cells
from klr_bench.experiment.runner.pool import in_worker_process, run_all
from klr_bench.experiment.runner.progress_file import ProgressFile
from klr_bench.experiment.runner.schedule import Schedule
from klr_bench.experiment.runner.scores import ScoreStore
from klr_bench.experiment.runner.shared_kernel import kernel_warnings
from klr_bench.experiment.runner.streaming import forget, run_stream
from klr_bench.experiment.runner.work import failed_cell, run_cell, run_fold
from klr_bench.experiment.selection import Score
from klr_bench.experiment.splits import scaling
from klr_bench.experiment.strangers import is_foreign
from klr_bench.experiment.targets import TARGET, classifier_class
from klr_bench.experiment.variants import variant_text
from klr_bench.printing import shortened

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
    config: Config,
    *,
    console: Console,
    quiet: bool = False,
    dry_run: bool = False,
    cluster: Cluster | None = None,
    overrides: Sequence[str] = (),
) -> Outcome:
    """Compute what the results folder does not have yet, and write the tables and manifest.yaml.

    The cells run on a `cluster` of the caller's, if there is one, else as the configuration says.  `overrides` are the
    words of the command line, for the manifest.
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
    return _Run(config, cells, folder, console, quiet=quiet, cluster=cluster, overrides=overrides).run()


class _Run:
    """One run: the state that its steps share."""

    def __init__(
        self,
        config: Config,
        cells: list[Cell],
        folder: Path,
        console: Console,
        *,
        quiet: bool,
        cluster: Cluster | None,
        overrides: Sequence[str],
    ) -> None:
        self.config = config
        self.overrides = overrides
        self.console = console
        self.quiet = quiet
        self.n_jobs = self._workers()
        self.cluster = cluster
        self.cells = cells
        self.store = Store(folder)
        self.scores = ScoreStore(folder, fresh=config.force)
        self.outcome = Outcome()
        self.next_rebuild = 0.0

    def run(self) -> Outcome:
        machine.follow(os.getpid())
        cells = [cell for cell in self.cells if self.config.force or not self.store.finished(cell.key)]
        with ExitStack() as stack:
            if cells and not self.cluster and self.config.parallel.backend == "dask":
                from klr_bench.experiment.runner.dask_cluster import connected

                self.cluster = stack.enter_context(connected(self.config.parallel, self.n_jobs, cells, self._say))
            if self.cluster:
                self.n_jobs = len(self.cluster.workers())
            return self._run(cells)

    def _run(self, cells: Sequence[Cell]) -> Outcome:
        started = time.monotonic()
        previous = self.store.read_manifest()
        self._fetch(cells)
        self.store.write_manifest(manifest(self.config.plain(), self.n_jobs, previous, self.overrides))
        self.outcome.n_found = len(self.cells) - len(cells)
        with ProgressFile(self.store.folder, len(self.cells), self.outcome.n_found) as self.progress:
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

    def _workers(self) -> int:
        if self.config.parallel.backend == "serial":
            return 1
        if in_worker_process():
            self._say("inside a worker process of a launcher: one task at a time.")
            return 1
        n_jobs = self.config.n_jobs
        return cpu_count() if n_jobs is None or n_jobs == -1 else n_jobs

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
                dataset = source.look(report)
            check_data(dataset, of_source)
            rows, features = dataset.X.shape
            kind = scaling(dataset.name, source.spec.get("scale"), sparse=sp.issparse(dataset.X))
            scaled = "" if source.foreign else SCALED[kind]
            self._say(f"{dataset.name}: {rows:,} rows, {features:,} features{scaled}; {_described(dataset.classes)}")
            for line in dataset.said:
                self._say(f"  {line}")

    def _compute(self, cells: Sequence[Cell]) -> None:
        """Score the folds and fit the cells, each cell as soon as its own folds are scored."""
        if not cells:
            return
        folds = self.scores.to_score(cells)
        schedule = Schedule(cells, folds)
        self.progress.plan([*folds, *cells])
        with (
            Display(self.console, "folds and cells", schedule.n_tasks, quiet=self.quiet) as self.display,
            closing(self._results(schedule.waiting)) as results,
        ):
            for item, result in results:
                if result is None:
                    self._ended(item)
                    if isinstance(item, Cell):
                        self.outcome.n_found += 1
                    else:
                        schedule.scored(item)
                elif isinstance(item, Cell):
                    if isinstance(result, Failure):
                        result = failed_cell(item, result.status, result.message, self.scores.choice(item))
                    self._land(item, result)
                elif isinstance(result, Failure) and result.status != "timeout":
                    self._ended(item, failed=True)
                    for cell in schedule.failed(item):
                        self._land(cell, failed_cell(cell, result.status, f"in selection: {result.message}"))
                elif self._score(item, result, schedule):
                    self._ended(item)
                else:
                    self.progress.pause(item)

    def _results(self, waiting: deque[Fold | Cell]) -> Generator[tuple[Fold | Cell, Any]]:
        """Yield what is waiting as it ends, with its result: None where another run has finished it meanwhile."""
        if self.cluster:
            folder = content_hash(str(self.store.folder))  # another run in it gives its tasks the same names
            return run_on(self.cluster, waiting, self._begun, _strangers, lambda item: f"{folder}-{item.key}")
        return run_all(waiting, self._begun, self.n_jobs, self._runs_here, _strangers)

    def _score(self, fold: Fold, result: list[Score] | Failure, schedule: Schedule) -> bool:
        """Keep the scores of a fold and say whether it has all; one that a time limit has stopped goes on later."""
        if isinstance(result, Failure):
            found = {place: score for part in result.parts for place, score in part.items()}
        else:
            found = dict(enumerate(result))
        self.scores.write(fold.with_candidates(tuple(fold.candidates[place] for place in found)), [*found.values()])
        rest = self.scores.missing(fold)
        if rest is None:
            schedule.scored(fold)
        else:
            schedule.waiting.appendleft(rest)
        return rest is None

    def _begun(self, item: Fold | Cell) -> Task | None:
        """Return the task of a fold or a cell that starts now."""
        task = self._task(item)
        if task is not None:
            self.progress.begin(item)
        return task

    def _ended(self, item: Fold | Cell, failed: Record | bool = False) -> None:
        self.display.advance(item.describe())
        self.progress.end(item, failed)

    def _task(self, item: Fold | Cell) -> Task | None:
        """Return what a worker is to do for a fold, or for a cell whose folds are scored; None if that has been done.

        It is looked for once more, as another run may be at work in the same folder.
        """
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

    def _threads(self) -> int:
        """Return the number of threads of a cell that starts now: 1, or its share of the cores if few are left."""
        left = len(self.cells) - self.outcome.n_found - self.outcome.n_computed - self.outcome.n_failed
        return max(self.n_jobs // max(left, 1), 1) if self.config.parallel.spare_threads else 1

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

    def _runs_here(self, item: Fold | Cell) -> bool:
        """Say whether a task runs in this process: all of them if they run serially, but for what has to be ended."""
        if self.config.parallel.backend != "serial":
            return False
        return all(
            candidate.time_limit_s is None or contract.takes_callback(classifier_class(estimator[TARGET]))
            for candidate in item.candidates
            for estimator in (candidate.estimator, candidate.chosen)
        )

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


def _strangers(item: Fold | Cell) -> frozenset[str]:
    """Return the classes and the makers of data of a task that are of neither klr-bench nor scikit-learn.

    What they leave in their process, such as a patched module or a busy thread, is not to reach other learners.
    """
    return frozenset({*filter(is_foreign, classes_of(item.candidates)), *item.source.foreign})


def _described(classes: Sequence[str]) -> str:
    """Return a few words on how the labels are read."""
    if len(classes) > 2:
        return f"{len(classes)} classes: {', '.join(classes)}"
    negative, positive = classes
    return f"{negative!r} is -1, {positive!r} is +1"

"""Plan a run: its cells (one fit each) and the folds used to select their parameters.

Keys are content hashes: two cells, or two folds, have equal keys if and only if they have the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from klr_bench import protocols
from klr_bench.config import locations as config_files
from klr_bench.config.models import (
    LEFT_TO_SELECTION,
    AlgorithmConfig,
    DatasetConfig,
    RunConfig,
    SelectionConfig,
    TraceConfig,
)
from klr_bench.config.splitting import Folds
from klr_bench.datasets import Dataset, dataset_hash, dataset_name, load
from klr_bench.datasets.cache import Progress
from klr_bench.datasets.dataset import Streamed, streamed
from klr_bench.datasets.identity import identified
from klr_bench.errors import KlrBenchError, error_context, exception_message, fail
from klr_bench.instantiate import TARGET, EstimatorSpec, Parameters, build, check_parameters
from klr_bench.metrics.labels import METRICS, metric_files
from klr_bench.results.keys import content_hash, file_hash, module_hash, source_hash
from klr_bench.results.variants import Variant, variant_text
from klr_bench.runner.bandwidth import shared_kernel, substitute_gamma
from klr_bench.runner.selection import candidates

SPLITTING_MODULES = ("klr_bench.datasets.splits", "klr_bench.datasets.preprocessing", "klr_bench.datasets.grouping")
SELECTION_MODULES = (
    "klr_bench.runner.selection",
    "klr_bench.runner.bandwidth",
    "klr_bench.estimators.core.kernels",
    "klr_bench.estimators.core.rows",
    "klr_bench.estimators.online.many",
)
MEASUREMENT_MODULES = (
    "klr_bench.metrics.compute",
    "klr_bench.metrics.predictions",
    "klr_bench.metrics.quality",
    "klr_bench.metrics.clock",
    "klr_bench.protocols",
    "klr_bench.runner.fit",
    "klr_bench.runner.grouped",
    "klr_bench.estimators.batch.folds",
    "klr_bench.instantiate",
)
"""Modules whose code affects the result of every cell, in addition to the estimator's module.

Names and formats of metrics (`metrics.labels`, `metrics.metric`) are excluded, because no result depends on them.
"""
STREAMING_MODULES = ("klr_bench.runner.prequential",)


@dataclass(frozen=True)
class Source:
    """A split of a data set, with the location of its files."""

    stem: str
    name: str
    spec: DatasetConfig = field(hash=False)
    data_key: str
    cache: Path
    mirror: str | None
    seed: int
    repeat: int

    def load(self, progress: Progress | None = None) -> Dataset:
        """Return the data set; fetch and parse it if it is not in the cache.

        Raises KlrBenchError if a file of the data set has changed since the run was planned.
        """
        dataset = load(self.stem, self.spec, cache=self.cache, mirror=self.mirror, progress=progress)
        self._compare(dataset.hash)
        return dataset

    @property
    def is_stream(self) -> bool:
        """True if the data set is a stream, which is read in chunks and never loaded as a whole."""
        return self.spec.is_stream

    def streamed(self, skip_rows: int = 0, progress: Progress | None = None) -> Streamed:
        """Return the chunks of a stream, skipping the first `skip_rows` rows."""
        return streamed(
            self.name, self.spec, cache=self.cache, mirror=self.mirror, skip_rows=skip_rows, progress=progress
        )

    def check_unchanged(self) -> None:
        """Raise KlrBenchError if a file of the data set has changed since the run was planned."""
        self._compare(dataset_hash(self.stem, self.spec))

    def _compare(self, present: str) -> None:
        if present != self.data_key:
            fail(f"{self.name}: its data have changed since the run was planned; run the same command again.")

    def content(self) -> dict[str, object]:
        """Return the values to hash: those that determine the training and test arrays."""
        return {
            "data": self.data_key,
            "name": self.name,
            "seed": self.seed,
            "seed_name": self.spec.seed_name,
            "splitting": module_hash(*SPLITTING_MODULES),
            "scale": self.spec.scale,
            "split": self.spec.split.model_dump(),
        }


@dataclass(frozen=True)
class Candidate:
    """One of the estimators from which parameter selection chooses.

    `estimator` is scored, and `key` identifies its score within a fold.  If that score is the best, the cell fits
    `chosen`, which differs from `estimator` if the algorithm is selected by the scores of another one (`selected_as`).
    """

    estimator: EstimatorSpec
    time_limit_s: float | None
    key: str
    chosen: EstimatorSpec


@dataclass(frozen=True)
class Fold:
    """A held-out fold of a repeat, with all candidates that share a kernel."""

    source: Source
    kernel: Parameters | None
    fold: int
    selection: SelectionConfig
    candidates: tuple[Candidate, ...]

    @cached_property
    def key(self) -> str:
        """Cache key of the fold and its kernel; it does not depend on the candidates."""
        content = self.source.content() | {"repeat": self.source.repeat, "kernel": self.kernel}
        content["code"] = module_hash(*SELECTION_MODULES, *MEASUREMENT_MODULES)
        return content_hash([content, self.fold, self.selection.model_dump(exclude={"tolerance"})])

    def describe(self) -> str:
        """Return a short description for progress bars and messages."""
        place = f"{self.source.name}, repeat {self.source.repeat}"
        return f"selection on {place}, fold {self.fold}, {len(self.candidates)} candidates"


@dataclass(frozen=True)
class Method:
    """A variant of an algorithm, with the settings that all of its cells share."""

    experiment: str
    algorithm: str
    variant: Variant
    estimator: EstimatorSpec
    grid: Mapping[str, list[Any]]
    candidates: tuple[Candidate, ...]
    kernel: Parameters | None
    selection: SelectionConfig
    trace: TraceConfig
    time_limit_s: float | None
    user_metrics: Mapping[str, str]
    """Names of the user metrics to compute, with the hashes of their files."""


@dataclass(frozen=True)
class Cell(Method):
    """One fit of one method on one split."""

    source: Source

    @cached_property
    def config_hash(self) -> str:
        """Hash of everything that determines the result, except for the repeat."""
        content = self.source.content() | {
            "estimator": self.estimator,
            "target": source_hash(self.estimator[TARGET]),
            "grid": self.grid,
            "kernel": self.kernel,
            "variant": dict(self.variant),
            "algorithm": self.algorithm,
            "trace": self.trace.model_dump(),
            "time_limit_s": self.time_limit_s,
            "selection": self.selection.model_dump() if self.grid else None,
            "selecting": module_hash(*SELECTION_MODULES),
            "scored": [candidate.key for candidate in self.candidates] if self.grid else None,
            "measuring": module_hash(*MEASUREMENT_MODULES, *(STREAMING_MODULES if self.source.is_stream else ())),
            "user_metrics": self.user_metrics,
        }
        return content_hash(content)

    @cached_property
    def key(self) -> str:
        """Hash of everything that determines the result, used as the name of the cell's file."""
        return content_hash([self.config_hash, self.source.repeat])

    @cached_property
    def folds(self) -> list[Fold]:
        """Folds needed to select a candidate; empty if there is only one candidate."""
        if len(self.candidates) == 1:
            return []
        split = self.source.spec.split
        if self.selection.nested:
            sources = [self.source] * self.selection.folds
        else:
            assert isinstance(split, Folds)
            first = self.source.repeat // split.folds * split.folds
            sources = [replace(self.source, repeat=first + fold) for fold in range(split.folds)]
        return [Fold(source, self.kernel, fold, self.selection, self.candidates) for fold, source in enumerate(sources)]

    def describe(self) -> str:
        """Return a short description for progress bars and messages."""
        method = f"{self.algorithm} {variant_text(self.variant)}".strip()
        return f"{method} on {self.source.name}, repeat {self.source.repeat}"


def plan_cells(
    config: RunConfig, cache: Path, *, construct: bool = False, progress: Progress | None = None
) -> list[Cell]:
    """Return all cells of a run, ordered by data set and repeat.

    No data set is loaded.  With `construct`, estimators are created, so that they can reject invalid combinations of
    values, and then files with unknown hashes are fetched, because keys depend on their content.  Raises KlrBenchError
    for invalid parameters.
    """
    cells = list[Cell]()
    methods = _methods(config, construct=construct)
    mirror = config.data.mirror
    for stem, described in config.datasets.items():
        spec = identified(described, cache=cache, mirror=mirror, progress=progress, fetching=construct)
        key, name = dataset_hash(stem, spec), dataset_name(stem, spec)
        if other := next((cell.source.stem for cell in cells if cell.source.name == name), None):
            fail(f"dataset=[{other},{stem}]: results call both {name}, after the file; run them apart, with name=NAME.")
        included = [method for method in methods if not config.leaves_out(stem, method.algorithm, method.variant)]
        for repeat in range(config.repeats):
            source = Source(stem, name, spec, key, cache, mirror, config.seed, repeat)
            cells += [Cell(**vars(method), source=source) for method in included]
    return cells


def select_shard(cells: Sequence[Cell], shard: str | None) -> list[Cell]:
    """Return the cells of shard K/N: every N-th cell, starting with the K-th.

    Return all cells if `shard` is None.
    """
    first, n_shards = map(int, shard.split("/")) if shard else (1, 1)
    return list(cells[first - 1 :: n_shards])


def _methods(config: RunConfig, *, construct: bool) -> list[Method]:
    """Return the methods of a run: each algorithm with each combination of swept values.

    A swept parameter is removed from the selection grid unless its value is "cv".
    """
    methods = []
    user_metrics = _file_hashes(config.metrics or ())
    for stem, algorithm in config.algorithms.items():
        sweep = config.sweep.get(stem, {})
        for values in product(*sweep.values()):
            variant = dict(zip(sweep, values, strict=True))
            fixed = {name: value for name, value in variant.items() if value != LEFT_TO_SELECTION}
            grid = {name: list(values) for name, values in algorithm.grid.items() if name not in fixed}
            estimator = {**algorithm.estimator, **fixed}
            choices = _candidates(algorithm, candidates(estimator, grid), config.selection.score)
            check_candidates(stem, [choice.chosen for choice in choices], construct=construct)
            if algorithm.selected_as:
                scored = [choice.estimator for choice in choices]
                check_candidates(stem, scored, construct=construct, part="selected_as")
            methods.append(
                Method(
                    experiment=config.name,
                    algorithm=stem,
                    variant=Variant(variant),
                    estimator=estimator,
                    grid=grid,
                    candidates=choices,
                    kernel=shared_kernel(algorithm, estimator, grid, config.kernel),
                    selection=config.selection,
                    trace=config.trace,
                    time_limit_s=algorithm.time_limit_s,
                    user_metrics=user_metrics,
                )
            )
    return methods


def _candidates(algorithm: AlgorithmConfig, estimators: Sequence[EstimatorSpec], score: str) -> tuple[Candidate, ...]:
    limit, choices = algorithm.time_limit_s, []
    for chosen in estimators:
        scored = {**chosen, **algorithm.selected_as}
        choices.append(Candidate(scored, limit, _candidate_key(scored, limit, score), chosen))
    return tuple(choices)


def _candidate_key(estimator: EstimatorSpec, time_limit_s: float | None, score: str) -> str:
    # A score also depends on the direction of its metric, or on the source file of a user metric.
    score_key: Parameters = {score: METRICS[score].better} if score in METRICS else _file_hashes([score])
    return content_hash([estimator, source_hash(estimator[TARGET]), time_limit_s, score_key])


def is_current(item: Fold | Cell) -> bool:
    """Return True if the present source code and metric files still give a fold or cell its key.

    Raises KlrBenchError if a module is missing or invalid.
    """
    score = item.selection.score
    choices = tuple(
        replace(choice, key=_candidate_key(choice.estimator, choice.time_limit_s, score)) for choice in item.candidates
    )
    if isinstance(item, Fold):
        return choices == item.candidates and replace(item).key == item.key
    return replace(item, candidates=choices, user_metrics=_file_hashes(item.user_metrics)).key == item.key


def check_candidates(
    stem: str, estimators: Sequence[EstimatorSpec], *, construct: bool, part: str = "estimator"
) -> None:
    """Raise KlrBenchError if an estimator rejects its parameters, before anything runs."""
    with error_context(f"algorithms.{stem}.{part}"):
        for estimator in estimators:
            try:
                checked = substitute_gamma(estimator)
                check_parameters(checked)
                if construct:
                    protocols.check_parameters(build(checked))
            except (KlrBenchError, ValueError, TypeError) as error:
                raise KlrBenchError(str(error)) from error
            except (Exception, SystemExit) as error:
                fail(f"{estimator[TARGET]} raised {exception_message(error)}")


def group_folds(cells: Sequence[Cell]) -> list[Fold]:
    """Return the folds of all cells, merging the candidates of folds with the same key."""
    groups: dict[str, tuple[Fold, dict[str, Candidate]]] = {}
    for cell in cells:
        for fold in cell.folds:
            _, by_key = groups.setdefault(fold.key, (fold, {}))
            by_key.update({candidate.key: candidate for candidate in fold.candidates})
    return [replace(fold, candidates=tuple(by_key.values())) for fold, by_key in groups.values()]


def _file_hashes(names: Iterable[str]) -> dict[str, str]:
    files = metric_files(config_files.folders())
    return {name: file_hash(files[name]) for name in names if name in files}

"""From a configuration to the work: cells, one fit each, and the folds that select their parameters.

Keys are hashes of content: two pieces of work have the same key exactly if they would give the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
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
from klr_bench.errors import KlrBenchError, fail, located
from klr_bench.instantiate import TARGET, EstimatorSpec, Parameters, build, check_parameters
from klr_bench.metrics.labels import METRICS, metric_files
from klr_bench.results.keys import content_hash, file_hash, module_hash, source_hash
from klr_bench.results.variants import Variant, variant_text
from klr_bench.runner.bandwidth import shared_kernel, with_any_gamma
from klr_bench.runner.executors import described
from klr_bench.runner.selection import candidates

SPLITTING = ("klr_bench.datasets.splits",)
SELECTING = (
    "klr_bench.runner.selection",
    "klr_bench.runner.bandwidth",
    "klr_bench.estimators.online.many",
)
MEASURING = (
    "klr_bench.metrics.compute",
    "klr_bench.metrics.predictions",
    "klr_bench.metrics.quality",
    "klr_bench.metrics.clock",
    "klr_bench.protocols",
    "klr_bench.runner.fit",
)
"""Modules that the result of every cell depends on, besides the estimator's.

The names and formats of metrics (`metrics.labels`, `metrics.metric`) are not among them: no result depends on these.
"""
STREAMING = ("klr_bench.runner.prequential",)


@dataclass(frozen=True)
class Source:
    """What a worker needs to make the arrays of one split of one data set."""

    stem: str
    name: str
    spec: DatasetConfig = field(hash=False)
    data_key: str
    cache: Path
    mirror: str | None
    seed: int
    repeat: int

    def load(self, progress: Progress | None = None) -> Dataset:
        """Return the data set, fetched and parsed if the cache does not have it."""
        return load(self.stem, self.spec, cache=self.cache, mirror=self.mirror, progress=progress)

    @property
    def is_stream(self) -> bool:
        """Whether the rows are tested on and learned from chunk by chunk, and never held as a whole."""
        return self.spec.is_stream

    def streamed(self, skip_rows: int = 0, progress: Progress | None = None) -> Streamed:
        """Return the chunks of a stream, from a row on."""
        return streamed(
            self.name, self.spec, cache=self.cache, mirror=self.mirror, skip_rows=skip_rows, progress=progress
        )

    def check_unchanged(self) -> None:
        """Refuse a file that is no longer the one that the key is of, as far as it can tell.  Raises KlrBenchError."""
        if dataset_hash(self.stem, self.spec) != self.data_key:
            fail(f"{self.name}: a file has changed while it was read; run the same command again.")

    def content(self) -> dict[str, object]:
        """Return what the arrays depend on, for a key."""
        return {
            "data": self.data_key,
            "name": self.name,
            "seed": self.seed,
            "splitting": module_hash(*SPLITTING),
            "scale": self.spec.scale,
            "split": self.spec.split.model_dump(),
        }


@dataclass(frozen=True)
class Candidate:
    """One of the estimators that selection chooses from.

    `estimator` is scored, and `key` is the key of its score within a fold; `chosen` is what the cell fits if this
    score is the best.  They differ where an algorithm is selected as another one.
    """

    estimator: EstimatorSpec
    time_limit_s: float | None
    key: str
    chosen: EstimatorSpec


@dataclass(frozen=True)
class Fold:
    """One held-out fold of one repeat, for all candidates that share a kernel."""

    source: Source
    kernel: Parameters | None
    fold: int
    selection: SelectionConfig
    candidates: tuple[Candidate, ...]

    @cached_property
    def key(self) -> str:
        """Key of the fold and its kernel, independent of the candidates."""
        content = self.source.content() | {"repeat": self.source.repeat, "kernel": self.kernel}
        content["code"] = module_hash(*SELECTING, *MEASURING)
        return content_hash([content, self.fold, self.selection.model_dump()])

    def with_candidates(self, candidates: tuple[Candidate, ...]) -> Fold:
        """Return the same fold for other candidates."""
        return replace(self, candidates=candidates)

    def describe(self) -> str:
        """Return a few words for the progress display and for messages."""
        place = f"{self.source.name}, repeat {self.source.repeat}"
        return f"selection on {place}, fold {self.fold}, {len(self.candidates)} learners"


@dataclass(frozen=True)
class Cell:
    """One fit of one variant of one algorithm on one split, with the candidates that selection chooses from."""

    source: Source
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
    """Measured metrics that are files of their own, and the hashes of these files."""

    @cached_property
    def config_hash(self) -> str:
        """Key of all that the result depends on, but for the repeat."""
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
            "selecting": module_hash(*SELECTING),
            "scored": [candidate.key for candidate in self.candidates] if self.grid else None,
            "measuring": module_hash(*MEASURING, *(STREAMING if self.source.is_stream else ())),
            "user_metrics": self.user_metrics,
        }
        return content_hash(content)

    @cached_property
    def key(self) -> str:
        """Key of all that the result depends on: the name of the cell's file."""
        return content_hash([self.config_hash, self.source.repeat])

    @cached_property
    def folds(self) -> list[Fold]:
        """The folds that the choice needs; none if there is nothing to choose."""
        if len(self.candidates) == 1:
            return []
        if self.selection.nested:
            places = [(self.source, fold) for fold in range(self.selection.folds)]
        else:
            split = self.source.spec.split
            assert isinstance(split, Folds)
            n = split.folds
            first = self.source.repeat // n * n
            places = [(replace(self.source, repeat=first + fold), fold) for fold in range(n)]
        return [Fold(source, self.kernel, fold, self.selection, self.candidates) for source, fold in places]

    def describe(self) -> str:
        """Return a few words for the progress display and for messages."""
        variant = f"{self.algorithm} {variant_text(self.variant)}".strip()
        return f"{variant} on {self.source.name}, repeat {self.source.repeat}"


def plan_cells(config: RunConfig, cache: Path, *, construct: bool = False) -> list[Cell]:
    """Return all cells of a run, repeat by repeat; raises KlrBenchError where parameters are refused.

    No data set is loaded or fetched for it.  Estimators are constructed, so that they can refuse combinations of
    values, only with `construct`.
    """
    cells = []
    columns = _columns(config, construct=construct)
    for stem, spec in config.datasets.items():
        key, name = dataset_hash(stem, spec), dataset_name(stem, spec)
        for repeat in range(config.repeats):
            source = Source(stem, name, spec, key, cache, config.data.mirror, config.seed, repeat)
            left_out = config.left_out.get(stem, {})
            cells += [column(source=source) for column in columns if not _is_left_out(left_out, column.keywords)]
    return cells


def of_shard(cells: Sequence[Cell], shard: str | None) -> list[Cell]:
    """Return every N-th cell from the K-th on, for a shard K/N; all cells without one."""
    first, n_shards = map(int, shard.split("/")) if shard else (1, 1)
    return list(cells[first - 1 :: n_shards])


def _columns(config: RunConfig, *, construct: bool) -> list[partial[Cell]]:
    """Return what the cells of a column of the table have in common, one entry per algorithm and variant."""
    columns = []
    metrics = _file_hashes(config.metrics or ())
    score = _score_key(config.selection.score)
    for stem, algorithm in config.algorithms.items():
        for variant, estimator, grid in variants(algorithm, config.sweep.get(stem, {})):
            choices = _candidates(algorithm, estimator, grid, score)
            check_candidates(stem, [choice.chosen for choice in choices], construct=construct)
            scored = [choice.estimator for choice in choices if choice.estimator != choice.chosen]
            if scored:
                check_candidates(stem, scored, construct=construct, part="selected_as")
            column = partial(
                Cell,
                experiment=config.name,
                algorithm=stem,
                variant=variant,
                estimator=estimator,
                grid=grid,
                candidates=choices,
                kernel=shared_kernel(algorithm, estimator, config.kernel),
                selection=config.selection,
                trace=config.trace,
                time_limit_s=algorithm.time_limit_s,
                user_metrics=metrics,
            )
            columns.append(column)
    return columns


def _candidates(
    algorithm: AlgorithmConfig, estimator: EstimatorSpec, grid: Mapping[str, list[Any]], score: Parameters
) -> tuple[Candidate, ...]:
    """Return what selection chooses from: the estimators of the grid, scored as another one where that is said."""
    limit, other = algorithm.time_limit_s, algorithm.selected_as
    found = []
    for chosen in candidates(estimator, grid):
        scored = {**chosen, **other}
        found.append(Candidate(scored, limit, candidate_key(scored, limit, score), chosen))
    return tuple(found)


def _is_left_out(left_out: Mapping[str, Mapping[str, Sequence[Any]]], column: Parameters) -> bool:
    """Return True if a data set leaves out a method: its algorithm, with one of the listed values of each parameter."""
    values = left_out.get(column["algorithm"])
    return values is not None and all(column["variant"].get(name) in listed for name, listed in values.items())


def variants(
    algorithm: AlgorithmConfig, sweep: Mapping[str, list[Any]]
) -> list[tuple[Variant, EstimatorSpec, dict[str, list[Any]]]]:
    """Return (variant, estimator, grid) of each combination of a sweep's values.

    A swept parameter leaves the grid, unless its value is "cv": then it stays there.
    """
    found = []
    for values in product(*sweep.values()):
        chosen = dict(zip(sweep, values, strict=True))
        fixed = {name: value for name, value in chosen.items() if value != LEFT_TO_SELECTION}
        grid = {name: list(values) for name, values in algorithm.grid.items() if name not in fixed}
        found.append((Variant(chosen), {**algorithm.estimator, **fixed}, grid))
    return found


def candidate_key(estimator: EstimatorSpec, time_limit_s: float | None, score: Parameters) -> str:
    """Return the key of a candidate's score within a fold; `score` is what `_score_key` returns."""
    return content_hash([estimator, source_hash(estimator[TARGET]), time_limit_s, score])


def check_candidates(
    stem: str, estimators: Sequence[EstimatorSpec], *, construct: bool, part: str = "estimator"
) -> None:
    """Refuse values that the estimators, all of one class, refuse themselves, before anything runs."""
    with located(f"algorithms.{stem}.{part}"):
        _check_estimators(estimators, construct=construct)


def _check_estimators(estimators: Sequence[EstimatorSpec], *, construct: bool) -> None:
    for estimator in estimators:
        try:
            checked = with_any_gamma(estimator)
            check_parameters(checked)
            if construct:
                protocols.check_parameters(build(checked))
        except (KlrBenchError, ValueError, TypeError) as error:
            raise KlrBenchError(str(error)) from error
        except (Exception, SystemExit) as error:
            fail(f"{estimator[TARGET]} raised {described(error)}")


def group_folds(cells: Sequence[Cell]) -> list[Fold]:
    """Return the folds of all cells, those of one fold and kernel as one, each candidate once."""
    groups: dict[str, tuple[Fold, dict[str, Candidate]]] = {}
    for cell in cells:
        for fold in cell.folds:
            _, known = groups.setdefault(fold.key, (fold, {}))
            known.update({candidate.key: candidate for candidate in fold.candidates})
    return [fold.with_candidates(tuple(known.values())) for fold, known in groups.values()]


def _file_hashes(names: Sequence[str]) -> dict[str, str]:
    files = metric_files(config_files.folders())
    return {name: file_hash(files[name]) for name in names if name in files}


def _score_key(name: str) -> Parameters:
    """Return what scores depend on besides `MEASURING`: the direction of their metric, or the code of its file."""
    return {name: METRICS[name].better} if name in METRICS else _file_hashes([name])

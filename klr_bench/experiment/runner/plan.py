"""From a configuration to the work: cells, one fit each, and the folds that select their parameters.

Keys are hashes of content: two pieces of work have the same key exactly if they would give the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from sklearn.base import is_regressor

from klr_bench.errors import KlrBenchError
from klr_bench.estimators.core import contract
from klr_bench.experiment.config.schema import LEFT_TO_SELECTION, SelectionConfig, TraceConfig
from klr_bench.experiment.config.validate import Config
from klr_bench.experiment.data import Dataset, dataset_hash, dataset_name, load
from klr_bench.experiment.data.cache import Progress
from klr_bench.experiment.selection import Spec, candidates, kernel_of
from klr_bench.experiment.targets import TARGET, build, content_hash, module_hash, source_hash
from klr_bench.experiment.variants import Variant, variant_text


@dataclass(frozen=True)
class Source:
    """What a worker needs to make the arrays of one split of one data set."""

    stem: str
    name: str
    spec: Mapping[str, Any] = field(hash=False)
    cache: Path
    mirror: str | None
    seed: int
    repeat: int

    def load(self, progress: Progress | None = None) -> Dataset:
        """Return the data set, fetched and parsed if the cache does not have it."""
        return load(self.stem, self.spec, cache=self.cache, mirror=self.mirror, progress=progress)

    def content(self) -> dict[str, Any]:
        """Return what the arrays depend on, for a key."""
        spec = {name: self.spec.get(name) for name in ("scale", "split")}
        code = module_hash("klr_bench.experiment.splits")
        return {
            "data": dataset_hash(self.stem, self.spec),
            "name": self.name,
            "seed": self.seed,
            "code": code,
            **spec,
        }


@dataclass(frozen=True)
class Fold:
    """One held-out fold of one repeat, for all learners that share a kernel."""

    source: Source
    kernel: Mapping[str, Any] | None
    fold: int
    selection: SelectionConfig
    learners: tuple[Spec, ...]

    @property
    def key(self) -> str:
        """Of the fold and its kernel, whoever the learners are."""
        code = module_hash("klr_bench.experiment.selection")
        content = self.source.content() | {"repeat": self.source.repeat, "kernel": self.kernel, "code": code}
        return content_hash([content, self.fold, asdict(self.selection)])

    def with_learners(self, learners: tuple[Spec, ...]) -> Fold:
        """Return the same fold for other learners."""
        return replace(self, learners=learners)

    def describe(self) -> str:
        """Return a few words for the progress display and for messages."""
        place = f"{self.source.name}, repeat {self.source.repeat}"
        return f"selection on {place}, fold {self.fold}, {len(self.learners)} learners"


@dataclass(frozen=True)
class Cell:
    """One fit of one variant of one algorithm on one split, with what it is chosen from."""

    source: Source
    experiment: str
    algorithm: str
    variant: Variant
    estimator: Spec
    grid: Mapping[str, list[Any]]
    kernel: Mapping[str, Any] | None
    selection: SelectionConfig
    trace: TraceConfig
    time_limit_s: float | None

    @property
    def candidates(self) -> list[Spec]:
        """The estimators among which selection chooses; one if there is no grid."""
        return candidates(self.estimator, self.grid)

    @property
    def config_hash(self) -> str:
        """Of everything but the repeat."""
        content = self.source.content() | {
            "estimator": self.estimator,
            "grid": self.grid,
            "kernel": self.kernel,
        }
        content |= {
            "variant": dict(self.variant),
            "algorithm": self.algorithm,
            "target": source_hash(self.estimator[TARGET]),
        }
        content |= {"trace": asdict(self.trace), "time_limit_s": self.time_limit_s}
        content |= {
            "folds": asdict(self.selection) if self.grid else None,
            "rule": module_hash("klr_bench.experiment.selection"),
        }
        return content_hash(content)

    @property
    def key(self) -> str:
        """Of everything: the name of the cell's file."""
        return content_hash([self.config_hash, self.source.repeat])

    def folds(self) -> list[Fold]:
        """Return the folds that the choice needs; none if there is nothing to choose."""
        learners = tuple(self.candidates)
        if len(learners) == 1:
            return []
        return [Fold(self.source, self.kernel, fold, self.selection, learners) for fold in range(self.selection.folds)]

    def describe(self) -> str:
        """Return a few words for the progress display and for messages."""
        variant = f"{self.algorithm} {variant_text(self.variant)}".strip()
        return f"{variant} on {self.source.name}, repeat {self.source.repeat}"


def plan_cells(config: Config, cache: Path) -> list[Cell]:
    """Return all cells of a run, repeat by repeat; raises KlrBenchError where parameters are refused.

    No data set is loaded or fetched for it.
    """
    columns = [
        (stem, variant, estimator, grid)
        for stem, algorithm in config.algorithms.items()
        for variant, estimator, grid in variants(algorithm, config.sweep.get(stem, {}))
    ]
    for stem, _, estimator, grid in columns:
        check_parameters(stem, estimator, grid)
    cells = []
    for dataset, repeat in product(config.datasets, range(config.repeats)):
        spec = config.datasets[dataset]
        source = Source(dataset, dataset_name(dataset, spec), spec, cache, config.data.mirror, config.seed, repeat)
        cells += [
            Cell(
                source=source,
                experiment=config.name,
                algorithm=stem,
                variant=variant,
                estimator=estimator,
                grid=grid,
                kernel=kernel_of(estimator, asdict(config.kernel)),
                selection=config.selection,
                trace=config.trace,
                time_limit_s=config.algorithms[stem].get("time_limit_s"),
            )
            for stem, variant, estimator, grid in columns
        ]
    return cells


def variants(
    algorithm: Mapping[str, Any], sweep: Mapping[str, list[Any]]
) -> list[tuple[Variant, Spec, dict[str, Any]]]:
    """Return (variant, estimator, grid) of each combination of a sweep's values.

    A swept parameter leaves the grid, unless its value is "cv": then it stays there.
    """
    found = []
    for values in product(*sweep.values()):
        chosen = dict(zip(sweep, values, strict=True))
        fixed = {name: value for name, value in chosen.items() if value != LEFT_TO_SELECTION}
        grid = {name: list(values) for name, values in algorithm["grid"].items() if name not in fixed}
        found.append((Variant(chosen), {**algorithm["estimator"], **fixed}, grid))
    return found


def check_parameters(stem: str, estimator: Spec, grid: Mapping[str, list[Any]]) -> None:
    """Refuse values that the estimator itself refuses, before anything runs."""
    for candidate in candidates(estimator, grid):
        try:
            built = build(candidate)
            contract.check_parameters(built)
        except (ValueError, TypeError) as error:
            message = f"algorithms.{stem}.estimator: {error}"
            raise KlrBenchError(message) from error
        if is_regressor(built):
            message = f"algorithms.{stem}.estimator: {candidate[TARGET]} is a regressor; a classifier is expected."
            raise KlrBenchError(message)


def group_folds(cells: Sequence[Cell]) -> list[Fold]:
    """Return the folds of all cells, those of one fold and kernel as one, each learner once."""
    groups: dict[str, tuple[Fold, dict[str, Spec]]] = {}
    for cell in cells:
        for fold in cell.folds():
            _, learners = groups.setdefault(fold.key, (fold, {}))
            learners.update({learner_key(learner): learner for learner in fold.learners})
    return [fold.with_learners(tuple(learners.values())) for fold, learners in groups.values()]


def learner_key(learner: Spec) -> str:
    """Return the key of a candidate's scores within a fold."""
    return content_hash([learner, source_hash(learner[TARGET])])

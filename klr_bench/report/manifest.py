"""manifest.yaml as a report reads it: what an experiment asked for, as typed values; nothing of it is ever called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from klr_bench.errors import KlrBenchError, located
from klr_bench.experiment.config import schema
from klr_bench.experiment.config.splitting import Draw, Folds, Share, read_split
from klr_bench.experiment.config.typed import (
    FileName,
    PartOfMore,
    Words,
    between,
    check_choice,
    parse,
    refuse,
    refuse_unknown,
)
from klr_bench.experiment.first_schema import upgraded_manifest
from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.records import SCHEMA_VERSION
from klr_bench.experiment.variants import Variant
from klr_bench.yaml_file import read_yaml

Column = tuple[str, Variant]
"""An algorithm and its variant."""

AGAIN = "Run the experiment again to write it anew; nothing finished is computed twice."
MOST_COLUMNS = 100_000
MOST_REPEATS = 1_000_000


@dataclass(frozen=True)
class Machine(PartOfMore):
    """Where it ran."""

    cpu: Words = ""


@dataclass(frozen=True)
class Labels:
    """Print names, of all runs so far."""

    algorithms: dict[FileName, Words] = field(default_factory=dict)
    datasets: dict[FileName, Words] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetAsked(PartOfMore):
    """A data set of the configuration."""

    label: Words | None = None
    source: dict[str, Any] | Words | None = None
    split: dict[str, Any] | Words | None = None

    @property
    def own_file(self) -> bool:
        """Say whether it is the user's own file, whose rows carry the name and the hash of the file."""
        return isinstance(self.source, Mapping) and self.source.get("format") == schema.FILE


@dataclass(frozen=True)
class AlgorithmAsked(PartOfMore):
    """An algorithm of the configuration; `estimator`: its parameters, as data."""

    label: Words | None = None
    estimator: dict[str, schema.Parameter] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked(PartOfMore):
    """The part of the resolved configuration that a report needs."""

    title: Words
    repeats: Annotated[int, between(1, MOST_REPEATS)]
    datasets: dict[FileName, DatasetAsked]
    algorithms: dict[FileName, AlgorithmAsked]
    sweep: dict[FileName, dict[str, list[schema.Parameter]] | None]
    experiment: Words | None = None
    figures: list[Words] | None = None
    """Names of the figures; None: the usual ones."""
    metrics: list[Words] | None = None
    """Names of the columns; None: the usual ones."""
    against: dict[str, dict[str, schema.Parameter]] | None = None
    """For numbers that compare two columns, the changes that give the column to compare with."""
    budget: list[schema.Budget] | Words | schema.Budget | None = None
    """Budgets of a sweep, or ``from:<experiment>/<algorithm>`` where they are those of another run."""


@dataclass(frozen=True)
class Manifest(PartOfMore):
    """All that a report reads of a manifest."""

    experiment: FileName
    """The name of the results folder."""
    config: Asked
    schema_version: Literal[1, 2] = 2
    machine: Machine | None = None
    labels: Labels | None = None
    own_metrics: dict[str, Metric] = field(default_factory=dict)
    git_commit: Any = None
    """The commit of the source that ran; with `changed`, the files that differed from it, only to be shown."""
    changed: Any = None

    @property
    def chosen(self) -> str:
        """The experiment whose file was run, whatever the name of its results folder."""
        return self.config.experiment or self.experiment

    @property
    def metrics(self) -> dict[str, Metric]:
        """The catalogue, and the user's own metrics."""
        return METRICS | self.own_metrics | METRICS  # shipped ones first, and not to be replaced

    @property
    def borrowed(self) -> bool:
        """Whether the budgets are numbers of support vectors of another run, one of each of its variants."""
        return isinstance(self.config.budget, str)

    def columns(self) -> list[Column]:
        """Return the algorithms and variants in the order of the configuration."""
        return [
            (stem, Variant(dict(zip(self._sweep(stem), values, strict=True))))
            for stem in self.config.algorithms
            for values in product(*self._sweep(stem).values())
        ]

    def order(self, column: Column) -> tuple[Any, ...]:
        """Sort key: as in the configuration; after that, in natural order, what it does not know."""
        algorithm, variant = column
        sweep, stems = self._sweep(algorithm), list(self.config.algorithms)
        places = [
            next((i for i, value in enumerate(known) if value == variant.get(name)), len(known))
            for name, known in sweep.items()
        ]
        place = stems.index(algorithm) if algorithm in stems else len(stems)
        return place, algorithm, variant.keys() != sweep.keys(), places, variant.order()

    def algorithm_label(self, algorithm: str) -> str:
        """Return the print name of an algorithm."""
        asked = self.config.algorithms.get(algorithm)
        labels = self.labels.algorithms if self.labels else {}
        return (asked and asked.label) or labels.get(algorithm) or algorithm

    def dataset_label(self, dataset: str) -> str:
        """Return the print name of a data set."""
        asked = self.config.datasets.get(dataset)
        labels = self.labels.datasets if self.labels else {}
        return (asked and asked.label) or labels.get(dataset) or dataset

    def resampled(self, dataset: str) -> bool | None:
        """Say whether each repeat splits a data set again, at random or into folds; None where that is not known.

        It does not where the rows to test on are the same in each repeat, and only the order of the others differs.
        """
        own = [asked for asked in self.config.datasets.values() if asked.own_file]
        asked = self.config.datasets.get(dataset) or (own[0] if len(own) == 1 else None)
        if asked is None or asked.split is None:
            return None
        try:
            return isinstance(read_split(asked.split), Share | Folds | Draw)
        except KlrBenchError:
            return None

    def _sweep(self, algorithm: str) -> Mapping[str, list[Any]]:
        return self.config.sweep.get(algorithm) or {}


KEYS = {*(key.name for key in fields(Manifest)), "started", "updated", "versions", "command"}
"""With those that a report has no use for."""
CONFIG_KEYS = {key.name for key in fields(schema.Config)}


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a results folder; KlrBenchError where a key is missing, unknown or of another type."""
    path = folder / "manifest.yaml"
    try:
        content = read_yaml(path)
    except KlrBenchError as error:
        message = f"{error} {AGAIN}"
        raise KlrBenchError(message) from error
    version = content.get("schema_version", SCHEMA_VERSION) if isinstance(content, Mapping) else SCHEMA_VERSION
    if type(version) is not int or version not in (1, SCHEMA_VERSION):
        message = (
            f"{path}: schema_version: expected at most {SCHEMA_VERSION}, got {version!r}. "
            "Use the klr-bench that wrote it, or run the experiment again with another results_dir."
        )
        raise KlrBenchError(message)
    with located(path, AGAIN):
        manifest = _parsed(upgraded_manifest(content) if version == 1 else content)
        _check_together(manifest)
        return manifest


def _parsed(content: Any) -> Manifest:
    """Return a manifest of the newest schema; unlike their parts, it and its configuration have no other keys."""
    if isinstance(content, Mapping):
        refuse_unknown(content, KEYS, "")
        if isinstance(content.get("config"), Mapping):
            refuse_unknown(content["config"], CONFIG_KEYS, "config.")
    return parse(Manifest, content)


def _check_together(manifest: Manifest) -> None:
    """Refuse metrics that there are not, and sweeps of more columns than a table can have."""
    config = manifest.config
    for key, metric in manifest.own_metrics.items():
        if metric.name != key:
            refuse(f"own_metrics.{key}.name", repr(key), metric.name)
    for name in config.metrics or ():
        check_choice("config.metrics", name, manifest.metrics)
    for name in config.against or ():
        check_choice("config.against", name, [name for name, metric in METRICS.items() if metric.compares])
    count = sum(prod(map(len, lists.values())) for lists in config.sweep.values() if lists)
    if count > MOST_COLUMNS:
        message = f"config.sweep: expected at most {MOST_COLUMNS:,} variants, got {count:,}."
        raise KlrBenchError(message)

"""Data models of manifest.yaml; nothing in the file is executed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from klr_bench.config.models import RunConfig
from klr_bench.config.presentation import Presentation, presentation
from klr_bench.config.splitting import RESAMPLING, SplitSpec
from klr_bench.errors import KlrBenchError, error_context, fail
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import FileName, Model, Words, between, check_choice, parse, refuse
from klr_bench.printing import shortened
from klr_bench.results.record import SCHEMA_VERSION
from klr_bench.results.store import refuse_newer
from klr_bench.results.variants import Variant
from klr_bench.yaml_file import LARGE, read_yaml

Column = tuple[str, Variant]
"""A method: an algorithm and its variant."""
AGAIN = "Run the experiment again to rewrite the manifest; finished work is not repeated."
MOST_VARIANTS = 100_000
LONGEST_CHANGES = 200
"""Maximum number of characters of the changed settings in a title."""


def _metric(content: Any) -> Metric:
    try:
        return Metric.from_description(content, "")
    except KlrBenchError as error:
        raise PydanticCustomError("message", "{text}", {"text": str(error)}) from error


class Manifest(Model):
    """Content of manifest.yaml."""

    experiment: FileName
    """Name of the results folder."""
    config: RunConfig
    """The configuration of the last run."""
    schema_version: Annotated[int, between(SCHEMA_VERSION, SCHEMA_VERSION)] = SCHEMA_VERSION
    machine: dict[str, Words | bool | int | float | None] | None = None
    labels: dict[Literal["algorithms", "datasets"], dict[FileName, Words]] | None = None
    """Display names used in all runs so far."""
    configurations: dict[str, str] = Field(default_factory=dict)
    """Hashes of the configurations whose cells are listed in the tables, keyed by method and data set."""
    own_metrics: dict[str, Annotated[Any, AfterValidator(_metric)]] = Field(default_factory=dict)
    git_commit: Any = None
    changed: list[Any] | None = None
    """Files with uncommitted changes."""
    command: list[Any] | None = None
    changes: list[str] = Field(default_factory=list)
    """Settings that differ from those of the experiment's file, as ``key=value``."""
    versions: dict[str, Any] = Field(default_factory=dict)
    started: Any = None
    updated: Any = None

    @property
    def experiment_file(self) -> str:
        """Name of the experiment file, which may differ from the name of the results folder."""
        return self.config.experiment or self.experiment

    @property
    def title(self) -> str:
        """The title of the experiment, with the name and changed settings of a run that has its own."""
        if not self.changes and self.experiment == self.experiment_file:
            return self.config.title
        named = f"{self.config.title}; run {self.experiment}"
        return f"{named} with {shortened(', '.join(self.changes), LONGEST_CHANGES)}" if self.changes else named

    @property
    def metrics(self) -> dict[str, Metric]:
        """Built-in metrics, followed by user metrics, which cannot replace built-in ones."""
        return METRICS | self.own_metrics | METRICS

    def columns(self, dataset: str) -> list[Column]:
        """Return the methods that the configuration requests on a data set, in its order."""
        columns = [
            (algorithm, Variant(dict(zip(self._sweep(algorithm), values, strict=True))))
            for algorithm in self.config.algorithms
            for values in product(*self._sweep(algorithm).values())
        ]
        return [column for column in columns if not self.config.leaves_out(dataset, *column)]

    def order(self, column: Column) -> tuple[Any, ...]:
        """Return a sort key for methods: configuration order, then unknown methods in natural order."""
        algorithm, variant = column
        sweep, algorithms = self._sweep(algorithm), list(self.config.algorithms)
        places = [
            next((place for place, value in enumerate(swept) if value == variant.get(name)), len(swept))
            for name, swept in sweep.items()
        ]
        place = algorithms.index(algorithm) if algorithm in algorithms else len(algorithms)
        return place, algorithm, variant.keys() != sweep.keys(), places, variant.order

    def algorithm_label(self, algorithm: str) -> str:
        """Return the display name of an algorithm."""
        entry, labels = self.config.algorithms.get(algorithm), (self.labels or {}).get("algorithms", {})
        return (entry and entry.label) or labels.get(algorithm) or algorithm

    def presentation(self, algorithm: str) -> Presentation:
        """Return the display names, color and marker of an algorithm."""
        return presentation(self.algorithm_label(algorithm), algorithm, self.experiment_file)

    def dataset_label(self, dataset: str) -> str:
        """Return the display name of a data set."""
        entry, labels = self.config.datasets.get(dataset), (self.labels or {}).get("datasets", {})
        return (entry and entry.label) or labels.get(dataset) or dataset

    def configured_name(self, dataset: str) -> str:
        """Return the configured name of a data set; records name user files differently."""
        files = [name for name, entry in self.config.datasets.items() if entry.source.is_own_file]
        return files[0] if dataset not in self.config.datasets and len(files) == 1 else dataset

    def split(self, dataset: str) -> SplitSpec | None:
        """Return the split of a data set, or None if unknown."""
        entry = self.config.datasets.get(self.configured_name(dataset))
        return entry.split if entry else None

    def resampled(self, dataset: str) -> bool | None:
        """Return True if each repeat draws new test rows, False if not, None if unknown."""
        split = self.split(dataset)
        return None if split is None else isinstance(split, RESAMPLING)

    @property
    def selected(self) -> list[str]:
        """The parameters that cross-validation selects for at least one method."""
        return [*dict.fromkeys(name for stem in self.config.algorithms for name in self.config.selected_grid(stem))]

    def _sweep(self, algorithm: str) -> Mapping[str, list[Any]]:
        return self.config.sweep.get(algorithm, {})


def read_manifest(folder: Path) -> Manifest:
    """Read manifest.yaml.

    Raises KlrBenchError for an unknown key or an invalid value.
    """
    path = folder / "manifest.yaml"
    content = read_yaml(path, LARGE)
    refuse_newer(content, path)
    with error_context(path, AGAIN):
        manifest = parse(Manifest, content)
        config = manifest.config
        for key, metric in manifest.own_metrics.items():
            if metric.name != key:
                refuse(f"own_metrics.{key}.name", repr(key), metric.name)
        for name in config.metrics or ():
            check_choice("config.metrics", name, manifest.metrics)
        for name in config.against:
            check_choice("config.against", name, [name for name, metric in METRICS.items() if metric.compares])
        count = sum(prod(map(len, lists.values())) for lists in config.sweep.values())
        if count > MOST_VARIANTS:
            fail(f"config.sweep: expected at most {MOST_VARIANTS:,} variants, got {count:,}.")
    return manifest

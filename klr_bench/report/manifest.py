"""manifest.yaml as a report reads it: what an experiment asked for, as typed values; nothing of it is ever called."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.experiment.config import schema
from klr_bench.experiment.first_schema import upgraded_manifest
from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.records import SCHEMA_VERSION
from klr_bench.experiment.variants import Variant
from klr_bench.report.typed import Name, Part, PartOfMore, Text, checked, read_yaml

Column = tuple[str, Variant]
"""An algorithm and its variant."""

AGAIN = "Run the experiment again to write it anew; nothing finished is computed twice."
MOST_COLUMNS = 100_000
MOST_REPEATS = 1_000_000


class Machine(PartOfMore):
    """Where it ran."""

    cpu: Text = ""


class Labels(Part):
    """Print names, of all runs so far."""

    algorithms: dict[Name, Text] = Field(default_factory=dict)
    datasets: dict[Name, Text] = Field(default_factory=dict)


class OwnMetric(Part):
    """A metric of the user's own, without its function; as a `Metric` of the catalogue."""

    title: Text
    name: Name | None = None
    unit: Literal["percent", "count", "s", "MB", "", "small"] = ""
    better: Literal["higher", "lower", ""] = ""
    compared: Literal["difference", "ratio", ""] = ""
    usual: bool = False
    whole: bool = False


class DatasetAsked(PartOfMore):
    """A data set of the configuration."""

    label: Text | None = None


class AlgorithmAsked(PartOfMore):
    """An algorithm of the configuration; `estimator`: its parameters, as data."""

    label: Text | None = None
    estimator: dict[str, Any] = Field(default_factory=dict)


class Asked(PartOfMore):
    """The part of the resolved configuration that a report needs."""

    title: Text
    repeats: Annotated[int, Field(ge=1, le=MOST_REPEATS)]
    datasets: dict[Name, DatasetAsked]
    algorithms: dict[Name, AlgorithmAsked]
    sweep: dict[Name, dict[str, list[Any]] | None]
    experiment: Text | None = None
    figures: list[Text] | None = None
    """Names of the figures; None: the usual ones."""
    metrics: list[Text] | None = None
    """Names of the columns; None: the usual ones."""
    against: dict[str, dict[str, Any]] | None = None
    """For numbers that compare two columns, the changes that give the column to compare with."""


class Manifest(PartOfMore):
    """All that a report reads of a manifest."""

    experiment: Name
    """The name of the results folder."""
    config: Asked
    schema_version: Literal[1, 2] = 2
    machine: Machine | None = None
    labels: Labels | None = None
    own_metrics: dict[Name, OwnMetric] = Field(default_factory=dict)

    @property
    def chosen(self) -> str:
        """The experiment whose file was run, whatever the name of its results folder."""
        return self.config.experiment or self.experiment

    @property
    def metrics(self) -> dict[str, Metric]:
        """The catalogue, and the user's own metrics."""
        own = {
            name: Metric(**(metric.model_dump() | {"name": name}))
            for name, metric in self.own_metrics.items()
            if name not in METRICS
        }
        return METRICS | own

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

    def _sweep(self, algorithm: str) -> Mapping[str, list[Any]]:
        return self.config.sweep.get(algorithm) or {}


KEYS = {*Manifest.model_fields, "started", "updated", "git_commit", "changed", "versions"}
CONFIG_KEYS = {*Asked.model_fields, *(field.name for field in fields(schema.Config))}
"""With those that a report has no use for."""


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a results folder; KlrBenchError where a key is missing, unknown or of another type."""
    path = folder / "manifest.yaml"
    content = read_yaml(path, AGAIN)
    version = content.get("schema_version", SCHEMA_VERSION) if isinstance(content, Mapping) else SCHEMA_VERSION
    if type(version) is not int or version not in (1, SCHEMA_VERSION):
        message = (
            f"{path}: schema_version: expected at most {SCHEMA_VERSION}, got {version!r}. "
            "Use the klr-bench that wrote it, or run the experiment again with another results_dir."
        )
        raise KlrBenchError(message)
    content = upgraded_manifest(content) if version == 1 else content
    _refuse_unknown(content, KEYS, f"{path}: ")
    if isinstance(content, Mapping):
        _refuse_unknown(content.get("config"), CONFIG_KEYS, f"{path}: config.")
    manifest = checked(Manifest, content, str(path), AGAIN)
    _check_names(manifest, path)
    return manifest


def _check_names(manifest: Manifest, path: Path) -> None:
    """Refuse metrics that there are not, and sweeps of more columns than a table can have."""
    compared = [name for name, metric in METRICS.items() if metric.compares]
    for key, names, known in (
        ("metrics", manifest.config.metrics or (), list(manifest.metrics)),
        ("against", manifest.config.against or (), compared),
    ):
        for name in names:
            if name not in known:
                message = (
                    f"{path}: config.{key}: expected names of metrics, got {name!r}.{nearest(name, known)} {AGAIN}"
                )
                raise KlrBenchError(message)
    count = sum(prod(map(len, lists.values())) for lists in manifest.config.sweep.values() if lists)
    if count > MOST_COLUMNS:
        message = f"{path}: config.sweep: expected at most {MOST_COLUMNS:,} variants, got {count:,}. {AGAIN}"
        raise KlrBenchError(message)


def _refuse_unknown(content: Any, known: Collection[str], where: str) -> None:
    """Refuse a key that no run writes; `where` ends in a dot or a blank."""
    for key in content if isinstance(content, Mapping) else ():
        if key not in known:
            message = f"{where}{key}: unknown key.{nearest(str(key), known)} {AGAIN}"
            raise KlrBenchError(message)

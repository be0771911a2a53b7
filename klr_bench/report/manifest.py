"""manifest.yaml as a report reads it: what an experiment asked for, as typed values; nothing of it is ever called."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetPydanticSchema
from pydantic_core import PydanticCustomError, core_schema

from klr_bench.config.models import FILE, Budget, Parameter, RunConfig
from klr_bench.config.splitting import RESAMPLING, SplitSpec, parse_split
from klr_bench.errors import KlrBenchError, located
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import FileName, Model, OpenModel, Words, between, check_choice, parse, refuse, refuse_unknown
from klr_bench.results.migrate import upgraded_manifest
from klr_bench.results.store import SCHEMA_VERSION
from klr_bench.results.variants import Variant
from klr_bench.yaml_file import read_yaml

Column = tuple[str, Variant]
"""An algorithm and its variant."""

AGAIN = "Run the experiment again to write it anew; nothing finished is computed twice."
MOST_COLUMNS = 100_000
MOST_REPEATS = 1_000_000


class Machine(OpenModel):
    """Where it ran."""

    cpu: Words = ""


class Labels(Model):
    """Print names, of all runs so far."""

    algorithms: dict[FileName, Words] = Field(default_factory=dict)
    datasets: dict[FileName, Words] = Field(default_factory=dict)


def _known_split(split: Any) -> Any:
    """Return a split, or None for one of another version of klr-bench."""
    if not isinstance(split, dict):
        return split
    try:
        return parse_split(split)
    except KlrBenchError:
        return None


def _own_metric(content: Any) -> Metric:
    try:
        return Metric.from_description(content, "")
    except KlrBenchError as error:
        raise PydanticCustomError("message", "{text}", {"text": str(error)}) from error


OwnMetric = Annotated[
    Metric, GetPydanticSchema(lambda _source, _handler: core_schema.no_info_plain_validator_function(_own_metric))
]
"""A metric as `Metric.described` describes it."""


class SourceAsked(OpenModel):
    """The source of a data set."""

    format: Words | None = None


class DatasetAsked(OpenModel):
    """A data set of the configuration."""

    label: Words | None = None
    source: SourceAsked | Words | None = None
    split: Annotated[SplitSpec | Words | None, BeforeValidator(_known_split)] = None

    @property
    def own_file(self) -> bool:
        """Whether it is the user's own file, whose rows carry the name and the hash of the file."""
        return isinstance(self.source, SourceAsked) and self.source.format == FILE


class AlgorithmAsked(OpenModel):
    """An algorithm of the configuration; `estimator`: its parameters, as data."""

    label: Words | None = None
    estimator: dict[str, Parameter] = Field(default_factory=dict)


class Asked(OpenModel):
    """The part of the resolved configuration that a report needs."""

    title: Words
    repeats: Annotated[int, between(1, MOST_REPEATS)]
    datasets: dict[FileName, DatasetAsked]
    algorithms: dict[FileName, AlgorithmAsked]
    sweep: dict[FileName, dict[str, list[Parameter]] | None]
    experiment: Words | None = None
    figures: list[Words] | None = None
    """Names of the figures; None: the usual ones."""
    metrics: list[Words] | None = None
    """Names of the columns; None: the usual ones."""
    against: dict[str, dict[str, Parameter]] | None = None
    """For numbers that compare two columns, the changes that give the column to compare with."""
    budget: list[Budget] | Words | Budget | None = None
    """Budgets of a sweep, or ``from:<experiment>/<algorithm>`` where they are those of another run."""


class Manifest(OpenModel):
    """All that a report reads of a manifest."""

    experiment: FileName
    """The name of the results folder."""
    config: Asked
    schema_version: Literal[1, 2] = 2
    machine: Machine | None = None
    labels: Labels | None = None
    own_metrics: dict[str, OwnMetric] = Field(default_factory=dict)
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

    def configured_name(self, dataset: str) -> str:
        """Return the name of a data set in the configuration; a user's file has another one than its records."""
        own = [name for name, asked in self.config.datasets.items() if asked.own_file]
        return own[0] if dataset not in self.config.datasets and len(own) == 1 else dataset

    def asked(self, dataset: str) -> DatasetAsked | None:
        """Return the configuration of a data set, None if it is not known."""
        return self.config.datasets.get(self.configured_name(dataset))

    def resampled(self, dataset: str) -> bool | None:
        """Return whether each repeat splits a data set again, at random or into folds; None if it is not known.

        It does not where the rows to test on are the same in each repeat, and only the order of the others differs.
        """
        asked = self.asked(dataset)
        if asked is None or asked.split is None or isinstance(asked.split, str):
            return None
        return isinstance(asked.split, RESAMPLING)

    def with_metrics(self, names: list[str]) -> Manifest:
        """Return the manifest of a run with other metrics."""
        return self.model_copy(update={"config": self.config.model_copy(update={"metrics": names})})

    def _sweep(self, algorithm: str) -> Mapping[str, list[Any]]:
        return self.config.sweep.get(algorithm) or {}


KEYS = {*Manifest.model_fields, "started", "updated", "versions", "command"}
"""With those that a report has no use for."""
CONFIG_KEYS = set(RunConfig.model_fields)


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

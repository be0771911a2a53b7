"""Two results folders that are compared, and whether their repeats on a data set are pairs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from klr_bench.config.splitting import RESAMPLING, SplitSpec
from klr_bench.errors import KlrBenchError, shown
from klr_bench.report.labels import column_label
from klr_bench.report.load import Results, read_results
from klr_bench.report.manifest import Column, Manifest
from klr_bench.report.measured import SIZES, Row, with_derived
from klr_bench.results.migrate import upgraded_manifest
from klr_bench.yaml_file import read_yaml

Kind = Literal["paired", "unpaired", "unknown"]
PAIRED: Kind = "paired"
UNPAIRED: Kind = "unpaired"
UNKNOWN: Kind = "unknown"

OF_ROWS = (
    *("format", "generator", "train", "test", "file_format", "label_column", "columns"),
    *("n_features", "n_train", "n_samples", "parts", "positive", "multiclass", "only", "derive"),
)
"""Keys of a source and of a data set on which its rows depend; the name of a user's file holds a hash of it."""
NOT_OF_ROWS = ("url", "name", "max_bytes")
"""Keys of a file on which no row depends."""


@dataclass(frozen=True)
class Run:
    """A results folder."""

    name: str
    """The name of its folder, or the path if both folders have one name."""
    folder: Path
    results: Results
    content: Mapping[str, Any]
    """All of its manifest.yaml, as plain values of schema version 2."""

    @property
    def manifest(self) -> Manifest:
        """The part of the manifest that a report reads."""
        return self.results.manifest

    @cached_property
    def columns(self) -> dict[str, dict[Column, dict[int, Row]]]:
        """The records: data set -> algorithm and variant -> repeat -> row."""
        found: dict[str, dict[Column, dict[int, Row]]] = {}
        for row in with_derived(self.results.records, self.results.traces).to_dict("records"):
            column = found.setdefault(row["dataset"], {}).setdefault((row["algorithm"], row["variant"]), {})
            column[int(row["repeat"])] = row
        return found

    @property
    def config(self) -> Mapping[str, Any]:
        """The resolved configuration of the last call, as plain values."""
        config = self.content.get("config")
        return config if isinstance(config, Mapping) else {}

    def seed(self, row: Row) -> int | None:
        """Return the seed of a record, else that of the configuration, None if it has none."""
        seed = row.get("seed", math.nan)
        if not math.isnan(seed):
            return int(seed)
        asked = self.config.get("seed")
        return asked if type(asked) is int else None

    def label(self, column: Column) -> str:
        """Return the print name of a method: "OSKL G=4"."""
        return column_label(self.manifest.algorithm_label(column[0]), column[1])

    def split(self, dataset: str) -> SplitSpec | None:
        """Return how a data set is split, None if the manifest does not say it."""
        return self.manifest.split(dataset)

    def source_of_rows(self, dataset: str) -> Any:
        """Return what the rows of a data set depend on; in schema version 1 the source is part of the data set."""
        datasets = self.config.get("datasets")
        name = self.manifest.configured_name(dataset)
        asked = datasets.get(name) if isinstance(datasets, Mapping) else None
        asked = asked if isinstance(asked, Mapping) else {}
        source = asked.get("source")
        every = dict(source) if isinstance(source, Mapping) else {"source": source}
        every |= {name: value for name, value in asked.items() if value is not None}
        return _of_rows({name: every.get(name) for name in OF_ROWS})


def read_two(first: Path, second: Path) -> tuple[Run, Run]:
    """Return two runs.  Raises KlrBenchError for a folder without results, and if both are one folder."""
    for folder in (first, second):
        inside = sorted(path.parent for path in folder.glob("*/records.csv"))
        if inside and not os.path.lexists(folder / "records.csv"):
            message = f"{folder}: expected the folder of one experiment, got one of several. Try {inside[0]}."
            raise KlrBenchError(message)
    runs = read_results(first), read_results(second)
    if first.resolve() == second.resolve():
        message = f"{shown(first)} against itself: expected another run; both are the same folder."
        raise KlrBenchError(message)
    names = [first.name, second.name] if first.name != second.name else [str(first), str(second)]
    one, other = (
        Run(shown(name), folder, results, _content(folder, results))
        for name, folder, results in zip(names, (first, second), runs, strict=True)
    )
    return one, other


def _content(folder: Path, results: Results) -> Mapping[str, Any]:
    content = read_yaml(folder / "manifest.yaml")
    return dict(upgraded_manifest(content) if results.manifest.schema_version == 1 else content)


def _of_rows(value: Any) -> Any:
    """Return a value without the keys on which no row depends and those that are null or false; a label 3 is "3"."""
    if isinstance(value, list):
        return [_of_rows(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value if value in (None, False) else str(value)
    kept = {name: _of_rows(entry) for name, entry in value.items() if name not in NOT_OF_ROWS}
    return {name: entry for name, entry in kept.items() if entry not in (None, False)}


@dataclass(frozen=True)
class Pairing:
    """How the repeats of two runs on one data set are compared, and why."""

    kind: Kind
    resampled: bool
    """Whether each repeat splits one set of rows again, so that their training rows overlap."""
    because: str
    assumed: str = ""
    """What is assumed, because no file of the two says it."""


def pairing_of(dataset: str, first: Run, second: Run) -> Pairing:
    """Decide for a data set that both runs have.

    Repeats are pairs if seed, data set and split are the same by the records and manifests.  Equal keys prove it;
    otherwise it is assumed that both versions split in the same way.
    """
    splits = [run.split(dataset) for run in (first, second)]
    if None in splits:
        lacking = " and ".join(name for name, split in zip("AB", splits, strict=True) if split is None)
        return Pairing(UNKNOWN, resampled=False, because=f"the manifest of {lacking} does not say how it is split")
    resampled = any(isinstance(split, RESAMPLING) for split in splits)
    pairs = list(_pairs(dataset, first, second))
    because = ""
    if not pairs:
        because = "no repeat is in both"
    elif any(first.seed(one) is None or second.seed(two) is None for one, two in pairs):
        because = "not all records name their seed"
    elif any(first.seed(one) != second.seed(two) for one, two in pairs):
        because = "the seeds differ"
    elif splits[0] != splits[1]:
        because = "the splits differ"
    elif first.source_of_rows(dataset) != second.source_of_rows(dataset):
        because = "the data differ"
    elif any(one[size] != two[size] for one, two in pairs for size in SIZES if one[size] > 0 and two[size] > 0):
        because = "the numbers of rows or columns differ"
    if because:
        return Pairing(UNPAIRED, resampled, because)
    proved = any(one["key"] == two["key"] for one, two in pairs)
    assumed = "" if proved or _same_code(first, second) else "both versions of klr-bench split in the same way"
    return Pairing(PAIRED, resampled, "seed, data and split are equal", assumed)


def _pairs(dataset: str, first: Run, second: Run) -> Iterator[tuple[Row, Row]]:
    for column, rows in first.columns[dataset].items():
        others = second.columns[dataset].get(column, {})
        for repeat in rows.keys() & others.keys():
            yield rows[repeat], others[repeat]


def _same_code(first: Run, second: Run) -> bool:
    """Return True if both ran from one commit without changes."""
    one, other = ((run.content.get("git_commit"), run.content.get("changed")) for run in (first, second))
    return one == other and one[0] is not None and not one[1]

"""The two runs that stand side by side: their folders, read and checked."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError, shown
from klr_bench.experiment.first_schema import upgraded_manifest
from klr_bench.report.derived import with_derived
from klr_bench.report.load import Results, read_results
from klr_bench.report.manifest import Column, Manifest
from klr_bench.report.render.labels import column_label
from klr_bench.yaml_file import read_yaml

Row = Mapping[Hashable, Any]


@dataclass(frozen=True)
class Run:
    """A results folder."""

    name: str
    """How a reader tells it from the other one: the name of its folder, or the path where both have one name."""
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
        frame = with_derived(self.results.records, self.results.traces)
        for row in frame.to_dict("records"):
            column = found.setdefault(row["dataset"], {}).setdefault((row["algorithm"], row["variant"]), {})
            column[int(row["repeat"])] = row
        return found

    @property
    def config(self) -> Mapping[str, Any]:
        """The resolved configuration of the last call, as plain values."""
        config = self.content.get("config")
        return config if isinstance(config, Mapping) else {}

    def seed(self, row: Row) -> int | None:
        """Return the seed of a record; of one without a seed that of the configuration, None where it has none."""
        seed = row.get("seed", math.nan)
        if not math.isnan(seed):
            return int(seed)
        asked = self.config.get("seed")
        return asked if type(asked) is int else None

    def label(self, column: Column) -> str:
        """Return the print name of a column: "OSKL G=4"."""
        return column_label(self.manifest.algorithm_label(column[0]), column[1])


def read_two(first: Path, second: Path) -> tuple[Run, Run]:
    """Return two runs.  Raises KlrBenchError where a folder holds no results, and where both are one folder."""
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

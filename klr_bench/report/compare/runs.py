"""The two runs of a comparison, and how their repeats are paired."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from klr_bench.config.splitting import RESAMPLING
from klr_bench.errors import fail, sanitize
from klr_bench.report.derived import with_derived
from klr_bench.report.labels import column_label
from klr_bench.report.load import Results, read_results
from klr_bench.report.manifest import Column, Manifest
from klr_bench.report.measured import SIZES, Row, counted
from klr_bench.yaml_file import LARGE, read_yaml

MethodKey = tuple[str, Column]
"""A data set, and an algorithm with its variant."""
ROW_KEYS = {
    *("format", "generator", "train", "test", "file_format", "label_column", "columns"),
    *("n_features", "n_train", "n_samples", "parts", "positive", "multiclass", "only", "derive"),
}
"""Keys of a source and a data set that determine the rows; the name of a user's file contains its hash."""
FILE_KEYS = {"url", "name", "max_bytes"}
"""Keys of a file that do not affect its rows."""


@dataclass(frozen=True)
class Run:
    """One run, read from its results folder."""

    name: str
    """Name of the folder, or its path if both folders have the same name."""
    folder: Path
    results: Results
    manifest: Manifest
    """The part of the manifest that reports use."""
    content: Mapping[str, Any]
    """The whole manifest as plain values."""

    @cached_property
    def methods(self) -> dict[MethodKey, dict[int, Row]]:
        """Records of each method, keyed by repeat.

        A record without a seed gets that of the configuration.
        """
        records = with_derived(self.results)
        seed = self.content["config"].get("seed")
        if type(seed) is int:
            records["seed"] = records["seed"].fillna(seed)
        methods: dict[MethodKey, dict[int, Row]] = {}
        for row in records.to_dict("records"):
            methods.setdefault((row["dataset"], (row["algorithm"], row["variant"])), {})[int(row["repeat"])] = row
        return methods

    def counted_rows(self, method: MethodKey) -> dict[int, Row]:
        """Return the records of the repeats that are included in the mean of a method."""
        return {int(row["repeat"]): row for row in counted([*self.methods[method].values()])}

    def method_label(self, method: MethodKey) -> str:
        """Return the display name of a method, such as "OSKL G=4"."""
        algorithm, variant = method[1]
        return column_label(self.manifest.presentation(algorithm), variant)

    def label(self, method: MethodKey) -> str:
        """Return the display name of a method on a data set, such as "OSKL G=4 on MAGIC"."""
        return f"{self.method_label(method)} on {self.manifest.dataset_label(method[0])}"

    def row_settings(self, dataset: str) -> dict[str, str]:
        """Return the settings that determine which rows a data set contains."""
        datasets = self.content["config"].get("datasets") or {}
        settings = flat(datasets.get(self.manifest.configured_name(dataset)))
        present = {key.removeprefix("source."): value for key, value in settings.items() if value not in (None, False)}
        keys = [key for key in present if key.partition(".")[0] in ROW_KEYS and key.rpartition(".")[2] not in FILE_KEYS]
        return {key: str(present[key]) for key in keys}


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Flatten nested mappings and lists of mappings into one mapping with dotted keys."""
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        return {path: value}
    parts = [flat(inner, f"{path}.{name}" if path else str(name)) for name, inner in value.items()]
    return {key: inner for part in parts for key, inner in part.items()}


def read_two(first: Path, second: Path) -> list[Run]:
    """Read the two runs to be compared.

    Raises KlrBenchError for a folder without results, or if both are the same folder.
    """
    if first.resolve() == second.resolve():
        fail(f"{sanitize(first)}: expected two runs to compare, got the same folder twice.")
    runs = []
    for folder in (first, second):
        results, content = read_results(folder), read_yaml(folder / "manifest.yaml", LARGE)
        name = sanitize(folder.name if first.name != second.name else folder)
        runs.append(Run(name, folder, results, results.manifest, content))
    return runs


class Pairing(NamedTuple):
    """Whether the repeats of two runs on a data set are paired, and why."""

    kind: Literal["paired", "unpaired", "unknown"]
    because: str
    resampled: bool = False
    """True if each repeat splits the same rows again, so that training rows overlap."""
    proved: bool = True
    """False if equal splits are only assumed, because the versions of klr-bench differ."""


def pairing_of(dataset: str, first: Run, second: Run) -> Pairing:
    """Decide whether the repeats on a data set are paired: same seed, data and split.

    Equal keys prove it; otherwise both versions are assumed to split in the same way.
    """
    splits = [run.manifest.split(dataset) for run in (first, second)]
    if None in splits:
        return Pairing("unknown", "a manifest does not say how the data are split")
    resampled = any(isinstance(split, RESAMPLING) for split in splits)
    pairs = [(cell_a, cell_b) for method, _, cell_a, cell_b in cells_of_both(first, second) if method[0] == dataset]
    seeds = [(cell_a["seed"], cell_b["seed"]) for cell_a, cell_b in pairs]
    reasons = {
        "no repeat is in both": not pairs,
        "not all records have a seed": any(math.isnan(seed) for pair in seeds for seed in pair),
        "the seeds differ": any(seed_a != seed_b for seed_a, seed_b in seeds),
        "the splits differ": splits[0] != splits[1],
        "the data differ": first.row_settings(dataset) != second.row_settings(dataset),
        "the numbers of rows or columns differ": any(
            cell_a[size] != cell_b[size]
            for cell_a, cell_b in pairs
            for size in SIZES
            if cell_a[size] > 0 and cell_b[size] > 0
        ),
    }
    because = next((reason for reason, applies in reasons.items() if applies), "")
    if because:
        return Pairing("unpaired", because, resampled)
    proved = any(cell_a["key"] == cell_b["key"] for cell_a, cell_b in pairs)
    return Pairing("paired", "seed, data and split are equal", resampled, proved)


def cells_of_both(first: Run, second: Run) -> Iterator[tuple[MethodKey, int, Row, Row]]:
    """Yield the method, the repeat and both records of each cell that both runs contain."""
    for method, rows in first.methods.items():
        others = second.methods.get(method, {})
        for repeat in sorted(rows.keys() & others.keys()):
            yield method, repeat, rows[repeat], others[repeat]

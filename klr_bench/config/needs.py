"""Time and size of the data that experiments need, without composing their configurations."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from klr_bench.config.datasets import read_dataset
from klr_bench.config.locations import find, names, read, reference_results
from klr_bench.config.models import LabelsFile

DENSE = 4
"""Bytes of a parsed value; the parsed arrays of sparse rows are at most as large as their text."""


class Measured(NamedTuple):
    """Folder of a reference run, and the time of the whole run, including selection."""

    folder: Path
    seconds: float
    cores: int


def reference_times() -> dict[str, Measured]:
    """Return the times of the reference runs, keyed by experiment; empty outside a checkout."""
    folder = reference_results()
    if not (folder / "times.csv").is_file():
        return {}
    with (folder / "times.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["reference"], float(row["seconds"]), int(row["cores"])) for row in csv.DictReader(file)]
    return {name: Measured(folder / name, seconds, cores) for name, seconds, cores in rows}


@dataclass(frozen=True)
class Needs:
    """Approximate sizes of the data of experiments, in megabytes; a shared file counts once."""

    download: float
    disk: float
    """Uncompressed files and parsed arrays."""
    by_hand: tuple[str, ...]
    """Data sets with files that have no address."""

    def size(self) -> str:
        """Return the size of the download, and the data sets that a mirror must have."""
        parts = [f"about {megabytes(self.download)} to download"] if self.download else []
        parts += [f"{' and '.join(self.by_hand)} from a mirror"] if self.by_hand else []
        return ", ".join(parts) or "no download"


def megabytes(size: float) -> str:
    """Return a size in MB as text with two digits, such as "4.7 GB"."""
    number, unit = (size / 1000, "GB") if size >= 1000 else (size, "MB")
    return f"{float(f'{number:.2g}'):g} {unit}"


@cache
def datasets_of(experiment: str, searched: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the data sets of an experiment, by default those of the experiment that it extends."""
    existing, seen = names("experiment", searched), set[str]()
    while experiment in existing and experiment not in seen:
        seen.add(experiment)
        defaults = read(find("experiment", experiment, searched)).get("defaults") or ()
        for entry in defaults:
            if isinstance(entry, dict) and (chosen := entry.get("override /dataset")):
                return (chosen,) if isinstance(chosen, str) else tuple(chosen)
        experiment = next((entry for entry in defaults if isinstance(entry, str) and entry in existing), "")
    return ()


def needs_of(experiments: Iterable[str], searched: Sequence[Path]) -> Needs:
    """Return what the data of experiments need."""
    files: dict[str, LabelsFile] = {}
    parsed, by_hand = 0.0, []
    for name in dict.fromkeys(name for experiment in experiments for name in datasets_of(experiment, tuple(searched))):
        dataset = read_dataset(name, searched)
        used = [file for part in dataset.files() for file in (part, part.labels) if file]
        files |= {file.name: file for file in used}
        if any(file.url is None for file in used):
            by_hand.append(name)
        rows, columns = dataset.source.n_samples or 0, dataset.source.n_features or 0
        text = sum(file.megabytes[1] for file in used if file.megabytes)
        parsed += min(text, rows * columns * DENSE / 1e6)
    sizes = [file.megabytes for file in files.values() if file.megabytes]
    return Needs(sum(size[0] for size in sizes), parsed + sum(size[1] for size in sizes), tuple(by_hand))

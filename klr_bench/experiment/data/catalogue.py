"""The data sets that configs/dataset describes, and what of them lies in the cache.

Nothing heavy is imported here: a listing answers at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.datasets import read_dataset
from klr_bench.experiment.config.models import DatasetConfig, LabelsFile
from klr_bench.experiment.data.download import cached_path
from klr_bench.files import no_file


@dataclass(frozen=True)
class Row:
    """A line of the catalogue."""

    name: str
    label: str
    n_samples: int | None
    n_features: int | None
    n_bytes: int  # of the raw files in the cache
    state: str  # fetched | partly fetched | not fetched | built in | your own


def datasets(config_dirs: Sequence[Path]) -> dict[str, DatasetConfig]:
    """Return every data set by name, sorted."""
    return {name: read_dataset(name, config_dirs) for name in config_files.names("dataset", config_dirs)}


def files(dataset: DatasetConfig) -> list[LabelsFile]:
    """Return the files of a data set; if the labels are in a file of their own, it follows the one of the examples."""
    return [file for part in dataset.files() for file in (part, part.labels) if file]


def row(name: str, dataset: DatasetConfig, cache: Path) -> Row:
    """Return the line of a data set; files are only looked for, `klr-bench data verify` reads them."""
    paths = [cached_path(file, cache) for file in files(dataset)]
    there = [path for path in paths if no_file(path) is None]
    if not paths:
        state = "your own" if dataset.source.is_own_file else "built in"
    else:
        state = "not fetched" if not there else "fetched" if len(there) == len(paths) else "partly fetched"
    n_bytes = sum(path.stat().st_size for path in there)
    return Row(name, dataset.label or name, dataset.declared_rows(), dataset.source.n_features, n_bytes, state)

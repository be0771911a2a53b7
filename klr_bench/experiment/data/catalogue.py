"""The data sets that configs/dataset describes, and what of them lies in the cache.

Nothing heavy is imported here: a listing answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.datasets import declared_rows, parts_of, read_dataset
from klr_bench.experiment.config.schema import FILE
from klr_bench.experiment.data.fetch import cached_path
from klr_bench.files import no_file

Spec = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A line of the catalogue."""

    name: str
    label: str
    n_samples: int | None
    n_features: int | None
    n_bytes: int  # of the raw files in the cache
    state: str  # fetched | partly fetched | not fetched | built in | your own


def specs(config_dirs: Sequence[Path]) -> dict[str, Spec]:
    """Return every spec by name, sorted."""
    return {name: spec(name, config_dirs) for name in config_files.names("dataset", config_dirs)}


def spec(name: str, config_dirs: Sequence[Path]) -> Spec:
    """Return one spec, checked and with its source in it, or refuse the name and say which one is near."""
    return read_dataset(name, config_dirs)


def files(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the file entries of the parts of a spec: the training file, the official test file, or both.

    Where the labels are in a file of their own, it follows the one of the examples.
    """
    parts = [spec["source"][part] for part in parts_of(spec)]
    return [entry for part in parts for entry in (part, part.get("labels")) if entry]


def row(name: str, spec: Mapping[str, Any], cache: Path) -> Row:
    """Return the line of a data set; that a file is there counts, `klr-bench data verify` looks into it."""
    paths = [cached_path(entry, cache) for entry in files(spec)]
    there = [path for path in paths if no_file(path) is None]
    if not paths:
        state = "your own" if spec["source"]["format"] == FILE else "built in"
    else:
        state = "not fetched" if not there else "fetched" if len(there) == len(paths) else "partly fetched"
    n_bytes = sum(path.stat().st_size for path in there)
    return Row(
        name, str(spec.get("label", name)), declared_rows(spec), spec["source"].get("n_features"), n_bytes, state
    )

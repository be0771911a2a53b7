"""A data set that is read in chunks and never held as a whole: for learners that go through it once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.experiment.config.models import DatasetConfig
from klr_bench.experiment.config.splitting import Stream as StreamSplit
from klr_bench.experiment.data.cache import Progress
from klr_bench.experiment.data.dataset import fetched
from klr_bench.experiment.data.labels import Labels, encoded
from klr_bench.experiment.data.streams.stream import Stream, stream


@dataclass(frozen=True)
class Streamed:
    """A data set with two classes, or with ``multiclass: true`` with more."""

    name: str
    rows: Stream
    classes: tuple[str, ...]
    """The labels that become -1 and +1, or 0, 1, ..., as the files spell them."""
    codes: NDArray[np.int8]
    """What each label of `rows.classes` becomes."""

    def __iter__(self) -> Iterator[tuple[Any, NDArray[np.int8]]]:
        """Yield chunks (X, y): X (n, d) float32, an array or CSR; y (n,), -1 and +1, or 0, 1, ..."""
        for X, labels in self.rows:
            yield X, self.codes[np.searchsorted(self.rows.classes, labels)]


def streamed(
    name: str,
    dataset: DatasetConfig,
    *,
    cache: Path,
    mirror: str | None,
    skip_rows: int = 0,
    progress: Progress | None = None,
) -> Streamed:
    """Return a data set as chunks of rows, from a row on; its files are fetched first where the cache lacks them.

    `name` is the one in results: see `klr_bench.experiment.data.dataset_name`, which hashes a user's files.

    Raises KlrBenchError: files that cannot be had, bad content.
    """
    paths = fetched(dataset, cache=cache, mirror=mirror, progress=progress)
    source, split = dataset.source, dataset.split
    assert isinstance(split, StreamSplit)
    known = split.classes is not None and (source.format == "csv" or source.n_features is not None)
    rows = stream(
        paths,
        split.chunk,
        format=source.file_format if source.is_own_file else source.format,
        n_features=source.n_features,
        label_column=source.label_column,
        classes=split.classes,
        cache=None if known else cache / "streams",
        skip_rows=skip_rows,
    )
    labels = Labels()
    codes = np.array([labels.code(_spelt(label)) for label in rows.classes])
    found, classes = encoded(codes, labels, str(paths[0]), positive=dataset.positive, multiclass=dataset.multiclass)
    return Streamed(name, rows, classes, found)


def _spelt(label: Any) -> str:
    """Return the text of a label."""
    return np.format_float_positional(label, trim="-") if isinstance(label, float) else str(label)

"""Loading of data sets: from a `DatasetConfig` to arrays (`load`) or to a hash."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.config.datasets import generate
from klr_bench.config.models import DatasetConfig
from klr_bench.config.splitting import Stream as StreamSplit
from klr_bench.datasets.cache import Progress, content_sha256, silent, stamped_sha256, state_of
from klr_bench.datasets.class_labels import LARGEST, Labels, encoded
from klr_bench.datasets.compression import SUFFIXES, DamagedFileError
from klr_bench.datasets.download import UNKNOWN, fetch, files, verify
from klr_bench.datasets.parsed import parsed
from klr_bench.datasets.readers import READER_VERSION, TABLE_VERSION, Arrays, Reading, check_text, read, stored
from klr_bench.errors import KlrBenchError, fail, sanitize
from klr_bench.files import expanded, matching, no_file
from klr_bench.instantiate import TARGET, Parameters
from klr_bench.results.keys import content_hash, source_hash

OWN_PATHS = ("path", "test_path")
"""Keys of a source that name files of the user."""


@dataclass(frozen=True)
class Dataset:
    """Data set with two classes, or more with ``multiclass: true``."""

    name: str
    X: Any  # float32 (n, d): C-contiguous ndarray, or csr_matrix with sorted indices; may be a read-only memory map
    y: NDArray[np.int8]  # (n,), -1 and +1, or 0, 1, ... for more than two classes
    classes: tuple[str, ...]  # the original labels, in the order of their codes
    n_train_official: int | None  # rows [0, n) are the official training file, the rest the official test file
    hash: str
    relevant: NDArray[np.int64] | None = None  # relevant features of generated data
    said: tuple[str, ...] = ()  # notes on the columns of a user's table, which may contain NaN


@dataclass(frozen=True)
class Streamed:
    """Data set that is read in chunks and never held in memory, for single-pass learners."""

    name: str
    rows: Any  # a `Stream`
    classes: tuple[str, ...]
    """The original labels, in the order of their codes."""
    codes: NDArray[np.int8]
    """The value of y for each label of `rows.classes`."""

    def __iter__(self) -> Iterator[tuple[Any, NDArray[np.int8]]]:
        """Yield chunks (X, y): X (n, d) float32, an array or CSR, and y (n,)."""
        for X, labels in self.rows:
            yield X, self.codes[np.searchsorted(self.rows.classes, labels)]


def load(
    name: str, config: DatasetConfig, *, cache: Path, mirror: str | None, progress: Progress | None = None
) -> Dataset:
    """Load a data set; its files are downloaded and parsed first if they are not in the cache.

    Raises KlrBenchError: files that cannot be had, bad content, a cache that cannot be written.
    """
    key, full_name = dataset_hash(name, config), dataset_name(name, config)
    if config.source.generator:
        arrays = _generated(name, config)  # faster than reading from disk
    else:
        paths = fetched(config, cache=cache, mirror=mirror, progress=progress)
        sha256s = _sha256s(paths, config)

        def parse() -> Arrays:
            arrays = read(paths, _reading(config))
            states = [verify(entry, cache=cache) for entry in files(config)]
            if {*states} - {"ok"} or _sha256s(paths, config) != sha256s:
                fail(f"{paths[0]}: a file of {name} has changed while it was read; run the same command again.")
            if config.derive:
                with _call_errors(f"{name}: derive", config.derive):
                    arrays = generate(config.derive, f"{name}: derive.", arrays=arrays)
            return arrays

        arrays = parsed(parsed_folder(key, cache), full_name, sha256s, parse, progress or silent)
    n, declared, n_train = len(arrays.y), config.declared_rows(), arrays.n_train_official
    if declared not in {None, n}:
        fail(f"{name}: n_samples is declared as {declared}, got {n}; correct configs/dataset/{name}.yaml.")
    if config.source.n_train is not None and not config.source.test:  # the first rows are the official training part
        n_train = config.source.n_train
        if not 0 < n_train < n:
            fail(f"{name}: n_train: expected a whole number from 1 to {n - 1}, got {n_train}; correct {name}.yaml.")
    return Dataset(full_name, arrays.X, arrays.y, arrays.classes, n_train, key, arrays.relevant, arrays.said)


def streamed(
    name: str,
    dataset: DatasetConfig,
    *,
    cache: Path,
    mirror: str | None,
    skip_rows: int = 0,
    progress: Progress | None = None,
) -> Streamed:
    """Return a data set as chunks of rows, starting after `skip_rows` rows.

    Its files are downloaded first if they are not in the cache.

    `name` is the one in results: see `dataset_name`, which hashes a user's files.

    Raises KlrBenchError: files that cannot be had, bad content.
    """
    from klr_bench.datasets.stream import stream

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
    spellings = (np.format_float_positional(one, trim="-") if isinstance(one, float) else one for one in rows.classes)
    codes = np.array([labels.code(str(spelling)) for spelling in spellings])
    values, classes = encoded(codes, labels, str(paths[0]), positive=dataset.positive, multiclass=dataset.multiclass)
    return Streamed(name, rows, classes, values)


def fetched(config: DatasetConfig, *, cache: Path, mirror: str | None, progress: Progress | None) -> list[Path]:
    """Return the files of a data set, downloaded if necessary; none for generated data.

    Raises KlrBenchError if they cannot be had.
    """
    if config.source.is_own_file:
        return _own_files(config)
    return [fetch(file, cache=cache, mirror=mirror, progress=progress) for file in files(config)]


def parsed_folder(key: str, cache: Path) -> Path:
    """Return the folder of the parsed arrays of a data set whose hash is `key`."""
    return expanded(str(cache)).absolute() / "parsed" / key


def dataset_name(name: str, config: DatasetConfig) -> str:
    """Return the name used in results; for a user's file its stem and six digits of its hash."""
    if not config.source.is_own_file:
        return name
    paths = _own_files(config)
    hashes = _sha256s(paths, config)
    plain = paths[0].with_suffix("") if paths[0].suffix in SUFFIXES else paths[0]
    stem = os.fsencode(plain.stem).decode("utf-8", "replace")  # bytes that are not text
    return f"{stem}-{(hashes[0] if len(hashes) == 1 else content_hash(hashes))[:6]}"


def dataset_hash(name: str, config: DatasetConfig) -> str:
    """Return a hash of the content of a data set, without downloading or parsing it.

    The scaling and the split are not part of it.  Of the user's own files the content is hashed, of a stream a sample.
    """
    source, reading = config.source, _reading(config).content()
    parts: dict[str, object] = {} if source.n_train is None or source.test else {"n_train": source.n_train}
    if config.derive:
        parts |= {"derive": config.derive, "code": source_hash(config.derive[TARGET])}
    if source.generator:
        content = {"generator": source.generator, "code": source_hash(source.generator[TARGET]), "reading": reading}
        return content_hash(content | parts)
    if source.is_own_file:
        sha256s = _sha256s(_own_files(config), config)
    else:  # without a declared hash the address or the name is used
        unknown = {file.name: f"{UNKNOWN}: {file.url or file.name}" for file in files(config) if file.sha256 == UNKNOWN}
        sha256s = [unknown.get(file.name, file.sha256) for file in files(config)]
    return content_hash({"reader": READER_VERSION, "sha256": sha256s, "reading": reading} | parts)


def _reading(config: DatasetConfig) -> Reading:
    """Return how the files of a data set are read, with the format of a user's own file."""
    source = config.source
    return Reading(
        source.file_format if source.is_own_file else source.format,
        source.n_features,
        source.label_column,
        config.positive or None,
        config.multiclass or None,
        config.only,
        TABLE_VERSION if source.is_own_file else 0,
        source.columns,
    )


def _sha256s(paths: Sequence[Path], config: DatasetConfig) -> list[str]:
    """Return the hashes of files; a file is only hashed again if it has changed."""
    if not config.source.is_own_file:
        return [stamped_sha256(path) or "" for path in paths]
    try:
        check_text(paths)  # reject binary files before reading them completely
        return [content_sha256(path, state_of(path), sampled=config.is_stream) for path in paths]
    except (OSError, DamagedFileError) as error:
        path = getattr(error, "path", None) or getattr(error, "filename", None) or paths[0]
        fail(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.")


def _own_files(config: DatasetConfig) -> list[Path]:
    """Return the user's own training file and, if given, test file."""
    source = config.source
    if not source.path:
        fail("dataset=file reads a file of your own: name it with data.path=FILE (LIBSVM or CSV text).")
    paths = []
    for key in OWN_PATHS:
        if not getattr(source, key):
            continue
        named = expanded(getattr(source, key)).absolute()
        for path in (matching(named) if config.is_stream else []) or [named]:
            fault = no_file(path) or ("is empty" if path.stat().st_size == 0 else None)
            if fault:
                fail(f"data.{key}: {sanitize(path, 1000)} {fault}; name a file with LIBSVM or CSV text.")
            paths.append(path)
    return paths


def _generated(name: str, config: DatasetConfig) -> Arrays:
    """Return the arrays of a generated or bundled data set, checked like those of files."""
    source = config.source
    call = source.generator or {}
    with _call_errors(f"{name}: its generator", call):
        X, targets, *relevant = generate(call, f"{name}: generator.")
        X = stored(X)
    declared = (source.n_samples or X.shape[0], source.n_features or X.shape[1])
    if X.shape != declared or len(targets) != X.shape[0]:
        expected = f"expected {declared[0]} rows, {declared[1]} features and a label for each row, as source declares"
        fail(f"{name}: {expected}; got {X.shape[0]} rows, {X.shape[1]} features and {len(targets)} labels.")
    if not (np.abs(X.data if sp.issparse(X) else X) <= LARGEST).all():
        fail(f"{name}: expected numbers between -{LARGEST:g} and {LARGEST:g}, got others; correct its generator.")
    labels = Labels()
    codes = np.array([labels.code(str(target)) for target in targets], dtype=np.int64)
    y, classes = encoded(codes, labels, name, positive=config.positive, multiclass=config.multiclass)
    return Arrays(X, y, classes, relevant=relevant[0] if relevant else None)


@contextmanager
def _call_errors(what: str, call: Parameters) -> Iterator[None]:
    """Convert errors of a function that generates data to messages about its parameters."""
    try:
        with np.errstate(all="ignore"):
            yield
    except KlrBenchError:
        raise
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {sanitize(error)}"
        fail(f"{what} {call} cannot be called: {reason}. Correct its parameters.")

"""Load data sets as arrays or as streams, and compute hashes that identify their content."""

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

from klr_bench.config.models import DatasetConfig
from klr_bench.config.splitting import Stream as StreamSplit
from klr_bench.datasets.cache import Progress, content_sha256, ignore_progress, stamped_sha256, state_of
from klr_bench.datasets.class_labels import LARGEST, Labels, encode_targets
from klr_bench.datasets.compression import SUFFIXES, DamagedFileError
from klr_bench.datasets.download import UNKNOWN, fetch, files, verify
from klr_bench.datasets.generators import generate
from klr_bench.datasets.identity import identified
from klr_bench.datasets.parsed import load_or_parse
from klr_bench.datasets.readers import Arrays, Reading, compact, read
from klr_bench.datasets.readers.recognize import check_text
from klr_bench.errors import KlrBenchError, fail, sanitize
from klr_bench.files import expanded, glob_files, no_file
from klr_bench.instantiate import TARGET, Parameters
from klr_bench.printing import to_file_name
from klr_bench.results.keys import content_hash, module_hash, source_hash

READING_MODULES = tuple(
    f"klr_bench.datasets.{name}"
    for name in (
        *("readers", "readers.chunks", "readers.compiled", "readers.csv", "readers.idx", "readers.recognize"),
        *("readers.svmlight", "readers.user_table", "amounts", "class_labels", "column", "column_kinds", "columns"),
        *("compression", "dates", "grouping", "layout", "preprocessing", "stream", "workbook"),
    )
)
"""Modules whose code affects the arrays that are read from files."""
OWN_PATHS = ("path", "test_path")
"""Keys of a source that name the user's files."""


@dataclass(frozen=True)
class Dataset:
    """A data set in memory: features, targets and, if known, the official training set size."""

    name: str
    X: Any  # features (n, d), float32 or float64: C-contiguous array, or CSR with sorted indices; may be memory-mapped
    y: NDArray[np.int8]  # targets (n,): -1 and +1, or 0, 1, ... if there are more than two classes
    classes: tuple[str, ...]  # class labels as written in the file, in increasing order of their values in y
    n_train_official: int | None  # number of rows of the official training set, which precede the test rows
    hash: str
    relevant: NDArray[np.int64] | None = None  # indices of the features that determine the labels, if known
    said: tuple[str, ...] = ()  # notes on how the columns of a user's table were converted
    seed_name: str = ""  # part of the seed of splits
    groups: NDArray[np.int64] | None = None  # codes (n,) of the groups of the rows, or the ranks of their times


@dataclass(frozen=True)
class Streamed:
    """A data set that is read in chunks because it may be larger than memory."""

    name: str
    rows: Any  # a `Stream`
    classes: tuple[str, ...]
    """Class labels as spelled in the files, in the order of the values of y."""
    codes: NDArray[np.int8]
    """Value of y for each label in `rows.classes`."""

    def __iter__(self) -> Iterator[tuple[Any, NDArray[np.int8]]]:
        """Yield the rows of the data set in chunks (X, y) of features and targets.

        The features X (n, d) are a float32 array or a CSR matrix; y (n,) contains the targets.
        """
        for X, labels in self.rows:
            yield X, self.codes[np.searchsorted(self.rows.classes, labels)]


def load(
    name: str, config: DatasetConfig, *, cache: Path, mirror: str | None, progress: Progress | None = None
) -> Dataset:
    """Load a data set into memory; files that are not in the cache are fetched and parsed.

    Raises KlrBenchError if a file is unavailable or invalid, or if the cache cannot be written.
    """
    config = identified(config, cache=cache, mirror=mirror, progress=progress)
    key, full_name = dataset_hash(name, config), dataset_name(name, config)
    if config.source.generator:
        arrays = _generated(name, config)  # not cached, because generating them is faster than reading them from a disk
    else:
        paths = fetched(config, cache=cache, mirror=mirror, progress=progress)
        sha256s = _sha256s(paths, config)

        def parse() -> Arrays:
            arrays = read(paths, _reading(config))
            states = [verify(entry, cache=cache) for entry in files(config)]
            if {*states} - {"ok"} or _sha256s(paths, config) != sha256s:
                fail(f"{paths[0]}: a file of {name} changed while it was being read; run the same command again.")
            if config.derive:
                with _call_errors(f"{name}: derive", config.derive):
                    arrays = generate(config.derive, f"{name}: derive.", arrays=arrays)
                _check_values(f"{name}: derive", arrays.X, missing=True)
            return arrays

        arrays = load_or_parse(parsed_folder(key, cache), full_name, sha256s, parse, progress or ignore_progress)
    if dataset_hash(name, config) != key:
        fail(f"{full_name}: its file changed while it was being read; run the same command again.")
    n, declared, n_train = len(arrays.y), config.declared_rows(), arrays.n_train_official
    if declared not in {None, n}:
        fail(f"{name}: expected n_samples={declared} as declared, got {n} rows; correct configs/dataset/{name}.yaml.")
    if config.source.n_train is not None and not config.source.test:
        n_train = config.source.n_train
        if not 0 < n_train < n:
            fail(f"{name}: n_train: expected an integer from 1 to {n - 1}, got {n_train}; correct {name}.yaml.")
    return Dataset(
        full_name,
        arrays.X,
        arrays.y,
        arrays.classes,
        n_train,
        key,
        arrays.relevant,
        arrays.said,
        config.seed_name,
        arrays.groups,
    )


def streamed(
    name: str,
    dataset: DatasetConfig,
    *,
    cache: Path,
    mirror: str | None,
    skip_rows: int = 0,
    progress: Progress | None = None,
) -> Streamed:
    """Return a data set as a stream of chunks; files that are not in the cache are fetched.

    The first `skip_rows` rows are left out.  `name` is the name in results, which `dataset_name` computes from a hash
    of the user's files.  Raises KlrBenchError if a file is unavailable or invalid.
    """
    from klr_bench.datasets.stream import stream

    paths = fetched(dataset, cache=cache, mirror=mirror, progress=progress)
    source, split = dataset.source, dataset.split
    assert isinstance(split, StreamSplit)
    is_complete = split.classes is not None and (source.format == "csv" or source.n_features is not None)
    rows = stream(
        paths,
        split.chunk,
        format=source.file_format if source.is_own_file else source.format,
        n_features=source.n_features,
        label_column=source.label_column,
        classes=split.classes,
        cache=None if is_complete else cache / "streams",
        skip_rows=skip_rows,
        encoding=source.encoding,
    )
    labels = Labels()
    spellings = (
        np.format_float_positional(label, trim="-") if isinstance(label, float) else label for label in rows.classes
    )
    codes = np.array([labels.code(str(spelling)) for spelling in spellings])
    values, classes = encode_targets(
        codes, labels, str(paths[0]), positive=dataset.positive, multiclass=dataset.multiclass
    )
    return Streamed(name, rows, classes, values)


def fetched(config: DatasetConfig, *, cache: Path, mirror: str | None, progress: Progress | None) -> list[Path]:
    """Return the paths of the files of a data set; files that are not in the cache are fetched.

    A generated data set has no files.  Raises KlrBenchError if a file is unavailable.
    """
    if config.source.is_own_file:
        return _own_files(config)
    config = identified(config, cache=cache, mirror=mirror, progress=progress)
    return [fetch(file, cache=cache, mirror=mirror, progress=progress) for file in files(config)]


def parsed_folder(key: str, cache: Path) -> Path:
    """Return the folder for the parsed arrays of a data set, given the hash of the data set."""
    return expanded(str(cache)).absolute() / "parsed" / key


def dataset_name(name: str, config: DatasetConfig) -> str:
    """Return the name by which results refer to a data set.

    For a user's file, it is the stem of the file name, without characters that a name in results cannot have, followed
    by six digits of the hash.
    """
    if not config.source.is_own_file:
        return name
    paths = _own_files(config)
    hashes = _sha256s(paths, config)
    plain = paths[0].with_suffix("") if paths[0].suffix in SUFFIXES else paths[0]
    stem = os.fsencode(plain.stem).decode("utf-8", "replace")  # bytes that are not text
    return f"{to_file_name(stem)}-{(hashes[0] if len(hashes) == 1 else content_hash(hashes))[:6]}"


def dataset_hash(name: str, config: DatasetConfig) -> str:
    """Return a hash that identifies the content of a data set.

    Its files are not fetched; `identified` replaces unknown hashes.  The hash does not depend on the scaling and the
    split.
    """
    source, reading = config.source, _reading(config).content()
    parts: dict[str, object] = {} if source.n_train is None or source.test else {"n_train": source.n_train}
    if config.derive:
        parts |= {"derive": config.derive, "deriving": source_hash(config.derive[TARGET])}
    parts["reading"], parts["reader"] = reading, module_hash(*READING_MODULES)
    if source.generator:
        return content_hash(parts | {"generator": source.generator, "code": source_hash(source.generator[TARGET])})
    if source.is_own_file:
        sha256s = _sha256s(_own_files(config), config)
    else:  # a file that must be fetched before its hash is known has a provisional identity: its URL or its name
        unknown = {file.name: f"{UNKNOWN}: {file.url or file.name}" for file in files(config) if file.sha256 == UNKNOWN}
        sha256s = [unknown.get(file.name, file.sha256) for file in files(config)]
    return content_hash(parts | {"sha256": sha256s})


def _reading(config: DatasetConfig) -> Reading:
    source = config.source
    return Reading(
        source.file_format if source.is_own_file else source.format,
        source.n_features,
        source.label_column,
        config.positive or None,
        config.multiclass or None,
        config.only,
        source.is_own_file,
        source.columns,
        source.coerce or False,
        "," if source.decimal == "comma" else ".",
        getattr(config.split, "group", None),
        getattr(config.split, "time", None),
        source.encoding,
    )


def _sha256s(paths: Sequence[Path], config: DatasetConfig) -> list[str]:
    """Return the SHA-256 hashes of files; a file is hashed again only if it has changed."""
    if not config.source.is_own_file:
        return [stamped_sha256(path) or "" for path in paths]
    try:
        check_text(paths, config.source.encoding)  # other files are rejected before they are hashed
        return [content_sha256(path, state_of(path)) for path in paths]
    except (OSError, DamagedFileError) as error:
        path = getattr(error, "path", None) or getattr(error, "filename", None) or paths[0]
        fail(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.")


def _own_files(config: DatasetConfig) -> list[Path]:
    source = config.source
    if not source.path:
        fail("dataset=file needs a data file; set data.path=FILE (LIBSVM or CSV text).")
    paths = []
    for key in OWN_PATHS:
        if not getattr(source, key):
            continue
        pattern = expanded(getattr(source, key)).absolute()
        for path in (glob_files(pattern) if config.is_stream else []) or [pattern]:
            fault = no_file(path) or ("is empty" if path.stat().st_size == 0 else None)
            if fault:
                fail(f"data.{key}: {sanitize(path, 1000)} {fault}; expected a file with LIBSVM or CSV text.")
            paths.append(path)
    return paths


def _generated(name: str, config: DatasetConfig) -> Arrays:
    source = config.source
    call = source.generator or {}
    with _call_errors(f"{name}: its generator", call):
        X, targets, *relevant = generate(call, f"{name}: generator.")
        X = compact(X)
    declared = (source.n_samples or X.shape[0], source.n_features or X.shape[1])
    if X.shape != declared or len(targets) != X.shape[0]:
        fail(
            f"{name}: expected {declared[0]} rows and {declared[1]} features as declared, and one label per row; "
            f"got {X.shape[0]} rows, {X.shape[1]} features and {len(targets)} labels."
        )
    _check_values(f"{name}: the generator", X)
    labels = Labels()
    codes = np.array([labels.code(str(target)) for target in targets], dtype=np.int64)
    y, classes = encode_targets(codes, labels, name, positive=config.positive, multiclass=config.multiclass)
    return Arrays(X, y, classes, relevant=relevant[0] if relevant else None)


def _check_values(name: str, X: Any, *, missing: bool = False) -> None:
    values = np.abs(X.data if sp.issparse(X) else X)
    if not ((values <= LARGEST) | (missing & np.isnan(values))).all():
        fail(f"{name} returned values that are not between -{LARGEST:g} and {LARGEST:g}; correct it.")


@contextmanager
def _call_errors(what: str, call: Parameters) -> Iterator[None]:
    """Convert any exception raised by a generator into a KlrBenchError about its parameters."""
    try:
        with np.errstate(all="ignore"):
            yield
    except KlrBenchError:
        raise
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {sanitize(error)}"
        fail(f"{what} {call} failed: {reason}. Correct its parameters.")

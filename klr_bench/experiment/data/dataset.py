"""`load`: from a `DatasetConfig` to the arrays of a `Dataset`; `dataset_hash`: the key of its content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError, shown
from klr_bench.experiment.config.datasets import generate
from klr_bench.experiment.config.models import DatasetConfig, LabelsFile
from klr_bench.experiment.data.cache import (
    MOST_FILES,
    Progress,
    sampled_sha256,
    sha256_of,
    silent,
    stamped_sha256,
    state_of,
)
from klr_bench.experiment.data.catalogue import files
from klr_bench.experiment.data.compression import SUFFIXES, DamagedFileError
from klr_bench.experiment.data.fetch import UNKNOWN, fetch, verify
from klr_bench.experiment.data.labels import LARGEST, Labels, encoded
from klr_bench.experiment.data.parsed import parsed
from klr_bench.experiment.data.readers import READER_VERSION, TABLE_VERSION, Arrays, Reading, check_text, read, stored
from klr_bench.experiment.keys import content_hash, source_hash
from klr_bench.experiment.targets import TARGET
from klr_bench.files import expanded, matching, no_file

OWN_PATHS = ("path", "test_path")
"""Keys of a source under which files of the user stand."""
MOST_BYTES = 1 << 40
"""The largest file of a user."""


@dataclass(frozen=True)
class Dataset:
    """A data set with two classes, or with ``multiclass: true`` with more."""

    name: str
    X: Any  # float32 (n, d): C-contiguous ndarray, or csr_matrix with sorted indices; may be mapped read-only
    y: NDArray[np.int8]  # (n,), -1 or +1; of many classes 0, 1, ...
    classes: tuple[str, ...]  # the labels that became -1 and +1, or 0, 1, ..., as the file spells them
    n_train_official: int | None  # rows [0, n) are the official training file, the rest the official test file
    hash: str
    relevant: NDArray[np.int64] | None = None  # of a generated set: the features that the labels depend on
    said: tuple[str, ...] = ()  # of a user's table: what was done with its columns, in words; numbers may be NaN


def load(
    name: str, config: DatasetConfig, *, cache: Path, mirror: str | None, progress: Progress | None = None
) -> Dataset:
    """Return a data set; its files are fetched and parsed first where the cache does not have them.

    Raises KlrBenchError: files that cannot be had, bad content, a cache that cannot be written.
    """
    key = dataset_hash(name, config)
    if config.source.generator:
        arrays = _generated(name, config)  # quicker than reading it from a disk
    else:
        report = progress or silent
        paths = fetched(config, cache=cache, mirror=mirror, progress=report)
        of = _sha256s(paths, config)

        def parse() -> Arrays:
            found = read(paths, _reading(config))
            if not _unchanged(paths, of, config, cache) or dataset_hash(name, config) != key:
                message = f"{paths[0]}: a file of {name} has changed while it was read; run the same command again."
                raise KlrBenchError(message)
            return _derived(found, name, config)

        arrays = parsed(parsed_folder(key, cache), dataset_name(name, config), of, parse, report)
        _check_rows(name, config, len(arrays.y))
    if _has_first_rows(config):
        arrays = replace(arrays, n_train_official=_first_rows(name, config.source.n_train, len(arrays.y)))
    name = dataset_name(name, config)
    of_rows = arrays.X, arrays.y, arrays.classes, arrays.n_train_official
    return Dataset(name, *of_rows, key, arrays.relevant, arrays.said)


def fetched(config: DatasetConfig, *, cache: Path, mirror: str | None, progress: Progress | None) -> list[Path]:
    """Return the files of a data set, fetched where the cache does not have them; none of a generated one.

    Raises KlrBenchError where they cannot be had.
    """
    if config.source.is_own_file:
        return _own_files(config)
    return [fetch(file, cache=cache, mirror=mirror, progress=progress or silent) for file in files(config)]


def parsed_folder(key: str, cache: Path) -> Path:
    """Return the folder of the parsed arrays of a data set whose hash is `key`."""
    return expanded(str(cache)).absolute() / "parsed" / key


def dataset_name(name: str, config: DatasetConfig) -> str:
    """Return the name in results: the given one; of the user's file the stem and six digits of its hash."""
    if not config.source.is_own_file:
        return name
    paths = _own_files(config)
    return _own_name(paths[0], _sha256s(paths, config))


def dataset_hash(name: str, config: DatasetConfig) -> str:
    """Return the key of the content of a data set, without downloading or parsing anything.

    The scaling and the split are not part of it.  Of the user's own files the content is hashed, of a stream a sample.
    """
    reading = _reading(config).content()
    if generator := config.source.generator:
        content = {"generator": generator, "code": source_hash(generator[TARGET]), "reading": reading}
        return content_hash(content | _parts(config))
    if config.source.is_own_file:
        sha256s = _sha256s(_own_files(config), config)
    else:
        sha256s = [_known_sha256(file) for file in files(config)]
    return content_hash({"reader": READER_VERSION, "sha256": sha256s, "reading": reading} | _parts(config))


def _parts(config: DatasetConfig) -> dict[str, object]:
    """Return the part of a key about the rows that are read: which of them are to train on, and what is derived."""
    parts: dict[str, object] = {"n_train": config.source.n_train} if _has_first_rows(config) else {}
    if config.derive:
        parts |= {"derive": config.derive, "code": source_hash(config.derive[TARGET])}
    return parts


def _has_first_rows(config: DatasetConfig) -> bool:
    """Return True if the first rows of the one file, or of generated data, are the official training part."""
    return config.source.n_train is not None and not config.source.test


def _known_sha256(file: LabelsFile) -> str:
    """Return the declared hash of a file, or its address or name if its content is unknown."""
    return f"{UNKNOWN}: {file.url or file.name}" if file.sha256 == UNKNOWN else file.sha256


def _reading(config: DatasetConfig) -> Reading:
    """Return how the files of a data set are read; the format of the user's own file is `file_format`."""
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
    """Return the hashes of the content of files, each hashed again only after it has changed."""
    if not config.source.is_own_file:
        return [stamped_sha256(path) or "" for path in paths]
    return [_own_sha256(path, sampled=config.is_stream) for path in paths]


def _unchanged(paths: Sequence[Path], of: Sequence[str], config: DatasetConfig, cache: Path) -> bool:
    """Hash files again and return True if they are still those with the hashes `of`."""
    if config.source.is_own_file:
        return [sha256_of(path) for path in paths] == of
    return all(verify(entry, cache=cache) == "ok" for entry in files(config))


def _own_files(config: DatasetConfig) -> list[Path]:
    """Return the user's own training file and, if given, test file."""
    source = config.source
    if not source.path:
        message = "dataset=file reads a file of your own: name it with data.path=FILE (LIBSVM or CSV text)."
        raise KlrBenchError(message)
    paths = []
    for key in OWN_PATHS:
        if not getattr(source, key):
            continue
        named = expanded(getattr(source, key)).absolute()
        for path in (matching(named) if config.is_stream else []) or [named]:
            what = no_file(path) or _no_content(path)
            if what:
                message = f"data.{key}: {shown(path, 1000)} {what}; name a file with LIBSVM or CSV text."
                raise KlrBenchError(message)
            paths.append(path)
    return paths


def _no_content(path: Path) -> str | None:
    """Return why a file cannot be data of a user; None where it can. What the kernel shows as files says 0 or 2^47."""
    size = path.stat().st_size
    return (
        "is empty"
        if size == 0
        else f"has {size:,} bytes, expected at most {MOST_BYTES:,}"
        if size > MOST_BYTES
        else None
    )


def _own_sha256(path: Path, *, sampled: bool) -> str:
    """Return the hash of a file of the user's, or of a sample of it; hashed again only after it has changed."""
    try:
        return _sha256(path, state_of(path), sampled)
    except (OSError, DamagedFileError) as error:
        message = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}."
        raise KlrBenchError(message) from error


@lru_cache(MOST_FILES)
def _sha256(path: Path, state: tuple[int, int, int], sampled: bool) -> str:
    check_text([path])  # what is no text is refused before all of it is read
    return sampled_sha256(path) if sampled else sha256_of(path)


def _own_name(path: Path, hashes: Sequence[str]) -> str:
    """Return the name of a user's data in results: the stem of the first file, and six digits of the hash of all."""
    plain = path.with_suffix("") if path.suffix in SUFFIXES else path
    stem = os.fsencode(plain.stem).decode("utf-8", "replace")  # bytes that are no text
    return f"{stem}-{(hashes[0] if len(hashes) == 1 else content_hash(hashes))[:6]}"


def _generated(name: str, config: DatasetConfig) -> Arrays:
    """Return the arrays of a generated or bundled set."""
    try:
        with np.errstate(all="ignore"):
            X, targets, *relevant = generate(config.source.generator or {}, f"{name}: generator.")
            X = stored(X)
    except KlrBenchError:
        raise
    except (Exception, SystemExit) as error:
        message = (
            f"{name}: its generator {config.source.generator} cannot be called: {type(error).__name__}: "
            f"{shown(error)}. Correct its parameters."
        )
        raise KlrBenchError(message) from error
    _check_shape(name, config, X.shape, len(targets))
    _check_numbers(name, X)
    labels = Labels()
    codes = np.array([labels.code(str(target)) for target in targets], dtype=np.int64)
    y, classes = encoded(codes, labels, name, positive=config.positive, multiclass=config.multiclass)
    return Arrays(X, y, classes, relevant=relevant[0] if relevant else None)


def _derived(arrays: Arrays, name: str, config: DatasetConfig) -> Arrays:
    """Return what the function under ``derive`` makes of the arrays of the files, if there is one."""
    if not config.derive:
        return arrays
    try:
        return generate(config.derive, f"{name}: derive.", arrays=arrays)  # type: ignore[no-any-return]
    except KlrBenchError:
        raise
    except (Exception, SystemExit) as error:
        message = (
            f"{name}: derive {config.derive} cannot be called: {type(error).__name__}: {shown(error)}. "
            "Correct its parameters."
        )
        raise KlrBenchError(message) from error


def _check_shape(name: str, config: DatasetConfig, shape: tuple[int, int], n_labels: int) -> None:
    """Compare the rows and features of what is made with the labels, and with what the source declares."""
    source = config.source
    declared = (source.n_samples or shape[0], source.n_features or shape[1])
    if shape != declared or n_labels != shape[0]:
        message = (
            f"{name}: expected {declared[0]} rows, {declared[1]} features and a label for each row, as declared under "
            f"source; got {shape[0]} rows, {shape[1]} features and {n_labels} labels."
        )
        raise KlrBenchError(message)


def _check_numbers(name: str, X: Any) -> None:
    """Refuse numbers that are not finite or too large for float32, as the readers of files do."""
    numbers = X.data if sp.issparse(X) else X
    if not (np.abs(numbers) <= LARGEST).all():
        message = f"{name}: expected numbers between -{LARGEST:g} and {LARGEST:g}, got others; correct its generator."
        raise KlrBenchError(message)


def _check_rows(name: str, config: DatasetConfig, got: int) -> None:
    """Compare the number of rows with the declared one, if any."""
    declared = config.declared_rows()
    if declared not in {None, got}:
        message = f"{name}: n_samples is declared as {declared}, got {got}; correct configs/dataset/{name}.yaml."
        raise KlrBenchError(message)


def _first_rows(name: str, n_train: Any, n: int) -> int:
    """Return the number of rows of one file, the first, that are the training set; at least one must be left."""
    if type(n_train) is not int or not 0 < n_train < n:
        message = f"{name}: n_train: expected a whole number from 1 to {n - 1}, got {n_train!r}; correct {name}.yaml."
        raise KlrBenchError(message)
    return n_train

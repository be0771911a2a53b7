"""Store parsed arrays on disk, so that later processes can memory-map them.

Each process verifies the checksum of a file once, before it uses any row.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse as sp

from klr_bench.datasets.cache import Progress, State, disk_errors, find_or_make, state_of, suffixed
from klr_bench.datasets.readers import Arrays
from klr_bench.files import open_regular, read_checked_json, write_checked_json

CSR = ("data", "indices", "indptr")


def load_or_parse(
    folder: Path, name: str, sha256s: Sequence[str], parse: Callable[[], Arrays], progress: Progress
) -> Arrays:
    """Return the memory-mapped arrays stored in a folder.

    If they are missing, damaged or outdated, `parse` is called, and its result is stored.  `sha256s` are the hashes of
    the parsed files.  One process parses while the others wait.  Raises KlrBenchError.
    """

    def make() -> Arrays:
        progress(0, None, f"{name}: parsing")
        arrays = parse()
        _save(arrays, folder, name, sha256s)
        return _load(folder, sha256s) or arrays

    return find_or_make(folder, name, progress, lambda: _load(folder, sha256s), make)


def verify(folder: Path) -> tuple[Literal["ok", "corrupt"], str]:
    """Check the checksums of all arrays in a folder.

    Return "ok" or "corrupt", and the name of the data set.  Corrupt arrays are removed, so that the next use parses the
    files again.  Raises KlrBenchError if they cannot be removed.
    """
    name = "arrays"
    with suppress(Exception):  # reading damaged files can raise many kinds of errors
        meta = read_checked_json(folder / "meta.json")
        name = str(meta["name"])
        if all(_crc32(folder / file) == crc for file, crc in meta["files"].items()):
            return "ok", name
    with disk_errors(folder):
        _remove(folder)
    return "corrupt", name


def _save(arrays: Arrays, folder: Path, name: str, sha256s: Sequence[str]) -> None:
    temporary = suffixed(folder, ".tmp")
    _remove(temporary)
    temporary.mkdir()
    try:
        X = {key: getattr(arrays.X, key) for key in CSR} if sp.issparse(arrays.X) else {"X": arrays.X}
        groups = {} if arrays.groups is None else {"groups": arrays.groups}
        for key, array in {"y": arrays.y, **groups, **X}.items():
            np.save(temporary / f"{key}.npy", array)
        meta = {
            "name": name,
            "of": list(sha256s),
            "shape": arrays.X.shape,
            "classes": arrays.classes,
            "n_train_official": arrays.n_train_official,
            "said": arrays.said,
            "files": {path.name: _crc32(path) for path in temporary.iterdir()},
        }
        write_checked_json(temporary / "meta.json", meta)
        _remove(folder)
        os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _load(folder: Path, sha256s: Sequence[str]) -> Arrays | None:
    """Memory-map the arrays in a folder; return None if they are missing, damaged or outdated."""
    try:
        meta = read_checked_json(folder / "meta.json")
        if meta["of"] != list(sha256s):
            return None
        if any(_cached_crc32(folder / file, state_of(folder / file)) != crc for file, crc in meta["files"].items()):
            return None
        # np.memmap objects are converted to plain arrays, so that slices are plain arrays, too.
        array = {Path(file).stem: np.load(folder / file, mmap_mode="r").view(np.ndarray) for file in meta["files"]}
        X = array.get("X")
        if X is None:
            X = sp.csr_matrix(tuple(array[key] for key in CSR), shape=meta["shape"], copy=False)
            # The indices were sorted when they were saved; setting the flags avoids a check that reads all of them.
            X.has_sorted_indices = X.has_canonical_format = True
        of_meta = tuple(meta["classes"]), meta["n_train_official"]
        return Arrays(X, array["y"], *of_meta, said=tuple(meta["said"]), groups=array.get("groups"))
    except Exception:
        return None


def _crc32(path: Path) -> int:
    crc = 0
    with open_regular(path) as file:
        while chunk := file.read(1 << 20):
            crc = zlib.crc32(chunk, crc)
    return crc


@lru_cache(maxsize=1024)
def _cached_crc32(path: Path, state: State) -> int:
    """Return the checksum of a file; it is computed again only if the state of the file changes."""
    return _crc32(path)


def _remove(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)

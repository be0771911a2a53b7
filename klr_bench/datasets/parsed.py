"""Parsed arrays on disk: written once, memory-mapped by every process that needs them.

The checksum of each file is compared once in each process that loads it, before any row is used.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from klr_bench.datasets.cache import Progress, beside, disk_errors, locked, state_of
from klr_bench.datasets.readers import Arrays
from klr_bench.errors import KlrBenchError
from klr_bench.files import open_regular, read_checked_json, read_json, write_checked_json

DAMAGE = (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RecursionError, KlrBenchError)
"""What reading arrays may raise that somebody or a failing disk has changed."""


def parsed(folder: Path, name: str, of: Sequence[str], parse: Callable[[], Arrays], progress: Progress) -> Arrays:
    """Return the arrays in `folder`, mapped read-only; `parse` makes them where they are missing or damaged.

    `of` are the hashes of the files that they are made of.  One process parses, others wait for it.  Raises
    KlrBenchError.
    """
    arrays = _load(folder, of)
    if arrays is not None:
        return arrays
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder, name, progress):
            arrays = _load(folder, of)  # another process may have been quicker
            if arrays is None:
                progress(0, None, f"{name}: parsing")
                made = parse()
                _save(made, folder, name, of)
                arrays = _load(folder, of) or made
    return arrays


def verify(folder: Path) -> tuple[Literal["ok", "corrupt", "outdated"], str]:
    """Read all arrays of a folder again, however large; return how they are and the name of the data set.

    What is corrupt is removed, and what another version of klr-bench has written is outdated: the next use parses anew.
    Raises KlrBenchError where it cannot be removed.
    """
    try:
        meta = _meta(folder)
        whole = all(
            _state(folder / file) == state and _crc32(folder / file) == crc for file, state, crc in meta["files"]
        )
    except DAMAGE:
        with suppress(KlrBenchError):
            if isinstance(read_json(folder / "meta.json"), dict):
                return "outdated", "arrays"
        meta, whole = {"name": "arrays"}, False
    if not whole:
        with disk_errors(folder):
            _remove(folder)
    return "ok" if whole else "corrupt", str(meta["name"])


def _save(arrays: Arrays, folder: Path, name: str, of: Sequence[str]) -> None:
    """Write the arrays into a temporary folder and rename it into place."""
    temporary = beside(folder, ".tmp")
    _remove(temporary)
    temporary.mkdir()
    try:
        named = {"y": arrays.y}
        if sp.issparse(arrays.X):
            named |= {"data": arrays.X.data, "indices": arrays.X.indices, "indptr": arrays.X.indptr}
        else:
            named |= {"X": arrays.X}
        paths = [temporary / f"{stem}.npy" for stem in named]
        for path, array in zip(paths, named.values(), strict=True):
            np.save(path, array)
        meta = {
            "name": name,
            "of": list(of),
            "shape": arrays.X.shape,
            "classes": arrays.classes,
            "n_train_official": arrays.n_train_official,
            "said": arrays.said,
            "files": [(path.name, _state(path), _crc32(path)) for path in paths],
        }
        write_checked_json(temporary / "meta.json", meta)
        _remove(folder)
        os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _load(folder: Path, of: Sequence[str]) -> Arrays | None:
    """Map the arrays of a folder; None where one is missing, or is not as it was when it was written."""
    try:
        meta = _meta(folder)
        if meta["of"] != list(of):
            return None
        for name, state, crc in meta["files"]:
            path = folder / name
            if _state(path) != state or _known_crc32(path, state_of(path)) != crc:
                return None
        array = {Path(name).stem: _map(folder / name) for name, *_ in meta["files"]}
        X, said = _matrix(array, meta["shape"]), tuple(meta.get("said", ()))
        return Arrays(X, array["y"], tuple(meta["classes"]), meta["n_train_official"], said=said)
    except DAMAGE:
        return None


def _meta(folder: Path) -> dict[str, Any]:
    """Return what is noted beside the arrays; raise one of `DAMAGE` where it is not as it was written."""
    return dict(read_checked_json(folder / "meta.json"))


def _crc32(path: Path) -> int:
    """Return the checksum of a file.  Raises OSError."""
    crc = 0
    with open_regular(path) as file:
        while chunk := file.read(1 << 20):
            crc = zlib.crc32(chunk, crc)
    return crc


@lru_cache(maxsize=1024)
def _known_crc32(path: Path, state: tuple[int, int, int]) -> int:
    """Return the checksum of a file, which is read once in each process as long as its size and times stay."""
    return _crc32(path)


def _remove(folder: Path) -> None:
    """Remove a folder, or what is in its place."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)


def _map(path: Path) -> Any:
    """Return an array that is mapped read-only, as a plain ndarray: what is cut from it stays plain."""
    return np.load(path, mmap_mode="r").view(np.ndarray)


def _matrix(array: dict[str, Any], shape: list[int]) -> Any:
    """Return X; a CSR matrix shares the memory of its three arrays."""
    if "X" in array:
        return array["X"]
    matrix = sp.csr_matrix((array["data"], array["indices"], array["indptr"]), shape=shape, copy=False)
    matrix.has_sorted_indices = True  # as written; to find out would read all of it
    matrix.has_canonical_format = True
    return matrix


def _state(path: Path) -> list[int]:
    """Return what changes when a file does: its size and time."""
    state = path.stat()
    return [state.st_size, state.st_mtime_ns]

"""Parsed arrays on disk: written once, memory-mapped by every process that needs them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from klr_bench.experiment.data.cache import Progress, beside, disk_errors, locked
from klr_bench.experiment.data.readers import Arrays


def parsed(folder: Path, name: str, parse: Callable[[], Arrays], progress: Progress) -> Arrays:
    """Return the arrays in `folder`, mapped read-only; `parse` makes them where they are missing or damaged.

    One process parses, others wait for it.  Raises KlrBenchError.
    """
    arrays = _load(folder)
    if arrays is not None:
        return arrays
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder, name, progress):
            arrays = _load(folder)  # another process may have been quicker
            if arrays is None:
                progress(0, None, f"{name}: parsing")
                made = parse()
                _save(made, folder)
                arrays = _load(folder) or made
    return arrays


def _save(arrays: Arrays, folder: Path) -> None:
    """Write the arrays into a temporary folder and rename it into place."""
    temporary = beside(folder, ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        named = {"y": arrays.y}
        if sp.issparse(arrays.X):
            named |= {"data": arrays.X.data, "indices": arrays.X.indices, "indptr": arrays.X.indptr}
        else:
            named |= {"X": arrays.X}
        for name, array in named.items():
            np.save(temporary / f"{name}.npy", array)
        meta = {
            "shape": arrays.X.shape,
            "classes": arrays.classes,
            "n_train_official": arrays.n_train_official,
            "files": {f"{name}.npy": _state(temporary / f"{name}.npy") for name in named},
        }
        (temporary / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _load(folder: Path) -> Arrays | None:
    """Map the arrays of a folder; None where one is missing, or is not as it was when it was written."""
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        for name, state in meta["files"].items():
            if _state(folder / name) != state:
                return None
        array = {Path(name).stem: _map(folder / name) for name in meta["files"]}
        return Arrays(_matrix(array, meta["shape"]), array["y"], tuple(meta["classes"]), meta["n_train_official"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


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

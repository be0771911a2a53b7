"""Parsed rows on disk, as flat binary arrays from which any chunk can be read without its predecessors.

A folder holds ``codes`` int32 (n,) and either ``X`` float32 (n, d), or ``ends`` int64 (n,), ``indices`` int32 and
``values`` float32 (nnz,) of a CSR matrix, and ``meta.json``.  It is written beside its place while a pass reads the
text, and renamed when the pass has reached the end: a pass that is cut short leaves nothing that would be read.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.data.cache import beside, disk_errors
from klr_bench.experiment.data.labels import Labels
from klr_bench.experiment.data.parsed import DAMAGE
from klr_bench.experiment.data.streams.pieces import Dense, Sparse
from klr_bench.experiment.keys import content_hash
from klr_bench.files import open_regular, read_json, write_json

VERSION = 1
"""Raise it when the same text gives other arrays."""
DENSE: dict[str, np.dtype[Any]] = {"codes": np.dtype(np.int32), "X": np.dtype(np.float32)}
SPARSE: dict[str, np.dtype[Any]] = {
    "codes": np.dtype(np.int32),
    "ends": np.dtype(np.int64),
    "indices": np.dtype(np.int32),
    "values": np.dtype(np.float32),
}


@dataclass
class Found:
    """What a pass over all rows has found, or until now."""

    spellings: list[str]  # of the labels, in the order of their codes
    n_rows: int = 0
    n_entries: int = 0  # of a CSR matrix
    smallest: int = np.iinfo(np.int32).max  # index of a feature; for dense rows 0
    largest: int = -1

    def add(self, piece: Dense | Sparse) -> None:
        """Count the rows of a piece."""
        self.n_rows += len(piece.codes)
        self.n_entries += len(piece.values) if isinstance(piece, Sparse) else 0
        self.smallest, self.largest = min(self.smallest, piece.smallest), max(self.largest, piece.largest)


class Store:
    """The place of the parsed rows of some files, which `parameters` say how to read."""

    def __init__(self, cache: Path, paths: Sequence[Path], parameters: Sequence[Any]) -> None:
        self.paths = [path.resolve() for path in paths]
        self.folder = cache / f"stream-{content_hash([VERSION, *parameters, *map(str, self.paths)])}"

    def load(self) -> Stored | None:
        """Return the rows; None where they are not there, of other content of the files, or damaged."""
        try:
            meta = read_json(self.folder / "meta.json")
            if meta["files"] != self._states():
                return None
            found = Found(**meta["found"])
            types = DENSE if meta["dense"] else SPARSE
            counts = {"X": found.n_rows * (found.largest + 1)} | dict.fromkeys(("indices", "values"), found.n_entries)
            for name, dtype in types.items():
                if (self.folder / name).stat().st_size != counts.get(name, found.n_rows) * dtype.itemsize:
                    return None
            return Stored(self.folder, types, found)
        except (*DAMAGE, KlrBenchError):
            return None

    def kept(self, pieces: Iterator[Any], labels: Labels) -> Iterator[Any]:
        """Yield all pieces; write them meanwhile, unless another process is about it.

        Raises KlrBenchError where the disk is full or the folder cannot be written.
        """
        with disk_errors(self.folder, "cache=FOLDER"):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(beside(self.folder, ".lock"), thread_local=False)
            with suppress(Timeout):
                lock.acquire(timeout=0)
        if not lock.is_locked:
            yield from pieces
            return
        try:
            yield from self._written(pieces, labels)
        finally:
            shutil.rmtree(self._part, ignore_errors=True)
            lock.release()

    @property
    def _part(self) -> Path:
        return beside(self.folder, ".part")

    def _written(self, pieces: Iterator[Any], labels: Labels) -> Iterator[Any]:
        """Yield and write all pieces; rename the folder into place at the end, unless a file has changed meanwhile."""
        states, found, dense = self._states(), Found(labels.spellings), False
        with ExitStack() as stack:
            files: dict[str, BinaryIO] = {}
            for piece in pieces:
                with disk_errors(self.folder, "cache=FOLDER"):
                    if not files:
                        dense = isinstance(piece, Dense)
                        shutil.rmtree(self._part, ignore_errors=True)  # of a process that was killed
                        self._part.mkdir()
                        for name in DENSE if dense else SPARSE:
                            files[name] = stack.enter_context((self._part / name).open("wb"))
                    for name, array in _arrays(piece, found.n_entries).items():
                        array.tofile(files[name])
                found.add(piece)
                yield piece
        if files and states and states == self._states():
            with disk_errors(self.folder, "cache=FOLDER"):
                write_json(self._part / "meta.json", {"files": states, "dense": dense, "found": asdict(found)})
                shutil.rmtree(self.folder, ignore_errors=True)
                os.rename(self._part, self.folder)

    def _states(self) -> list[list[int]]:
        """Return size and time of each file, nothing if one is gone."""
        try:
            return [[state.st_size, state.st_mtime_ns] for state in (path.stat() for path in self.paths)]
        except OSError:
            return []


def _arrays(piece: Dense | Sparse, n_entries: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a piece as they stand in the files, behind so many entries."""
    if isinstance(piece, Dense):
        return {"codes": piece.codes, "X": piece.X}
    ends = piece.indptr[1:] - piece.indptr[0] + n_entries
    return {"codes": piece.codes, "ends": ends, "indices": piece.indices, "values": piece.values}


class Stored:
    """Rows on disk."""

    def __init__(self, folder: Path, types: dict[str, np.dtype[Any]], found: Found) -> None:
        self.folder, self.types, self.found = folder, types, found

    def chunks(self, chunk_rows: int, skip_rows: int, codes: NDArray[np.int32]) -> Iterator[Dense | Sparse]:
        """Yield the rows as `rechunked` does; ``codes[j]`` takes the place of the code j."""
        with ExitStack() as stack:
            files = {name: stack.enter_context(open_regular(self.folder / name)) for name in self.types}
            for begin in range(skip_rows, self.found.n_rows, chunk_rows):
                yield self._rows(files, begin, min(begin + chunk_rows, self.found.n_rows), codes)

    def _rows(self, files: dict[str, Any], begin: int, end: int, codes: NDArray[np.int32]) -> Dense | Sparse:
        def read(name: str, first: int, last: int) -> NDArray[Any]:
            files[name].seek(first * self.types[name].itemsize)
            array = np.fromfile(files[name], self.types[name], last - first)
            if len(array) < last - first:
                message = f"{self.folder}: damaged since it was opened; expected {last:,} {name}. Remove the folder."
                raise KlrBenchError(message)
            return array

        own, width = codes[read("codes", begin, end)], self.found.largest + 1
        if "X" in files:
            return Dense(own, read("X", begin * width, end * width).reshape(end - begin, width))
        indptr = read("ends", begin - 1, end) if begin else np.concatenate([[0], read("ends", 0, end)])
        first, last = int(indptr[0]), int(indptr[-1])
        smallest, largest = self.found.smallest, self.found.largest
        return Sparse(own, indptr, read("indices", first, last), read("values", first, last), smallest, largest)

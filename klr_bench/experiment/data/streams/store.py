"""Parsed rows on disk, as flat binary arrays from which any chunk can be read without its predecessors.

A folder holds ``codes`` int32 (n,) and either ``X`` float32 (n, d), or ``ends`` int64 (n,), ``indices`` int32 and
``values`` float32 (nnz,) of a CSR matrix, and ``meta.json``.  It is written beside its place while a pass reads the
text, and renamed when the pass has reached the end: a pass that is cut short leaves nothing that would be read.
``meta.json`` has the state of the text files and the checksums of all blocks, which are compared when they are read.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from klr_bench.experiment.data.cache import MOST_FILES, beside, disk_errors, sampled_sha256, state_of
from klr_bench.experiment.data.labels import Labels
from klr_bench.experiment.data.parsed import DAMAGE
from klr_bench.experiment.data.streams.checked import CheckedReader, CheckedWriter
from klr_bench.experiment.data.streams.pieces import Dense, Sparse
from klr_bench.experiment.keys import content_hash
from klr_bench.files import open_regular, read_checked_json, write_checked_json

VERSION = 2
"""Raise it when the same text gives other arrays, or the files another format."""
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
            meta = read_checked_json(self.folder / "meta.json")
            if meta["files"] != self._states():
                return None
            found = Found(**meta["found"])
            types = DENSE if meta["dense"] else SPARSE
            counts = {"X": found.n_rows * (found.largest + 1)} | dict.fromkeys(("indices", "values"), found.n_entries)
            for name, dtype in types.items():
                if (self.folder / name).stat().st_size != counts.get(name, found.n_rows) * dtype.itemsize:
                    return None
            return Stored(self.folder, types, found, meta["checksums"])
        except DAMAGE:
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
            files: dict[str, CheckedWriter] = {}
            for piece in pieces:
                with disk_errors(self.folder, "cache=FOLDER"):
                    if not files:
                        dense = isinstance(piece, Dense)
                        shutil.rmtree(self._part, ignore_errors=True)  # of a process that was killed
                        self._part.mkdir()
                        for name in DENSE if dense else SPARSE:
                            files[name] = CheckedWriter(stack.enter_context((self._part / name).open("wb")))
                    for name, array in _arrays(piece, found.n_entries).items():
                        files[name].write(array)
                found.add(piece)
                yield piece
        if files and states and states == self._states():
            with disk_errors(self.folder, "cache=FOLDER"):
                meta = {"files": states, "dense": dense, "found": asdict(found)}
                meta["checksums"] = {name: file.checksums for name, file in files.items()}
                write_checked_json(self._part / "meta.json", meta)
                shutil.rmtree(self.folder, ignore_errors=True)
                os.rename(self._part, self.folder)

    def _states(self) -> list[list[Any]]:
        """Return size, times and a hash of the content of each file, nothing if one is gone."""
        try:
            return [[*(state := state_of(path)), _content(path, *state)] for path in self.paths]
        except OSError:
            return []


@lru_cache(MOST_FILES)
def _content(path: Path, *state: int) -> str:
    """Return a hash of a file, which is read again when its state has changed."""
    return sampled_sha256(path)


def _arrays(piece: Dense | Sparse, n_entries: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a piece as they stand in the files, behind so many entries."""
    if isinstance(piece, Dense):
        return {"codes": piece.codes, "X": piece.X}
    ends = piece.indptr[1:] - piece.indptr[0] + n_entries
    return {"codes": piece.codes, "ends": ends, "indices": piece.indices, "values": piece.values}


class Stored:
    """Rows on disk."""

    def __init__(
        self, folder: Path, types: dict[str, np.dtype[Any]], found: Found, checksums: dict[str, list[int]]
    ) -> None:
        self.folder, self.types, self.found, self.checksums = folder, types, found, checksums

    def chunks(self, chunk_rows: int, skip_rows: int, codes: NDArray[np.int32]) -> Iterator[Dense | Sparse]:
        """Yield the rows as `rechunked` does; ``codes[j]`` takes the place of the code j.  Raises DamagedBlockError."""
        with ExitStack() as stack:
            files = {
                name: CheckedReader(stack.enter_context(open_regular(self.folder / name)), self.checksums[name])
                for name in self.types
            }
            for begin in range(skip_rows, self.found.n_rows, chunk_rows):
                yield self._rows(files, begin, min(begin + chunk_rows, self.found.n_rows), codes)

    def _rows(self, files: dict[str, CheckedReader], begin: int, end: int, codes: NDArray[np.int32]) -> Dense | Sparse:
        def read(name: str, first: int, last: int) -> NDArray[Any]:
            return files[name].read(self.types[name], first, last)

        own, width = codes[read("codes", begin, end)], self.found.largest + 1
        if "X" in files:
            return Dense(own, read("X", begin * width, end * width).reshape(end - begin, width))
        indptr = read("ends", begin - 1, end) if begin else np.concatenate([[0], read("ends", 0, end)])
        first, last = int(indptr[0]), int(indptr[-1])
        smallest, largest = self.found.smallest, self.found.largest
        return Sparse(own, indptr, read("indices", first, last), read("values", first, last), smallest, largest)

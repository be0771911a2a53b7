"""Parsed rows on disk, as flat binary arrays from which any chunk can be read without its predecessors.

A folder holds ``codes`` int32 (n,) and either ``X`` float32 (n, d), or ``ends`` int64 (n,), ``indices`` int32 and
``values`` float32 (nnz,) of a CSR matrix, and ``meta.json``.  It is written beside its place while a pass reads the
text, and renamed when the pass has reached the end: a pass that is cut short leaves nothing that would be read.
``meta.json`` has the state of the text files and the checksums of all blocks, which are compared when they are read.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from klr_bench.datasets.cache import MOST_FILES, beside, disk_errors, sampled_sha256, state_of
from klr_bench.datasets.class_labels import Labels
from klr_bench.datasets.parsed import DAMAGE
from klr_bench.datasets.readers.chunks import Dense, Sparse
from klr_bench.files import open_regular, read_checked_json, write_checked_json
from klr_bench.results.keys import content_hash

CHECKED_BYTES = 1 << 20
"""Bytes that share a checksum; the last block may be shorter."""
VERSION = 2
"""Raise it when the same text gives other arrays, or the files another format."""
DENSE: dict[str, np.dtype[Any]] = {"codes": np.dtype(np.int32), "X": np.dtype(np.float32)}
SPARSE: dict[str, np.dtype[Any]] = {
    "codes": np.dtype(np.int32),
    "ends": np.dtype(np.int64),
    "indices": np.dtype(np.int32),
    "values": np.dtype(np.float32),
}


class DamagedBlockError(Exception):
    """A block is not what was written."""


class CheckedWriter:
    """Writes arrays to a file and keeps the crc32 of each block in `checksums`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._room = file, 0
        self.checksums: list[int] = []

    def write(self, array: NDArray[Any]) -> None:
        """Append the elements of an array."""
        content = memoryview(array.tobytes())
        self._file.write(content)
        while len(content):
            if not self._room:
                self.checksums.append(0)
                self._room = CHECKED_BYTES
            self.checksums[-1] = zlib.crc32(content[: self._room], self.checksums[-1])
            self._room, content = max(self._room - len(content), 0), content[self._room :]


class CheckedReader:
    """Reads arrays of a file from any position; reading in order compares each block once."""

    def __init__(self, file: BinaryIO, checksums: Sequence[int]) -> None:
        self._file, self._checksums = file, checksums
        self._number, self._content = -1, b""

    def read(self, dtype: np.dtype[Any], first: int, last: int) -> NDArray[Any]:
        """Return the elements from `first` to `last`.  Raises DamagedBlockError."""
        array = np.empty(last - first, dtype)
        rest, position = array.view(np.uint8), first * dtype.itemsize
        while len(rest):
            number, begin = divmod(position, CHECKED_BYTES)
            part = np.frombuffer(self._block(number), np.uint8)[begin : begin + len(rest)]
            rest[: len(part)] = part
            rest, position = rest[len(part) :], position + len(part)
        return array

    def _block(self, number: int) -> bytes:
        if number != self._number:
            self._file.seek(number * CHECKED_BYTES)
            content = self._file.read(CHECKED_BYTES)
            if not content or number >= len(self._checksums) or zlib.crc32(content) != self._checksums[number]:
                raise DamagedBlockError
            self._number, self._content = number, content
        return self._content


@dataclass
class Scan:
    """What a pass has learned from the rows so far."""

    spellings: list[str]  # of the labels, in the order of their codes
    n_rows: int = 0
    n_entries: int = 0  # of a CSR matrix
    smallest: int = np.iinfo(np.int32).max  # index of a feature; for dense rows 0
    largest: int = -1

    def add(self, chunk: Dense | Sparse) -> None:
        """Count the rows of a chunk."""
        self.n_rows += len(chunk.codes)
        self.n_entries += len(chunk.values) if isinstance(chunk, Sparse) else 0
        self.smallest, self.largest = min(self.smallest, chunk.smallest), max(self.largest, chunk.largest)


class StreamCache:
    """The place of the parsed rows of some files, which `parameters` say how to read."""

    def __init__(self, cache: Path, paths: Sequence[Path], parameters: Sequence[Any]) -> None:
        self.paths = [path.resolve() for path in paths]
        self.folder = cache / f"stream-{content_hash([VERSION, *parameters, *map(str, self.paths)])}"

    def load(self) -> CachedRows | None:
        """Return the rows; None where they are not there, of other content of the files, or damaged."""
        try:
            meta = read_checked_json(self.folder / "meta.json")
            if meta["files"] != self._states():
                return None
            scan = Scan(**meta["found"])
            types = DENSE if meta["dense"] else SPARSE
            counts = {"X": scan.n_rows * (scan.largest + 1)} | dict.fromkeys(("indices", "values"), scan.n_entries)
            for name, dtype in types.items():
                if (self.folder / name).stat().st_size != counts.get(name, scan.n_rows) * dtype.itemsize:
                    return None
            return CachedRows(self.folder, types, scan, meta["checksums"])
        except DAMAGE:
            return None

    def written(self, chunks: Iterator[Any], labels: Labels) -> Iterator[Any]:
        """Yield all chunks, and write them meanwhile unless another process is doing so.

        Raises KlrBenchError where the disk is full or the folder cannot be written.
        """
        with disk_errors(self.folder, "cache=FOLDER"):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(beside(self.folder, ".lock"), thread_local=False)
            with suppress(Timeout):
                lock.acquire(timeout=0)
        if not lock.is_locked:
            yield from chunks
            return
        try:
            yield from self._yield_and_write(chunks, labels)
        finally:
            shutil.rmtree(self._part, ignore_errors=True)
            lock.release()

    @property
    def _part(self) -> Path:
        return beside(self.folder, ".part")

    def _yield_and_write(self, chunks: Iterator[Any], labels: Labels) -> Iterator[Any]:
        """Yield and write all chunks; rename the folder into place at the end, unless a file has changed meanwhile."""
        states, scan, dense = self._states(), Scan(labels.spellings), False
        with ExitStack() as stack:
            files: dict[str, CheckedWriter] = {}
            for chunk in chunks:
                with disk_errors(self.folder, "cache=FOLDER"):
                    if not files:
                        dense = isinstance(chunk, Dense)
                        shutil.rmtree(self._part, ignore_errors=True)  # of a process that was killed
                        self._part.mkdir()
                        for name in DENSE if dense else SPARSE:
                            files[name] = CheckedWriter(stack.enter_context((self._part / name).open("wb")))
                    for name, array in _arrays(chunk, scan.n_entries).items():
                        files[name].write(array)
                scan.add(chunk)
                yield chunk
        if files and states and states == self._states():
            with disk_errors(self.folder, "cache=FOLDER"):
                meta = {"files": states, "dense": dense, "found": asdict(scan)}
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


def _arrays(chunk: Dense | Sparse, n_entries: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a chunk as they stand in the files, behind so many entries."""
    if isinstance(chunk, Dense):
        return {"codes": chunk.codes, "X": chunk.X}
    ends = chunk.indptr[1:] - chunk.indptr[0] + n_entries
    return {"codes": chunk.codes, "ends": ends, "indices": chunk.indices, "values": chunk.values}


class CachedRows:
    """Rows on disk."""

    def __init__(
        self, folder: Path, types: dict[str, np.dtype[Any]], scan: Scan, checksums: dict[str, list[int]]
    ) -> None:
        self.folder, self.types, self.scan, self.checksums = folder, types, scan, checksums

    def chunks(self, chunk_rows: int, skip_rows: int, codes: NDArray[np.int32]) -> Iterator[Dense | Sparse]:
        """Yield the rows as `rechunked` does; ``codes[j]`` takes the place of the code j.  Raises DamagedBlockError."""
        with ExitStack() as stack:
            files = {
                name: CheckedReader(stack.enter_context(open_regular(self.folder / name)), self.checksums[name])
                for name in self.types
            }
            for begin in range(skip_rows, self.scan.n_rows, chunk_rows):
                yield self._rows(files, begin, min(begin + chunk_rows, self.scan.n_rows), codes)

    def _rows(self, files: dict[str, CheckedReader], begin: int, end: int, codes: NDArray[np.int32]) -> Dense | Sparse:
        def read(name: str, first: int, last: int) -> NDArray[Any]:
            return files[name].read(self.types[name], first, last)

        own, width = codes[read("codes", begin, end)], self.scan.largest + 1
        if "X" in files:
            return Dense(own, read("X", begin * width, end * width).reshape(end - begin, width))
        indptr = read("ends", begin - 1, end) if begin else np.concatenate([[0], read("ends", 0, end)])
        first, last = int(indptr[0]), int(indptr[-1])
        smallest, largest = self.scan.smallest, self.scan.largest
        return Sparse(own, indptr, read("indices", first, last), read("values", first, last), smallest, largest)

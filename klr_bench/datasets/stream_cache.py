"""Cache for the parsed rows of a stream, so that later passes need not parse the text again.

The cache is a zip archive of arrays.  It is written to a temporary file during a pass over the text and renamed when
the pass reaches the end, so that an interrupted pass leaves no archive.  Checksums are compared when chunks are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import scipy.sparse as sp
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from klr_bench.datasets.cache import content_sha256, disk_errors, state_of, suffixed
from klr_bench.datasets.class_labels import Labels
from klr_bench.datasets.readers.chunks import Chunk, rechunk
from klr_bench.files import open_regular, replace_file
from klr_bench.results.keys import content_hash

VERSION = 5
"""Increase this number when the same text gives different arrays, or when the format of the archive changes."""


class DamagedCacheError(Exception):
    """Raised if the archive of parsed rows is missing, damaged or outdated."""


@dataclass
class Scan:
    """Summary of the rows read so far: labels, row counts and range of feature indices."""

    spellings: list[str]
    """Labels in the order of their codes."""
    rows: list[int] = field(default_factory=list)
    """Number of rows per chunk."""
    smallest: int = np.iinfo(np.int32).max
    largest: int = -1
    """Smallest and largest feature index; for dense rows, those of the first and last column."""
    dtype: str = "float32"
    """Type of the features."""

    def add(self, chunk: Chunk) -> None:
        """Update the summary with the rows of a chunk."""
        self.rows.append(len(chunk.codes))
        self.dtype = chunk.X.dtype.name if len(chunk.codes) else self.dtype
        self.smallest, self.largest = min(self.smallest, chunk.smallest), max(self.largest, chunk.largest)


class StreamCache:
    """Archive that stores the rows parsed from a set of files with the given `parameters`."""

    def __init__(self, cache: Path, paths: Sequence[Path], parameters: Sequence[Any]) -> None:
        self.paths = [path.resolve() for path in paths]
        self.path = cache / f"stream-{content_hash([VERSION, *parameters, *map(str, self.paths)])}.zip"

    def load(self) -> Scan | None:
        """Return the summary of all rows from the archive, or None if there is no usable archive."""
        try:
            with open_regular(self.path) as file, ZipFile(file) as archive:
                meta = json.loads(archive.read("meta.json"))
            return Scan(**meta["scan"]) if meta["files"] == self._states() else None
        except Exception:  # reading a damaged archive can raise many kinds of errors
            return None

    def chunks(self, scan: Scan, chunk_rows: int, skip_rows: int, codes: NDArray[np.int32]) -> Iterator[Chunk]:
        """Yield the rows of the archive in chunks, with each label code j replaced by ``codes[j]``.

        Raises DamagedCacheError.
        """
        ends = np.cumsum([0, *scan.rows])
        first = int(np.searchsorted(ends, skip_rows, side="right")) - 1
        chunks = self._stored(range(first, len(scan.rows)), scan, codes)
        yield from rechunk(chunks, chunk_rows, skip_rows - int(ends[first]))

    def _stored(self, numbers: range, scan: Scan, codes: NDArray[np.int32]) -> Iterator[Chunk]:
        try:
            with open_regular(self.path) as file, ZipFile(file) as archive:
                for number in numbers:

                    def array(name: str, dtype: Any, number: int = number) -> NDArray[Any]:
                        return np.frombuffer(archive.read(f"{number}/{name}"), dtype)

                    n_rows, width = scan.rows[number], scan.largest + 1
                    try:
                        X = array("X", scan.dtype).reshape(n_rows, width)
                    except KeyError:
                        arrays = array("data", scan.dtype), array("indices", np.int32), array("indptr", np.int32)
                        X = sp.csr_matrix(arrays, shape=(n_rows, width))
                    yield Chunk(codes[array("codes", np.int32)], X, scan.smallest, scan.largest)
        except Exception as error:
            raise DamagedCacheError from error

    def write_through(self, chunks: Iterator[Chunk], labels: Labels) -> Iterator[Chunk]:
        """Yield all chunks, and write them to the archive unless another process is writing it.

        Raises KlrBenchError if the disk is full or the folder is not writable.
        """
        with disk_errors(self.path, "data.cache=FOLDER (cache= in Python)"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(suffixed(self.path, ".lock"), thread_local=False)
            with suppress(Timeout):
                lock.acquire(timeout=0)
            if not lock.is_locked:
                yield from chunks
                return
            try:
                yield from self._yield_and_write(chunks, labels)
            finally:
                suffixed(self.path, ".part").unlink(missing_ok=True)
                lock.release()

    def _yield_and_write(self, chunks: Iterator[Chunk], labels: Labels) -> Iterator[Chunk]:
        part, states, scan = suffixed(self.path, ".part"), self._states(), Scan(labels.spellings)
        codes: set[int] = set()
        part.unlink(missing_ok=True)
        with ZipFile(part, "w") as archive:
            for chunk in chunks:
                X = chunk.X
                arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr} if sp.issparse(X) else {"X": X}
                for name, array in {"codes": chunk.codes, **arrays}.items():
                    archive.writestr(f"{len(scan.rows)}/{name}", array.tobytes())
                scan.add(chunk)
                codes.update(np.unique(chunk.codes).tolist())
                yield chunk
            archive.writestr("meta.json", json.dumps({"files": states, "scan": asdict(scan)}))
        # A declared class that no row has would become a class of later streams.
        if states and states == self._states() and len(codes) == len(labels.spellings):
            replace_file(part, self.path)

    def _states(self) -> list[list[Any]]:
        """Return the size, the times and a hash of each file; return [] if any file is missing."""
        try:
            return [[*state_of(path), content_sha256(path, state_of(path))] for path in self.paths]
        except OSError:
            return []

"""Read files that do not fit in memory as chunks (X, y), for learners with ``partial_fit``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from klr_bench.config.models import MOST_FEATURES
from klr_bench.datasets.cache import disk_errors, suffixed
from klr_bench.datasets.class_labels import Labels, code_of_label, parse_number
from klr_bench.datasets.compression import DamagedFileError
from klr_bench.datasets.readers import check_text, csv, detect_format, svmlight
from klr_bench.datasets.readers.chunks import Chunk, rechunk
from klr_bench.datasets.readers.layout import Layout, check_width, layout_of
from klr_bench.datasets.stream_cache import DamagedCacheError, Scan, StreamCache
from klr_bench.errors import KlrBenchError, fail, sanitize
from klr_bench.files import expanded, matching

logger = logging.getLogger(__name__)

Paths = str | Path | Sequence[str | Path]


def stream(
    path: Paths,
    chunk_rows: int = 10_000,
    *,
    format: str | None = None,
    n_features: int | None = None,
    zero_based: bool | None = None,
    label_column: str | int | None = None,
    positive: Any = None,
    classes: Any = None,
    cache: str | Path | None = None,
    skip_rows: int = 0,
) -> Stream:
    """Read svmlight or CSV files in chunks; the files may be larger than memory.

    Parameters
    ----------
    path : str, Path or list of them
        A file, a list of files, or a pattern such as ``"part-*.csv"``, whose matches are sorted by name.  The files may
        be compressed with xz, gzip or bzip2 and are read one after another as if they were one file.
    chunk_rows : int, default=10000
        Number of rows per chunk, >= 1; the last chunk may have fewer.  Only one chunk is in memory at a time.  Learners
        compute kernel values in blocks and are slower if a chunk has fewer than a few hundred rows.
    format : {"svmlight", "csv"} or None, default=None
        Format of the files; None detects it from the first file.
    n_features : int or None, default=None
        Number of features, >= 1.  For CSV it is known from the file.  For svmlight, a first pass over the text is not
        needed if both ``n_features`` and ``classes`` are given.
    zero_based : bool or None, default=None
        Whether svmlight indices start at 0 (True) or at 1 (False).  None means that they start at 0 if a first pass
        finds the index 0, otherwise at 1.
    label_column : str, int or None, default=None
        Label column of CSV files: a name in the header or a position from 0; -1 and None select the last column.
    positive : str, number or None, default=None
        The label that becomes +1; all others become -1.  None leaves the labels unchanged.
    classes : sequence or None, default=None
        All labels, without duplicates, such as [-1, 1].
    cache : str, Path or None, default=None
        Folder for the parsed rows.  A pass that reaches the end of the files writes them, unless another process is
        writing them.  Later streams of the same files with the same ``format`` and ``label_column`` read the parsed
        rows instead of the text.
    skip_rows : int, default=0
        Number of rows to skip at the beginning, >= 0, such as the rows that an interrupted fit has already used.

    Returns
    -------
    Stream
        Iterable over chunks (X, y); each iteration starts from the beginning.  X is float32 (n, n_features), an array
        for CSV files and CSR with sorted indices for svmlight files.  y (n,) holds the labels as numbers, or as strings
        if any label is not a number.  The attribute ``classes`` holds all labels, sorted, and ``n_features`` is the
        number of columns of X.  If the parameter ``classes`` (or, for svmlight, ``n_features``) is not given, they are
        determined by a first pass over the text or read from the cache.

    Raises
    ------
    KlrBenchError
        If a file cannot be read, or if a line is malformed, has a label that is not in ``classes`` or an index that
        exceeds ``n_features``.  The message names the file and the line.

    Examples
    --------
    >>> from klr_bench import OSKL, stream
    >>> from sklearn.datasets import dump_svmlight_file, make_moons
    >>> from tempfile import mkdtemp
    >>> path = mkdtemp() + "/moons.svm"
    >>> dump_svmlight_file(*make_moons(1000, noise=0.1, random_state=0), path, zero_based=False)
    >>> rows, learner = stream(path, chunk_rows=300), OSKL(gamma=2.0, random_state=0)
    >>> for X, y in rows:
    ...     _ = learner.partial_fit(X, y, classes=rows.classes)
    >>> bool(learner.score(X, y) > 0.9)
    True
    """
    check_scalar(chunk_rows, "chunk_rows", Integral, min_val=1)
    check_scalar(skip_rows, "skip_rows", Integral, min_val=0)
    if n_features is not None:
        check_scalar(n_features, "n_features", Integral, min_val=1, max_val=MOST_FEATURES)
    paths = _files(path)
    try:
        check_text(paths)
        kind = format or detect_format(paths[0])
        if kind not in ("svmlight", "csv"):
            fail(f"format: expected 'svmlight', 'csv' or None, got {sanitize(repr(kind))}.")
        if kind == "csv":
            width = layout_of(paths[0], label_column).n_columns - 1
            check_width(paths[0], width, n_features)
            n_features = width
        known = n_features is not None and classes is not None
        base = 1 if known else None
        if zero_based is not None or kind == "csv":
            base = 0 if zero_based or kind == "csv" else 1
        folder = None if cache is None else StreamCache(expanded(str(cache)), paths, [kind, label_column])
        labels = None if classes is None else _checked_classes(classes)
        return Stream(paths, kind, label_column, folder, chunk_rows, skip_rows, n_features, base, labels, positive)
    except DamagedFileError as error:
        raise _damaged(error) from error


def _checked_classes(classes: Any) -> NDArray[Any]:
    """Sort the classes; raise KlrBenchError if two of them are equal."""
    values, n_labels = np.unique(np.asarray(classes)), 0
    with suppress(ValueError):
        n_labels = len(Labels([str(label) for label in values.tolist()]).spellings)
    if not 0 < n_labels == len(values):
        fail(f"classes: expected labels without duplicates, such as [-1, 1], got {sanitize(repr(classes))}.")
    return values


def _files(path: Paths) -> list[Path]:
    if isinstance(path, str | Path):
        files = matching(expanded(str(path)))
    else:
        files = [file for one in path for file in _files(one)]
    if not files:
        fail(f"{sanitize(path)}: expected a file, a list of files, or a pattern that matches files; no file was found.")
    return files


def _damaged(error: DamagedFileError) -> KlrBenchError:
    return KlrBenchError(f"{error.path}: {error}; obtain a new copy of the file.")


@dataclass(repr=False, eq=False)
class Stream:
    """Iterable over chunks of rows from text files; each iteration starts from the beginning."""

    paths: Sequence[Path]
    format: str
    label_column: str | int | None
    cache: StreamCache | None
    chunk_rows: int
    skip_rows: int
    known_features: int | None
    known_base: int | None
    known_classes: NDArray[Any] | None
    positive: Any

    @property
    def n_features(self) -> int:
        """Number of features, which is the number of columns of X."""
        if self.known_features is not None:
            return self.known_features
        n_features = self._scan.largest + 1 - self._base
        if n_features <= 0:
            fail(f"{self.paths[0]}: no row has a feature; {svmlight.EXPECTED}")
        return n_features

    @property
    def classes(self) -> NDArray[Any]:
        """Sorted array of all class labels, which are the values of y.

        With `positive`, they are -1 and +1; otherwise, they are numbers, or strings if any label is not a number.
        """
        return np.unique(self._values)

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield the rows of the files in chunks (X, y) of features and labels.

        The features X (n, n_features) are float32; y (n,) contains the labels.  X is C-contiguous for CSV and CSR with
        sorted int32 indices for svmlight.
        """
        values, base, n_features = self._values, self._base, self.n_features
        for chunk in self._chunks(base, n_features - 1 + base):
            yield chunk.matrix(base, n_features), values[chunk.codes]

    def to_memmap(self, folder: str | Path) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Write all rows to a folder; return X (n, d), memory-mapped float32, and y (n,).

        The files are X.npy, with 4 d bytes per row (rows of svmlight files become dense), and y.npy; later programs can
        load them with ``np.load("X.npy", mmap_mode="r")``.  Existing files of these names are replaced.  Raises
        KlrBenchError if a text file is invalid, or if the folder cannot be written.
        """
        path, labels, n_rows = expanded(str(folder)) / "X.npy", [], 0
        part = suffixed(path, ".part")
        with disk_errors(path, "another folder"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, self.n_features)}
                np.lib.format.write_array_header_1_0(file, header)  # the header has room for the final number of rows
                for X, y in self:
                    (X.toarray() if sp.issparse(X) else X).tofile(file)
                    labels.append(y)
                    n_rows += len(y)
                file.seek(0)
                np.lib.format.write_array_header_1_0(file, {**header, "shape": (n_rows, self.n_features)})
            part.replace(path)
            np.save(path.with_name("y.npy"), np.concatenate(labels))
        return np.load(path, mmap_mode="r"), np.load(path.with_name("y.npy"))

    def _chunks(self, lowest: int, highest: int) -> Iterator[Chunk]:
        """Yield the rows in chunks, from the cache if possible, otherwise from the text files.

        Feature indices must be between `lowest` and `highest`.
        """
        scan, skip_rows = self.cache.load() if self.cache else None, self.skip_rows
        if self.cache and scan and lowest <= scan.smallest and scan.largest <= highest:
            labels = Labels(self._spellings)
            codes = np.array([labels.code(label) for label in scan.spellings], dtype=np.int32)
            if len(labels.spellings) == len(self._spellings):
                try:
                    for chunk in self.cache.chunks(scan, self.chunk_rows, skip_rows, codes):
                        yield chunk
                        skip_rows += len(chunk.codes)
                    return
                except DamagedCacheError:
                    logger.warning("%s is damaged; the text files are read again.", self.cache.path)
        yield from rechunk(
            self._parsed(Labels(self._spellings, closed=True), lowest, highest), self.chunk_rows, skip_rows
        )

    @cached_property
    def _spellings(self) -> list[str]:
        known = self.known_classes
        return self._scan.spellings if known is None else [str(label) for label in known.tolist()]

    @cached_property
    def _values(self) -> NDArray[Any]:
        if self.positive is not None:
            code = code_of_label(Labels(self._spellings), self.positive, str(self.paths[0]), "positive=")
            return np.where(np.arange(len(self._spellings)) == code, 1, -1).astype(np.int8)
        if self.known_classes is not None:
            return self.known_classes
        numbers = [parse_number(label) for label in self._spellings]
        return np.array(self._spellings if None in numbers else numbers)

    @property
    def _base(self) -> int:
        if self.known_base is not None:
            return self.known_base
        return 0 if self._scan.smallest == 0 else 1

    @cached_property
    def _scan(self) -> Scan:
        """Summary of all rows, read from the cache or computed in a first pass over the files."""
        scan = self.cache.load() if self.cache else None
        if scan is None:
            labels = Labels()
            scan = Scan(labels.spellings)
            for chunk in self._parsed(labels, 0, MOST_FEATURES):
                scan.add(chunk)
        return scan

    def _parsed(self, labels: Labels, lowest: int, highest: int) -> Iterator[Chunk]:
        chunks = self._read(labels, lowest, highest)
        try:
            yield from self.cache.write_through(chunks, labels) if self.cache else chunks
        except DamagedFileError as error:
            raise _damaged(error) from error

    def _read(self, labels: Labels, lowest: int, highest: int) -> Iterator[Chunk]:
        layout: Layout | None = None
        for path in self.paths:
            if self.format == "csv":
                layout = layout_of(path, layout.label if layout else self.label_column, layout)
                yield from csv.read_chunks(path, layout, labels)
            else:
                yield from svmlight.read_chunks(path, labels, lowest, highest)

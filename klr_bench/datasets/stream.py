"""Read files that do not fit in memory as chunks (X, y), for learners with ``partial_fit``."""

from __future__ import annotations

import logging
import warnings
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
from klr_bench.datasets.class_labels import Labels, code_of_label, label_values
from klr_bench.datasets.compression import DamagedFileError
from klr_bench.datasets.layout import SET_LABEL, Layout, check_width, layout_of
from klr_bench.datasets.readers import csv, svmlight
from klr_bench.datasets.readers.chunks import Chunk, rechunk
from klr_bench.datasets.readers.recognize import check_text, detect_format
from klr_bench.datasets.stream_cache import DamagedCacheError, Scan, StreamCache
from klr_bench.errors import KlrBenchError, fail, sanitize
from klr_bench.files import expanded, glob_files, is_encoding

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
    encoding: str | None = None,
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
        Label column of CSV files: a name in the header or a position from 1; -1 and None select the last column.
    positive : str, number or None, default=None
        The label that becomes +1; all others become -1.  None leaves the labels unchanged.
    classes : sequence or None, default=None
        All labels, without duplicates, such as [-1, 1].  With numbers, the labels of CSV files are compared as numbers,
        as those of svmlight files always are; otherwise ``01`` and ``1`` are two classes, and 1 and 1.0 are one.
    cache : str, Path or None, default=None
        Folder for the parsed rows.  A pass that reaches the end of the files writes them, unless another process is
        writing them.  Later streams of the same files with the same ``format`` and ``label_column`` read the parsed
        rows instead of the text.
    skip_rows : int, default=0
        Number of rows to skip at the beginning, >= 0, such as the rows that an interrupted fit has already used.
    encoding : str or None, default=None
        Encoding of the files, such as "cp1252"; None is UTF-8.

    Returns
    -------
    Stream
        Iterable over chunks (X, y); each iteration starts from the beginning.  X is float32 (n, n_features), an array
        for CSV files and CSR with sorted indices for svmlight files.  It is float64 if float32 has too few digits for a
        column, such as times in seconds since 1970; the first 2 MiB of text decide.  y (n,) holds the
        labels as numbers, or as strings if a label is not a number or would change, such as ``01``.  The attribute
        ``classes`` holds all labels, sorted, and ``n_features`` is the number of columns of X.  If the parameter
        ``classes`` (or, for svmlight, ``n_features``) is not given, they are determined by a first pass over the text
        or read from the cache.  This pass warns of labels that look alike, and of svmlight files of which only some
        have the index 0.

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
    if encoding is not None and not is_encoding(encoding):
        fail(f"encoding: expected an encoding that Python knows, such as 'cp1252', got {sanitize(repr(encoding))}.")
    paths = _files(path)
    try:
        check_text(paths, encoding)
        kind = format or detect_format(paths[0], encoding)
        if kind not in ("svmlight", "csv"):
            fail(f"format: expected 'svmlight', 'csv' or None, got {sanitize(repr(kind))}.")
        if kind == "svmlight" and label_column is not None:
            fail(f"{paths[0]}: {SET_LABEL} has no effect in a LIBSVM file; leave it out.")
        if kind == "csv":
            width = layout_of(paths[0], label_column, encoding=encoding).n_columns - 1
            check_width(paths[0], width, n_features)
            n_features = width
        is_complete = n_features is not None and classes is not None
        base = 1 if is_complete else None
        if zero_based is not None or kind == "csv":
            base = 0 if zero_based or kind == "csv" else 1
        labels = None if classes is None else _checked_classes(classes)
        numeric = kind == "svmlight" or (labels is not None and labels.dtype.kind in "iuf")
        reading = [kind, label_column, encoding, numeric]
        folder = None if cache is None else StreamCache(expanded(str(cache)), paths, reading)
        return Stream(
            paths,
            kind,
            label_column,
            folder,
            chunk_rows,
            skip_rows,
            n_features,
            base,
            labels,
            positive,
            encoding,
            numeric,
        )
    except DamagedFileError as error:
        raise _damaged(error) from error


def _checked_classes(classes: Any) -> NDArray[Any]:
    """Sort the classes; raise KlrBenchError if two of them are equal, or would be rounded."""
    values, shape, n_labels, reason = np.array([]), (), 0, ""
    with suppress(TypeError, ValueError):
        if not (isinstance(classes, str) or hasattr(classes, "__array__")):
            classes = list(classes)
        values, shape = np.unique(np.asarray(classes)), np.shape(classes)
    try:
        n_labels = len(Labels([str(label) for label in values.tolist()], numeric=values.dtype.kind in "iuf").spellings)
    except ValueError as error:
        reason = f" ({error})"
    rounded = values.dtype.kind == "f" and bool((np.abs(values) > 2**53).any())
    if rounded or not n_labels or not (n_labels,) == values.shape == shape:
        expected = "labels without duplicates, such as [-1, 1], and integers in the range of int64"
        fail(f"classes: expected {expected}, got {sanitize(repr(classes))}{reason}.")
    return values


def _files(path: Paths) -> list[Path]:
    if isinstance(path, str | Path):
        files = glob_files(expanded(str(path)))
    else:
        files = [file for entry in path for file in _files(entry)]
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
    encoding: str | None
    numeric: bool
    """True if labels that are numbers are compared by value, however they are spelled."""

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

        With `positive`, they are -1 and +1; otherwise, they are numbers, or strings if a label is not a number.
        """
        return np.unique(self._values)

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield the rows of the files in chunks (X, y) of features and labels.

        The features X (n, n_features) are float32, or float64 if float32 has too few digits; y (n,) contains the
        labels.  X is C-contiguous for CSV and CSR with sorted int32 indices for svmlight.
        """
        values, base, n_features = self._values, self._base, self.n_features
        for chunk in self._chunks(base, n_features - 1 + base):
            yield chunk.matrix(base, n_features), values[chunk.codes]

    def to_memmap(self, folder: str | Path) -> tuple[NDArray[Any], NDArray[Any]]:
        """Write all rows to a folder; return X (n, d), memory-mapped float32 or float64, and y (n,).

        The files are X.npy, with 4 or 8 bytes per value (rows of svmlight files become dense), and y.npy; later
        programs can load them with ``np.load("X.npy", mmap_mode="r")``.  Existing files of these names are replaced.
        Raises KlrBenchError if a text file is invalid, or if the folder cannot be written.
        """
        path, labels, n_rows = expanded(str(folder)) / "X.npy", [], 0
        part = suffixed(path, ".part")
        with disk_errors(path, "another folder"):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with part.open("wb") as file:
                    header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, self.n_features)}
                    np.lib.format.write_array_header_1_0(file, header)  # which has room for the final number of rows
                    for X, y in self:
                        (X.toarray() if sp.issparse(X) else X).tofile(file)
                        labels.append(y)
                        n_rows += len(y)
                    if not n_rows:
                        fail(f"to_memmap: expected fewer than skip_rows={self.skip_rows:,} rows, got no others.")
                    file.seek(0)
                    header |= {"descr": X.dtype.str, "shape": (n_rows, self.n_features)}
                    np.lib.format.write_array_header_1_0(file, header)
                path.with_name("y.npy").unlink(missing_ok=True)  # never labels of other rows beside new rows
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
            np.save(path.with_name("y.npy"), np.concatenate(labels))
        return np.load(path, mmap_mode="r"), np.load(path.with_name("y.npy"))

    def _chunks(self, lowest: int, highest: int) -> Iterator[Chunk]:
        """Yield the rows in chunks, from the cache if possible, otherwise from the text files.

        Feature indices must be between `lowest` and `highest`.
        """
        scan, skip_rows = self.cache.load() if self.cache else None, self.skip_rows
        if self.cache and scan and lowest <= scan.smallest and scan.largest <= highest:
            labels = Labels(self._spellings, numeric=self.numeric)
            codes = np.array([labels.code(label) for label in scan.spellings], dtype=np.int32)
            if len(labels.spellings) == len(self._spellings):
                try:
                    for chunk in self.cache.chunks(scan, self.chunk_rows, skip_rows, codes):
                        yield chunk
                        skip_rows += len(chunk.codes)
                    return
                except DamagedCacheError:
                    logger.warning("%s is damaged; the text files are read again.", self.cache.path)
        labels = Labels(self._spellings, closed=True, numeric=self.numeric)
        yield from rechunk(self._parsed(labels, lowest, highest), self.chunk_rows, skip_rows)

    @cached_property
    def _spellings(self) -> list[str]:
        declared = self.known_classes
        return self._scan.spellings if declared is None else [str(label) for label in declared.tolist()]

    @cached_property
    def _values(self) -> NDArray[Any]:
        if self.positive is not None:
            labels = Labels(self._spellings, numeric=self.numeric)
            code = code_of_label(labels, self.positive, str(self.paths[0]), "positive=")
            return np.where(np.arange(len(self._spellings)) == code, 1, -1).astype(np.int8)
        if self.known_classes is not None:
            return self.known_classes
        return label_values(self._spellings, numeric=self.numeric)

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
            labels = Labels(numeric=self.numeric)
            scan = Scan(labels.spellings)
            for chunk in self._parsed(labels, 0, MOST_FEATURES):
                scan.add(chunk)
            for message in labels.lookalikes():
                warnings.warn(message.removeprefix("warning: "), stacklevel=2)
        return scan

    def _parsed(self, labels: Labels, lowest: int, highest: int) -> Iterator[Chunk]:
        chunks = self._read(labels, lowest, highest)
        try:
            yield from self.cache.write_through(chunks, labels) if self.cache else chunks
        except DamagedFileError as error:
            raise _damaged(error) from error

    def _read(self, labels: Labels, lowest: int, highest: int) -> Iterator[Chunk]:
        layout: Layout | None = None
        dtype: Any = None
        scans: dict[Path, Scan] = {}
        for path in self.paths:
            if self.format == "csv":
                column = layout.label - layout.n_columns if layout else self.label_column
                layout = layout_of(path, column, layout, encoding=self.encoding)
                chunks = csv.read_chunks(path, layout, labels, dtype)
            else:
                chunks = svmlight.read_chunks(path, labels, lowest, highest, encoding=self.encoding, dtype=dtype)
            scans[path] = Scan([])
            for chunk in chunks:
                dtype = chunk.X.dtype if len(chunk.codes) else dtype
                scans[path].add(chunk)
                yield chunk
        if self.format == "svmlight" and self.known_base is None:
            for message in svmlight.different_bases(scans):
                warnings.warn(message.removeprefix("warning: "), stacklevel=2)

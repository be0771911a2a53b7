"""Files larger than memory as a stream of chunks (X, y), for ``partial_fit``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.config.models import MOST_FEATURES
from klr_bench.datasets.class_labels import Labels, known_code, number
from klr_bench.datasets.compression import DamagedFileError
from klr_bench.datasets.readers import check_text, csv, sniffed_format, svmlight
from klr_bench.datasets.readers.chunks import STREAM_SETTINGS, Dense, LabelEncoder, Sparse, rechunked
from klr_bench.datasets.readers.layout import Layout, check_width, layout_of
from klr_bench.datasets.stream_cache import DamagedBlockError, Scan, StreamCache
from klr_bench.errors import KlrBenchError, shown
from klr_bench.files import expanded, matching

logger = logging.getLogger(__name__)

FORMATS = ("svmlight", "csv")
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
    """Return the rows of svmlight or CSV files, which may be larger than memory, in chunks for ``partial_fit``.

    Parameters
    ----------
    path : str, Path or list of them
        A file, a list of files, or a pattern such as ``"part-*.csv"``, whose files are sorted by name.  Files are plain
        or compressed with xz, gzip or bzip2, and follow one another as if they were one.
    chunk_rows : int, default=10000
        Rows of a chunk, >= 1; the last chunk may have fewer.  The memory needed is that of a chunk; below some hundred
        rows the learners are slower, because they compute kernel values in blocks.
    format : {"svmlight", "csv"} or None, default=None
        None looks at the first file.
    n_features : int or None, default=None
        Number of features, >= 1.  That of CSV is known from the first line.  Give it for svmlight, with ``classes``, to
        spare the first pass over the text.
    zero_based : bool or None, default=None
        Whether the indices of svmlight begin at 0, or at 1.  None: at 0 if there is a first pass and it finds the
        index 0, otherwise at 1.
    label_column : str, int or None, default=None
        Of CSV, a name in the header or a position: 0 is the first column, -1 and None the last.
    positive : str, number or None, default=None
        The label that becomes +1, all others become -1.  None leaves labels as they are.
    classes : sequence or None, default=None
        All labels, each once, such as [-1, 1].
    cache : str, Path or None, default=None
        Folder for the parsed rows.  A pass to the end of the files writes them, unless another process is doing so, and
        later streams of the same files read them instead of the text.  Names, sizes, times and content of the files,
        ``format`` and ``label_column`` must be the same for that; all else may differ.  None keeps nothing.
    skip_rows : int, default=0
        Rows at the beginning that are left out, >= 0, for example those that a fit that was stopped has seen.

    Returns
    -------
    Stream
        Iterates over chunks (X, y), each time from the beginning.  X is float32 (n, n_features), an array for CSV, CSR
        with sorted indices for svmlight; y (n,) the labels: numbers, or texts where a label is no number.  ``classes``
        are all labels, sorted; ``n_features`` the columns of X.  Without the parameter ``classes``, or for svmlight
        without ``n_features``, the whole text is read a first time to find them out, when they are first needed, unless
        a cache remembers them.

    Raises
    ------
    KlrBenchError
        For a file that cannot be read, and for a line that is malformed, has a label not among ``classes`` or an index
        beyond ``n_features``; it names the file and the line.

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
    _check_count("chunk_rows", chunk_rows, 1)
    _check_count("skip_rows", skip_rows, 0)
    if n_features is not None:
        _check_count("n_features", n_features, 1, MOST_FEATURES)
    paths = _files(path)
    try:
        check_text(paths)
        kind = format or sniffed_format(paths[0])
        if kind not in FORMATS:
            message = f"format={shown(repr(kind))}: expected 'svmlight', 'csv' or None."
            raise KlrBenchError(message)
        if kind == "csv":
            width = layout_of(paths[0], label_column).n_columns - 1
            check_width(paths[0], width, n_features, "n_features=")
            n_features = width
        return Stream(
            paths,
            kind,
            label_column,
            None if cache is None else StreamCache(expanded(str(cache)), paths, [kind, label_column]),
            chunk_rows,
            skip_rows,
            n_features=n_features,
            zero_based=zero_based,
            classes=None if classes is None else _checked_classes(classes),
            positive=positive,
        )
    except DamagedFileError as error:
        raise _damaged(error) from error


def _check_count(name: str, value: Any, least: int, most: int | None = None) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        span = f"{least} or more" if most is None else f"{least} to {most}"
        message = f"{name}={shown(repr(value))}: expected a whole number, {span}."
        raise KlrBenchError(message)


def _checked_classes(classes: Any) -> NDArray[Any]:
    """Return the classes, sorted, as an array."""
    given = np.unique(np.asarray(classes))
    labels = Labels()
    with suppress(ValueError):
        for label in given.tolist():
            labels.code(str(label))
    if not len(given) or len(labels.spellings) < len(given):
        message = f"classes={shown(repr(classes))}: expected labels, each once, such as [-1, 1]."
        raise KlrBenchError(message)
    return given


def _files(path: Paths) -> tuple[Path, ...]:
    """Return the files of a path, a pattern or a list of them."""
    if not isinstance(path, str | Path):
        found = [file for one in path for file in _files(one)]
    else:
        found = matching(expanded(str(path)))
    if not found:
        message = f"{shown(path)}: no file; expected a file, a list of files, or a pattern that some files match."
        raise KlrBenchError(message)
    return tuple(found)


def _damaged(error: DamagedFileError) -> KlrBenchError:
    return KlrBenchError(f"{error.path}: {error}; get the file again.")


class Stream:
    """Rows of text files in chunks; made by `stream`.  Each iteration begins anew."""

    def __init__(
        self,
        paths: Sequence[Path],
        format: str,
        label_column: str | int | None,
        cache: StreamCache | None,
        chunk_rows: int,
        skip_rows: int,
        *,
        n_features: int | None,
        zero_based: bool | None,
        classes: NDArray[Any] | None,
        positive: Any,
    ) -> None:
        self.chunk_rows, self.skip_rows = chunk_rows, skip_rows
        self._paths, self._label_column, self._cache = paths, label_column, cache
        self._is_csv, self._n_features = format == "csv", n_features
        self._given, self._positive = classes, positive
        self._base = None if zero_based is None else 1 - int(zero_based)
        if self._is_csv:
            self._base = 0
        elif self._base is None and n_features is not None and classes is not None:
            self._base = 1

    @property
    def n_features(self) -> int:
        """Columns of X."""
        if self._n_features is None:
            if self._scan.largest < 0:
                message = f"{self._paths[0]}: no row has a feature; lines like '+1 3:0.5 7:1' are expected."
                raise KlrBenchError(message)
            self._n_features = self._scan.largest + 1 - self._first_index
        return self._n_features

    @property
    def classes(self) -> NDArray[Any]:
        """All values of y, sorted: -1 and +1 with `positive`, else numbers, or texts if a label is no number."""
        return np.unique(self._values)

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield X float32 (n, n_features), C-contiguous, or CSR with sorted int32 indices for svmlight; y (n,)."""
        values, base, n_features = self._values, self._first_index, self.n_features
        for chunk in self._chunks(base, n_features - 1 + base):
            yield chunk.matrix(base, n_features), values[chunk.codes]

    def _chunks(self, lowest: int, highest: int) -> Iterator[Dense | Sparse]:
        """Yield the chunks; their indices are between `lowest` and `highest`."""
        cached, skip_rows = self._cache.load() if self._cache else None, self.skip_rows
        if cached:
            labels = Labels(self._spellings)
            codes = np.array([labels.code(label) for label in cached.scan.spellings], dtype=np.int32)
            within = lowest <= cached.scan.smallest and cached.scan.largest <= highest
            if within and len(labels.spellings) == len(self._spellings):
                try:
                    for chunk in cached.chunks(self.chunk_rows, skip_rows, codes):
                        yield chunk
                        skip_rows += len(chunk.codes)
                    return
                except (DamagedBlockError, OSError):
                    logger.warning("%s: damaged; the rows are read from the text again.", cached.folder)
        encoder = LabelEncoder(Labels(self._spellings), closed=True)
        yield from rechunked(self._parsed(encoder, lowest, highest), self.chunk_rows, skip_rows)

    @cached_property
    def _spellings(self) -> list[str]:
        """The labels by their codes."""
        return self._scan.spellings if self._given is None else [str(label) for label in self._given.tolist()]

    @cached_property
    def _values(self) -> NDArray[Any]:
        """The values of y by their codes."""
        if self._positive is not None:
            code = known_code(Labels(self._spellings), self._positive, str(self._paths[0]), "positive=")
            return np.where(np.arange(len(self._spellings)) == code, 1, -1).astype(np.int8)
        if self._given is not None:
            return self._given
        numbers = [number(label) for label in self._spellings]
        return np.array(self._spellings if None in numbers else numbers)

    @property
    def _first_index(self) -> int:
        """The index of the first column."""
        if self._base is None:
            self._base = 0 if self._scan.smallest == 0 else 1
        return self._base

    @cached_property
    def _scan(self) -> Scan:
        """What a first pass over all rows finds."""
        cached = self._cache.load() if self._cache else None
        if cached:
            return cached.scan
        labels = Labels()
        scan = Scan(labels.spellings)
        for chunk in self._parsed(LabelEncoder(labels), 0, MOST_FEATURES):
            scan.add(chunk)
        return scan

    def _parsed(self, encoder: LabelEncoder, lowest: int, highest: int) -> Iterator[Any]:
        """Yield all rows as they are read from the text, and write them to the cache."""
        chunks = self._read(encoder, lowest, highest)
        try:
            yield from self._cache.written(chunks, encoder.labels) if self._cache else chunks
        except DamagedFileError as error:
            raise _damaged(error) from error

    def _read(self, encoder: LabelEncoder, lowest: int, highest: int) -> Iterator[Dense | Sparse]:
        layout: Layout | None = None
        for path in self._paths:
            if self._is_csv:
                layout = layout_of(path, layout.label if layout else self._label_column, layout)
                yield from csv.read_chunks(path, layout, encoder, STREAM_SETTINGS)
            else:
                yield from svmlight.read_chunks(path, encoder, lowest, highest, STREAM_SETTINGS)

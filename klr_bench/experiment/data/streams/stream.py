"""Files larger than memory as a stream of chunks (X, y), for ``partial_fit``."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError, nearest, shown
from klr_bench.experiment.config.schema import MOST_FEATURES
from klr_bench.experiment.data.compression import DamagedFileError
from klr_bench.experiment.data.labels import Labels, number, some
from klr_bench.experiment.data.readers import check_text, sniffed_format
from klr_bench.experiment.data.streams.codes import Codes
from klr_bench.experiment.data.streams.delimited import Delimited
from klr_bench.experiment.data.streams.pieces import rechunked
from klr_bench.experiment.data.streams.svmlight import Svmlight
from klr_bench.files import expanded

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
        Rows of a chunk; the last chunk may have fewer.
    format : {"svmlight", "csv"} or None, default=None
        None looks at the first file.
    n_features : int or None, default=None
        Number of features.  That of CSV is known from the first line.
    zero_based : bool or None, default=None
        Whether the indices of svmlight begin at 0, or at 1.  None: at 1, but where there is a first pass and it finds
        the index 0, at 0.
    label_column : str, int or None, default=None
        Of CSV, a name in the header or a position: 0 is the first column, -1 and None the last.
    positive : str, number or None, default=None
        The label that becomes +1, all others become -1.  None leaves labels as they are.
    classes : sequence or None, default=None
        All labels.
    cache : str, Path or None, default=None
        Folder for the parsed rows.  A pass to the end of the files writes them, unless another process is about it, and
        later streams of the same files read them instead of the text.  Names, sizes and times of the files, `format`
        and `label_column` must be the same for that; all else may differ.  None keeps nothing.
    skip_rows : int, default=0
        Rows at the beginning that are left out, for example those that a fit that was stopped has seen.

    Returns
    -------
    Stream
        Iterates over chunks (X, y), each time from the beginning.  X is float32 (n, n_features), an array for CSV, CSR
        with sorted indices for svmlight; y (n,) the labels: numbers, or texts where a label is no number.  `classes`
        are all labels, sorted; `n_features` the columns of X.  Without the parameter `classes`, or for svmlight without
        `n_features`, the whole text is read a first time to find them out, when they are first needed, unless a cache
        remembers them.

    Raises
    ------
    KlrBenchError
        For a file that cannot be read, and for a line that is malformed, has a label not among `classes` or an index
        beyond `n_features`; it names the file and the line.

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
    for name, value, least in (
        ("chunk_rows", chunk_rows, 1),
        ("skip_rows", skip_rows, 0),
        ("n_features", n_features, 1),
    ):
        _check_count(name, value, least)
    paths = _files(path)
    try:
        check_text(paths)
        format = format or sniffed_format(paths[0])
        if format not in FORMATS:
            message = (
                f"format={shown(repr(format))}: expected 'svmlight', 'csv' or None.{nearest(str(format), FORMATS)}"
            )
            raise KlrBenchError(message)
        source = Svmlight(paths) if format == "svmlight" else Delimited(paths, label_column)
    except DamagedFileError as error:
        raise _damaged(error) from error
    return Stream(source, chunk_rows, n_features, zero_based, positive, classes, skip_rows)


def _check_count(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and value >= least) and not (value is None and name == "n_features"):
        message = f"{name}={shown(repr(value))}: expected a whole number, {least} or more."
        raise KlrBenchError(message)


def _files(path: Paths) -> tuple[Path, ...]:
    """Return the files of a path, a pattern or a list of them."""
    if not isinstance(path, str | Path):
        found = [file for one in path for file in _files(one)]
    elif expanded(str(path)).exists() or not glob.has_magic(str(path)):
        found = [expanded(str(path))]
    else:
        found = [Path(name) for name in sorted(glob.glob(str(expanded(str(path))), recursive=True))]
    if not found:
        message = f"{shown(path)}: no file; expected a file, a list of files, or a pattern that some files match."
        raise KlrBenchError(message)
    return tuple(found)


def _damaged(error: DamagedFileError) -> KlrBenchError:
    return KlrBenchError(f"{error.path}: {error}; get the file again.")


@dataclass(frozen=True)
class Found:
    """What a pass over all rows has found."""

    n_rows: int
    spellings: tuple[str, ...]  # of the labels, by their codes
    smallest: int  # index of a feature
    largest: int


class Stream:
    """Rows of text files in chunks; made by `stream`.  Each iteration begins anew."""

    def __init__(
        self,
        source: Svmlight | Delimited,
        chunk_rows: int,
        n_features: int | None,
        zero_based: bool | None,
        positive: Any,
        classes: Any,
        skip_rows: int,
    ) -> None:
        self.chunk_rows, self.skip_rows = chunk_rows, skip_rows
        self._source, self._positive = source, positive
        self._n_features = source.n_features(n_features)
        self._given = None if classes is None else np.asarray(classes)
        self._base = None if zero_based is None else 1 - int(zero_based)
        if self._given is not None and self._n_features is not None and self._base is None:
            self._base = 1
        self._labels = Labels()
        for label in [] if self._given is None else self._given.tolist():
            self._labels.code(str(label))

    @property
    def n_features(self) -> int:
        """Columns of X."""
        if self._n_features is None:
            self._n_features = self._found.largest + 1 - self._first_index
        return self._n_features

    @property
    def classes(self) -> NDArray[Any]:
        """All values of y, sorted: -1 and +1 with `positive`, else numbers, or texts if a label is no number."""
        return np.unique(self._values)

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield X float32 (n, n_features), C-contiguous, or CSR with sorted int32 indices for svmlight; y (n,)."""
        values, base, n_features = self._values, self._first_index, self.n_features
        for piece in rechunked(self._pieces(base, n_features - 1 + base), self.chunk_rows, self.skip_rows):
            yield piece.matrix(base, n_features), values[piece.codes]

    @cached_property
    def _values(self) -> NDArray[Any]:
        """The values of y by their codes."""
        if self._given is None:
            _ = self._found  # all labels are known after the first pass
        names = self._labels.spellings
        if self._positive is not None:
            code = self._labels.find(self._positive)
            if code is None:
                message = (
                    f"{self._source.paths[0]}: no row has the label {shown(repr(str(self._positive)))} (positive=)."
                    f"{nearest(str(self._positive), some(names))}"
                )
                raise KlrBenchError(message)
            return np.where(np.arange(len(names)) == code, 1, -1).astype(np.int8)
        if self._given is not None:
            return self._given
        numbers = [number(name) for name in names]
        return np.array(names if None in numbers else numbers)

    @property
    def _first_index(self) -> int:
        """The index of the first column."""
        if self._base is None:
            self._base = 0 if self._found.smallest == 0 else 1
        return self._base

    @cached_property
    def _found(self) -> Found:
        """What the first pass finds."""
        n_rows, smallest, largest = 0, MOST_FEATURES, -1
        for piece in self._pieces(0, MOST_FEATURES):
            n_rows += len(piece.codes)
            smallest, largest = min(smallest, piece.smallest), max(largest, piece.largest)
        if largest < 0:
            message = f"{self._source.paths[0]}: no row has a feature; lines like '+1 3:0.5 7:1' are expected."
            raise KlrBenchError(message)
        return Found(n_rows, tuple(self._labels.spellings), smallest, largest)

    def _pieces(self, lowest: int, highest: int) -> Iterator[Any]:
        """Yield all rows; those of svmlight have indices between `lowest` and `highest`."""
        codes = Codes(self._labels, closed=self._given is not None)
        try:
            yield from self._source.pieces(codes, lowest, highest)
        except DamagedFileError as error:
            raise _damaged(error) from error

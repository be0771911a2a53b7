"""From the files of a data set to arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config.models import Columns
from klr_bench.experiment.data.compression import DamagedFileError, is_packed, lines, open_plain
from klr_bench.experiment.data.delimited import WIDE, Layout, layout_of, read_delimited
from klr_bench.experiment.data.idx import read_idx
from klr_bench.experiment.data.labels import Labels, encoded, kept_only
from klr_bench.experiment.data.svmlight import read_svmlight
from klr_bench.experiment.data.table import Table, read_table

READER_VERSION = 1  # part of the key of parsed arrays: raise it when a reader gives other arrays
TABLE_VERSION = 3  # the same of a user's table: raise it when other things are made of its columns
FORMATS = ("csv", "svmlight", "idx")
DENSE_BYTES = 1 << 30  # the largest dense matrix


@dataclass(frozen=True)
class Arrays:
    """A data set in memory; the fields are those of `Dataset`."""

    X: Any  # float32 (n, d): C-contiguous, or CSR with sorted indices
    y: NDArray[np.int8]  # (n,)
    classes: tuple[str, ...]
    n_train_official: int | None = None
    relevant: NDArray[np.int64] | None = None
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """How files are read, a part of the key of the arrays; the fields are keys of a data set and of its source.

    format : None: csv or svmlight, by a look at the first file
    table : version of the treatment of a user's CSV file, which may have texts and missing values; 0 for other files
    columns : the kinds of columns of a user's table
    """

    format: str | None = None
    n_features: int | None = None
    label_column: int | str | None = None
    positive: str | None = None
    multiclass: bool | None = None
    only: Sequence[str] | None = None
    table: int = 0
    columns: Columns | None = None

    def content(self) -> dict[str, object]:
        """Return the options that change the arrays, for a key."""
        content = asdict(self)
        return content if self.table else {name: content[name] for name in content if name not in ("table", "columns")}


def read(paths: Sequence[Path], reading: Reading) -> Arrays:
    """Read a training file and, where `paths` has two, the official test file; of idx, twice as many files.

    Raises KlrBenchError that names the file, and the line where there is one.
    """
    try:
        return _read(paths, reading)
    except DamagedFileError as error:
        message = f"{error.path}: {error}; get the file again."
        raise KlrBenchError(message) from error
    except MemoryError as error:
        message = f"{paths[0]}: its numbers do not fit in the memory of this machine; use fewer rows."
        raise KlrBenchError(message) from error


def _read(paths: Sequence[Path], reading: Reading) -> Arrays:
    kind = reading.format or sniffed_format(paths[0])
    if kind not in FORMATS:
        message = f"Unknown file format {kind!r}; {', '.join(FORMATS)} are known (data.format)."
        raise KlrBenchError(message)
    labels = Labels()
    said: tuple[str, ...] = ()
    column = ""
    if kind == "csv" and reading.table:
        parts, said, column = _table(paths, labels, reading)
        if n := labels.dropped.total():
            of = ", ".join(repr(text) if text else "empty" for text in labels.dropped)
            said += (f"left out: {n:,} {'row' if n == 1 else 'rows'} without a label ({of})",)
    else:
        parts = {"idx": _idx, "svmlight": _svmlight, "csv": _csv}[kind](paths, labels, reading)
    if reading.only:
        parts, labels = kept_only(parts, labels, reading.only, str(paths[0]))
    n_train = len(parts[0][1]) if len(parts) == 2 else None
    codes = np.concatenate([codes for _, codes in parts])
    y, classes = encoded(
        codes,
        labels,
        str(paths[0]),
        positive=reading.positive,
        multiclass=reading.multiclass,
        n_train=n_train,
        column=column,
    )
    return Arrays(stored(_stacked([X for X, _ in parts])), y, classes, n_train, said=said)


def _idx(paths: Sequence[Path], labels: Labels, reading: Reading) -> list[tuple[Any, Any]]:
    return read_idx(paths, labels, reading.n_features)


def _svmlight(paths: Sequence[Path], labels: Labels, reading: Reading) -> list[tuple[Any, Any]]:
    check_text(paths)
    return read_svmlight(paths, labels, reading.n_features)


def _csv(paths: Sequence[Path], labels: Labels, reading: Reading) -> list[tuple[Any, Any]]:
    check_text(paths)
    parts: list[tuple[Any, Any]] = []
    layout: Layout | None = None
    for path in paths:
        X, codes, layout = read_delimited(
            path, labels, reading.label_column, layout, drop_unlabelled=bool(reading.table)
        )
        parts.append((X, codes))
        _check_width(path, reading, X.shape[1])
    return parts


def _table(
    paths: Sequence[Path], labels: Labels, reading: Reading
) -> tuple[list[tuple[Any, Any]], tuple[str, ...], str]:
    """Return the parts of a user's table, what was done with its columns, and where its labels stand.

    A wide one is to hold numbers alone.
    """
    check_text(paths)
    layout = layout_of(paths[0], reading.label_column, unnamed=True)
    labels_in = layout.named(layout.label)
    if layout.n_columns > WIDE:
        return _csv(paths, labels, reading), (), labels_in
    parts: list[tuple[Any, Any]] = []
    table: Table | None = None
    for path in paths:
        X, codes, table = read_table(path, labels, reading.label_column, reading.columns, table)
        parts.append((X, codes))
    assert table is not None
    _check_width(paths[0], reading, parts[0][0].shape[1])
    return parts, tuple(table.said()), labels_in


def _check_width(path: Path, reading: Reading, width: int) -> None:
    if reading.n_features not in {None, width}:
        message = (
            f"{path}: {width} columns of features, expected n_features={reading.n_features}; "
            "leave data.n_features out, or mend the file."
        )
        raise KlrBenchError(message)


def check_text(paths: Sequence[Path]) -> None:
    """Refuse files with a NUL byte near their beginning, such as an archive or UTF-16 text, and what is packed twice.

    Raises KlrBenchError and DamagedFileError.
    """
    for path in paths:
        with open_plain(path) as (stream, _):
            start = stream.read(4096) or b""
        if is_packed(start):
            message = f"{path}: compressed twice; a file that is plain or compressed once is expected. Unpack it once."
            raise KlrBenchError(message)
        if b"\0" in start:
            message = (
                f"{path}: not a text file in UTF-8; svmlight or CSV text, plain or compressed with xz, "
                "gzip or bzip2, is expected."
            )
            raise KlrBenchError(message)


def sniffed_format(path: Path) -> str:
    """Return ``svmlight`` where most first lines go on with ``index:value`` after the label, else ``csv``."""
    with open_plain(path) as (stream, _):
        rows = [line.partition(b"#")[0].split(None, 2)[1:2] for line in islice(lines(stream, path), 100)]
    tokens = [row[0] for row in rows if row]
    pairs = [token for token in tokens if re.fullmatch(rb"(\d+|qid):[^:,;|]*", token)]
    return "svmlight" if 2 * len(pairs) > len(tokens) else "csv"


def stored(X: Any) -> Any:
    """Return a matrix as float32, dense where it is small enough or hardly sparse, else CSR with sorted indices."""
    n, d = X.shape
    if d <= WIDE and (n * d * 4 <= DENSE_BYTES or _count(X) * 8 >= n * d * 4):
        dense = X.toarray() if sp.issparse(X) else X
        return np.ascontiguousarray(dense, dtype=np.float32)
    matrix = sp.csr_matrix(X, dtype=np.float32)
    matrix.sort_indices()
    return matrix


def _count(X: Any) -> int:
    """Return the numbers that are not 0, each of which takes 8 bytes in CSR."""
    return int(X.nnz if sp.issparse(X) else np.count_nonzero(X))


def _stacked(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)

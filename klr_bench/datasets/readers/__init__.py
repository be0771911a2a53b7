"""From the files of a data set to arrays: one module per format, which reads a file in chunks of rows.

The modules with compiled code are imported when a file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.config.models import MOST_FEATURES, Columns
from klr_bench.datasets.class_labels import Labels, encoded, kept_only
from klr_bench.datasets.compression import DamagedFileError, is_packed, lines, open_plain
from klr_bench.datasets.readers.layout import WIDE, Layout, check_width, layout_of
from klr_bench.errors import KlrBenchError

READER_VERSION = 1  # part of the key of parsed arrays: raise it when a reader gives other arrays
TABLE_VERSION = 3  # the same of a user's table: raise it when other things are made of its columns
FORMATS = ("csv", "svmlight", "idx")
DENSE_BYTES = 1 << 30  # the largest dense matrix
Part = tuple[Any, NDArray[Any]]
"""X (n, d) of a file, dense or CSR, and the codes of its labels (n,)."""


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
    labels, label_column = Labels(), ""
    notes: tuple[str, ...] = ()
    if kind == "idx":
        parts = _idx(paths, labels, reading)
    elif kind == "svmlight":
        parts = _svmlight(paths, labels, reading)
    elif reading.table:
        parts, notes, label_column = _table(paths, labels, reading)
    else:
        parts = _csv(paths, labels, reading)
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
        column=label_column,
    )
    return Arrays(stored(_stacked([X for X, _ in parts])), y, classes, n_train, said=notes)


def _idx(paths: Sequence[Path], labels: Labels, reading: Reading) -> list[Part]:
    from klr_bench.datasets.readers import idx

    chunks = [[*idx.read_chunks(*pair, labels)] for pair in zip(paths[::2], paths[1::2], strict=True)]
    n_features = reading.n_features or chunks[0][0].X.shape[1]
    for path, (first, *_) in zip(paths[::2], chunks, strict=True):
        if first.X.shape[1] != n_features:
            message = (
                f"{path}: {first.X.shape[1]} values an example, expected {n_features}; correct n_features, or the file."
            )
            raise KlrBenchError(message)
    return [_joined(of_file) for of_file in chunks]


def _svmlight(paths: Sequence[Path], labels: Labels, reading: Reading) -> list[Part]:
    """Indices start at the same base in all files: 0 if the index 0 occurs in any of them, else 1."""
    from klr_bench.datasets.readers import svmlight
    from klr_bench.datasets.readers.chunks import RUN_SETTINGS, LabelEncoder, Sparse

    check_text(paths)
    encoder = LabelEncoder(labels)
    files = [Sparse.joined([*svmlight.read_chunks(path, encoder)]) for path in paths]
    base = 0 if min(file.smallest for file in files) == 0 else 1
    n_features = max(file.largest for file in files) + 1 - base
    if n_features <= 0:
        message = f"{paths[0]}: no row has a feature; {svmlight.EXPECTED}"
        raise KlrBenchError(message)
    if n_features > (reading.n_features or MOST_FEATURES):
        settings, most = RUN_SETTINGS, reading.n_features
        if most is None:
            settings, most = settings._replace(indices="number the features anew, without gaps"), MOST_FEATURES
        for path in paths:  # once more, to find the line
            for _ in svmlight.read_chunks(path, encoder, base, base + most - 1, settings):
                pass
        message = f"{paths[0]}: has changed while it was read; run the same command again."
        raise KlrBenchError(message)
    n_features = reading.n_features or n_features
    return [(file.matrix(base, n_features), file.codes) for file in files]


def _csv(paths: Sequence[Path], labels: Labels, reading: Reading) -> list[Part]:
    from klr_bench.datasets.readers import csv
    from klr_bench.datasets.readers.chunks import LabelEncoder

    check_text(paths)
    encoder = LabelEncoder(labels, drop_unlabelled=bool(reading.table))
    layout: Layout | None = None
    parts = []
    for path in paths:
        layout = layout_of(path, reading.label_column, layout)
        parts.append(_joined(csv.read_chunks(path, layout, encoder)))
        check_width(path, layout.n_columns - 1, reading.n_features, "data.n_features")
    return parts


def _table(paths: Sequence[Path], labels: Labels, reading: Reading) -> tuple[list[Part], tuple[str, ...], str]:
    """Return the parts of a user's table, what was done with its columns, and where its labels stand.

    A wide one must hold numbers only.
    """
    from klr_bench.datasets.user_table import Table, read_table

    check_text(paths)
    layout = layout_of(paths[0], reading.label_column, unnamed=True)
    parts: list[Part] = []
    notes: list[str] = []
    if layout.n_columns > WIDE:
        parts = _csv(paths, labels, reading)
    else:
        table: Table | None = None
        for path in paths:
            X, codes, table = read_table(path, labels, reading.label_column, reading.columns, table)
            parts.append((X, codes))
            notes = notes or table.notes()
        check_width(paths[0], parts[0][0].shape[1], reading.n_features, "data.n_features")
    if n := labels.dropped.total():
        of = ", ".join(repr(text) if text else "empty" for text in labels.dropped)
        notes.append(f"left out: {n:,} {'row' if n == 1 else 'rows'} without a label ({of})")
    return parts, tuple(notes), layout.named(layout.label)


def _joined(chunks: Iterable[Any]) -> Part:
    """Return the rows of chunks of a matrix, CSR if it is wide, and the codes of their labels."""
    codes, parts = [], []
    for chunk in chunks:
        codes.append(chunk.codes)
        parts.append(sp.csr_matrix(chunk.X) if chunk.X.shape[1] > WIDE else chunk.X)
    return _stacked(parts), np.concatenate(codes)


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

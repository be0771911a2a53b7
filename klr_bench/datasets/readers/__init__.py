"""Readers that convert the files of a data set to arrays, with one module per file format.

Modules with compiled code are imported only when a file is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.config.models import MOST_FEATURES, Columns
from klr_bench.datasets.class_labels import Labels, encode_targets, select_labels
from klr_bench.datasets.compression import DamagedFileError
from klr_bench.datasets.layout import SET_LABEL, WIDE, Layout, check_width, layout_of
from klr_bench.datasets.preprocessing import needs_float64
from klr_bench.datasets.readers.chunks import concatenate_chunks, stack_rows
from klr_bench.datasets.readers.recognize import check_text, detect_format
from klr_bench.errors import fail

FORMATS = ("csv", "svmlight", "idx")
DENSE_BYTES = 1 << 30  # maximum size of a matrix that is stored as dense although most values are zero
OF_TABLES = ("coerce", "decimal", "group", "time")
"""Options for tables with texts and missing values, but not for LIBSVM files and wide tables of numbers."""
Part = tuple[Any, NDArray[Any]]
"""Features X (n, d) of a file, dense or CSR, and its label codes (n,)."""


@dataclass(frozen=True)
class Arrays:
    """The arrays of a data set; each field has the same meaning as in `Dataset`."""

    X: Any  # features (n, d), float32 or float64 (see `compact`): C-contiguous array, or CSR with sorted indices
    y: NDArray[np.int8]  # (n,)
    classes: tuple[str, ...]
    n_train_official: int | None = None
    relevant: NDArray[np.int64] | None = None
    said: tuple[str, ...] = ()
    groups: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Reading:
    """Options for reading the files of a data set.

    The options are part of the hash of the data set.  Most fields are named after keys of its configuration.

    format : csv, svmlight or idx; None: csv or svmlight, detected from the first file
    table : whether the file is a user's table, which may have texts and missing values
    columns : requested kinds of the columns of a user's table
    coerce, decimal : as in `TablePreparer`
    group, time : column of the groups or the times of the rows
    encoding : encoding of the text; None: UTF-8
    """

    format: str | None = None
    n_features: int | None = None
    label_column: int | str | None = None
    positive: str | None = None
    multiclass: bool | None = None
    only: Sequence[str] | None = None
    table: bool = False
    columns: Columns | None = None
    coerce: bool = False
    decimal: str = "."
    group: str | None = None
    time: str | None = None
    encoding: str | None = None

    def content(self) -> dict[str, object]:
        """Return the options that affect the arrays, as input for the hash of the data set."""
        omitted = set() if self.table else {"table", "columns"}
        omitted |= {name for name in (*OF_TABLES, "encoding") if getattr(self, name) in (None, False, ".")}
        return {name: value for name, value in asdict(self).items() if name not in omitted}


def read(paths: Sequence[Path], reading: Reading) -> Arrays:
    """Read the training file of a data set and, if there is one, the official test file.

    In the idx format, each of them is a pair of files: examples and labels.  Raises KlrBenchError that names the file,
    and the line if possible.
    """
    try:
        return _read(paths, reading)
    except DamagedFileError as error:
        fail(f"{error.path}: {error}; obtain a new copy of the file.")
    except MemoryError:
        fail(f"{paths[0]}: the arrays do not fit into memory; use fewer rows.")


def _read(paths: Sequence[Path], reading: Reading) -> Arrays:
    kind = reading.format or detect_format(paths[0], reading.encoding)
    if kind not in FORMATS:
        fail(f"Unknown file format {kind!r}; expected one of {', '.join(FORMATS)} (data.format).")
    labels, label_column = Labels(drop_missing=reading.table, numeric=kind == "svmlight"), ""
    notes: list[str] = []
    groups = None
    if kind == "idx":
        parts = _idx(paths, labels, reading)
    else:
        check_text(paths, reading.encoding)
        if kind == "svmlight":
            if reading.label_column is not None:
                fail(f"{paths[0]}: {SET_LABEL} has no effect in a LIBSVM file; leave it out.")
            _refuse_options(paths[0], reading, "in a LIBSVM file")
            parts, notes = _svmlight(paths, labels, reading)
        else:
            parts, notes, label_column, groups = _delimited(paths, labels, reading)
        notes += labels.lookalikes() if reading.table else []
        if rows := labels.dropped_rows():
            notes.append(f"left out: {rows}")
    if reading.only:
        parts, labels = select_labels(parts, labels, reading.only, str(paths[0]))
    n_train = len(parts[0][1]) if len(parts) == 2 else None
    y, classes = encode_targets(
        np.concatenate([codes for _, codes in parts]),
        labels,
        str(paths[0]),
        positive=reading.positive,
        multiclass=reading.multiclass,
        n_train=n_train,
        column=label_column,
    )
    X = parts[0][0] if len(parts) == 1 else stack_rows([X for X, _ in parts])
    return Arrays(compact(X), y, classes, n_train, said=tuple(notes), groups=groups)


def _refuse_options(path: Path, reading: Reading, where: str) -> None:
    for name in (*OF_TABLES, "columns"):
        if getattr(reading, name) not in (None, False, ".", {}):
            fail(f"{path}: data.{name} has no effect {where}; leave it out.")


def _idx(paths: Sequence[Path], labels: Labels, reading: Reading) -> list[Part]:
    from klr_bench.datasets.readers.idx import read_pair

    parts: list[Part] = []
    for path, labels_file in zip(paths[::2], paths[1::2], strict=True):
        parts.append(read_pair(path, labels_file, labels))
        check_width(path, parts[-1][0].shape[1], reading.n_features or parts[0][0].shape[1])
    return parts


def _svmlight(paths: Sequence[Path], labels: Labels, reading: Reading) -> tuple[list[Part], list[str]]:
    """Read LIBSVM files; also return a warning if only some of them have the index 0."""
    from klr_bench.datasets.readers import svmlight

    highest = reading.n_features or MOST_FEATURES
    options: dict[str, Any] = {"encoding": reading.encoding, "dtype": np.float64 if reading.table else None}
    files = [concatenate_chunks([*svmlight.read_chunks(path, labels, 0, highest, **options)]) for path in paths]
    # Feature indices start at 0 in all files if the index 0 occurs in any of them, otherwise at 1.
    base = 0 if min(file.smallest for file in files) == 0 else 1
    n_features = max(file.largest for file in files) + 1 - base
    if not 0 < n_features <= highest:
        out_of_range = f"the index {highest} is not between 0 and {highest - 1}"
        problem = "no row has a feature" if n_features <= 0 else out_of_range
        fail(f"{paths[0]}: {problem}; {svmlight.EXPECTED}")
    parts = [(file.matrix(base, reading.n_features or n_features), file.codes) for file in files]
    return parts, svmlight.different_bases(dict(zip(paths, files, strict=True)))


def _delimited(
    paths: Sequence[Path], labels: Labels, reading: Reading
) -> tuple[list[Part], list[str], str, NDArray[np.int64] | None]:
    """Read CSV files; also return notes, the label column and the groups.

    Notes describe the columns.  A table with more than `WIDE` columns must contain only numbers.
    """
    from klr_bench.datasets.readers.user_table import Table, read_table

    layout: Layout | None = None
    table: Table | None = None
    parts: list[Part] = []
    notes: list[str] = []
    for path in paths:
        layout = layout_of(path, reading.label_column, layout, unnamed=reading.table, encoding=reading.encoding)
        if reading.table and layout.n_columns <= WIDE:
            options: dict[str, Any] = {name: getattr(reading, name) for name in OF_TABLES}
            X, codes, table = read_table(path, layout, labels, reading.columns or {}, table, **options)
            notes = notes or table.notes(path)
            notes += [table.unseen] if table.unseen else []
        else:
            layout.check_names(path)
            _refuse_options(path, reading, f"with more than {WIDE:,} columns")
            X, codes = _numbers(path, layout, labels, np.float64 if reading.table else None)
        parts.append((X, codes))
        check_width(path, X.shape[1], reading.n_features)
    assert layout is not None
    label_column = layout.describe(layout.label) if reading.table else ""
    return parts, notes, label_column, table.groups if table else None


def _numbers(path: Path, layout: Layout, labels: Labels, dtype: Any) -> Part:
    from klr_bench.datasets.readers import csv

    codes, matrices = [], []
    for chunk in csv.read_chunks(path, layout, labels, dtype):
        codes.append(chunk.codes)
        matrices.append(sp.csr_matrix(chunk.X) if layout.n_columns > WIDE else chunk.X)
    return stack_rows(matrices), np.concatenate(codes)


def compact(X: Any) -> Any:
    """Convert a matrix to float32, dense or CSR depending on its shape and number of zeros.

    The result is CSR with sorted indices if the matrix is wide, or if it is large and most values are zero.  It stays
    float64 where float32 has too few digits (see `needs_float64`).
    """
    n, d = X.shape
    n_bytes, nnz = n * d * 4, X.nnz if sp.issparse(X) else np.count_nonzero(X)
    if d <= WIDE and (n_bytes <= DENSE_BYTES or nnz * 8 >= n_bytes):  # CSR needs 8 bytes per non-zero value
        dense = X.toarray() if sp.issparse(X) else X
        return np.ascontiguousarray(dense, dtype=np.float64 if needs_float64(dense) else np.float32)
    matrix = sp.csr_matrix(X)
    matrix = matrix.astype(np.float64 if needs_float64(matrix) else np.float32, copy=False)
    matrix.sort_indices()
    return matrix

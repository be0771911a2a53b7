"""Delimited text (CSV and similar): one column for the label, numbers in all others; quoted fields may span lines."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError, nearest, shown
from klr_bench.experiment.data.compression import LONGEST_LINE, lines, open_plain
from klr_bench.experiment.data.header import is_header
from klr_bench.experiment.data.labels import LARGEST, Labels, is_unlabelled, number, some

ROWS, FIELDS = 5000, 1_000_000  # rows, and about so many fields, converted at a time
WIDE = 2000  # columns; with more, rows are stored sparse
DELIMITERS = ",;\t| "
SAMPLE = 20  # lines from which the delimiter is determined

Piece = list[tuple[int, list[str]]]
"""Some rows: the line and the fields of each."""


@dataclass(frozen=True)
class Layout:
    """Delimiter, header and columns of a file."""

    delimiter: str
    header: tuple[str, ...] | None
    n_columns: int
    label: int  # position of the label column, from 0

    def named(self, column: int) -> str:
        """Return the name of a column for a message, counted from 1 as editors do."""
        return f"column {column + 1}" + (f" ({shown(repr(self.header[column]))})" if self.header else "")


def read_delimited(
    path: Path,
    labels: Labels,
    label_column: str | int | None = None,
    like: Layout | None = None,
    *,
    drop_unlabelled: bool = False,
) -> tuple[Any, NDArray[np.int64], Layout]:
    """Return X float32 (n, d), dense or, if it is wide, CSR; the codes of the labels (n,); and the layout.

    `label_column` is a name in the header, or a position: 0 is the first column, -1 (also None) the last.
    `like` is the layout of the training file, which a test file must share.  Raises a KlrBenchError that
    names the file and the line.
    """
    layout = layout_of(path, label_column, like)
    values = partial(_values, path, layout)
    X, codes = rows_and_codes(path, layout, labels, values, drop_unlabelled=drop_unlabelled)
    return X, codes, layout


def rows_and_codes(
    path: Path,
    layout: Layout,
    labels: Labels,
    features: Callable[[Piece], NDArray[np.float32]],
    *,
    drop_unlabelled: bool,
) -> tuple[Any, NDArray[np.int64]]:
    """Return X (n, d), dense or, if it is wide, CSR, as `features` makes it of some rows; the codes of the labels (n,).

    Rows with a missing label are counted in ``labels.dropped``, or refused unless `drop_unlabelled`.  Raises a
    KlrBenchError for a file without rows.
    """
    pieces, codes = [], []
    for rows in pieces_of(path, layout):
        piece = labelled(rows, layout) if drop_unlabelled else rows
        if len(piece) < len(rows):
            labels.dropped.update(row[layout.label] for _, row in rows if is_unlabelled(row[layout.label]))
        if piece:
            codes += [_code_of(path, line, row, layout, labels) for line, row in piece]
            values = features(piece)
            pieces.append(sp.csr_matrix(values) if values.shape[1] > WIDE else values)
    if not pieces:
        message = f"{path}: no rows."
        if labels.dropped:
            message = (
                f"{path}: no row has a label in {layout.named(layout.label)}; data.label=NAME takes another column."
            )
        raise KlrBenchError(message)
    X = sp.vstack(pieces, format="csr") if sp.issparse(pieces[0]) else np.concatenate(pieces)
    return X, np.array(codes, dtype=np.int64)


def labelled(rows: Piece, layout: Layout) -> Piece:
    """Return the rows that have a label."""
    return [(line, row) for line, row in rows if not is_unlabelled(row[layout.label])]


def pieces_of(path: Path, layout: Layout) -> Iterator[Piece]:
    """Yield the rows of a file after the header, as many at a time as memory should hold as text."""
    rows = _rows_of(path, layout)
    while piece := list(islice(rows, max(1, min(ROWS, FIELDS // layout.n_columns)))):
        yield piece


def _lines(stream: BinaryIO, path: Path) -> Iterator[str]:
    """Return the lines of a file as text; bytes that are not UTF-8 stay visible and distinct."""
    return lines(io.TextIOWrapper(stream, encoding="utf-8-sig", errors="backslashreplace", newline=""), path)


def fields_of(lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the fields of each row that is not blank.  Raises csv.Error."""
    at_end, begin = False, 1

    def to_the_end() -> Iterator[str]:
        nonlocal at_end
        for line in lines:
            yield line.strip() + "\n" if delimiter == " " else line
        at_end = True

    reader = csv.reader(to_the_end(), delimiter=delimiter, skipinitialspace=True)
    try:
        for fields in reader:
            if at_end:  # the reader went on looking for the end of the row
                break
            stripped = [field.strip() for field in fields]
            if any(stripped) or len(stripped) > 1:
                yield begin, stripped
            begin = reader.line_num + 1
        else:
            return
    except csv.Error as error:
        if reader.line_num <= begin:
            reason = f"a field has more than {csv.field_size_limit():,} characters" if "limit" in str(error) else error
            message = f"line {begin}: {reason}"
            raise csv.Error(message) from error
    message = f"a quote that opens in line {begin} is not closed"
    raise csv.Error(message)


def _rows_of(path: Path, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, fields) for each row after the header, all of the same length."""
    with open_plain(path) as (stream, _):
        try:
            rows = fields_of(_lines(stream, path), layout.delimiter)
            for line, fields in islice(rows, 1 if layout.header else 0, None):
                if len(fields) != layout.n_columns:
                    counted = f"{len(fields)} columns, the first line has {layout.n_columns}"
                    message = f"{path}, line {line}: {counted}; mend or remove the row."
                    raise KlrBenchError(message)
                yield line, fields
        except csv.Error as error:
            raise _no_text(path, error) from error


def _no_text(path: Path, error: csv.Error) -> KlrBenchError:
    return KlrBenchError(f"{path}: not delimited text ({error}). Correct or remove the line.")


def _code_of(path: Path, line: int, row: list[str], layout: Layout, labels: Labels) -> int:
    """Return the code of the label of a row."""
    try:
        return labels.code(row[layout.label])
    except ValueError as error:
        message = (
            f"{path}, line {line}: {error} ({layout.named(layout.label)}); set data.label= if the "
            "labels stand elsewhere."
        )
        raise KlrBenchError(message) from error


def _values(path: Path, layout: Layout, piece: Piece) -> NDArray[np.float32]:
    """Return the features of some rows as numbers."""
    features = [row[: layout.label] + row[layout.label + 1 :] for _, row in piece]
    try:
        with np.errstate(over="ignore"):
            values = np.array(features, dtype=np.float64).astype(np.float32)
        texts = map("".join, features)
        if (np.abs(values) <= LARGEST).all() and all(text.isascii() and "_" not in text for text in texts):
            return values
    except ValueError:
        pass
    raise KlrBenchError(fault(path, layout, piece))


def fault(path: Path, layout: Layout, piece: Piece) -> str:
    """Return the message about the field of some rows that is not a finite number."""
    for line, row in piece:
        for column, field in enumerate(row):
            value = number(field)
            if column != layout.label and (value is None or not abs(value) <= LARGEST):
                kind = "a number" if value is None else f"between -{LARGEST:g} and {LARGEST:g}"
                what = f"{shown(repr(field))} is not {kind}"
                return f"{path}, line {line}, {layout.named(column)}: {what}; mend or remove the row."
    return f"{path}: a value is not a number between -{LARGEST:g} and {LARGEST:g}."


def layout_of(
    path: Path, label_column: str | int | None, like: Layout | None = None, *, unnamed: bool = False
) -> Layout:
    """Determine delimiter, header and label column from the first lines; refuse a layout that is not `like` another.

    With `unnamed` the first column need not have a name.
    """
    layout = _first_lines(path, label_column, like.header if like else None, unnamed=unnamed)
    if like is not None and (layout.n_columns, layout.label) != (like.n_columns, like.label):
        message = (
            f"{path}: {layout.n_columns} columns, the label is column {layout.label + 1}; the training "
            f"file has {like.n_columns}, the label is column {like.label + 1}."
        )
        raise KlrBenchError(message)
    if like is not None and like.header and layout.header and layout.header != like.header:
        message = f"{path}: the header {some(layout.header)} is not that of the training file, {some(like.header)}."
        raise KlrBenchError(message)
    return layout


def _first_lines(path: Path, label_column: str | int | None, known: tuple[str, ...] | None, *, unnamed: bool) -> Layout:
    """Determine a layout; a first line that equals the `known` header is one."""
    with open_plain(path) as (stream, _):
        sample = _sample(_lines(stream, path))
    if not sample:
        message = f"{path}: no rows."
        raise KlrBenchError(message)
    delimiter = max(DELIMITERS, key=lambda candidate: _consistency(sample, candidate))
    try:
        first = next(fields_of(iter(sample), delimiter), (0, [""]))[1]
    except csv.Error as error:
        raise _no_text(path, error) from error
    if len(first) < 2:
        message = (
            f"{path}: one column, {shown(repr(first[0]))}; features and a label are expected, divided by ',', ';', "
            "'|', tab or blanks."
        )
        raise KlrBenchError(message)
    below = [row for row in _whole_rows(sample, delimiter)[1:] if len(row) == len(first)]
    header = tuple(first) if known == tuple(first) or is_header(first, below, label_column) else None
    if header and not header[0] and label_column != 0 and not unnamed:
        message = (
            f"{path}: the first column has no name, so it is likely the row numbers that pandas writes; "
            "remove it (to_csv(index=False))."
        )
        raise KlrBenchError(message)
    return Layout(delimiter, header, len(first), _position(path, label_column, header, len(first)))


def _sample(text: Iterator[str]) -> list[str]:
    """Return the first lines that are not blank; fewer where they are very long."""
    sample: list[str] = []
    size = 0
    for line in text:
        if line.strip():
            sample.append(line)
            size += len(line)
        if len(sample) == SAMPLE or size > LONGEST_LINE:
            break
    return sample


def _consistency(sample: list[str], delimiter: str) -> tuple[bool, bool, float, int]:
    """Return how well a delimiter divides some lines; blanks also occur in names and rank last."""
    rows = _whole_rows(sample, delimiter)
    counts = Counter(len(fields) for fields in rows)
    n_fields, n_rows = (counts or Counter({1: 1})).most_common(1)[0]  # all fields of all lines may be blank
    share = n_rows / len(rows) if n_fields > 1 else 0.0
    return share > 0.5, delimiter != " ", share, n_fields


def _whole_rows(sample: list[str], delimiter: str) -> list[list[str]]:
    """Return the rows of some lines, up to one whose quote is not closed in them."""
    rows = []
    with suppress(csv.Error):
        for _, fields in fields_of(iter(sample), delimiter):
            rows.append(fields)
    return rows


def _position(path: Path, label_column: str | int | None, header: tuple[str, ...] | None, n: int) -> int:
    """Return the position of the label column, from 0."""
    wanted = "-1" if label_column is None else str(label_column)
    if header and header.count(wanted) == 1:
        return header.index(wanted)
    try:
        position = int(wanted)
    except ValueError:
        what = "it has no header: give a number."
        if header:
            what = f"its columns are {some(header)}.{nearest(wanted, header) if len(header) <= 100 else ''}"
        if header and wanted in header:
            what = f"{header.count(wanted)} columns have that name: give its position."
        message = f"{path}: no column {shown(repr(wanted))} for the labels (data.label); {what}"
        raise KlrBenchError(message) from None
    if not -n <= position < n:
        message = (
            f"{path}: no column {shown(wanted)} for the labels (data.label); with {n} columns, 0 to {n - 1} "
            f"or -1 to {-n} are possible."
        )
        raise KlrBenchError(message)
    return position % n

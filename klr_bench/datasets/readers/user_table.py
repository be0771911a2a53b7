"""Read a user's table from a file, as features and labels or as a data frame of strings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import Labels, encode_targets, first_ten, is_missing_label, whole_numbers
from klr_bench.datasets.column import LEAVE_OUT, TEXT, Column
from klr_bench.datasets.column_kinds import Request, choose_column, describe_cell, requested_kinds
from klr_bench.datasets.column_notes import describe, unseen_values
from klr_bench.datasets.columns import ColumnProfile
from klr_bench.datasets.compression import DamagedFileError
from klr_bench.datasets.grouping import group_codes
from klr_bench.datasets.layout import WIDE, Layout, TextRows, layout_of, no_labeled_row, place_of, text_rows
from klr_bench.datasets.readers.chunks import stack_rows
from klr_bench.datasets.readers.recognize import check_text, detect_format
from klr_bench.datasets.workbook import declared_types
from klr_bench.errors import fail, sanitize
from klr_bench.files import no_file
from klr_bench.parsing import OpenModel

SOURCE = "klr_bench_source"
"""Attribute of a data frame for the path and the layout of the file from which it was read, used in messages."""
FEW_ROWS, FEW_SHARE = 10, 0.04
"""Classes with fewer rows are named in a warning: a number of rows, and a share of the mean number per class."""


class TrainingFile(OpenModel):
    """Names of the columns in a training file, including the label column."""

    names: list[str]
    label: str
    has_header: bool


@dataclass(frozen=True)
class Table:
    """The columns of a training file; a test file must have the same columns."""

    layout: Layout
    columns: tuple[Column, ...]
    unseen: str | None = None
    """Warning about values of a test file that do not occur in the training file."""
    by: int | None = None
    """Position of the column of groups or times."""
    groups: NDArray[np.int64] | None = None
    """Codes (n,) of the groups of the rows, or the ranks of their times."""

    def notes(self, path: Path) -> list[str]:
        """Describe the label column and how the other columns are converted, in a list of notes."""
        label = f"labels: {self.layout.describe(self.layout.label)}" + ("" if self.layout.header else " (no header)")
        if self.layout.n_titles:
            label = f"{titles(self.layout)}; {label}"
        by = f"groups: {self.layout.describe(self.by)}" if self.by is not None else ""
        return [label, *filter(None, [by]), *describe(path, self.columns)]


def read_table(
    path: Path,
    layout: Layout,
    labels: Labels,
    requested: Mapping[str, Request],
    train: Table | None = None,
    *,
    coerce: bool = False,
    decimal: str = ".",
    group: str | None = None,
    time: str | None = None,
) -> tuple[Any, NDArray[np.int64], Table]:
    """Read a user's table from a file; return the features, the label codes and the columns.

    X (n, d) is float64, CSR if it is wide, with NaN for a missing number.  `requested` maps columns, by name or by
    position from 1, to kinds.  `train` is the table of the training file, which determines the columns of a test file.
    `coerce` and `decimal` are as in `TablePreparer`.  `group` or `time` is the column of the groups or times of the
    rows, which is left out.  Raises KlrBenchError that names the file, and the line if possible.
    """
    by = place_of_groups(path, layout, group, time)
    table = train or Table(layout, tuple(_columns(path, layout, requested, by, coerce=coerce, decimal=decimal)), by=by)
    parts: list[Any] = []
    codes: list[int] = []
    of_groups: TextRows = []
    unseen = {column: Counter[str]() for column in table.columns if train and column.kind != LEAVE_OUT}
    batches = text_rows(path, layout)
    for rows in [[*chain.from_iterable(batches)]] if train else batches:  # of a test file, a tenth may be unreadable
        labeled: TextRows = []
        for line, row in rows:
            if labels.drops(row[layout.label]):
                continue
            try:
                codes.append(labels.code(row[layout.label]))
            except ValueError as error:
                where = f"{path}, line {line}, {layout.describe(layout.label)}"
                fail(f"{where}: {error}; set data.label=NAME to use another column.")
            labeled.append((line, row))
        if labeled:
            X = _values(path, layout, table.columns, labeled, lenient=train is not None)
            of_groups += [(line, row[by : by + 1]) for line, row in labeled] if by is not None else []
            parts.append(sp.csr_matrix(X) if X.shape[1] > WIDE else X)
            for column, counts in unseen.items():
                counts.update(column.unseen([row[column.place] for _, row in labeled]))
    if not parts:
        raise no_labeled_row(path, layout, labels)
    X = stack_rows(parts)
    if not X.shape[1]:
        why = "; ".join(first_ten([f"{column.name}: {column.why}" for column in table.columns]))
        fail(f"{path}: all feature columns are left out ({why}); keep at least one with data.columns={{NAME: number}}.")
    if sp.issparse(X) and np.isnan(X.data).any():
        fail(f"{path}: missing values are not supported with more than {WIDE:,} features; fill them in beforehand.")
    if by is not None:
        lines, texts = zip(*((line, text) for line, (text,) in of_groups), strict=True)
        groups = groups_of(path, layout, by, lines, texts, is_time=time is not None, decimal=decimal)
        table = replace(table, groups=groups)
    warning = unseen_values(unseen)
    return X, np.array(codes, dtype=np.int64), replace(table, unseen=warning and f"warning: {path} has {warning}")


def titles(layout: Layout) -> str:
    """Return a note on the lines above a table that are left out."""
    return f"left out: {layout.n_titles} {'line' if layout.n_titles == 1 else 'lines'} above the table"


def place_of_groups(path: Path, layout: Layout, group: str | None, time: str | None) -> int | None:
    """Return the position of the column of groups or times, or None.

    Raises KlrBenchError if there is no such column.
    """
    name, key = (group, "group") if time is None else (time, "time")
    if name is None:
        return None
    place = place_of(path, name, layout.header, layout.n_columns, f"data.{key}")
    if place == layout.label:
        fail(f"data.{key}={sanitize(name)}: is the label column; expected another column.")
    return place


def frame_groups(
    frame: pd.DataFrame, group: str | None, time: str | None, decimal: str
) -> tuple[str | None, NDArray[np.int64] | None]:
    """Return the name and the codes of the column of groups or times of a training file.

    Both are None if neither is given.  `decimal` is the decimal mark of times.  Raises KlrBenchError.
    """
    path, layout = frame.attrs[SOURCE]
    by = place_of_groups(path, layout, group, time)
    if by is None:
        return None, None
    name = layout.header[by]
    lines, texts = frame.index.tolist(), frame[name].tolist()
    return name, groups_of(path, layout, by, lines, texts, is_time=time is not None, decimal=decimal)


def groups_of(
    path: Path, layout: Layout, by: int, lines: Sequence[int], texts: Sequence[str], *, is_time: bool, decimal: str
) -> NDArray[np.int64]:
    """Return the codes of the groups in a column, or the ranks of its times (see `group_codes`)."""

    def cell(row: int) -> str:
        return describe_cell(path, layout, lines[row], by, texts[row])

    return group_codes(texts, cell, is_time=is_time, decimal=decimal)


def read_frame(
    path: Path, label_column: str | int | None = None, train: TrainingFile | None = None, encoding: str | None = None
) -> tuple[pd.DataFrame, TrainingFile]:
    """Read a user's table as a data frame of strings, and also return the names of its columns.

    The index of the frame is the line numbers.  Columns without a name are called "Unnamed: 0" or, if there is no
    header, "column 1".  `train` describes the training file if this is a file of new rows, which may lack the label
    column.  `encoding` is None for UTF-8.  Raises KlrBenchError that names the file, and the line if possible.
    """
    if fault := no_file(path):
        fail(f"data.path: {sanitize(path, 1000)} {fault}; expected a CSV file.")
    try:
        check_text([path], encoding)
        if detect_format(path, encoding) == "svmlight":
            fail(f"{path}: expected a CSV file, got LIBSVM text; read it with sklearn.datasets.load_svmlight_file.")
        train_names = None if train is None else train.names if train.has_header else ()
        layout = layout_of(path, label_column, unnamed=True, names=train_names, encoding=encoding)
        rows = [row for part in text_rows(path, layout) for row in part]
    except DamagedFileError as error:
        fail(f"{error.path}: {error}; obtain a new copy of the file.")
    if not rows:
        fail(f"{path}: no rows.")
    header = layout.header or [""] * layout.n_columns
    names = [
        name or (_unnamed(place, header) if layout.header else f"column {place + 1}")
        for place, name in enumerate(header)
    ]
    if train and not train.has_header:
        names = [name for name in train.names if name != train.label or layout.n_columns == len(train.names)]
        if layout.n_columns != len(names):
            fail(f"{path}: expected {len(train.names)} columns as in the training file, got {layout.n_columns}.")
    if repeated := [name for place, name in enumerate(names) if name in names[:place]]:
        fail(f"{path} has several columns with the name {sanitize(repr(repeated[0]))}; rename them.")
    frame = pd.DataFrame([fields for _, fields in rows], [line for line, _ in rows], names, dtype=object)
    frame.attrs[SOURCE] = path, replace(layout, header=tuple(names))
    return frame, train or TrainingFile(names=names, label=names[layout.label], has_header=layout.header is not None)


def _unnamed(place: int, header: Sequence[str]) -> str:
    """Return the name that pandas gives to a column without a name."""
    name = f"Unnamed: {place}"
    return next(free for number in count() if (free := name + f".{number}" * (number > 0)) not in header)


def take_labels(
    frame: pd.DataFrame, label: str, positive: str | None = None
) -> tuple[pd.DataFrame, NDArray[Any], list[str]]:
    """Split the data frame of a training file into features and labels.

    Also returns notes for the user.  The labels are as they are spelled, or integers if this changes none of them.
    Rows without a label are left out.  If there are more than two classes, all except `positive` become one.  Raises
    KlrBenchError if there are fewer than 2 or more than 100 classes.
    """
    path, layout = frame.attrs[SOURCE]
    column, labels, codes = layout.describe(layout.label), Labels(drop_missing=True), []
    for line, text in frame[label].items():
        try:
            codes.append(-1 if labels.drops(text) else labels.code(text))
        except ValueError as error:
            fail(f"{path}, line {line}, {column}: {error}; set data.label=NAME to use another column.")
    kept = np.array(codes) >= 0
    if not kept.any():
        raise no_labeled_row(path, layout, labels)
    used = np.array(codes)[kept]
    targets, classes = encode_targets(
        used, labels, str(path), positive=positive, multiclass=positive is None, column=column
    )
    lookalikes, dropped = labels.lookalikes(), labels.dropped_rows()
    if positive is not None and len(labels.spellings) > 2:
        used, labels = (targets > 0).astype(int), Labels(classes)
    counts = dict(zip(labels.spellings, np.bincount(used).tolist(), strict=True))
    listed = ", ".join(first_ten([f"{name} ({counts[name]:,})" for name in classes]))
    title = f"{titles(layout)}; " if layout.n_titles else ""
    notes = [f"{path}: {len(used):,} rows", f"{title}labels: {column}; {len(classes)} classes: {listed}"]
    least = max(FEW_ROWS, FEW_SHARE * len(used) / len(classes))
    if rare := first_ten([f"{name} ({counts[name]:,})" for name in classes if counts[name] < least]):
        notes.append(
            f"warning: few rows of {', '.join(rare)}: they may never be predicted. Add rows, join classes, or decide "
            "by the probability of the class"
        )
    notes += lookalikes
    if dropped:
        notes.append(f"left out: {dropped}")
    values = whole_numbers(labels.spellings) or labels.spellings
    return frame.loc[kept].drop(columns=label), np.array(values)[used], notes


def _columns(
    path: Path, layout: Layout, requested: Mapping[str, Request], by: int | None, *, coerce: bool, decimal: str
) -> list[Column]:
    header = layout.header or [""] * layout.n_columns
    names = {place: name or f"column {place + 1}" for place, name in enumerate(header) if place != layout.label}
    kinds = requested_kinds(path, names, requested) | ({} if by is None else {by: LEAVE_OUT})
    declared = declared_types(path, [name for place, name in names.items() if kinds.get(place) != LEAVE_OUT])
    types = {place: declared.get(name, "") if kinds.get(place) in (None, TEXT) else "" for place, name in names.items()}
    profiles = {place: ColumnProfile(decimal=decimal, declared=declared) for place, declared in types.items()}
    for rows in text_rows(path, layout):
        if labeled := [(line, row) for line, row in rows if not is_missing_label(row[layout.label])]:
            lines, fields = zip(*labeled, strict=True)
            texts = list(zip(*fields, strict=True))
            for place, profile in profiles.items():
                profile.add(lines, texts[place])
    return [
        choose_column(path, layout, place, sanitize(name, 50), profiles[place], kinds.get(place), coerce=coerce)
        for place, name in names.items()
    ]


def _values(
    path: Path, layout: Layout, columns: Sequence[Column], rows: TextRows, *, lenient: bool
) -> NDArray[np.float64]:
    texts = list(zip(*(row for _, row in rows), strict=True))
    features = []
    for column in columns:

        def cell(row: int, place: int = column.place) -> str:
            return describe_cell(path, layout, rows[row][0], place, rows[row][1][place])

        values = column.features(texts[column.place], lenient=lenient)
        column.check(values, cell)
        features.append(values)
    return np.concatenate(features, axis=1)

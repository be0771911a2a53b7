"""Read a user's table: features and labels of a file, or a data frame of its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import Labels, first_ten, is_missing_label
from klr_bench.datasets.column_kinds import Column, choose_column, describe, describe_cell, requested_kinds
from klr_bench.datasets.columns import ColumnProfile
from klr_bench.datasets.readers.chunks import stack_rows
from klr_bench.datasets.readers.layout import WIDE, Layout, TextRows, no_labeled_row, text_rows
from klr_bench.errors import fail, sanitize


@dataclass(frozen=True)
class Table:
    """The columns of a training file; a test file must have the same columns."""

    layout: Layout
    columns: tuple[Column, ...]

    def notes(self, path: Path) -> list[str]:
        """Describe the label column and how the other columns are converted, in a list of notes."""
        label = f"labels: {self.layout.describe(self.layout.label)}" + ("" if self.layout.header else " (no header)")
        return [label, *describe(path, self.columns)]


def read_table(
    path: Path, layout: Layout, labels: Labels, requested: Mapping[str, str], train: Table | None = None
) -> tuple[Any, NDArray[np.int64], Table]:
    """Read a user's table; return its features X (n, d), label codes (n,) and columns.

    X is float32, CSR if it is wide, with NaN for a missing number.  `requested` maps columns, by name or by position
    from 1, to kinds (number, text, leave_out).  `train` is the table of the training file, which determines the columns
    of a test file.  Raises KlrBenchError that names the file, and the line if possible.
    """
    table = train or Table(layout, tuple(_columns(path, layout, requested)))
    parts: list[Any] = []
    codes: list[int] = []
    for rows in text_rows(path, layout):
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
            X = _values(path, layout, table.columns, labeled)
            parts.append(sp.csr_matrix(X) if X.shape[1] > WIDE else X)
    if not parts:
        raise no_labeled_row(path, layout, labels)
    X = stack_rows(parts)
    if not X.shape[1]:
        why = "; ".join(first_ten([f"{column.name}: {column.why}" for column in table.columns]))
        fail(f"{path}: all feature columns are left out ({why}); keep one with data.columns={{NAME: number}}.")
    if sp.issparse(X) and np.isnan(X.data).any():
        fail(f"{path}: missing values are not supported with more than {WIDE:,} features; fill them in beforehand.")
    return X, np.array(codes, dtype=np.int64), table


def _columns(path: Path, layout: Layout, requested: Mapping[str, str]) -> list[Column]:
    header = [sanitize(name, 50) for name in layout.header or [""] * layout.n_columns]
    names = {place: name or f"column {place + 1}" for place, name in enumerate(header) if place != layout.label}
    kinds = requested_kinds(path, names, requested)
    profiles = {place: ColumnProfile() for place in names}
    for rows in text_rows(path, layout):
        if labeled := [(line, row) for line, row in rows if not is_missing_label(row[layout.label])]:
            lines, fields = zip(*labeled, strict=True)
            texts = list(zip(*fields, strict=True))
            for place, profile in profiles.items():
                profile.add(lines, texts[place])
    return [
        choose_column(path, layout, place, name, profiles[place], kinds.get(place)) for place, name in names.items()
    ]


def _values(path: Path, layout: Layout, columns: Sequence[Column], rows: TextRows) -> NDArray[np.float32]:
    texts = list(zip(*(row for _, row in rows), strict=True))
    features = []
    for column in columns:

        def cell(row: int, place: int = column.place) -> str:
            return describe_cell(path, layout, rows[row][0], place, rows[row][1][place])

        values = column.features(texts[column.place])
        column.check(values, cell)
        features.append(values)
    return np.concatenate(features, axis=1).astype(np.float32)

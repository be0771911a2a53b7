"""The svmlight (LIBSVM) text format: ``label index:value index:value ... # comment``, indices ascending."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError, shown
from klr_bench.experiment.config.models import MOST_FEATURES
from klr_bench.experiment.data.compression import lines, open_plain
from klr_bench.experiment.data.labels import LARGEST, Labels, number

MOST_DIGITS = 100
"""Of an index, with zeros before it."""


@dataclass(frozen=True)
class _Raw:
    """One file as written: its columns are the indices of the file."""

    path: Path
    X: Any  # csr (n, largest index + 1)
    codes: NDArray[np.int64]  # (n,)
    lines: array[int]  # (n,): the line of each row in the file, from 1

    def refusal(self, entry: int, reason: str) -> KlrBenchError:
        """Return the error about a stored entry of X."""
        row = int(np.searchsorted(self.X.indptr, entry, side="right")) - 1
        return KlrBenchError(f"{self.path}, line {self.lines[row]}: {reason}")


def read_svmlight(paths: Sequence[Path], labels: Labels, n_features: int | None) -> list[tuple[Any, NDArray[np.int64]]]:
    """Return for each file (X float32 CSR (n, n_features), codes of the labels (n,)).

    Indices start at the same base in all files: 0 if the index 0 occurs in any of them, else 1.  If `n_features` is
    None, it is the largest number of features of all files.  Raises a KlrBenchError that names the file and the line.
    """
    files = [_read(path, labels) for path in paths]
    for file in files:
        _check_finite(file)
    if not any(file.X.nnz for file in files):
        message = f"{paths[0]}: no row has a feature; lines like '+1 3:0.5 7:1' are expected."
        raise KlrBenchError(message)
    base = 0 if any((file.X.indices == 0).any() for file in files) else 1
    found = max(file.X.shape[1] for file in files) - base
    for file in files:
        if n_features is not None and file.X.shape[1] - base > n_features:
            entry = int(np.argmax(file.X.indices >= n_features + base))
            index = file.X.indices[entry]
            counted = f"n_features={n_features} (indices {base} to {n_features - 1 + base})"
            raise file.refusal(entry, f"index {index} is beyond {counted}; mend the line or set data.n_features=.")
    if n_features is None and found > MOST_FEATURES:
        last = max(files, key=lambda file: file.X.shape[1])
        reason = (
            f"the index {found + base - 1} would make {found:,} features, expected at most {MOST_FEATURES:,}; "
            "mend the line, or number the features anew, without gaps."
        )
        raise last.refusal(int(np.argmax(last.X.indices)), reason)
    shape = n_features or found
    return [(_shifted(file.X, base, shape), file.codes) for file in files]


def _shifted(X: Any, base: int, n_features: int) -> Any:
    """Return the matrix with columns counted from 0 and without stored zeros."""
    shifted = sp.csr_matrix((X.data, X.indices - base, X.indptr), shape=(X.shape[0], n_features))
    shifted.eliminate_zeros()
    return shifted


class _Rows:
    """The rows of a file for scikit-learn's reader, with codes in place of labels, which may be words.

    It keeps the current line of the reader, so that an error can name it.
    """

    def __init__(self, path: Path, labels: Labels) -> None:
        self.path, self.labels = path, labels
        self.line, self.text = 0, b""
        self.lines: array[int] = array("q")

    def read(self) -> bytes:
        """Return nothing: scikit-learn reads lines, but requires this method."""
        return b""

    def __iter__(self) -> Iterator[bytes]:
        with open_plain(self.path) as (stream, _):
            for line in lines(stream, self.path):
                self.line += 1
                if self.line == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                parts = line.partition(b"#")[0].split(None, 1)
                if parts:
                    self.text = parts[1] if len(parts) == 2 else b""
                    self.lines.append(self.line)
                    if b"_" in self.text:  # Python reads 1_000 as a number
                        raise self.refusal(fault(self.text) or "an underscore is not part of a number.")
                    yield b"%d %s" % (self._code(parts[0]), self.text)

    def _code(self, label: bytes) -> int:
        text = label.decode(errors="backslashreplace")
        if ":" in text or "," in text:
            what = "a label is missing" if ":" in text else "expected one label (of CSV: data.format=csv)"
            reason = f"the line begins with {shown(repr(text))}; {what}."
            raise self.refusal(reason)
        try:
            return self.labels.code(text)
        except ValueError as error:
            reason = f"{error}; use numbers or words."
            raise self.refusal(reason) from error

    def refusal(self, reason: str) -> KlrBenchError:
        """Return the error about the current line."""
        return KlrBenchError(f"{self.path}, line {self.line}: {reason}")


def _read(path: Path, labels: Labels) -> _Raw:
    """Read one file without changing its indices."""
    from sklearn.datasets import load_svmlight_file  # here: a worker that reads nothing of it starts in half the time

    rows = _Rows(path, labels)
    try:
        X, codes = load_svmlight_file(rows, dtype=np.float32, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise rows.refusal(fault(rows.text) or f"{shown(error)}.") from error
    if not rows.lines:
        message = f"{path}: no rows; lines like '+1 3:0.5 7:1' are expected."
        raise KlrBenchError(message)
    return _Raw(path, X, codes.astype(np.int64), rows.lines)


def _check_finite(file: _Raw) -> None:
    """Refuse values that are NaN, infinite, or too large for float32."""
    finite = np.abs(file.X.data) <= LARGEST
    if not finite.all():
        entry = int(np.argmin(finite))
        reason = (
            f"the value of index {file.X.indices[entry]} is not a number between -{LARGEST:g} and {LARGEST:g}; "
            "mend or remove the row."
        )
        raise file.refusal(entry, reason)


def fault(row: bytes) -> str | None:
    """Return what is wrong with a row, without its label, that a reader refused, or None."""
    previous = -1
    for token in row.decode(errors="backslashreplace").split():
        index, colon, value = token.partition(":")
        if index == "qid":  # used for rankings only
            continue
        where = shown(repr(token))
        if not colon:
            return f"{where} is not index:value."
        if not index.isascii() or not index.isdigit():
            return f"{shown(repr(index))} in {where} is not an index; whole numbers from 0 or 1 are expected."
        if number(value) is None:
            return f"{shown(repr(value))} in {where} is not a number."
        if len(index) > MOST_DIGITS or int(index) >= 2**31:
            return f"the index {shown(index)} is too large."
        if int(index) <= previous:
            return f"index {index} stands after index {previous}; indices must ascend, each only once."
        previous = int(index)
    return None

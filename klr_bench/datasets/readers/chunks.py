"""Read text files in blocks of lines, and group parsed rows into chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.datasets.compression import LONGEST_LINE, line_too_long, open_utf8
from klr_bench.datasets.preprocessing import needs_float64
from klr_bench.errors import KlrBenchError

BLOCK = 1 << 21
"""Number of bytes of text that are read at a time."""
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """A block of consecutive complete lines of a file, each ending with a line feed."""

    path: Path
    first: int  # line number of the first line, counted from 1
    text: bytes

    def error_at(self, position: int, reason: str) -> KlrBenchError:
        """Return a KlrBenchError that names the file and the line at a byte position of the block."""
        line = self.first + self.text.count(b"\n", 0, position)
        return KlrBenchError(f"{self.path}, line {line}: {reason}")


def blocks(path: Path, encoding: str | None = None, *, any_line_end: bool = False) -> Iterator[Block]:
    """Yield the UTF-8 text of a plain or compressed file in blocks of complete lines.

    With `any_line_end`, a lone carriage return also ends a line, and is replaced by a line feed.  Raises
    DamagedFileError, and KlrBenchError for a line that is too long.
    """
    rest, first = b"", 1
    with open_utf8(path, encoding) as stream:
        while content := stream.read(BLOCK):
            text = rest + content
            if any_line_end and b"\r" in text:
                text = re.sub(rb"\r(?=[^\n])", b"\n", text)
            end = text.rfind(b"\n") + 1
            if len(text) - end > LONGEST_LINE:
                raise line_too_long(path, first + text.count(b"\n"))
            if end:
                yield Block(path, first, text[:end].removeprefix(BOM if first == 1 else b""))
                first += text.count(b"\n", 0, end)
            rest = text[end:]
        if rest:
            yield Block(path, first, rest.removeprefix(BOM if first == 1 else b"") + b"\n")


@dataclass(frozen=True)
class Chunk:
    """A chunk of parsed rows with their label codes."""

    codes: NDArray[np.int32]  # (n,)
    X: Any  # features (n, d), float32 or float64: array, or CSR with sorted indices as in the file
    smallest: int  # smallest feature index in these rows of the file, including features written as zero
    largest: int

    def matrix(self, base: int, n_features: int) -> Any:
        """Return the features as a matrix whose columns are numbered from 0.

        Its shape is (n, n_features).  Column j has the index ``base + j`` in the file.
        """
        if not sp.issparse(self.X):
            return self.X
        X = sp.csr_matrix((self.X.data, self.X.indices - np.int32(base), self.X.indptr), (len(self.codes), n_features))
        X.has_sorted_indices = X.has_canonical_format = True
        return X


def type_of(chunk: Chunk) -> Any:
    """Return the type that the features of the first chunk need, or None if it has no rows."""
    return None if not len(chunk.codes) else np.float64 if needs_float64(chunk.X) else np.float32


def stack_rows(matrices: Sequence[Any]) -> Any:
    """Stack the rows of several matrices, which must be all dense or all CSR."""
    return sp.vstack(matrices, format="csr") if sp.issparse(matrices[0]) else np.concatenate(matrices)


def concatenate_chunks(chunks: Sequence[Chunk]) -> Chunk:
    """Concatenate chunks into a new chunk that owns its memory."""
    codes, X = np.concatenate([chunk.codes for chunk in chunks]), stack_rows([chunk.X for chunk in chunks])
    return Chunk(codes, X, min(chunk.smallest for chunk in chunks), max(chunk.largest for chunk in chunks))


def rechunk(chunks: Iterator[Chunk], chunk_rows: int, skip_rows: int) -> Iterator[Chunk]:
    """Regroup rows into chunks of `chunk_rows` rows, after skipping the first `skip_rows` rows.

    The last chunk may have fewer rows.  Each chunk owns its memory.
    """
    waiting: list[Chunk] = []
    n_waiting = 0
    for chunk in chunks:
        begin = min(skip_rows, len(chunk.codes))
        skip_rows -= begin
        while begin < len(chunk.codes):
            end = min(begin + chunk_rows - n_waiting, len(chunk.codes))
            rows = slice(begin, end)
            waiting.append(Chunk(chunk.codes[rows], chunk.X[rows], chunk.smallest, chunk.largest))
            n_waiting += end - begin
            begin = end
            if n_waiting == chunk_rows:
                yield concatenate_chunks(waiting)
                waiting, n_waiting = [], 0
    if waiting:
        yield concatenate_chunks(waiting)

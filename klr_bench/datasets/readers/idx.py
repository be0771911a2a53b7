"""The idx format of MNIST: two zero bytes, a type, the number of dimensions, the dimensions, the values.

All numbers are big-endian.  A set is a pair of files, the examples and their labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import LARGEST, Labels
from klr_bench.datasets.compression import CHUNK, open_plain
from klr_bench.datasets.readers.chunks import Dense
from klr_bench.errors import KlrBenchError

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_DIMENSIONS = 8


def read_chunks(examples: Path, labels_file: Path, labels: Labels) -> Iterator[Dense]:
    """Yield the rows of a pair of files.

    An example becomes a row in C order (last dimension fastest); unsigned bytes, the pixels of images, are divided by
    255.  Raises a KlrBenchError that names the file.
    """
    values, codes = read_array(examples), _codes(labels_file, labels)
    if values.ndim < 2:
        message = f"{examples}: an array of {values.shape}, expected an example a row; name the file of the examples."
        raise KlrBenchError(message)
    if len(values) != len(codes):
        message = (
            f"{labels_file}: {len(codes)} labels, expected {len(values)} as {examples} has rows; get both files again."
        )
        raise KlrBenchError(message)
    rows = values.reshape(len(values), -1)
    n_rows = max(1, CHUNK // rows.shape[1])
    for begin in range(0, len(rows), n_rows):
        end = begin + n_rows
        yield Dense(codes[begin:end], _numbers(rows[begin:end], begin, examples))


def read_array(path: Path) -> NDArray[Any]:
    """Return the array of a file, in the byte order of this machine.  Raises KlrBenchError."""
    with open_plain(path) as (stream, _):
        head = stream.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in TYPES or not 1 <= head[3] <= MOST_DIMENSIONS:
            message = f"{path}: begins with {head.hex(' ')!r}, which no idx file does; get the file again."
            raise KlrBenchError(message)
        dtype, sizes = np.dtype(TYPES[head[2]]), stream.read(4 * head[3])
        shape = tuple(int.from_bytes(sizes[at : at + 4], "big") for at in range(0, 4 * head[3], 4))
        size = math.prod(shape) * dtype.itemsize
        content = bytearray()
        while len(content) <= size and (chunk := stream.read(CHUNK)):  # what is declared may be any number
            content += chunk
        more = stream.read(1)
    if len(content) != size or 0 in shape:
        got = len(head) + len(sizes) + len(content)
        wanted = f"expected {4 + 4 * head[3] + size} for an array of {shape}"
        message = f"{path}: {'more than ' if more else ''}{got} bytes, {wanted}; get the file again."
        raise KlrBenchError(message)
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _numbers(rows: NDArray[Any], begin: int, path: Path) -> NDArray[np.float32]:
    if rows.dtype == np.uint8:
        return rows.astype(np.float32) / np.float32(255)
    wrong = np.flatnonzero(~(np.abs(rows) <= LARGEST).all(axis=1))
    if len(wrong):
        row = begin + int(wrong[0]) + 1
        message = f"{path}: row {row} has a value that is not a number between -{LARGEST:g} and {LARGEST:g}."
        raise KlrBenchError(message)
    return rows.astype(np.float32)


def _codes(path: Path, labels: Labels) -> NDArray[np.int32]:
    values = read_array(path)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        message = f"{path}: an array of {values.shape} ({values.dtype}), expected a whole number for each example."
        raise KlrBenchError(message)
    found, places = np.unique(values, return_inverse=True)
    return np.array([labels.code(str(value)) for value in found.tolist()], dtype=np.int32)[places]

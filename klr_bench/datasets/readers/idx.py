"""Reader for the binary format idx, in which the MNIST images are published.

A file consists of two zero bytes, a type, the number of dimensions, the dimensions and the values; all numbers are
big-endian.  A data set is a pair of files, the examples and their labels.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.class_labels import LARGEST, Labels
from klr_bench.datasets.compression import CHUNK, open_plain
from klr_bench.errors import fail

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_DIMENSIONS = 8


def read_pair(examples: Path, labels_file: Path, labels: Labels) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Read a pair of idx files; return the features X (n, d) and the label codes (n,).

    X is float32, or float64 for types that float32 does not represent exactly (int32 and float64).
    Each example becomes a row in C order (last dimension fastest); unsigned bytes, such as the pixels of images, are
    divided by 255.  Raises KlrBenchError that names the file.
    """
    values, targets = read_array(examples), read_array(labels_file)
    if values.ndim < 2:
        fail(f"{examples}: expected an array with one example per row, got shape {values.shape}; use another file.")
    if targets.ndim != 1 or targets.dtype.kind not in "iu" or len(targets) != len(values):
        fail(
            f"{labels_file}: expected {len(values)} integers, one per row of {examples}, got an array of shape "
            f"{targets.shape} ({targets.dtype.name})."
        )
    if not (np.abs(values) <= LARGEST).all():
        fail(f"{examples}: expected numbers between -{LARGEST:g} and {LARGEST:g}, got values outside this range.")
    X = values.reshape(len(values), -1).astype(np.result_type(values.dtype, np.float32))
    if values.dtype == np.uint8:
        X /= np.float32(255)
    distinct, places = np.unique(targets, return_inverse=True)
    return X, np.array([labels.code(str(target)) for target in distinct.tolist()], dtype=np.int32)[places]


def read_array(path: Path) -> NDArray[Any]:
    """Read the array stored in an idx file.  Raises KlrBenchError."""
    with open_plain(path) as (stream, _):
        head = stream.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in TYPES or not 1 <= head[3] <= MOST_DIMENSIONS:
            fail(f"{path}: expected the header of an idx file, got {head.hex(' ')!r}; obtain a new copy of the file.")
        dtype, sizes = np.dtype(TYPES[head[2]]), stream.read(4 * head[3])
        shape = tuple(int.from_bytes(sizes[at : at + 4], "big") for at in range(0, 4 * head[3], 4))
        size = math.prod(shape) * dtype.itemsize
        content = bytearray()
        while len(content) <= size and (chunk := stream.read(CHUNK)):  # the size in the header may be wrong and huge
            content += chunk
    if len(content) != size or 0 in shape:
        fail(
            f"{path}: expected {size} bytes after the header for an array of shape {shape}, got {len(content)} "
            "or more; obtain a new copy of the file."
        )
    return np.frombuffer(content, dtype).reshape(shape)

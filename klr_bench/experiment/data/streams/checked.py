"""Binary files whose blocks have checksums, each compared when the block is read."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20
"""Bytes that share a checksum; the last block may be shorter."""


class DamagedBlockError(Exception):
    """A block is not what was written."""


class CheckedWriter:
    """Writes arrays to a file and keeps the crc32 of each block in `checksums`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._room = file, 0
        self.checksums: list[int] = []

    def write(self, array: NDArray[Any]) -> None:
        """Append the elements of an array."""
        content = memoryview(array.tobytes())
        self._file.write(content)
        while len(content):
            if not self._room:
                self.checksums.append(0)
                self._room = BLOCK
            self.checksums[-1] = zlib.crc32(content[: self._room], self.checksums[-1])
            self._room, content = max(self._room - len(content), 0), content[self._room :]


class CheckedReader:
    """Reads arrays of a file from any position; reading in order compares each block once."""

    def __init__(self, file: BinaryIO, checksums: Sequence[int]) -> None:
        self._file, self._checksums = file, checksums
        self._number, self._content = -1, b""

    def read(self, dtype: np.dtype[Any], first: int, last: int) -> NDArray[Any]:
        """Return the elements from `first` to `last`.  Raises DamagedBlockError."""
        array = np.empty(last - first, dtype)
        rest, position = array.view(np.uint8), first * dtype.itemsize
        while len(rest):
            number, begin = divmod(position, BLOCK)
            part = np.frombuffer(self._block(number), np.uint8)[begin : begin + len(rest)]
            rest[: len(part)] = part
            rest, position = rest[len(part) :], position + len(part)
        return array

    def _block(self, number: int) -> bytes:
        if number != self._number:
            self._file.seek(number * BLOCK)
            content = self._file.read(BLOCK)
            if not content or number >= len(self._checksums) or zlib.crc32(content) != self._checksums[number]:
                raise DamagedBlockError
            self._number, self._content = number, content
        return self._content

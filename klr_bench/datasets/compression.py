"""Reading of files that may be compressed with xz, gzip or bzip2.

The compression is detected by the first bytes.

A file that would fill the memory or the disk is refused: one that unpacks to far more than its size, and a line
without end.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, AnyStr, BinaryIO

from klr_bench.errors import KlrBenchError
from klr_bench.files import open_regular

SUFFIXES = (".xz", ".gz", ".bz2")
CHUNK = 1 << 18  # bytes
MOST_RATIO = 200  # ratio of uncompressed to compressed size: 10 is usual, gzip reaches 1,000, bzip2 more
SMALLEST_BOMB = 1 << 23  # bytes of content
LONGEST_LINE = 1 << 22  # characters

_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\xfd7zXZ\x00": lzma.open,
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
}
MAGIC = tuple(_OPENERS)


class DamagedFileError(Exception):
    """Raised for a file that cannot be read to its end, such as a truncated one."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path = path


class _Unpacked(io.RawIOBase):
    """Content of a compressed file, rejected if it is far larger than the compressed data."""

    def __init__(self, content: Any, stored: BinaryIO, path: Path) -> None:
        self._content, self._stored, self._path, self._size = content, stored, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = int(self._content.readinto(buffer))
        self._size += n
        if self._size > max(SMALLEST_BOMB, MOST_RATIO * self._stored.tell()):
            reason = f"unpacks to more than {MOST_RATIO} times its size; if that is right, unpack it by hand"
            raise DamagedFileError(self._path, reason)
        return n


def lines(stream: IO[AnyStr], path: Path) -> Iterator[AnyStr]:
    """Yield the lines of a file.

    Raises KlrBenchError for a line that is too long.
    """
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise too_long(path, number)
        yield line


def too_long(path: Path, line: int) -> KlrBenchError:
    """Return the error for a line that is too long."""
    what = f"more than {LONGEST_LINE:,} characters, expected one row per line; correct or remove the line."
    return KlrBenchError(f"{path}, line {line}: {what}")


@contextmanager
def open_plain(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file; yield its uncompressed bytes, and the underlying file for its position.

    Every read error, also inside the ``with`` block, becomes a DamagedFileError.
    """
    try:
        with open_regular(path) as raw:
            start = raw.peek(6)
            opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
            if opener:
                yield io.BufferedReader(_Unpacked(opener(raw), raw, path), CHUNK), raw
            else:
                yield raw, raw
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DamagedFileError(path, f"truncated or corrupted ({error})") from error
    except OSError as error:
        # gzip and bz2 raise OSError without errno for bad content; errors with errno are file-system errors.
        reason = f"cannot be read ({error.strerror})" if error.errno else f"truncated or corrupted ({error})"
        raise DamagedFileError(path, reason) from error


def plain_chunks(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the uncompressed content in pieces, each with the position in the stored file."""
    with open_plain(path) as (stream, stored):
        while chunk := stream.read(CHUNK):
            yield chunk, stored.tell()

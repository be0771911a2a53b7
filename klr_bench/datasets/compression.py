"""Files that may be compressed with xz, gzip or bzip2, recognised by their first bytes, not by their names.

A file that would fill the memory or the disk is refused while its beginning is read: one that unpacks to far more than
its size, and a line without end.
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
MOST_RATIO = 200  # of the sizes of the content and of the file: 10 is usual, gzip reaches 1,000, bzip2 more
LOOKAHEAD = 1 << 23  # bytes of content that are unpacked before the first is given out, and the ratio is known
LONGEST_LINE = 1 << 22  # characters
SMALL_READ = 1 << 13  # bytes

BOMB = f"unpacks to more than {MOST_RATIO} times its size; if that is right, unpack it by hand"
GZIP = b"\x1f\x8b"

_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\xfd7zXZ\x00": lzma.open,
    GZIP: gzip.open,
    b"BZh": bz2.open,
}


class DamagedFileError(Exception):
    """A file that cannot be read to its end: truncated, corrupted, or not readable at all."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path = path


class _SmallReads:
    """A file of which decompressors read little at a time, so that its position tells what they have used."""

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell, self._read = file.seek, file.tell, file.read

    def read(self, n: int = -1) -> bytes:
        return self._read(SMALL_READ if n < 0 else min(n, SMALL_READ))


class _Unpacked(io.RawIOBase):
    """The content of a compressed file; a bomb is a DamagedFileError."""

    def __init__(self, content: Any, stored: BinaryIO, path: Path) -> None:
        self._content, self._stored, self._path = content, stored, path
        self._size = self._position = 0  # bytes unpacked since the last comparison, and the position of that

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view, n = memoryview(buffer), 0
        while n < len(view) and (got := self._content.readinto(view[n:])):
            n += got
        self._size += n
        if self._size >= LOOKAHEAD:
            before, self._position = self._position, self._stored.tell()
            if self._size > MOST_RATIO * (self._position - before):
                raise DamagedFileError(self._path, BOMB)
            self._size = 0
        return n


def _check_gzip(stored: BinaryIO, start: bytes, path: Path) -> None:
    """Refuse a gzip file that is a bomb before anything is parsed.

    Its last four bytes, if it is whole, are the size of its content modulo 2^32; where they are suspiciously large the
    file is unpacked, to see.
    """
    if not start.startswith(GZIP):
        return
    size = stored.seek(0, io.SEEK_END)
    stored.seek(max(0, size - 4))
    content = int.from_bytes(stored.read(4), "little")
    if content < LOOKAHEAD or content <= MOST_RATIO * size:
        return
    stored.seek(0)
    left = MOST_RATIO * size
    with gzip.open(stored) as unpacked:
        while left >= 0 and (chunk := unpacked.read(CHUNK)):
            left -= len(chunk)
    if left < 0:
        raise DamagedFileError(path, BOMB)


def lines(stream: IO[AnyStr], path: Path) -> Iterator[AnyStr]:
    """Yield the lines of a file.  Raises a KlrBenchError for one that does not end."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            message = (
                f"{path}, line {number}: more than {LONGEST_LINE:,} characters, expected one row a line; "
                "mend or remove the line."
            )
            raise KlrBenchError(message)
        yield line


def is_packed(start: bytes) -> bool:
    """Return True if a file with these first bytes is compressed."""
    return start.startswith(tuple(_OPENERS))


@contextmanager
def open_plain(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file for reading; yield its uncompressed bytes, and the file itself for its position.

    Every read error, also inside the ``with`` block, becomes a DamagedFileError.
    """
    try:
        with open_regular(path) as raw:
            start = raw.read(6) or b""
            _check_gzip(raw, start, path)
            raw.seek(0)
            opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
            if opener:
                yield io.BufferedReader(_Unpacked(opener(_SmallReads(raw)), raw, path), LOOKAHEAD), raw
            else:
                yield raw, raw
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DamagedFileError(path, f"truncated or corrupted ({error})") from error
    except OSError as error:
        # gzip and bz2 raise OSError without a number for bad content; with a number it is a file-system error.
        reason = f"cannot be read ({error.strerror})" if error.errno else f"truncated or corrupted ({error})"
        raise DamagedFileError(path, reason) from error


def plain_chunks(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the uncompressed content of a file in pieces, each with the position in the stored file."""
    with open_plain(path) as (stream, raw):
        while chunk := stream.read(CHUNK):
            yield chunk, raw.tell()

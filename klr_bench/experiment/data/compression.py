"""Files that may be compressed with xz, gzip or bzip2, recognised by their first bytes, not by their names."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

SUFFIXES = (".xz", ".gz", ".bz2")
CHUNK = 1 << 18  # bytes

_OPENERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\xfd7zXZ\x00": lzma.open,
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
}


class DamagedFileError(Exception):
    """A file that cannot be read to its end: truncated, corrupted, or not readable at all."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path = path


@contextmanager
def open_plain(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file for reading; yield its uncompressed bytes, and the file itself for its position.

    Every read error, also inside the ``with`` block, becomes a DamagedFileError.
    """
    try:
        with path.open("rb") as raw:
            start = raw.read(6)
            raw.seek(0)
            opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
            yield (opener(raw) if opener else raw), raw
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

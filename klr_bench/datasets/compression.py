"""Read plain files, and files compressed with xz, gzip or bzip2, as bytes or as text.

The compression is detected from the content of a file, not from its name.  Files that would exhaust the memory or the
disk are rejected: those that decompress to far more than their size, and those with extremely long lines.
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
from typing import IO, Any, AnyStr, BinaryIO, TextIO

from klr_bench.datasets.workbook import WorkbookError, as_csv
from klr_bench.errors import KlrBenchError
from klr_bench.files import open_regular

SUFFIXES = (".xz", ".gz", ".bz2")
CHUNK = 1 << 18  # bytes
MOST_RATIO = 200  # maximum ratio of decompressed size to file size: 10 is typical, gzip can reach 1,000
SMALLEST_BOMB = 1 << 23  # bytes of content
LONGEST_LINE = 1 << 22  # characters

_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\xfd7zXZ\x00": lzma.open,
    b"\x1f\x8b": gzip.open,
    **{
        b"BZh%d%s" % (level, block): bz2.open
        for level in range(1, 10)
        for block in (b"1AY&SY", b"\x17rE8P\x90")  # the first block, or the end of empty content
    },
}
MAGIC = tuple(_OPENERS)


class DamagedFileError(Exception):
    """Raised if a file is truncated, corrupted or not readable."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path = path


class _Decompressed(io.RawIOBase):
    """Stream of decompressed content; reading fails if the content is far larger than the file."""

    def __init__(self, content: Any, stored: BinaryIO, path: Path) -> None:
        self._content, self._stored, self._path, self._size = content, stored, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = int(self._content.readinto(buffer))
        self._size += n
        if self._size > max(SMALLEST_BOMB, MOST_RATIO * self._stored.tell()):
            reason = f"decompresses to more than {MOST_RATIO} times its size; if this is correct, decompress it by hand"
            raise DamagedFileError(self._path, reason)
        return n


class _Recoded(io.RawIOBase):
    """Stream of the UTF-8 bytes of a text in another encoding."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._text, self._waiting = io.TextIOWrapper(stream, encoding, newline=""), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        waiting = self._waiting or self._text.read(CHUNK).encode()
        n = min(len(buffer), len(waiting))
        buffer[:n], self._waiting = waiting[:n], waiting[n:]
        return n


def lines(stream: IO[AnyStr], path: Path) -> Iterator[AnyStr]:
    """Yield the lines of a file.  Raises KlrBenchError for a line that is too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise line_too_long(path, number)
        yield line


def line_too_long(path: Path, line: int) -> KlrBenchError:
    """Return a KlrBenchError for a line that is too long."""
    most = f"{LONGEST_LINE:,} characters"
    return KlrBenchError(
        f"{path}, line {line}: expected at most {most} per line, got more; correct or remove the line."
    )


@contextmanager
def open_plain(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a plain or compressed file, and yield a stream of the uncompressed content.

    The file itself is yielded as a second value.  Every read error in the ``with`` block becomes a DamagedFileError.
    """
    try:
        with open_regular(path) as raw:
            start = raw.peek(10)
            opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
            if opener:
                yield io.BufferedReader(_Decompressed(opener(raw), raw, path), CHUNK), raw
            else:
                yield raw, raw
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DamagedFileError(path, f"truncated or corrupted ({error})") from error
    except OSError as error:
        # For invalid content, gzip and bz2 raise an OSError that has no errno; file-system errors have one.
        reason = f"cannot be read ({error.strerror})" if error.errno else f"truncated or corrupted ({error})"
        raise DamagedFileError(path, reason) from error


def is_compressed(path: Path) -> bool:
    """Return True if a file is compressed, which its first bytes tell.  Raises OSError."""
    with open_regular(path) as file:
        return file.peek(10).startswith(MAGIC)


@contextmanager
def open_utf8(path: Path, encoding: str | None) -> Iterator[BinaryIO]:
    """Open a plain or compressed text, and yield a stream of its UTF-8 bytes.

    `encoding` is the encoding of the file; None is UTF-8, whose bytes are not checked.  A workbook becomes CSV text.
    Raises DamagedFileError, and KlrBenchError where the text is not in its encoding, also if the ``with`` block raises
    UnicodeDecodeError.
    """
    try:
        with open_plain(path) as (stream, raw):
            workbook = as_csv(path, raw.peek(10)) if stream is raw else None  # type: ignore[attr-defined]
            if workbook is not None:
                yield io.BytesIO(workbook)
            else:
                yield stream if encoding is None else io.BufferedReader(_Recoded(stream, encoding), CHUNK)
    except WorkbookError as error:
        raise DamagedFileError(path, str(error)) from error
    except UnicodeError as error:  # UTF-16 without a byte order mark is not a UnicodeDecodeError
        raise not_decodable(path, encoding) from error


@contextmanager
def open_text(path: Path, encoding: str | None) -> Iterator[TextIO]:
    """Open a plain or compressed text; line ends are not translated.

    Raises the same errors as `open_utf8`.
    """
    with open_utf8(path, encoding) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
        yield text


def not_decodable(path: Path, encoding: str | None) -> KlrBenchError:
    """Return a KlrBenchError that names the first line and byte in another encoding."""
    name = encoding or "UTF-8"
    setting = "data.encoding= (encoding= of stream, or of a source)"
    advice = f"Set {setting} to the encoding of the file, such as cp1252 or latin-1."
    if "\n".encode(name) == b"\n":
        with open_plain(path) as (stream, _):
            for number, line in enumerate(lines(stream, path), 1):
                try:
                    line.decode(name)
                except UnicodeDecodeError as error:
                    where = f"line {number}: byte {error.start + 1} of the line, {line[error.start]:#04x},"
                    return KlrBenchError(f"{path}, {where} is not {name} text. {advice}")
    return KlrBenchError(f"{path}: expected {name} text, got another encoding. {advice}")


def plain_chunks(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the uncompressed content of a file in chunks.

    Each chunk comes with the number of bytes of the (compressed) file that have been read so far.
    """
    with open_plain(path) as (stream, stored):
        while chunk := stream.read(CHUNK):
            yield chunk, stored.tell()

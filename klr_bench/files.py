"""Functions that read files with a size limit and write files atomically."""

from __future__ import annotations

import errno
import glob
import json
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from klr_bench.errors import KlrBenchError, fail, sanitize

LARGEST_CSV = 256 * 10**6
"""Maximum size in bytes of a results table; a report needs about ten times as much memory."""
LARGEST_JSON = 256 * 10**6
"""Maximum size in bytes of a cell file, enough for a million checkpoints."""
CHUNK = 1 << 16
"""Number of bytes read at a time from a file whose size is unknown."""
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
Stamp = tuple[int, int, int]
"""Identity of a version of a file: inode, time of change in ns, size in bytes."""
WINDOWS = os.name == "nt"
REPLACE_TRIES, REPLACE_PAUSE_S = 20, 0.1
"""On Windows, the number of attempts to replace a file that another process reads, and the seconds between them."""


def expanded(path: str) -> Path:
    """Return a path with a leading ``~`` replaced by the home folder.

    Raises KlrBenchError if there is no such user.
    """
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):  # a NUL character in the path causes a ValueError
        user = sanitize(Path(path).parts[0])
        fail(f"{sanitize(path)}: the user {user[1:]!r} has no home folder. If this is a file name, write ./{user}.")


def glob_files(path: Path) -> list[Path]:
    """Return a list of the files that match a glob pattern, or of just the path itself."""
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    return [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]


def is_one_of(path: Path, others: Iterable[Path]) -> bool:
    """Return True if a path leads to the same file as another one, by its name or through links."""
    return os.path.exists(path) and any(other.exists() and other.samefile(path) for other in others)


def no_file(path: Path) -> str | None:
    """Return the reason why a path is not a regular file, or None if it is a regular file."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except FileNotFoundError:
        return "is a link that leads nowhere" if path.is_symlink() else "does not exist"
    except (OSError, ValueError) as error:  # a NUL character in the path causes a ValueError
        if getattr(error, "errno", None) == errno.ELOOP:
            return "is a link that leads to itself"
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"
    return None if kind == stat.S_IFREG else f"is {KINDS.get(kind, 'no file')}"


def open_regular(path: str | Path) -> BufferedReader:
    """Open a regular file, not a pipe or device, for reading in binary mode.

    Raises OSError for anything else, because reading from a pipe or device could block forever.
    """

    def without_waiting(path: str, flags: int) -> int:
        # Without O_NONBLOCK, which Windows lacks, opening a pipe would wait for a writer.
        return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))

    file = open(path, "rb", opener=without_waiting)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, no_file(Path(path)) or "is no file", str(path))
    return file


def regular(path: str | Path, most: int | None = None) -> BinaryIO:
    """Open a regular file for reading; raise an error if it has more than `most` bytes.

    Links are followed.  Raises FileNotFoundError if the path does not exist, and KlrBenchError for anything else that
    is not a readable regular file; pipes and devices are not opened.
    """
    try:
        file = open_regular(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    size = os.fstat(file.fileno()).st_size
    if most is not None and size > most:
        file.close()
        fail(f"{path}: expected a file of at most {most:,} bytes, got {size:,}. Check that it is the right file.")
    return file


def unreadable(path: str | Path, error: OSError | ValueError) -> KlrBenchError | FileNotFoundError:
    """Return an exception whose message explains why a path cannot be read."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOENT, errno.ENOTDIR):
        return FileNotFoundError(number, os.strerror(number), str(path))
    kind = no_file(Path(path)) or ""
    if kind.startswith("is "):
        got = kind.removeprefix("is ")
        return KlrBenchError(f"{path}: expected a regular file, got {got}. Replace it with the right file.")
    reason = error.strerror if isinstance(error, OSError) else error
    return KlrBenchError(f"{path}: cannot be read ({reason}). Check its name and permissions.")


def read_regular(path: str | Path, most: int) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes.

    Memory for at most the size of the file is allocated, whatever `most` is.  Raises the same errors as `regular`.
    """
    with regular(path, most) as file:
        return _content(file, most)


def _content(file: BinaryIO, most: int) -> bytes:
    """Return the bytes of an open file; ``file.read(most)`` would allocate `most` bytes."""
    size = os.fstat(file.fileno()).st_size
    if size:
        return file.read(size)
    return b"".join(islice(iter(partial(file.read, CHUNK), b""), -(-most // CHUNK)))  # as in /proc, or empty


def stamp_of(file: str | Path | int) -> Stamp | None:
    """Return the inode, change time and size of a file, or None if it does not exist."""
    try:
        state = os.stat(file)
    except OSError:
        return None
    # Programs cannot set the ctime; on Windows it is the time of creation.
    return state.st_ino, state.st_mtime_ns if WINDOWS else state.st_ctime_ns, state.st_size


def replace_file(source: Path, target: Path) -> None:
    """Rename a file, replacing an existing one.  Raises OSError.

    Windows refuses to replace a file that is open elsewhere, so there the call waits a little.
    """
    for attempt in range(REPLACE_TRIES):
        try:
            source.replace(target)
        except PermissionError:
            if not WINDOWS or attempt == REPLACE_TRIES - 1:
                raise
            time.sleep(REPLACE_PAUSE_S)
        else:
            return


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file atomically: readers see the whole old content or the whole new content.

    The folder is created.  Raises KlrBenchError if the disk is full or the folder cannot be written, and then leaves
    nothing behind; a killed process leaves at most a hidden file ``.<name>.<process>-<random>.part``.
    """
    with _part(path.parent, path) as part:
        if path.is_char_device() or path.is_block_device():  # which would be replaced
            fail(f"{path}: expected the name of a file to write, but it is a device.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        replace_file(part, path)


def check_writable(path: Path) -> None:
    """Raise the errors that `write_atomic` would, such as that of a read-only folder."""
    folder = next(place for place in path.absolute().parents if os.path.lexists(place))
    with _part(folder, path) as part:
        part.open("xb").close()


@contextmanager
def _part(folder: Path, path: Path) -> Iterator[Path]:
    """Return the name of a hidden file, which the end of the block removes."""
    part = folder / f".{path.name[:50]}.{os.getpid()}-{uuid4().hex}.part"
    try:
        with suppress(FileNotFoundError):
            (folder / path.name).lstat()  # fails if the name is too long
        yield part
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def unwritable(path: Path, error: OSError) -> KlrBenchError:
    """Return an exception whose message explains why a path cannot be written."""
    blocking = next((place for place in path.parents if os.path.lexists(place)), path.parent)
    if error.errno in (errno.EEXIST, errno.ENOENT, errno.ENOTDIR) and not blocking.is_dir():
        got = (no_file(blocking) or "is a file").removeprefix("is ")
        return KlrBenchError(
            f"{blocking}: expected a folder, got {got}. Remove it, or choose another folder "
            "(results_dir=..., output=... or into=...)."
        )
    return KlrBenchError(
        f"{path}: cannot be written ({error.strerror or error}). Make room on the disk, give yourself write "
        "permission there, or choose another place (results_dir=..., output=... or into=...); then run the same "
        "command again."
    )


def is_encoding(name: str) -> bool:
    """Return True if Python knows an encoding of text with this name."""
    try:
        return "1\n".encode(name).decode(name) == "1\n"
    except (LookupError, ValueError):
        return False


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically; NumPy scalars and arrays become numbers and lists.

    Raises the same errors as `write_atomic`.
    """
    write_atomic(path, json.dumps(content, default=_plain).encode())


def read_json(path: str | Path) -> Any:
    """Return the content of a JSON file, or None if the file is missing or damaged.

    Raises the same KlrBenchError as `regular`.
    """
    return _read_stamped(path, lambda content: content)[1]


def _read_stamped(path: str | Path, verify: Callable[[Any], Any]) -> tuple[Stamp | None, Any]:
    try:
        with regular(path, LARGEST_JSON) as file:
            return stamp_of(file.fileno()), verify(json.loads(_content(file, LARGEST_JSON)))
    except (FileNotFoundError, ValueError, RecursionError):
        return None, None


def write_checked_json(path: Path, content: Any) -> None:
    """Write a JSON file that consists of a checksum and the content.

    Raises the same errors as `write_atomic`.
    """
    write_json(path, [_checksum(content), content])


def read_checked_json(path: str | Path) -> Any:
    """Return the content of a file that `write_checked_json` wrote, or None if it is damaged.

    Returns None also if the file is missing.  Raises the same KlrBenchError as `regular`.
    """
    return read_stamped_json(path)[1]


def read_stamped_json(path: str | Path) -> tuple[Stamp | None, Any]:
    """Return a stamp of the version of a file, and its content as `read_checked_json` does."""
    return _read_stamped(path, _verified)


def _verified(stored: Any) -> Any:
    is_pair = isinstance(stored, list) and len(stored) == 2
    return stored[1] if is_pair and stored[0] == _checksum(stored[1]) else None


def _checksum(content: Any) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True, default=_plain).encode())


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    message = f"{type(value).__name__} is not JSON"
    raise TypeError(message)

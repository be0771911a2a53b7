"""The cache folder: its place, the hashes of its files, and the message if it cannot be written."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from klr_bench.errors import KlrBenchError, shown
from klr_bench.files import open_regular, read_json, write_json

# Called with the bytes done, the bytes in all (None: not known) and a line that says what is happening.
Progress = Callable[[int, "int | None", str], None]

STATE = ("size", "mtime_ns", "ctime_ns")
"""Names of what `state_of` returns, in a stamp."""
MOST_FILES = 1 << 16
"""Files whose hashes a process remembers; a stream may be many."""
N_PIECES, PIECE = 16, 2**20
"""Pieces of the sample of a large file, and bytes of each."""


def silent(done: int, total: int | None, description: str) -> None:
    """A progress callback that reports nothing."""


def default_cache() -> Path:
    """Return ``data/`` in a checkout, or the user's cache folder for an installed package."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "configs").is_dir():
        return checkout / "data"
    import platformdirs

    try:
        return Path(platformdirs.user_cache_dir("klr-bench"))
    except RuntimeError as error:
        message = "data.cache: expected a folder, found no home folder to make one in. Set HOME, or data.cache=FOLDER."
        raise KlrBenchError(message) from error


def beside(path: Path, suffix: str) -> Path:
    """Return the path with a suffix added to its whole name."""
    return path.with_name(path.name + suffix)


@contextmanager
def disk_errors(path: Path, setting: str = "data.cache=FOLDER") -> Iterator[None]:
    """Turn a file-system error while `path` is written into a message that says what to do; `setting` moves it."""
    try:
        yield
    except OSError as error:
        # NumPy says "8 requested and 0 written" if there is no room for an array.
        if error.errno in {errno.ENOSPC, errno.EDQUOT} or "requested and" in str(error):
            message = (
                f"{shown(path, 1000)} could not be written: the disk is full. Free some space, or choose another "
                f"folder with {setting}."
            )
        else:
            reason = error.strerror or error
            message = (
                f"{shown(path, 1000)} could not be written: {reason}. Make its folder writable, or choose another "
                f"one with {setting}."
            )
        raise KlrBenchError(message) from error


@contextmanager
def locked(path: Path, name: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of `path` against other processes; the system releases it if its holder is killed.

    A process that has to wait reports it, under `name`.
    """
    lock = FileLock(beside(path, ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(0, None, f"{name}: waiting for another process")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def sha256_of(path: Path) -> str:
    """Return the sha256 of the bytes of a file.  Raises OSError."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sampled_sha256(path: Path) -> str:
    """Return a hash of the size of a file and of 16 MiB of it; of a file that has no more the sha256 of its bytes.

    The pieces of 1 MiB are the first, the last, and others evenly in between.  Raises OSError.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= N_PIECES * PIECE:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        found = hashlib.sha256(b"%d\n" % size)
        for i in range(N_PIECES):
            stream.seek(i * (size - PIECE) // (N_PIECES - 1))
            found.update(stream.read(PIECE))
    return found.hexdigest()


def noted_sha256(path: Path) -> str | None:
    """Return the sha256 in the stamp of a cached file, None where there is no stamp or it is damaged."""
    return _stamp(path).get("sha256")


def stamped_sha256(path: Path) -> str | None:
    """Return the sha256 of a cached file, or None if there is no such file.

    It is read from the file's stamp if size and times still match, otherwise computed again; the stamp of other content
    stays.
    """
    stamp = _stamp(path)
    try:
        state = state_of(path)
        if path.is_file() and tuple(map(stamp.get, STATE)) == state:
            return str(stamp["sha256"])
        sha256 = sha256_of(path)
    except OSError:
        return None
    if stamp.get("sha256") in (None, sha256):
        _note(path, state, sha256)
    return sha256


def restamp(path: Path) -> str | None:
    """Hash a cached file, write the hash to its stamp and return it; None if the file cannot be read."""
    try:
        state = state_of(path)
        sha256 = sha256_of(path)
    except OSError:
        return None
    _note(path, state, sha256)
    return sha256


def state_of(path: Path) -> tuple[int, int, int]:
    """Return size, mtime and ctime of a file.  Raises OSError.

    Programs such as rsync and cp -p set the mtime of what they write, but none can set its ctime.
    """
    state = path.stat()
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _note(path: Path, state: tuple[int, int, int], sha256: str) -> None:
    """Write the stamp of a file."""
    with suppress(KlrBenchError):  # in a read-only cache the file is hashed at each use
        write_json(beside(path, ".stamp"), {**dict(zip(STATE, state, strict=True)), "sha256": sha256})


def _stamp(path: Path) -> dict[str, Any]:
    """Return the stamp of a cached file: its state and sha256; {} where there is none, or a damaged one."""
    with suppress(KlrBenchError):
        stamp = read_json(beside(path, ".stamp"))
        if isinstance(stamp, dict) and re.fullmatch(r"[0-9a-f]{64}", str(stamp.get("sha256"))):
            return stamp
    return {}

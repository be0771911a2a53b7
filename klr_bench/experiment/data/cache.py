"""The cache folder: its place, the hashes of its files, and the message if it cannot be written."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from klr_bench.errors import KlrBenchError
from klr_bench.files import read_json, write_json

# Called with the bytes done, the bytes in all (None: not known) and a line that says what is happening.
Progress = Callable[[int, "int | None", str], None]


def silent(done: int, total: int | None, description: str) -> None:
    """A progress callback that reports nothing."""


def default_cache() -> Path:
    """Return ``data/`` in a checkout, or the user's cache folder for an installed package."""
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file() and (checkout / "configs").is_dir():
        return checkout / "data"
    import platformdirs

    return Path(platformdirs.user_cache_dir("klr-bench"))


def beside(path: Path, suffix: str) -> Path:
    """Return the path with a suffix added to its whole name."""
    return path.with_name(path.name + suffix)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a file-system error while `path` is written into a message that says what to do."""
    try:
        yield
    except OSError as error:
        # NumPy says "8 requested and 0 written" if there is no room for an array.
        if error.errno in {errno.ENOSPC, errno.EDQUOT} or "requested and" in str(error):
            message = (
                f"{path} could not be written: the disk is full. Free some space, or choose another "
                "folder with data.cache=FOLDER."
            )
        else:
            reason = error.strerror or error
            message = (
                f"{path} could not be written: {reason}. Make its folder writable, or choose another "
                "one with data.cache=FOLDER."
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
    """Return the sha256 of the bytes of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def stamped_sha256(path: Path) -> str | None:
    """Return the sha256 of a cached file, or None if there is no such file.

    It is read from the file's stamp if size and time still match, otherwise computed again.
    """
    try:
        state = path.stat()
    except OSError:
        return None
    with suppress(KlrBenchError, KeyError, TypeError):  # a missing or damaged stamp is written again
        stamp = read_json(beside(path, ".stamp"))
        if (stamp["size"], stamp["mtime_ns"]) == (state.st_size, state.st_mtime_ns):
            return str(stamp["sha256"])
    return restamp(path)


def restamp(path: Path) -> str | None:
    """Hash a cached file, write the hash to its stamp and return it; None if the file cannot be read."""
    try:
        state = path.stat()
        sha256 = sha256_of(path)
    except OSError:
        return None
    stamp = {"size": state.st_size, "mtime_ns": state.st_mtime_ns, "sha256": sha256}
    with suppress(KlrBenchError):  # in a read-only cache the file is hashed at each use
        write_json(beside(path, ".stamp"), stamp)
    return sha256

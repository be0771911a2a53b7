"""Functions for the cache folder: its location, file hashes, locks and error messages."""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from klr_bench.errors import KlrBenchError, fail, sanitize
from klr_bench.files import open_regular, read_checked_json, write_checked_json

# A progress callback receives the bytes processed, the total bytes (None if unknown) and a description of the step.
Progress = Callable[[int, "int | None", str], None]
State = tuple[int, ...]
T = TypeVar("T")

MOST_FILES = 1 << 16
"""Maximum number of files whose hashes a process remembers; a stream may consist of many files."""


def ignore_progress(done: int, total: int | None, description: str) -> None:
    """Do nothing; this is the default progress callback."""


def default_cache() -> Path:
    """Return the default cache folder: ``data/`` in a checkout, or the user's cache folder."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "configs").is_dir():
        return checkout / "data"
    import platformdirs

    return Path(platformdirs.user_cache_dir("klr-bench"))


def suffixed(path: Path, suffix: str) -> Path:
    """Return a path with a suffix appended to its file name."""
    return path.with_name(path.name + suffix)


@contextmanager
def disk_errors(path: Path, setting: str = "data.cache=FOLDER") -> Iterator[None]:
    """Convert an OSError in the ``with`` block into a KlrBenchError that explains what to do.

    The block writes the file or folder `path`.  `setting` is the option that selects another folder.
    """
    try:
        yield
    except OSError as error:
        # NumPy reports a full disk with a message such as "8 requested and 0 written", but no errno.
        full = error.errno in {errno.ENOSPC, errno.EDQUOT} or "requested and" in str(error)
        reason = "the disk is full" if full else error.strerror or error
        advice = "Free some space" if full else "Make its folder writable"
        fail(
            f"{sanitize(path, 1000)} could not be written: {reason}. {advice}, or choose another folder with {setting}."
        )


def find_or_make(path: Path, name: str, progress: Progress, find: Callable[[], T | None], make: Callable[[], T]) -> T:
    """Return cached content found by `find`; if there is none, create it with `make`.

    `find` returns None if there is no content, and `make` writes `path`.  If several processes call this at once, one
    of them creates the content, and the others report under `name` that they are waiting.  The operating system
    releases the lock of a killed process.  Raises KlrBenchError.
    """
    content = find()
    if content is not None:
        return content
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(suffixed(path, ".lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress(0, None, f"{name}: waiting for another process")
            lock.acquire()
        try:
            content = find()
            return make() if content is None else content
        finally:
            lock.release()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 hash of the content of a file.  Raises OSError."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@lru_cache(MOST_FILES)
def content_sha256(path: Path, state: State) -> str:
    """Return the SHA-256 hash of the content of a file.

    The hash is remembered until the state of the file (see `state_of`) changes.  Raises OSError.
    """
    return sha256_of(path)


def state_of(path: Path) -> State:
    """Return the size, two times and the place on the disk of a file.  Raises OSError.

    The times are those of the last modification and of the last change.  Programs such as rsync and cp -p set the
    modification time of the files that they write, but no program can set the change time.
    """
    state = path.stat()
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_dev, state.st_ino


def stamped_sha256(path: Path, *, recompute: bool = False) -> str | None:
    """Return the SHA-256 hash of a cached file, or None if the file cannot be read.

    The hash is read from the ``.stamp`` file next to the file if the size and the times stored there still match.
    Otherwise, or if `recompute` is true, the hash is computed.  A ``.stamp`` file for different content is replaced
    only if `recompute` is true.
    """
    stamp = stamp_of(path)
    try:
        state = list(state_of(path))
        if stamp.get("state") == state and not recompute:
            return str(stamp["sha256"])
        sha256 = sha256_of(path)
    except OSError:
        return None
    if recompute or stamp.get("sha256") in (None, sha256):
        with suppress(KlrBenchError):  # a read-only cache stores no hash, so the file is hashed each time
            write_checked_json(suffixed(path, ".stamp"), {"state": state, "sha256": sha256})
    return sha256


def stamp_of(path: Path) -> dict[str, Any]:
    """Return the state and hash recorded for a cached file, or {} if there is no valid record."""
    with suppress(KlrBenchError):
        stamp = read_checked_json(suffixed(path, ".stamp"))
        if isinstance(stamp, dict) and re.fullmatch(r"[0-9a-f]{64}", str(stamp.get("sha256"))):
            return stamp
    return {}

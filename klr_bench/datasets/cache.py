"""Cache folder: location, hashes of its files, and errors when writing."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from klr_bench.errors import KlrBenchError, fail, sanitize
from klr_bench.files import open_regular, read_json, write_json

# Called with the number of bytes done, the total number (None: unknown) and a description of the step.
Progress = Callable[[int, "int | None", str], None]
State = tuple[int, int, int]
T = TypeVar("T")

MOST_FILES = 1 << 16
"""Number of files whose hashes a process remembers."""
N_PIECES, PIECE = 16, 2**20
"""Number of sampled pieces of a large file, and bytes per piece."""


def silent(done: int, total: int | None, description: str) -> None:
    """Progress callback that does nothing."""


def default_cache() -> Path:
    """Return ``data/`` in a checkout, or the user's cache folder for an installed package."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "configs").is_dir():
        return checkout / "data"
    import platformdirs

    return Path(platformdirs.user_cache_dir("klr-bench"))


def suffixed(path: Path, suffix: str) -> Path:
    """Append a suffix to the whole file name of a path."""
    return path.with_name(path.name + suffix)


@contextmanager
def disk_errors(path: Path, setting: str = "data.cache=FOLDER") -> Iterator[None]:
    """Convert file-system errors while writing `path` to messages with advice.

    `setting` is the key that moves the path.
    """
    try:
        yield
    except OSError as error:
        # NumPy says "8 requested and 0 written" if there is no room for an array.
        full = error.errno in {errno.ENOSPC, errno.EDQUOT} or "requested and" in str(error)
        reason = "the disk is full" if full else error.strerror or error
        advice = "Free some space" if full else "Make its folder writable"
        fail(f"{sanitize(path, 1000)} could not be written: {reason}. {advice}, or choose another path with {setting}.")


def make_once(path: Path, name: str, progress: Progress, find: Callable[[], T | None], make: Callable[[], T]) -> T:
    """Return the result of `find`, or if it is None that of `make`, which writes `path`.

    Of several processes one makes it, and the others wait for it, which they report under `name`.  The system releases
    the lock of a process that is killed.  Raises KlrBenchError.
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
    """Return the SHA-256 of a file.

    Raises OSError.
    """
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sampled_sha256(path: Path) -> str:
    """Return a hash of the size and a 16 MiB sample of a file; small files are hashed fully.

    The pieces of 1 MiB are the first, the last, and others evenly in between.  Raises OSError.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= N_PIECES * PIECE:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        digest = hashlib.sha256(b"%d\n" % size)
        for i in range(N_PIECES):
            stream.seek(i * (size - PIECE) // (N_PIECES - 1))
            digest.update(stream.read(PIECE))
    return digest.hexdigest()


@lru_cache(MOST_FILES)
def content_sha256(path: Path, state: State, *, sampled: bool) -> str:
    """Return the hash of a file, which is only reread if its state has changed.

    Raises OSError.
    """
    return sampled_sha256(path) if sampled else sha256_of(path)


def state_of(path: Path) -> State:
    """Return size, mtime and ctime of a file.  Raises OSError.

    Programs such as rsync and cp -p set the mtime of what they write, but none can set its ctime.
    """
    state = path.stat()
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


def stamped_sha256(path: Path, *, anew: bool = False) -> str | None:
    """Return the SHA-256 of a cached file, or None if it cannot be read.

    It is read from the file's stamp if size and times still match, else, or if `anew`, computed.  The stamp of other
    content is only replaced if `anew`.
    """
    stamp = stamp_of(path)
    try:
        state = list(state_of(path))
        if stamp.get("state") == state and not anew:
            return str(stamp["sha256"])
        sha256 = sha256_of(path)
    except OSError:
        return None
    if anew or stamp.get("sha256") in (None, sha256):
        with suppress(KlrBenchError):  # in a read-only cache the file is hashed on every use
            write_json(suffixed(path, ".stamp"), {"state": state, "sha256": sha256})
    return sha256


def stamp_of(path: Path) -> dict[str, Any]:
    """Return the stamp of a cached file (state and SHA-256), or {} if it is missing or damaged."""
    with suppress(KlrBenchError):
        stamp = read_json(suffixed(path, ".stamp"))
        if isinstance(stamp, dict) and re.fullmatch(r"[0-9a-f]{64}", str(stamp.get("sha256"))):
            return stamp
    return {}

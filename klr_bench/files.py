"""Files that are whole or not there: writing by an atomic rename, and JSON that may have been damaged."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from klr_bench.errors import KlrBenchError


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file, and its folder; a reader finds the old content or the new one, never a part of it.

    Raises KlrBenchError where the disk is full or the folder cannot be written.  Nothing is left behind
    then; a kill leaves at most a hidden file ``.<name>.<process>-<random>.part``.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}-{uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def unwritable(path: Path, error: OSError) -> KlrBenchError:
    """Return the error that says why a path cannot be written, and what to do."""
    return KlrBenchError(
        f"{path}: cannot be written ({error.strerror or error}). Make room on the disk, give yourself write "
        "permission there, or choose another folder (results_dir=... of a run, output=... of a report); then "
        "run the same command again: what is finished is kept."
    )


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically; numpy scalars become numbers.  Raises KlrBenchError as `write_atomic`."""
    write_atomic(path, json.dumps(content, default=_plain).encode())


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, None where it is absent, empty, cut off or otherwise damaged."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError, RecursionError):
        return None
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror or error}). Give yourself permission to read it."
        raise KlrBenchError(message) from error


def _plain(value: Any) -> Any:
    """Turn what json does not know, a numpy scalar or array, into what it knows."""
    if hasattr(value, "tolist"):
        return value.tolist()
    message = f"{type(value).__name__} is not JSON"
    raise TypeError(message)

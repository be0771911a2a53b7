"""numba's compiler with a cache that is always writable and never stale.

Compiled code is stored in ``<base>/<hash of the estimators' source files>``.  The base is the first folder that can be
written: ``NUMBA_CACHE_DIR``, the user's cache folder, or a temporary folder.  The hash is necessary because numba
checks only the file of the function itself: after an edit of another file, a cached caller would still run the old code
of the functions in that file.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs
from numba import config, njit

ROOM = 2_000_000
"""Bytes of free space that a cache folder must have."""


@cache
def cache_folder() -> Path:
    """Return the folder of the compiled code; it is created if it does not exist."""
    estimators = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for source in sorted(estimators.rglob("*.py")):
        digest.update(source.read_bytes())
    name = digest.hexdigest()[:16]
    candidates = [Path(platformdirs.user_cache_dir("klr-bench")) / "numba" / name]
    if os.environ.get("NUMBA_CACHE_DIR"):
        candidates.insert(0, Path(os.environ["NUMBA_CACHE_DIR"]) / name)
    for folder in candidates:
        if _writable(folder):
            return folder
    temporary = Path(tempfile.mkdtemp(prefix="klr-bench-numba-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = str(temporary)  # for worker processes
    refused.extend(str(folder.parent) for folder in candidates)
    return temporary / name


refused: list[str] = []
"""Folders that could not be written, if compiled code is therefore kept for this run only."""


def is_cold() -> bool:
    """Tell whether nothing has been compiled yet for this version of the package."""
    return next(cache_folder().rglob("*.nbc"), None) is None


def compiled(*signatures: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compile a function now for the given signatures, and cache it."""

    def decorate(function: Callable[..., Any]) -> Any:
        before = config.CACHE_DIR
        config.CACHE_DIR = str(cache_folder())  # numba reads it only when the decorator is applied
        try:
            return njit(*signatures, cache=True, error_model="numpy", **options)(function)
        finally:
            config.CACHE_DIR = before

    return decorate


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
            file.flush()
            return True
    except OSError:
        return False

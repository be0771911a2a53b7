"""numba's compiler, with a cache that is always writable and never stale, and only for what is used.

A function is compiled, or loaded from the cache, for one of its declared signatures when it is first called with such
arguments.  `compile_all` does it ahead, so that a time that is measured contains none of it.

Compiled code is stored in ``<base>/<hash of the estimators' source files>``.  The base is the first folder that can be
written: ``NUMBA_CACHE_DIR``, the user's cache folder, or a temporary folder.  The hash is necessary because numba
checks only the file of the function itself: after an edit of another file, a cached caller would still run the old code
of the functions in that file.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import platformdirs
from numba import config, njit
from numba.core import errors
from numba.core.sigutils import normalize_signature
from numba.core.types.function_type import CompileResultWAP

logger = logging.getLogger("klr_bench")

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
    """Decorator: compile a function for these signatures, each when it is first needed, and cache it.

    Without signatures it is compiled for whatever types another compiled function gives it.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        before = config.CACHE_DIR
        config.CACHE_DIR = str(cache_folder())  # numba reads it only when the decorator is applied
        try:
            dispatcher = njit(cache=True, error_model="numpy", **options)(function)
        finally:
            config.CACHE_DIR = before
        if signatures:
            _restrict(dispatcher, signatures[0] if isinstance(signatures[0], list) else signatures)
        return dispatcher

    return decorate


def as_argument(function: Any, signature: Any) -> Any:
    """Return a compiled function as an argument of another, for a parameter of type `FunctionType(signature)`."""
    return CompileResultWAP(function.get_compile_result(signature))


def compile_all() -> None:
    """Compile, or load from the cache, all functions of the modules that have been imported, for all signatures."""
    _unsaid.clear()
    for compile_one in _waiting:
        compile_one()
    _waiting.clear()


_waiting: list[Callable[[], Any]] = []
"""What compiles, for each function and signature that may not be compiled yet."""


def _restrict(dispatcher: Any, signatures: Sequence[Any]) -> None:
    """Let a function that numba would compile for any types be compiled for the declared ones alone.

    numba asks `Dispatcher.compile` both for a call from Python and for one from another compiled function.
    """
    compile_for = dispatcher.compile
    types = dispatcher.typingctx

    def compile_declared(signature: Any) -> Any:
        given, _ = normalize_signature(signature)
        for declared in signatures:
            wanted, _ = normalize_signature(declared)
            if len(given) == len(wanted) and None not in map(types.can_convert, given, wanted):
                types.install_possible_conversions(given, wanted)  # the next call finds it without asking again
                _say_once()
                return compile_for(declared)
        message = f"No matching definition for argument type(s) {', '.join(map(str, given))}"
        raise errors.TypingError(message)

    dispatcher.compile = compile_declared
    _waiting.extend(partial(compile_for, declared) for declared in signatures)


_unsaid = ["klr-bench compiles what this fit needs, once for this version: it takes a few seconds."]


def _say_once() -> None:
    """Say, in a process that finds nothing compiled, why the first fit takes longer."""
    if _unsaid:
        message = _unsaid.pop()
        if is_cold():
            logger.warning(message)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
            file.flush()
            return True
    except OSError:
        return False

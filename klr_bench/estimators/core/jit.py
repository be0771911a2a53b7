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
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import platformdirs
from numba import config, njit
from numba.core import errors
from numba.core.sigutils import normalize_signature

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
    candidates = []
    with suppress(RuntimeError):  # neither HOME nor the password database names a home folder
        candidates.append(Path(platformdirs.user_cache_dir("klr-bench")) / "numba" / name)
    if os.environ.get("NUMBA_CACHE_DIR"):
        candidates.insert(0, Path(os.environ["NUMBA_CACHE_DIR"]) / name)
    for folder in candidates:
        if _writable(folder):
            return folder
    temporary = Path(tempfile.mkdtemp(prefix="klr-bench-numba-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = str(temporary)  # for worker processes
    refused.extend([str(folder.parent) for folder in candidates] or ["The home folder"])
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
            dispatcher = njit(cache=True, nogil=True, error_model="numpy", **options)(function)
        finally:
            config.CACHE_DIR = before
        if signatures:
            _restrict(dispatcher, signatures[0] if isinstance(signatures[0], list) else signatures)
        return dispatcher

    return decorate


def compile_all() -> None:
    """Compile, or load from the cache, all functions of the modules that have been imported, for all signatures."""
    _unsaid.clear()
    for compile_one in _waiting:
        compile_one()
    _waiting.clear()


_one_at_a_time = threading.RLock()
_waiting: list[Callable[[], Any]] = []
"""What compiles, for each function and signature that may not be compiled yet."""


def _restrict(dispatcher: Any, signatures: Sequence[Any]) -> None:
    """Let a function that numba would compile for any types be compiled for the declared ones alone, when needed.

    numba asks `compile` at the first call from Python and `_search_new_conversions` at a later one with other types,
    `get_call_template` where another compiled function calls it, and `get_compile_result` where it is the argument of
    one.  After the first time compilation is disabled: then a call takes arguments that can be converted, as with
    signatures that are compiled at once.
    """
    compile_for, search = dispatcher.compile, dispatcher._search_new_conversions
    template, result = dispatcher.get_call_template, dispatcher.get_compile_result
    convertible = dispatcher.typingctx.can_convert

    def ensure(given: Sequence[Any]) -> Any:
        for declared in signatures:
            wanted, _ = normalize_signature(declared)
            if len(given) == len(wanted) and None not in map(convertible, given, wanted):
                with _one_at_a_time:  # several threads may need it at once
                    _say_once()
                    dispatcher.disable_compile(False)
                    try:
                        return compile_for(declared)
                    finally:
                        dispatcher.disable_compile(bool(dispatcher.signatures))
        return None

    def compile_declared(signature: Any) -> Any:
        given, _ = normalize_signature(signature)
        entry = ensure(given)
        if entry is None:
            message = f"No matching definition for argument type(s) {', '.join(map(str, given))}"
            raise errors.TypingError(message)
        return entry

    def search_or_compile(*arguments: Any) -> bool:
        if search(*arguments):
            return True
        return ensure([dispatcher.typeof_pyval(one) for one in arguments]) is not None and search(*arguments)

    def call_template(given: Any, kws: Any) -> Any:
        ensure(given)
        return template(given, kws)

    def compile_result(signature: Any) -> Any:
        if tuple(signature.args) not in dispatcher.overloads:  # it is asked at every call
            ensure(signature.args)
        return result(signature)

    dispatcher.compile, dispatcher._search_new_conversions = compile_declared, search_or_compile
    dispatcher.get_call_template, dispatcher.get_compile_result = call_template, compile_result
    _waiting.extend(partial(ensure, normalize_signature(declared)[0]) for declared in signatures)


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

"""Compilation of functions by numba on first use, with a cache that never goes stale.

A function is compiled for a declared signature, or loaded from the cache, when it is first called with such arguments.
numba itself would compile explicit signatures at import, and without them an engine again for each rule.

Compiled code is stored in ``<base>/<hash of the estimators' source files>``, where the base is the first folder that
can be written of ``NUMBA_CACHE_DIR``, the user's cache folder and a temporary folder.  The hash is necessary because
numba checks only the file of the function itself: a cached caller of a function in another file would run old code.

With NUMBA_DISABLE_JIT=1 nothing is compiled: functions run as Python, hundreds of times slower.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, update_wrapper, wraps
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numba import config, njit, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature
from numba.core.types.function_type import CompileResultWAP
from numba.extending import intrinsic, typeof_impl
from numba.np.numpy_support import as_dtype

from klr_bench.protocols import LOADERS

logger = logging.getLogger("klr_bench")


@cache
def cache_folder() -> Path:
    """Return the folder in which compiled code is cached, creating it if necessary."""
    estimators = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for source in sorted(estimators.rglob("*.py")):
        digest.update(source.read_bytes())
    name = digest.hexdigest()[:16]
    candidates = []
    with suppress(RuntimeError):  # raised if neither HOME nor the password database names a home folder
        candidates.append(Path(platformdirs.user_cache_dir("klr-bench")) / "numba" / name)
    if os.environ.get("NUMBA_CACHE_DIR"):
        candidates.insert(0, Path(os.environ["NUMBA_CACHE_DIR"]) / name)
    for folder in candidates:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    temporary = Path(tempfile.mkdtemp(prefix="klr-bench-numba-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = str(temporary)  # for worker processes
    refused.extend([str(folder.parent) for folder in candidates] or ["The home folder"])
    return temporary / name


refused: list[str] = []
"""Folders that cannot be written; compiled code is then kept only for this process."""


def is_cold() -> bool:
    """Return True if a fit compiles code, because the cache has none for this version."""
    return not config.DISABLE_JIT and next(cache_folder().rglob("*.nbc"), None) is None


def compiled(*signatures: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function so that it is compiled for the given signatures on first use.

    Without signatures it is compiled for whatever types another compiled function passes.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return _interpreted(function)
        if not signatures:
            return _dispatcher(function, options)
        return Compiled(function, signatures[0] if isinstance(signatures[0], list) else signatures, options)

    return decorate


def instructions(interpreted: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function that generates machine instructions.

    `interpreted` has the same arguments and result, and replaces it where compilation is disabled.
    """
    return lambda generator: interpreted if config.DISABLE_JIT else intrinsic(generator)


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):  # compiled code does not report them either
            return function(*arguments)

    return run


def compile_all() -> None:
    """Compile all functions of the imported modules, or load them from the cache."""
    _messages.clear()
    for variant in _waiting:
        variant.ready()
    _waiting.clear()


LOADERS.append(compile_all)


def _dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())  # numba reads CACHE_DIR only when it decorates a function
    try:
        return njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    finally:
        config.CACHE_DIR = before


class Variant:
    """A function that numba compiles on first use, for a subset of its signatures.

    Arguments are converted to the types of the signatures.
    """

    def __init__(self, function: Callable[..., Any], signatures: Sequence[Any], options: dict[str, Any]) -> None:
        self.dispatcher, self._signatures = _dispatcher(function, options), signatures
        self.argument_types = normalize_signature(signatures[0])[0]

    def ready(self) -> Any:
        """Return the numba dispatcher, compiling it on the first call of this method."""
        with global_compiler_lock:  # several threads may request the dispatcher at once
            if not self.dispatcher.signatures:
                if _messages and is_cold():
                    logger.warning(_messages[0])
                _messages.clear()
                for signature in self._signatures:
                    self.dispatcher.compile(signature)
                self.dispatcher.disable_compile()
        return self.dispatcher


class Compiled:
    """Function with declared signatures, callable from Python and from compiled code.

    A call from Python compiles the signatures with its dtypes of arrays; a compiled function that calls this one
    compiles all.
    """

    def __init__(self, function: Callable[..., Any], signatures: Sequence[Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for signature in signatures:
            groups.setdefault(tuple(_dtypes(normalize_signature(signature)[0])), []).append(signature)
        self.variants = {key: Variant(function, group, options) for key, group in groups.items()}
        self.whole = Variant(function, signatures, options) if len(groups) > 1 else next(iter(self.variants.values()))
        self._arrays, functions = _deciding_places(signatures)
        self._deciding = self._arrays + functions
        self._calls: dict[tuple[Any, ...], tuple[Any, dict[int, Any]]] = {}
        _waiting.extend(self.variants.values())

    def __call__(self, *arguments: Any) -> Any:
        if self._arrays or len(self.variants) == 1:
            kinds = []
            for place in self._deciding:
                kinds.append(getattr(arguments[place], "dtype", arguments[place]))
            key = tuple(kinds)
        else:
            key = tuple(_kinds(arguments))
        if key not in self._calls:
            self._calls[key] = self._prepare(arguments)
        dispatcher, functions = self._calls[key]
        if not functions:
            return dispatcher(*arguments)
        changed = list(arguments)
        for place, function in functions.items():
            changed[place] = function
        return dispatcher(*changed)

    def variant(self, dtypes: Iterable[Any]) -> Variant:
        """Return the variant that accepts array arguments with the given dtypes.

        If there is none, its dispatcher raises TypeError for every argument.
        """
        return self.variants.get(tuple(dtypes), self.whole)

    def _prepare(self, arguments: tuple[Any, ...]) -> tuple[Any, dict[int, Any]]:
        """Return the dispatcher for the arguments, and replacements for the `Compiled` arguments."""
        variant = self.variant(kind for kind in _kinds(arguments) if not isinstance(kind, Compiled))
        functions = {
            place: FunctionArgument(argument, variant.argument_types[place])
            for place, argument in enumerate(arguments)
            if isinstance(argument, Compiled)
        }
        return variant.ready(), functions


class FunctionArgument(CompileResultWAP):
    """Compiled function that is an argument of another one.

    Its type and address are looked up only once, because that takes longer than some calls.
    """

    def __init__(self, function: Compiled, function_type: types.FunctionType) -> None:
        dispatcher = function.variant(_dtypes(function_type.signature.args)).ready()
        super().__init__(dispatcher.get_compile_result(function_type.signature))
        self.function_type = function_type


@typeof_impl.register(FunctionArgument)
def _typeof_argument(function: FunctionArgument, context: Any) -> Any:
    return function.function_type


@typeof_impl.register(Compiled)
def _typeof(function: Compiled, context: Any) -> Any:
    return typeof_impl(function.whole.ready(), context)


def _dtypes(numba_types: Iterable[Any]) -> Iterator[np.dtype[Any]]:
    for numba_type in numba_types:
        if isinstance(numba_type, types.Array):
            yield as_dtype(numba_type.dtype)
        elif isinstance(numba_type, types.BaseTuple):
            yield from _dtypes(numba_type)


def _deciding_places(signatures: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Return the positions of the array and function arguments that determine the variant.

    The arrays are those whose dtype is not the same in all signatures.
    """
    by_place = list(zip(*(normalize_signature(signature)[0] for signature in signatures), strict=True))
    arrays = [i for i, kinds in enumerate(by_place) if isinstance(kinds[0], types.Array) and len(set(kinds)) > 1]
    return arrays, [i for i, kinds in enumerate(by_place) if isinstance(kinds[0], types.FunctionType)]


def _kinds(arguments: Iterable[Any]) -> list[Any]:
    """Return the dtype of each array, including arrays in tuples, and each `Compiled` function."""
    kinds = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            kinds.append(argument.dtype)
        elif isinstance(argument, tuple):
            kinds.extend(_kinds(argument))
        elif isinstance(argument, Compiled):
            kinds.append(argument)
    return kinds


_waiting: list[Variant] = []
"""Variants that may not be compiled yet."""
_messages = ["klr-bench is compiling the code for this fit, which takes a few seconds once per version."]
"""Message logged at the first compilation if the cache was empty."""

"""Compilation of functions by numba on first use, with a cache that never goes stale.

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
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial, reduce, update_wrapper, wraps
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numba import config, float32, float64, types
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic
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


def compiled(signatures: Any = (), **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function so that it is compiled for its signatures on first use.

    `signatures` is one signature, a list, or a function of the precision, which is called with float32 and float64.
    Without signatures the function is compiled for whatever types another compiled function passes.
    """
    if callable(signatures):
        signatures = [signatures(float32), signatures(float64)]
    elif not isinstance(signatures, list | tuple):
        signatures = [signatures]

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return _interpreted(function)
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for signature in signatures:
            groups.setdefault(tuple(_dtypes(signature).values()), []).append(signature)
        if len(groups) > 1:
            return ByDtype(function, list(groups.values()), options)
        return Lazy.of(function, next(iter(groups.values()), ()), options)

    return decorate


def read_only(dtype: Any, dimensions: int) -> Any:
    """Return the numba type of a read-only C-contiguous array."""
    return types.Array(dtype, dimensions, "C", readonly=True)


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
    next(_messages, None)
    for function in _declared:
        function.ready()


LOADERS.append(compile_all)


class Lazy(CPUDispatcher):
    """Function that numba compiles for its declared signatures when it is first needed.

    Arguments are converted to the declared types.  numba calls `_compile_for_args` if there is no code for the types of
    a call from Python, and `get_call_template` for a call from a function that is compiled.
    """

    declared: Sequence[Any] = ()

    @classmethod
    def of(cls, function: Callable[..., Any], declared: Sequence[Any], options: dict[str, Any]) -> Lazy:
        """Return a function with the given signatures and numba's options; it is not compiled yet."""
        cache_folder()  # before a source file can change
        lazy = cls(function, targetoptions={"nopython": True, "nogil": True, "error_model": "numpy", **options})
        lazy.declared = declared
        if declared:
            _declared.append(lazy)
        return lazy

    def ready(self) -> Lazy:
        """Compile the function for its declared signatures, or load it from the cache; return it."""
        with global_compiler_lock:  # several threads may call the function at once
            if self.declared and self._can_compile:
                message = next(_messages, None)
                if message and is_cold():
                    logger.warning(message)
                for signature in self.declared:
                    self.compile(signature)
                self.disable_compile()
        return self

    def compile(self, signature: Any) -> Any:
        with global_compiler_lock:
            if isinstance(self._cache, NullCache):
                before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder())
                try:
                    self.enable_caching()
                finally:
                    config.CACHE_DIR = before
            return super().compile(signature)

    def _compile_for_args(self, *arguments: Any, **keywords: Any) -> Any:
        return self.ready() if self.declared else super()._compile_for_args(*arguments, **keywords)

    def get_call_template(self, arguments: Any, keywords: Any) -> Any:
        self.ready()
        return super().get_call_template(arguments, keywords)


class ByDtype:
    """Function with signatures for several dtypes of its arrays, which are compiled separately.

    `variants` has a function for each combination of dtypes, and `_places` says which arrays determine it.
    """

    def __init__(self, function: Callable[..., Any], groups: Sequence[Sequence[Any]], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        dtypes = [_dtypes(group[0]) for group in groups]
        self._places: list[tuple[int, ...]] = []
        for place in dtypes[0]:
            keys = {tuple(by_place[chosen] for chosen in (*self._places, place)) for by_place in dtypes}
            if len(keys) > len({key[:-1] for key in keys}):
                self._places.append(place)
        self.variants = {
            tuple(by_place[place] for place in self._places): Lazy.of(function, group, options)
            for by_place, group in zip(dtypes, groups, strict=True)
        }
        self._of_all = function, [signature for group in groups for signature in group], options

    @cached_property
    def whole(self) -> Lazy:
        """The function with all signatures, which compiled functions call."""
        return Lazy.of(*self._of_all)

    @property
    def _numba_type_(self) -> Any:
        return self.whole._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        dtypes = []
        for place in self._places:
            array = arguments[place[0]] if len(place) == 1 else reduce(getitem, place, arguments)
            dtypes.append(getattr(array, "dtype", None))
        variant = self.variants.get(tuple(dtypes))
        return (self.whole if variant is None else variant)(*arguments)


def _dtypes(signature: Any) -> dict[tuple[int, ...], np.dtype[Any]]:
    """Return the dtypes of the arrays of a signature by their places, paths in tuples."""
    dtypes = {}

    def add(kinds: Iterable[Any], path: tuple[int, ...]) -> None:
        for place, kind in enumerate(kinds):
            if isinstance(kind, types.Array):
                dtypes[*path, place] = as_dtype(kind.dtype)
            elif isinstance(kind, types.BaseTuple):
                add(kind, (*path, place))

    add(normalize_signature(signature)[0], ())
    return dtypes


@cache
def as_argument(function: Any, *dtypes: np.dtype[Any]) -> Any:
    """Return a compiled function as it is passed to another one, which calls its address.

    `dtypes` are those of its arrays, if it is compiled for several.
    """
    return function if config.DISABLE_JIT else FunctionArgument(function.variants[dtypes] if dtypes else function)


class FunctionArgument:
    """Type and address of a compiled function, which numba would look up at each call."""

    def __init__(self, function: Lazy) -> None:
        self.result = function.ready().get_compile_result(function.declared[0])
        address = self.result.library.get_pointer_to_function(self.result.fndesc.llvm_cfunc_wrapper_name)
        self._numba_type_ = types.FunctionType(function.declared[0])
        self.__wrapper_address__ = partial(int, address)  # numba calls it


_declared: list[Lazy] = []
"""Functions with declared signatures."""
_messages = iter(["klr-bench is compiling the code for this fit, which takes a few seconds once per version."])
"""Message that is logged at the first compilation if the cache is empty."""

"""Compute the cache keys of results, which are hashes of configurations and source code.

Source code is located and parsed but never imported.  Comments, formatting and docstrings do not change a hash.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import sys
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any, NamedTuple

from klr_bench.errors import fail
from klr_bench.files import Stamp, regular, stamp_of
from klr_bench.instantiate import TARGET

PACKAGE = "klr_bench"
LABELS = ("title", "unit", "compared", "usual")
"""Parameters of `Metric` that affect only how the metric is printed."""
LABEL_POSITIONS = (1, 2, 4)
"""Positions of the arguments in LABELS that can be passed by position."""
LABELS_MODULE = "klr_bench.metrics.metric"
"""Module that defines `Metric`; hashes ignore it because no result depends on it."""
WRAPPERS = (f"{PACKAGE}.estimators.peers", f"{PACKAGE}.datasets.keel")
"""Modules that wrap solvers or data of installed libraries."""
ROUNDING = ("python==", "numpy==", "numba==")
"""Beginnings of libraries whose versions change results by rounding only, and are not part of a hash."""
INSTALLED_FOLDERS = {"site-packages", "dist-packages"}
"""Names of folders with installed libraries, which are hashed by their version only."""


def content_hash(content: Any) -> str:
    """Return a hash (16 hexadecimal digits) of a JSON-serializable value."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _public_names() -> dict[str, str]:
    stub = Path(__file__).parents[1] / "__init__.pyi"
    imports = [node for node in ast.parse(stub.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {name.name: f"{PACKAGE}.{node.module}" for node in imports for name in node.names}


PUBLIC = _public_names()
_stamps: dict[Path, Stamp | None] = {}
"""Stamps of the hashed files from before they were read."""


@cache
def source_hash(target: str) -> str:
    """Return a hash of the source code of an object, given its dotted name ("klr_bench.OSKL").

    For code of klr-bench or of the user, the hash covers the module and everything that it imports, directly or
    indirectly.  An installed library is represented by its version, if the target is part of it, or if the user's code
    or a module of WRAPPERS imports it.  Raises KlrBenchError if the module does not exist.
    """
    module = next((module for name in _parents(_defining_module(target)) if (module := _module(name))), None)
    if module is None:
        fail(f"{TARGET}: module of {target!r} not found; expected the dotted name of a class or function.")
    return _closure_hash(module) if module.code is not None else _library(module.name)


@cache
def module_hash(*names: str) -> str:
    """Return a hash of the source code of modules, ignoring the modules that they import."""
    modules = {name: _module(name) for name in names}
    return content_hash({name: module and module.code for name, module in modules.items()})


@cache
def file_hash(path: Path) -> str:
    """Return a hash of a Python file and of the user's modules that it imports."""
    return _closure_hash(_parse(f"<{path.stem}>", path))


def forget_edited() -> bool:
    """Return True if a file has changed since it was hashed.

    All hashes are then computed anew when they are needed.
    """
    edited = any(stamp_of(path) != stamp for path, stamp in list(_stamps.items()))
    if edited:
        _stamps.clear()
        for cached in (source_hash, module_hash, file_hash, _module):
            cached.cache_clear()
    return edited


class Module(NamedTuple):
    """Parsed source code of a module."""

    name: str
    code: str | None
    """The syntax tree as text, or None for an installed library."""
    imports: tuple[str, ...] = ()
    """Dotted names in the import statements; not all of them are modules."""


def _closure_hash(start: Module) -> str:
    code: dict[str, str] = {}
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module.code is None or module.name in (*code, LABELS_MODULE):
            continue
        code[module.name] = module.code
        imported = [found for name in module.imports if (found := _module(name))]
        waiting += imported
        if module.name.startswith(WRAPPERS) or not module.name.startswith(f"{PACKAGE}."):
            libraries = {_library(each.name) for each in imported if each.code is None and "." not in each.name}
            code |= {library: "" for library in libraries if not library.startswith(ROUNDING)}
    return content_hash(code)


def _defining_module(name: str) -> str:
    return PUBLIC.get(name.removeprefix(f"{PACKAGE}."), name) if name.startswith(f"{PACKAGE}.") else name


def _parents(name: str) -> Iterator[str]:
    """Yield a dotted name and its parents: "a.b.c", "a.b", "a"."""
    while name:
        yield name
        name = name.rpartition(".")[0]


_distributions = cache(packages_distributions)


@cache
def _library(name: str) -> str:
    """Return the distribution that contains an installed module, with its version: numpy==2.1.0."""
    for distribution in _distributions().get(name.partition(".")[0], ()):
        return f"{distribution}=={version(distribution)}"
    return f"python=={platform.python_version()}"


@cache
def _module(name: str) -> Module | None:
    if name.partition(".")[0] in sys.stdlib_module_names:
        return Module(name, None)
    spec = _spec(name)
    if spec is None:
        return None
    has_file = spec.has_location and spec.origin  # False for a package without __init__.py
    return _parse(name, Path(spec.origin or "")) if has_file else Module(name, "")


def _spec(name: str) -> ModuleSpec | None:
    folders: list[str] | None = None
    spec = None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
    return spec


def _parse(name: str, path: Path) -> Module:
    if INSTALLED_FOLDERS & set(path.parts) and name.partition(".")[0] != PACKAGE:
        return Module(name, None)
    _stamps[path] = stamp_of(path)
    with regular(path) as file:
        content = file.read()
    if path.suffix != ".py":
        return Module(name, hashlib.sha256(content).hexdigest())
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        fail(f"{path}: invalid Python: {error}")
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports = tuple(dict.fromkeys(_imports(tree, package)))
    return Module(name, _code(tree), imports)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name for alias in node.names for name in _parents(alias.name) if name != PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            parent_parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parent_parts, *([node.module] if node.module else [])])
            yield from (name for name in _parents(module) if name.partition(".")[0] != PACKAGE)
            yield from ([module] if module.startswith(f"{PACKAGE}.") else [])
            yield from (_defining_module(f"{module}.{alias.name}") for alias in node.names)
            yield from PUBLIC.values() if module == PACKAGE and node.names[0].name == "*" else ()
        elif isinstance(node, ast.Attribute) and node.attr in PUBLIC and getattr(node.value, "id", "") != "self":
            yield PUBLIC[node.attr]  # klr_bench.OSKL


def _code(tree: ast.AST) -> str:
    """Return a syntax tree as a string, without docstrings and the titles and units of metrics."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Metric":
            node.args = [argument for position, argument in enumerate(node.args) if position not in LABEL_POSITIONS]
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in LABELS]
    options = {"show_empty": True} if sys.version_info >= (3, 13) else {}  # the text of Python 3.11
    return ast.dump(tree, **options).replace(", type_params=[]", "")

"""Keys of results, which are hashes of content and of source code.

Source code is located and parsed, never imported.  Comments, layout and docstrings do not count.
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

import klr_bench
from klr_bench.errors import fail
from klr_bench.files import regular
from klr_bench.instantiate import TARGET

PACKAGE = "klr_bench"
LABELS = ("title", "unit", "compared", "usual")
"""Parameters of `Metric` that affect only its display."""
LABEL_POSITIONS = (1, 2, 4)
"""Positions of these parameters when passed positionally."""
LABELS_MODULE = "klr_bench.metrics.metric"
"""Module of `Metric`, which affects no result."""
INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed libraries, whose version is hashed instead of their code."""


def content_hash(content: Any) -> str:
    """Return 16 hexadecimal digits that depend only on JSON-serializable content."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _public_names() -> dict[str, str]:
    """Map the public names of klr-bench to their modules."""
    stub = Path(klr_bench.__file__).with_suffix(".pyi")
    imports = [node for node in ast.parse(stub.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {name.name: f"{PACKAGE}.{node.module}" for node in imports for name in node.names}


PUBLIC = _public_names()


@cache
def source_hash(target: str) -> str:
    """Return a hash of the code behind a dotted name, such as "klr_bench.OSKL".

    For code of klr-bench or of the user it covers the module and all modules of klr-bench or of the user that it
    imports, directly or not.  For an installed library it is the library's version.
    Raises KlrBenchError if there is no such module.
    """
    module = next((module for name in _parents(_home(target)) if (module := _module(name))), None)
    if module is None:
        fail(f"{TARGET}: {target!r}: no such module; expected the dotted name of a class or function.")
    return _closure_hash(module) if module.code is not None else _library(module.name)


@cache
def module_hash(*names: str) -> str:
    """Return a hash of the code of modules, excluding their imports."""
    modules = {name: _module(name) for name in names}
    return content_hash({name: module and module.code for name, module in modules.items()})


@cache
def file_hash(path: Path) -> str:
    """Return a hash of the code of a Python file and of the user modules that it imports."""
    return _closure_hash(_parse(f"<{path.stem}>", path))


class Module(NamedTuple):
    """Source code of a module."""

    name: str
    code: str | None
    """Syntax tree as text, or None for a library."""
    imports: tuple[str, ...] = ()
    """Imported names, which may include names that are not modules."""


def _closure_hash(start: Module) -> str:
    """Return a hash of a module and all modules that it imports, except libraries."""
    code: dict[str, str] = {}
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module.code is not None and module.name not in (*code, LABELS_MODULE):
            code[module.name] = module.code
            waiting += filter(None, map(_module, module.imports))
    return content_hash(code)


def _home(name: str) -> str:
    """Return the module that defines a public name of klr-bench; return other names unchanged."""
    return PUBLIC.get(name.removeprefix(f"{PACKAGE}."), name) if name.startswith(f"{PACKAGE}.") else name


def _parents(name: str) -> Iterator[str]:
    """Yield a dotted name and its parents, innermost first."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _library(name: str) -> str:
    """Return the name and version of the distribution that contains an installed module."""
    for distribution in packages_distributions().get(name.partition(".")[0], ()):
        return f"{distribution}=={version(distribution)}"
    return f"python=={platform.python_version()}"


@cache
def _module(name: str) -> Module | None:
    """Return the source of a module, or None if it does not exist."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        return Module(name, None)
    spec = _spec(name)
    if spec is None:
        return None
    has_file = spec.has_location and spec.origin  # a folder without __init__.py has no origin
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
    if INSTALLED & set(path.parts) and name.partition(".")[0] != PACKAGE:
        return Module(name, None)
    with regular(path) as file:
        content = file.read()
    if path.suffix != ".py":
        return Module(name, hashlib.sha256(content).hexdigest())
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        fail(f"{path}: this is not Python: {error}")
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports = tuple(dict.fromkeys(_imports(tree, package)))
    return Module(name, _code(tree), imports)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted names that a module imports, which may include names of non-modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name for alias in node.names for name in _parents(alias.name) if name != PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (name for name in _parents(module) if name.partition(".")[0] != PACKAGE)
            yield from ([module] if module.startswith(f"{PACKAGE}.") else [])
            yield from (_home(f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute) and node.attr in PUBLIC and getattr(node.value, "id", "") != "self":
            yield PUBLIC[node.attr]  # klr_bench.OSKL


def _code(tree: ast.AST) -> str:
    """Return a syntax tree as text, without docstrings and labels of user metrics."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Metric":
            node.args = [argument for position, argument in enumerate(node.args) if position not in LABEL_POSITIONS]
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in LABELS]
    return ast.dump(tree)

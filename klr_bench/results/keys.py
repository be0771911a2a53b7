"""Keys of results: hashes of content and of source code.

Source code is found and parsed, never imported: a key may be asked for where nothing is to be run.  Comments, layout
and docstrings do not count.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import klr_bench
from klr_bench.errors import fail
from klr_bench.files import regular
from klr_bench.instantiate import TARGET

PACKAGE = "klr_bench"
LABELS = ("title", "unit", "compared", "usual")
"""Parameters of `Metric` that say how it is printed."""
LABEL_PLACES = (1, 2, 4)
"""Their places among the positional arguments, of the three that have one."""
LABELS_MODULE = "klr_bench.metrics.metric"
"""The module of `Metric`, which no result depends on."""
INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed libraries, of which the version counts."""


def content_hash(content: Any) -> str:
    """Return 16 hexadecimal digits that depend on the content of a JSON-able value and on nothing else."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _public_names() -> dict[str, str]:
    """Return the dotted name of what each public name of klr-bench stands for."""
    stub = Path(klr_bench.__file__).with_suffix(".pyi")
    lines = [line for line in ast.parse(stub.read_text("utf-8")).body if isinstance(line, ast.ImportFrom)]
    return {name.name: f"{PACKAGE}.{line.module}" for line in lines for name in line.names}


PUBLIC = _public_names()


@cache
def source_hash(target: str) -> str:
    """Return a hash of the code behind a dotted name, such as "klr_bench.OSKL".

    For klr-bench's own code, and for a user's, that is the code of the module and of every module of klr-bench or of
    the user that it imports, directly or not.  For an installed library it is the library's version.
    Raises KlrBenchError where there is no such module.
    """
    found = next((module for name in _parents(target) if (module := _module(_home(name)))), None)
    if found is None:
        fail(f"{TARGET}: {target!r}: there is no such module; give the dotted name of a class or function.")
    return _library(found.name) if found.library else _closure_hash(found)


@cache
def module_hash(*names: str) -> str:
    """Return a hash of the code of modules, without what they import; a package stands for all of its modules."""
    modules = [module for name in names for module in _with_submodules(_existing(name))]
    return content_hash({module.name: module.code for module in modules})


@cache
def file_hash(path: Path) -> str:
    """Return a hash of the code of a Python file that is no module, and of the user's modules that it imports."""
    return _closure_hash(_parsed(f"<{path.stem}>", path))


@dataclass(frozen=True)
class Module:
    """The source of a module; `code` is its syntax tree, `imports` what may be modules that it imports."""

    name: str
    path: Path | None
    library: bool
    code: str = ""
    imports: tuple[str, ...] = ()


def _closure_hash(start: Module) -> str:
    """Return a hash of a module and of the modules that it imports, but for those of libraries."""
    code: dict[str, str] = {}
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module.name not in code and module.name != LABELS_MODULE:
            code[module.name] = module.code
            found = [_module(name) for name in module.imports]
            waiting += [imported for imported in found if imported and not imported.library]
    return content_hash(code)


def _home(target: str) -> str:
    """Return the dotted name behind a public name of klr-bench, which stands in a table."""
    package, _, name = target.partition(".")
    return PUBLIC[name] if package == PACKAGE and name in PUBLIC else target


def _parents(name: str) -> Iterator[str]:
    """Yield a dotted name and the names of what holds it, from the inside out."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _library(name: str) -> str:
    """Return the name and version of the distribution that holds an installed module."""
    top = name.partition(".")[0]
    distributions = packages_distributions().get(top)
    return (
        f"{distributions[0]}=={version(distributions[0])}" if distributions else f"python=={platform.python_version()}"
    )


def _existing(name: str) -> Module:
    module = _module(name)
    if module is None:
        fail(f"there is no module {name}; install klr-bench again.")
    return module


def _with_submodules(module: Module) -> list[Module]:
    if module.path is None or module.path.name != "__init__.py":
        return [module]
    names = sorted(path.stem for path in module.path.parent.glob("*.py") if path.stem != "__init__")
    return [module, *(_existing(f"{module.name}.{name}") for name in names)]


@cache
def _module(name: str) -> Module | None:
    """Return the source of a module, found without importing anything; None where there is no such module."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        return Module(name, None, library=True)
    spec = _spec(name)
    if spec is None:
        return None
    path = source_path(name)
    return _parsed(name, path) if path else Module(name, None, library=False)  # a folder without __init__.py


def source_path(name: str) -> Path | None:
    """Return the file of a module, found without importing anything; None where there is no such module or file."""
    spec = _spec(name) if name else None
    return Path(spec.origin) if spec and spec.has_location and spec.origin else None


def _spec(name: str) -> ModuleSpec | None:
    folders: list[str] | None = None
    spec = None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
    return spec


def _parsed(name: str, path: Path) -> Module:
    if INSTALLED & set(path.parts) and name.partition(".")[0] != PACKAGE:
        return Module(name, path, library=True)
    with regular(path) as file:
        content = file.read()
    if path.suffix != ".py":
        return Module(name, path, library=False, code=hashlib.sha256(content).hexdigest())
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        fail(f"{path}: this is not Python: {error}")
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports = tuple(dict.fromkeys(_imports(tree, package)))
    return Module(name, path, library=False, code=_code(tree), imports=imports)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted names that a module of a package imports; some are not modules but names in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name for alias in node.names for name in _parents(alias.name) if name != PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (name for name in _parents(module) if name.partition(".")[0] != PACKAGE)
            yield from ([module] if module.startswith(f"{PACKAGE}.") else [])
            yield from (_home(f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute) and node.attr in PUBLIC and not _of_self(node):  # klr_bench.OSKL
            yield PUBLIC[node.attr]


def _of_self(node: ast.Attribute) -> bool:
    """Return True for an attribute of an object in its own methods, such as ``self.stream``."""
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _code(tree: ast.AST) -> str:
    """Return a syntax tree as text, without docstrings and without the labels of a user's metrics."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Metric":
            node.args = [argument for place, argument in enumerate(node.args) if place not in LABEL_PLACES]
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in LABELS]
    return ast.dump(tree)

"""From a spec (``{"_target_": "klr_bench.OSKL", "G": 2}``) to an object, and from content to a key."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError

TARGET = "_target_"


def locate(target: str) -> Callable[..., Any]:
    """Import the object that a dotted name stands for."""
    module, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"{TARGET}: {target!r} cannot be imported ({error}); give the dotted name of a class or function."
        raise KlrBenchError(message) from error
    if not callable(found):
        message = f"{TARGET}: {target!r} is not a class or a function."
        raise KlrBenchError(message)
    return found  # type: ignore[no-any-return]


def parameters(target: str) -> dict[str, inspect.Parameter]:
    """Return the keyword parameters of a target, by name."""
    return dict(inspect.signature(locate(target)).parameters)


def build(spec: Mapping[str, Any], **overrides: Any) -> Any:
    """Call the target of `spec` with its other entries as keyword arguments, `overrides` last."""
    arguments = {name: value for name, value in spec.items() if name != TARGET}
    return locate(spec[TARGET])(**(arguments | overrides))


def content_hash(content: Any) -> str:
    """Return 16 hexadecimal digits that depend on the content of a JSON-able value and on nothing else."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def source_hash(target: str) -> str:
    """Return a hash of the code behind a target.

    For klr-bench's own code, and for a module of the user's, that is the syntax tree of the module that
    defines it and of every klr_bench module it imports, directly or not: comments and layout do not count.
    For an installed library it is the library's version.
    """
    module = inspect.getmodule(locate(target))
    name = module.__name__ if module is not None else target
    top = name.partition(".")[0]
    if top != "klr_bench":
        distributions = packages_distributions().get(top)
        if distributions:
            return f"{distributions[0]}=={version(distributions[0])}"
    seen: dict[str, str] = {}
    _collect_sources(name, seen)
    return content_hash(seen)


@cache
def module_hash(module: str) -> str:
    """Return a hash of the code of one module, without what it imports."""
    return content_hash(_syntax_tree(module))


def _collect_sources(module: str, seen: dict[str, str]) -> None:
    """Add the syntax tree of a module, and of the klr_bench modules that it imports, to `seen`."""
    if module in seen:
        return
    seen[module] = _syntax_tree(module)
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("klr_bench"):
            package = str(node.module)
            if package != "klr_bench":
                _collect_sources(package, seen)
            if hasattr(importlib.import_module(package), "__path__"):  # its names may be modules
                for name in (f"{package}.{alias.name}" for alias in node.names):
                    if importlib.util.find_spec(name):
                        _collect_sources(name, seen)


def _syntax_tree(module: str) -> str:
    return ast.dump(ast.parse(_source(module)))


def _source(module: str) -> str:
    """Return the source of a module, "" where it has none."""
    file = getattr(importlib.import_module(module), "__file__", None)
    return Path(file).read_text(encoding="utf-8") if file and file.endswith(".py") else ""

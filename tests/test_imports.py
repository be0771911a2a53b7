"""Imports that import-linter cannot see: of the package itself, and of modules by their names."""

import ast

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "klr_bench"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "cli" and path.stem != "__main__")
SUBMODULES = {path.stem for path in PACKAGE.iterdir()} - {"__init__"}
ALLOWED = {
    "instantiate.py": "classes and functions that the configuration names",
    "model_trust.py": "types that a model file names, in the modules that it may name",
}


def hidden_imports(code: str) -> list[str]:
    """Return the expressions in Python code that import the package itself or look up a module by its name.

    A package may import its own modules by their names, and any module may look up one of another package.
    """
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found += [node for name in node.names if name.name == "klr_bench"]
        elif isinstance(node, ast.ImportFrom) and node.module == "klr_bench":
            found += [node for name in node.names if name.name not in SUBMODULES]
        elif isinstance(node, ast.Call | ast.Subscript | ast.Compare):
            found += [node for function in ast.iter_child_nodes(node) if is_lookup(function) and names_ours(node)]
    return [ast.unparse(node) for node in found]


def is_lookup(node: ast.AST) -> bool:
    """Return True for importlib.import_module, __import__, sys.modules and sys.modules.get."""
    name = ast.unparse(node).removesuffix(".get")
    return name == "sys.modules" or name.rpartition(".")[2] in ("import_module", "__import__")


def names_ours(node: ast.AST) -> bool:
    """Return False if the name in an expression is of another package, or begins with `__name__`."""
    text = next((part for part in ast.walk(node) if isinstance(part, ast.Constant | ast.JoinedStr)), None)
    if isinstance(text, ast.Constant):
        return str(text.value).partition(".")[0] == "klr_bench"
    begins = text.values[0] if text else None
    return not (isinstance(begins, ast.FormattedValue) and ast.unparse(begins.value) == "__name__")


@pytest.mark.parametrize(
    "code",
    [
        "import klr_bench",
        "def f():\n    from klr_bench import KLR",
        'importlib.import_module("klr_bench.datasets.keel")',
        "import_module(name)",
        'import_module(f"klr_bench.{name}")',
        'jit = sys.modules.get("klr_bench.estimators.core.jit")',
        'found = "klr_bench.cli" in sys.modules',
        "sys.modules[name]",
        '__import__("klr_bench")',
    ],
)
def test_the_check_finds_what_it_looks_for(code: str) -> None:
    assert len(hidden_imports(code)) == 1


def test_the_check_leaves_others_alone() -> None:
    for code in (
        "from klr_bench import protocols",
        "import klr_bench.errors as errors",
        'importlib.import_module(f"{__name__}.{name}")',
        'sys.modules.get("sklearn.base")',
        '"scipy.linalg" in sys.modules',
        "self.modules(name)",
    ):
        assert hidden_imports(code) == [], code


def test_no_module_below_the_command_line_has_hidden_imports() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): hidden_imports(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {name: imports for name, imports in found.items() if imports and name not in ALLOWED} == {}
    assert all(found[name] for name in ALLOWED), "an exception is not needed any more"

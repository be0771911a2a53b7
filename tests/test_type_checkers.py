"""Type checkers accept every public class with every parameter, and refuse wrong names and types."""

import ast
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

from mypy import api

import klr_bench
from tests.conftest import ROOT

NAMES = [name for name in klr_bench.__all__ if name != "__version__"]
CLASSES = {name: getattr(klr_bench, name) for name in NAMES if inspect.isclass(getattr(klr_bench, name))}
PARAMETERS = {name: list(inspect.signature(cls).parameters.values()) for name, cls in CLASSES.items()}
POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
IMPORTS = [f"from klr_bench import {name}" for name in NAMES]


def test_of_each_class_all_parameters_have_types_and_defaults() -> None:
    for name, parameters in PARAMETERS.items():
        lacking = [
            parameter.name
            for parameter in parameters
            if inspect.Parameter.empty in (parameter.annotation, parameter.default)
        ]
        assert not lacking, f"{name}: no type or default for {lacking}"


def right() -> list[str]:
    """Return the lines that use each class as it may be used."""
    calls = []
    for name, parameters in PARAMETERS.items():
        positional = ", ".join(repr(parameter.default) for parameter in parameters if parameter.kind is POSITIONAL)
        keywords = ", ".join(f"{parameter.name}={parameter.default!r}" for parameter in parameters)
        calls += [f"{name}()", f"{name}({positional})", f"{name}({keywords})"]
    return calls


def wrong_types() -> list[str]:
    """Return one line per parameter with a value of a wrong type, except parameters of type object."""
    every = [(name, parameter) for name, parameters in PARAMETERS.items() for parameter in parameters]
    return [f"{name}({parameter.name}=Wrong())" for name, parameter in every if parameter.annotation != "object"]


def wrong_names() -> list[str]:
    """Return lines with unknown parameters and with more positional arguments than a class takes."""
    calls = [f"{name}(no_parameter=1)" for name in CLASSES]
    for name, parameters in PARAMETERS.items():
        positional = [repr(parameter.default) for parameter in parameters if parameter.kind is POSITIONAL]
        calls.append(f"{name}({', '.join([*positional, 'None'])})")
    return calls


def code(tmp_path: Path, *blocks: list[str]) -> tuple[Path, list[str]]:
    """Write the lines to a file; return its path and the lines."""
    lines = [*IMPORTS, "class Wrong: ...", *(line for block in blocks for line in block)]
    path = tmp_path / "user.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path, lines


def signature(message: str) -> list[tuple[str, bool, object]]:
    """Return name, whether it is keyword-only, and default of each parameter in the output of pyright's reveal_type."""
    text = message[message.index("(self: ") : message.rindex(") -> None")].partition(", ")[2]
    while text != (text := re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", text)):
        pass
    parts = text.split(", ")
    is_keyword = parts.index("*") if "*" in parts else len(parts)
    return [
        (part.partition(":")[0], place > is_keyword, ast.literal_eval(part.partition(" = ")[2]))
        for place, part in enumerate(parts)
        if part != "*"
    ]


def test_pyright_knows_the_classes_and_the_signature_that_editors_show(tmp_path: Path) -> None:
    wrong = [*wrong_types(), *wrong_names(), "from klr_bench import OSKLL"]
    _, lines = code(tmp_path, right(), wrong, [f"reveal_type({name}.__init__)" for name in CLASSES])
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}', encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--project", tmp_path, "--pythonpath", sys.executable]
    answer = subprocess.run([*command, "--outputjson"], capture_output=True, text=True, check=False)
    diagnostics = json.loads(answer.stdout)["generalDiagnostics"]
    messages = [
        (diagnostic["severity"], lines[diagnostic["range"]["start"]["line"]], diagnostic["message"])
        for diagnostic in diagnostics
    ]
    assert {line for severity, line, _ in messages if severity == "error"} == set(wrong)
    signatures = {line: message for severity, line, message in messages if severity == "information"}
    for name, parameters in PARAMETERS.items():
        expected = [(parameter.name, parameter.kind is not POSITIONAL, parameter.default) for parameter in parameters]
        assert signature(signatures[f"reveal_type({name}.__init__)"]) == expected, name


def test_mypy_knows_the_classes_and_the_types_of_their_parameters(tmp_path: Path) -> None:
    """Wrong names are no errors for mypy, because the base class is of scikit-learn, which has no types."""
    wrong = [*wrong_types(), "from klr_bench import OSKLL"]
    path, lines = code(tmp_path, right(), wrong)
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    output, errors, _ = api.run([*settings, str(path)])
    numbers = [int(number) for number in re.findall(r"^.*user\.py:(\d+): error:", output, re.MULTILINE)]
    assert {lines[number - 1] for number in numbers} == set(wrong), output + errors

"""Windows and macOS, as far as Linux can simulate them: what they lack is hidden from klr_bench."""

import ast
import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from klr_bench import files
from klr_bench.config.models import LabelsFile
from klr_bench.errors import KlrBenchError
from klr_bench.parsing import parse
from tests.conftest import ROOT
from tests.windows.sitecustomize import MODULES, NAMES

WINDOWS = ROOT / "tests" / "windows"
NO_FILES = ("os", "webbrowser", "Image", "archive", "content")
"""What has a function `open` that reads no text."""
PROGRAM = """
import sys
from pathlib import Path
from klr_bench.cli import main

for code in ("import resource", "import os; os.nice", "import signal; signal.SIGALRM"):
    try:
        exec(code, {{"__name__": "klr_bench.probe"}})
    except (ImportError, AttributeError):
        continue
    sys.exit(f"{{code}}: not hidden")
for run in {!r}:
    print("$", run, flush=True)
    print(main(run.split()), flush=True)
Path("/proc/self/status").read_text()
"""
RUNS = (
    "run dataset=[digits] algorithm=[oskl] repeats=1 n_jobs=2 watch=true",
    "report experiment=quickstart",
    "run experiment=own_file data.path=own.csv algorithm=[svc] repeats=2 name=limit algorithms.svc.time_limit_s=60",
    "run experiment=own_file data.path=own.csv algorithm=[slow] repeats=1 name=late",
    "fit data.path=own.csv output=model.skops algorithm=oskl",
    "predict model=model.skops data.path=own.csv output=predictions.csv",
)


SLOW = """
import time
from sklearn.linear_model import LogisticRegression

class Slow(LogisticRegression):
    def fit(self, X, y):
        time.sleep(60 if len(y) > 4 else 0)  # at once in the warm-up
        return super().fit(X, y)
"""
SLOW_YAML = """# @package algorithms.slow
label: Slow
estimator: {_target_: slow.Slow}
time_limit_s: 0.5
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the current folder of commands that ran in a process without what Windows lacks."""
    folder = tmp_path_factory.mktemp("windows")
    rows = "".join(f"{i % 7},{i % 3},{'ab'[i % 2]}\n" for i in range(60))
    (folder / "own.csv").write_text(f"size,weight,kind\n{rows}", encoding="utf-8")
    (folder / "slow.py").write_text(SLOW, encoding="utf-8")
    (folder / "configs" / "algorithm").mkdir(parents=True)
    (folder / "configs" / "algorithm" / "slow.yaml").write_text(SLOW_YAML, encoding="utf-8")
    path = os.pathsep.join(map(str, (WINDOWS, ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "cp1252"}
    command = [sys.executable, "-c", PROGRAM.format(RUNS)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="cp1252", check=False)
    assert "FileNotFoundError: [Errno 2] No such file or directory: '/proc/self/status'" in done.stderr
    (folder / "output").write_text(done.stdout + done.stderr.partition("Traceback")[0], encoding="utf-8")
    return folder


def records(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "results" / name / "records.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_commands_end_well(folder: Path) -> None:
    output = (folder / "output").read_text(encoding="utf-8")
    statuses = [line for line in output.splitlines() if line.isdigit()]
    assert statuses == ["0"] * len(RUNS), output
    assert "Watch it at http://127.0.0.1:" in output
    assert "Traceback" not in output
    assert len((folder / "predictions.csv").read_text(encoding="utf-8").splitlines()) == 61


def test_memory_and_load_are_measured(folder: Path) -> None:
    for name in ("quickstart", "limit"):
        for row in records(folder, name):
            assert row["status"] == "ok"
            assert float(row["peak_memory_mb"]) > 20
            assert 0 <= float(row["load"]) <= 1


def test_a_time_limit_ends_a_fit_in_a_child_process(folder: Path) -> None:
    assert [(row["status"], row["fit_time_s"]) for row in records(folder, "late")] == [("timeout", "")]


def checked_nodes(tree: ast.Module) -> set[ast.AST]:
    """Return the nodes inside of ``if hasattr(...)`` and ``try``, if ``except ImportError`` follows."""
    bodies = [
        node.body
        for node in ast.walk(tree)
        if (isinstance(node, ast.If) and ast.unparse(node.test).startswith("hasattr("))
        or (isinstance(node, ast.Try) and any("ImportError" in ast.unparse(handler) for handler in node.handlers))
    ]
    return {inner for body in bodies for statement in body for inner in ast.walk(statement)}


def unchecked(code: str) -> list[str]:
    """Return what Python code uses that Windows lacks, without a check."""
    tree = ast.parse(code)
    found = []
    for node in {*ast.walk(tree)} - checked_nodes(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("os", "signal"):
            found += [node] if node.attr in NAMES else []
        elif isinstance(node, ast.Import):
            found += [node for alias in node.names if alias.name in MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module in ("os", "signal", *MODULES):
            found += [node for alias in node.names if node.module in MODULES or alias.name in NAMES]
    return [ast.unparse(node) for node in found]


@pytest.mark.parametrize(
    ("code", "n_found"),
    [
        ("os.fork()", 1),
        ("from os import fork", 1),
        ("import fcntl", 1),
        ("from resource import getrlimit", 1),
        ("if hasattr(os, 'nice'):\n    os.nice(5)", 0),
        ("if hasattr(os, 'nice'):\n    pass\nelse:\n    os.nice(5)", 1),
        ("if not hasattr(os, 'nice'):\n    os.nice(5)", 1),
        ("try:\n    import resource\nexcept ImportError:\n    os.nice(5)", 1),
    ],
)
def test_what_windows_lacks_is_found(code: str, n_found: int) -> None:
    assert len(unchecked(code)) == n_found


@pytest.mark.parametrize("path", sorted((ROOT / "klr_bench").rglob("*.py")), ids=lambda path: path.stem)
def test_no_module_uses_what_windows_lacks_without_a_check(path: Path) -> None:
    assert unchecked(path.read_text(encoding="utf-8")) == []


def text_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that read or write text, which need an encoding: that of Windows is not UTF-8."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            owner, _, name = ast.unparse(node.func).rpartition(".")
            words = {word.arg for word in node.keywords}
            given = [*node.args, *(word.value for word in node.keywords)]
            values = [part.value for value in given for part in ast.walk(value) if isinstance(part, ast.Constant)]
            is_binary = owner in NO_FILES or any(re.fullmatch("[rwax+]*b[rwax+]*", str(value)) for value in values)
            if (
                name in ("read_text", "write_text")
                or (name == "open" and not is_binary)
                or (name in ("run", "Popen") and "text" in words)
            ):
                yield node


@pytest.mark.parametrize("path", sorted((ROOT / "klr_bench").rglob("*.py")), ids=lambda path: path.stem)
def test_text_is_read_and_written_as_utf_8(path: Path) -> None:
    for call in text_calls(ast.parse(path.read_text(encoding="utf-8"))):
        text = ast.unparse(call)
        assert any(part in text for part in ("utf-8", "encoding", "/proc/", "os.devnull")), text


def test_a_file_that_windows_keeps_open_is_replaced_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def replace(source: Path, target: Path) -> None:
        attempts.append(source)
        if len(attempts) < 3:
            raise PermissionError(13, "Permission denied")
        os.rename(source, target)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(files, "REPLACE_PAUSE_S", 0.0)
    with pytest.raises(KlrBenchError, match="cannot be written"):
        files.write_atomic(tmp_path / "file", b"1")
    assert len(attempts) == 1, "elsewhere the second attempt would fail, too"
    attempts.clear()
    monkeypatch.setattr(files, "WINDOWS", True)
    files.write_atomic(tmp_path / "file", b"2")
    assert (tmp_path / "file").read_bytes() == b"2"
    monkeypatch.setattr(files, "REPLACE_TRIES", 2)
    attempts.clear()
    with pytest.raises(KlrBenchError, match="cannot be written"):
        files.write_atomic(tmp_path / "file", b"3")


@pytest.mark.parametrize("name", ["..\\evil", "C:\\evil", "C:evil", "\\evil", "/evil", "set/../../evil", "//host/evil"])
def test_a_downloaded_file_stays_in_the_cache_on_each_system(name: str) -> None:
    with pytest.raises(KlrBenchError, match="a path inside the cache"):
        parse(LabelsFile, {"name": name})
    parse(LabelsFile, {"name": "set/file.txt"})

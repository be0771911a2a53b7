"""What docs/add/ says about a checkout: its algorithms pass the tests that it names, and what it shows is there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from klr_bench.parsing import parse
from klr_bench.report.papers.model import Claim
from tests.conftest import MIRROR, ROOT
from tests.test_touches import WITHIN

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "add").glob("*.md"))}
PAGES = {page: text if page == "index" else text.partition(WITHIN)[2] for page, text in TEXTS.items()}
"""Second halves of the pages, and the whole index, by name."""
PAGE = PAGES["algorithm"]
BLOCK = re.compile(r"(?:^`([\w./]+)`\n\n)?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COPIED = ("configs", "docs", "pyproject.toml", "scripts/tables", "tests")
NAMES = ("greedy", "stoptron")
TESTS = [
    "tests/config/test_config.py", "tests/estimators/budget/test_budget.py",
    "tests/estimators/online/test_engine.py", "tests/estimators/test_check_estimator.py",
    "tests/estimators/test_docstrings.py", "tests/estimators/test_references.py", "tests/report/test_methods_pages.py",
    "tests/test_language.py",
]  # fmt: skip
PLUGIN = '''
"""Add the modules of this folder to klr_bench, whose compiled code is then found in its cache, and write the tables."""

import importlib
import re
import runpy
from pathlib import Path

import klr_bench
from klr_bench.config import locations

FOLDER = Path(__file__).parent
locations.config_dir = lambda: FOLDER / "configs"
for folder in (FOLDER / "klr_bench" / "estimators").iterdir():
    importlib.import_module(f"klr_bench.estimators.{folder.name}").__path__.append(str(folder))
for module, name in re.findall(r"^from ([\\w.]+) import (\\w+)", (FOLDER / "exports.pyi").read_text(), re.MULTILINE):
    setattr(klr_bench, name, getattr(importlib.import_module(module, "klr_bench"), name))
    klr_bench.__all__.append(name)
page, tables = FOLDER / "docs" / "methods" / "estimators.md", runpy.run_path(str(FOLDER / "scripts" / "tables"))
page.write_text(tables["with_tables"](page.read_text(), tables["made_for"]("docs/methods/estimators.md", FOLDER)))
'''


def follow_page(folder: Path) -> None:
    """Write the files of the page, and add its lines to the files that it names."""
    for match in BLOCK.finditer(PAGE):
        path, content = match.groups()
        if path:
            write(folder / path, content)
        elif content.startswith("from ."):
            write(folder / "exports.pyi", content, "a")
        elif content.startswith("def "):
            write(folder / "tests" / "reference" / "kernel.py", f"\n\n{content}", "a")
        else:
            for line, name in re.findall(r"^(    \S.*# in (\w+))$", content, re.MULTILINE):
                insert(folder / re.findall(r"tests/estimators/\w+/\w+\.py", PAGE[: match.start()])[-1], name, line)


def write(path: Path, content: str, mode: str = "w") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode, encoding="utf-8") as file:
        file.write(content)


def insert(path: Path, name: str, line: str) -> None:
    """Add a line to the dict with this name."""
    text, n_changes = re.subn(rf"^{name}\b.* = {{\n", rf"\g<0>{line}\n", path.read_text("utf-8"), flags=re.MULTILINE)
    assert n_changes == 1, f"{path} has no dict {name}"
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the page adds, and copies of those that it changes."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, folder / name)
    (folder / "results").symlink_to(ROOT / "results")
    follow_page(folder)
    write(folder / "overlay.py", PLUGIN)
    return folder


def run(folder: Path, *arguments: str) -> str:
    places = {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "KLR_BENCH_MIRROR": str(MIRROR)}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=folder, env=os.environ | places, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_files_of_the_page_pass_the_checks_of_style(folder: Path) -> None:
    run(folder, "ruff", "check", "--config", f"src = ['{ROOT}']", "klr_bench", "tests")
    run(folder, "ruff", "format", "--check", "klr_bench", "tests")


@pytest.mark.exhaustive
def test_the_algorithms_of_the_page_pass_the_tests_that_it_names(folder: Path) -> None:
    words = " or ".join([*NAMES, "every_algorithm", "every_class", "every_public_class"])
    printed = run(folder, "pytest", "--color=no", "-rp", "-p", "overlay", *TESTS, "-k", words)
    assert {*re.findall(r"^PASSED (.*?)::", printed, re.MULTILINE)} == {*TESTS}


@pytest.mark.parametrize("page", PAGES)
def test_the_files_and_names_of_a_page_are_there(page: str) -> None:
    """A file that is shown has its content, ``NAME` of `FILE`` is a word of the file; the page may add other files."""
    shown = {path: content for path, content in BLOCK.findall(PAGES[page]) if path}
    added = {path for path in shown if page == "algorithm"}
    for path in shown.keys() - added:
        assert (ROOT / path).read_text(encoding="utf-8") == shown[path], path
    assert PAGES[page]
    text = PAGES[page].replace("\n", " ")
    paths = set(re.findall(r"[ `]((?:docs|klr_bench|scripts|tests)/[\w/.-]*\w)", text))
    assert [path for path in sorted(paths - added) if not (ROOT / path).exists()] == []
    for name, path in re.findall(r"`(\w+)`,? (?:of|in) `([\w/]+\.py)`", text):
        files = [file for file in (ROOT / path, *ROOT.glob(f"klr_bench/**/{path}")) if file.is_file()]
        assert any(re.search(rf"\b{name}\b", file.read_text("utf-8")) for file in files), f"{path} has no {name}"


def test_the_curve_of_the_page_about_figures_is_in_the_code() -> None:
    (curve,) = [content for _, content in BLOCK.findall(PAGES["figure"]) if "support_examples" in content]
    assert curve.strip() in (ROOT / "klr_bench" / "report" / "figures" / "curves.py").read_text(encoding="utf-8")


def test_the_claim_of_the_page_about_papers_is_valid() -> None:
    (block,) = [content for _, content in BLOCK.findall(PAGES["paper"]) if content.startswith("claims:")]
    (claim,) = yaml.safe_load(block)["claims"]
    assert parse(Claim, claim).statements

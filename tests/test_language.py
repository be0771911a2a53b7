"""Texts of the package, its configs and pages: first lines of docstrings are short, and some phrases do not occur."""

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

LONGEST_FIRST_LINE = 90
AVOIDED = re.compile(
    r"\b([Ss]ay whether|[Tt]ell whether|what is told|what became of|beside (ours|that)|to be had|next to nothing"
    r"|stands? in for|is no \w+ that|of equal ones|at hand|a row a |mend (it|or|the)|goes on looking|in some words"
    r"|those of these|that of one that|\w+(?:alis|nimis|ximis|laris|oris|rdis)(?:e[ds]?|ing|ation)|colours?|behaviour"
    r"|neighbours?|centre[sd]?)\b"
)
PYTHON = sorted([*ROOT.glob("klr_bench/**/*.py"), *ROOT.glob("scripts/**/*.py"), *ROOT.glob("docs/_ext/*.py")])
PAGES = [path for path in ROOT.glob("docs/**/*.md") if "generated" not in path.parts]
TEXTS = sorted([*ROOT.glob("*.md"), *PAGES, *ROOT.glob("configs/**/*.yaml")])


def docstrings(path: Path) -> list[tuple[str, str]]:
    """Return the places and texts of all docstrings of a file."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]
    return [(f"line {getattr(node, 'lineno', 1)}", text) for node in nodes if (text := ast.get_docstring(node))]


def test_the_check_finds_what_it_looks_for() -> None:
    for text in ("Say whether it is.", "what became of its numbers", "data to be had", "a regularised loss"):
        assert AVOIDED.search(text), text
    for text in ("Return True if it is.", "otherwise raised", "a precise and concise guise", "likewise advised"):
        assert not AVOIDED.search(text), text


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_first_lines_of_docstrings_are_short(path: Path) -> None:
    long = [place for place, text in docstrings(path) if len(text.split("\n")[0]) > LONGEST_FIRST_LINE]
    assert not long


@pytest.mark.parametrize("path", [*PYTHON, *TEXTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_avoided_phrase_occurs(path: Path) -> None:
    assert [match.group(0) for match in AVOIDED.finditer(path.read_text(encoding="utf-8"))] == []

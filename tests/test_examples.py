"""The examples of the documentation, which its build runs: their form, without running them."""

import ast
import re
from pathlib import Path

import pytest

import klr_bench

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
SIZE_IN_INCHES = 7.5
"""Largest width of a figure: its letters are then read at the width of a page."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_known_names_and_ends_in_a_picture_that_fits(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, line, *rest = (ast.get_docstring(tree) or "\n").splitlines()
    assert title
    assert line == "=" * len(title)
    assert any(rest), "no sentence below the title, which the gallery shows beside the thumbnail"
    assert ast.unparse(tree.body[-1]) == "plt.show()"
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "klr_bench"]
    named = set(re.findall(r"`~klr_bench\.(\w+)`", text))
    assert {name.name for node in froms for name in node.names} | named <= set(klr_bench.__all__)
    assert named, "no link to the reference of a class"
    widths = re.findall(r"figsize=\(([\d.]+),", text)
    assert widths
    assert max(map(float, widths)) <= SIZE_IN_INCHES

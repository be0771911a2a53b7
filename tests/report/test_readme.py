"""The tables of README.md and docs/ that are made of the references are those that scripts/readme.py makes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "readme.py"))


@pytest.mark.parametrize(
    ("page", "maker", "folder", "number"),
    [
        ("README.md", "tables", "", 3),
        ("README.md", "benchmark", "benchmark", 4),
        ("README.md", "speed", "benchmark", 1),
        ("docs/defaults.md", "defaults", "defaults", 4),
        ("docs/clusters.md", "far_end", "benchmark", 1),
        ("docs/budget_oskl.md", "budget_oskl", "", 1),
        ("docs/budget_oskl.md", "budget_all", "budget_all", 1),
        ("docs/streams.md", "stream_learners", "benchmark", 1),
    ],
)
def test_the_tables_are_those_of_the_records(page: str, maker: str, folder: str, number: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    made = SCRIPT[maker](ROOT / "results" / "reference" / folder)
    assert SCRIPT["with_tables"](text, made) == text, "make them anew: python scripts/readme.py"
    assert [len(table.splitlines()) > 3 for table in made.values()] == [True] * number


def test_what_stands_between_the_lines_is_replaced_and_nothing_else() -> None:
    text = "before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n"
    assert (
        SCRIPT["with_tables"](text, {"a": r"| \1 |"}) == "before\n<!-- a -->\n\n| \\1 |\n\n<!-- end of a -->\nafter\n"
    )
    with pytest.raises(AssertionError, match="<!-- b -->"):
        SCRIPT["with_tables"](text, {"b": ""})

"""The tables of README.md and docs/ that are made of the references are those that scripts/tables makes."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "tables"))


@pytest.mark.parametrize("page", SCRIPT["PAGES"])
def test_the_tables_are_those_of_the_records(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    made = SCRIPT["made_for"](page, ROOT / "results" / "reference")
    assert made
    assert all(len(table.splitlines()) > 3 for table in made.values())
    assert SCRIPT["with_tables"](text, made) == text, "make them anew: python scripts/tables"


def test_what_stands_between_the_lines_is_replaced_and_nothing_else() -> None:
    text = "before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n"
    made = "before\n<!-- a -->\n\n| \\1 |\n\n<!-- end of a -->\nafter\n"
    assert SCRIPT["with_tables"](text, {"a": r"| \1 |"}) == made
    with pytest.raises(AssertionError, match="<!-- b -->"):
        SCRIPT["with_tables"](text, {"b": ""})

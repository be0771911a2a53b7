"""The tables of README.md and docs/ that are made of the references are those that scripts/tables makes."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARK = ROOT / "results" / "reference" / "benchmark"
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


def test_the_figures_are_those_of_the_records() -> None:
    page = (ROOT / "docs" / "scale" / "index.md").read_text(encoding="utf-8")
    for name, picture in SCRIPT["figures"](BENCHMARK).items():
        committed = (ROOT / "docs" / "scale" / name).read_bytes()
        assert f"```{{image}} {name}\n" in page
        if f"Matplotlib v{mpl.__version__}".encode() in committed:
            assert committed == picture, "make them anew: python scripts/tables"


@pytest.mark.parametrize(("gain", "count"), [(-0.01, 0), (0.01, 5)])
def test_the_comparison_can_say_the_opposite(tmp_path: Path, gain: float, count: int) -> None:
    data = pd.read_csv(BENCHMARK / "peers.csv")
    data.assign(accuracy=data["oskl_accuracy"] + gain, time_ratio=0.5).to_csv(tmp_path / "peers.csv")
    sentence = (
        f"SVC took 0.50 to 0.50 times as long as `OSKL()` on the same rows, and was more accurate on {count} of 5"
    )
    assert (
        f"- {sentence} data sets ({100 * gain:+.1f} to {100 * gain:+.1f} points)."
        in SCRIPT["compared"](tmp_path)["compared"]
    )

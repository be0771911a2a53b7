"""Data files with any name: a run ends with a table that a report shows, or is refused at the start."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from klr_bench import printing
from klr_bench.cli import main
from klr_bench.cli.arguments import quote
from klr_bench.printing import is_file_name, to_file_name

ROWS = "a,b,class\n" + "".join(f"{i % 7},{i * i % 11},{'uv'[i % 2]}\n" for i in range(40))
NAMES = st.text(st.characters(exclude_characters="\0/"), min_size=1, max_size=60).map(lambda name: f"{name}.csv")


@given(st.text(st.characters(), max_size=300))
def test_every_text_becomes_a_name_in_results(text: str) -> None:
    name = to_file_name(text)
    assert is_file_name(name)
    assert len(name.encode()) <= 100
    assert name == text or not is_file_name(text) or len(text.encode()) > 100


def test_a_drive_of_windows_is_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "SEPARATORS", "/\\:")
    assert not is_file_name("D:")
    assert to_file_name("D:mine") == "D_mine"


@pytest.mark.usefixtures("capfd")
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(".hidden.csv")
@example(r"a\b.csv")
@example("..csv")
@example("é" * 120 + ".csv")
@example("a\nb.csv")
@example(os.fsdecode(b"\xff.csv"))
@example("' \"=;,$[](){}*?.csv")
@given(NAMES)
def test_a_data_file_of_any_name_leads_to_a_table_or_is_refused(name: str) -> None:
    before = os.getcwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            try:
                Path(name).write_text(ROWS, encoding="utf-8")
            except (OSError, UnicodeError):  # too long, or no name of a file
                return
            words = [
                "dataset=file",
                "algorithm=[nc]",
                f"data.path={quote(name)}",
                "parallel=serial",
                "data.cache=cache",
            ]
            status = main(["run", *words, "repeats=1", "name=one"])
            if status == 0:
                _, *rows = Path("results/one/records.csv").read_text(encoding="utf-8").splitlines()
                assert len(rows) == 1
                assert main(["report", "experiment=one", "format=terminal,md,csv,tex"]) == 0
            else:
                assert (status, Path("results").exists()) == (2, False)
                assert not name.isprintable() or "${" in name or name.startswith("~")
        finally:
            os.chdir(before)

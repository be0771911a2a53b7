"""A user's own figure: one file in ./configs/figure, no change of the package."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from klr_bench.errors import KlrBenchError
from klr_bench.report import report
from klr_bench.report.figures import check_names, draw_all, names
from tests.report.figures import made

MINE = """
from matplotlib.figure import Figure as Drawing

from klr_bench.report.figures import Figure, Needs


def draw(inputs):
    drawing = Drawing()
    drawing.add_subplot().bar(inputs.records["algorithm"], inputs.records["accuracy"])
    return drawing


FIGURE = Figure(needs=Needs(metrics=("accuracy",)), draw=draw)
"""


@pytest.fixture
def user_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the user's own figures, under the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "configs" / "figure"
    folder.mkdir(parents=True)
    return folder


def shown(folder: Path) -> tuple[set[str], str]:
    """Return the names of the figures of a report, and what it prints."""
    console = Console(file=io.StringIO(), width=400)
    files = {path.name for path in report(folder, console=console, own_figures=True)}
    return files, console.file.getvalue()


def test_a_figure_from_a_file_stands_in_a_report(user_figures: Path, tmp_path: Path) -> None:
    shipped = names()
    (user_figures / "mine.py").write_text(MINE)
    (user_figures / "_shared.py").touch()
    assert set(names()) - set(shipped) == {"mine"}
    folder = made.write(tmp_path / "results" / "made", [made.cell()], figures=["mine", "accuracy_support"])
    files, _ = shown(folder)
    assert files == {f"{name}.{kind}" for name in ("mine", "accuracy_support") for kind in ("png", "svg")}
    lacking = made.write(tmp_path / "results" / "lacking", [made.cell(metrics={})], figures=["mine"])
    assert "figure mine: needs accuracy in records.csv; none of nc on magic has any." in shown(lacking)[1]


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (MINE.replace("drawing = Drawing()", "1 / 0"), "ZeroDivisionError: division by zero"),
        ("import nothing_like_it", "cannot be imported (ModuleNotFoundError: No module named 'nothing_like_it')."),
        ("FIGURE = 5", "expected FIGURE = klr_bench.report.figures.Figure(needs=..., draw=...), got 5."),
    ],
)
def test_one_that_fails_is_named_and_the_others_are_drawn(
    user_figures: Path, tmp_path: Path, content: str, note: str
) -> None:
    (user_figures / "mine.py").write_text(content)
    folder = made.write(tmp_path / "results" / "made", [made.cell()], figures=["mine", "accuracy_support"])
    files, text = shown(folder)
    assert files == {"accuracy_support.png", "accuracy_support.svg"}
    (line,) = [line for line in text.splitlines() if line.startswith("figure ")]
    assert line.startswith(f"figure mine: not drawn: {user_figures / 'mine.py'}: ")
    assert note in line
    assert "Traceback" not in text


def test_one_is_run_only_if_it_is_asked_for_and_allowed_and_hides_no_shipped_one(
    user_figures: Path, tmp_path: Path
) -> None:
    (user_figures / "mine.py").write_text("open('was_run', 'w')")
    inputs = made.everything(tmp_path / "all")
    assert draw_all(inputs, None, user_files=True).files
    note = f"figure mine: {user_figures / 'mine.py'} contains code; add own_figures=true to run it and draw its figure."
    assert draw_all(inputs, ["mine"]).notes == [note]
    assert not (tmp_path / "was_run").exists()
    (user_figures / "reliability.py").write_text(MINE)
    with pytest.raises(KlrBenchError, match=r"two figures are called reliability: .* and .*\. Rename yours"):
        check_names(["accuracy_support"])

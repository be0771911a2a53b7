"""User text is printed as text: it is never markup, a terminal command, or a formula, and its length is limited."""

import csv
import io
import re
import sys
from pathlib import Path
from random import Random

import pytest
from rich.table import Table as RichTable
from rich.text import Text

from klr_bench.cli import main
from klr_bench.console import PlainConsole
from klr_bench.printing import MOST_CHARACTERS, MOST_LINES, error_message, no_formula, printable
from klr_bench.report import FORMATS
from klr_bench.report.render import document, table_files
from klr_bench.runner.progress_file import Display
from tests.report.folders import printed, record, table, write

MARKUP = ["[/b]", "a[/b]", "[a].csv", "[red]x", "[link=file:///etc]y", ":smile:", "[[x]]", "\\[b]", "[@click=x]"]
CONTROL = ["\x1b[31m", "\x1b]0;title\x07", "a\rb", "a\x08b", "\x00", "\x85", "\u202e", "\ud800", "\x9b31m", "\x7f"]
SIGNS = ["\\frac{1}{2}", "$\\frac$", "$x$", "--", "]]>", "&lt;", "<b>", "\\input{x}", "日本"]
PIECES = [*MARKUP, *CONTROL, *SIGNS, *"$&%#_{}~^\\<>|\"`*[]=+-@!'", "x", " ", "word"]


def odd(draw: Random) -> str:
    """Return a text of a few unusual pieces."""
    return "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 5)))


def label(draw: Random) -> str:
    """Return a printable text, which a label may be."""
    return " ".join("".join(character for character in odd(draw) if character.isprintable()).split()) or "x"


def console(**options: object) -> tuple[PlainConsole, io.StringIO]:
    file = io.StringIO()
    return PlainConsole(file=file, width=4000, **options), file


def is_harmless(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("text", [*MARKUP, *CONTROL])
def test_text_in_tables_and_bars(text: str) -> None:
    shown, file = console()
    grid = RichTable(text)
    grid.add_row(text, Text(text))
    shown.print(grid)
    assert is_harmless(file.getvalue())
    if text in MARKUP:
        assert file.getvalue().count(text) == 3
    for terminal in (False, True):
        shown, file = console(force_terminal=terminal, color_system=None)
        with Display(shown, text, 1, quiet=False) as display:
            display.advance(text)
        assert (text in file.getvalue()) == (text in MARKUP)


@pytest.mark.drawn(0.02)
def test_an_error_message_is_short_and_printable(draw: Random) -> None:
    size = draw.choice([0, 10, 10**5, 10**6])
    message = error_message(odd(draw) + draw.choice(["x", "x ", "\n", "x\n", "\x1b"]) * size)
    assert message.startswith("error: ")
    assert message.endswith("\n")
    assert is_harmless(message)
    assert len(message) <= MOST_CHARACTERS + 1
    assert len(message.splitlines()) <= MOST_LINES


def labeled(folder: Path, text: str, message: str = "", *, drawn: bool = False) -> Path:
    """Write results in which everything that may be text is this one; `drawn`: a figure can be drawn."""
    sizes = {"n_support": 9} if drawn else {}
    labels = {"title": text, "datasets": {"moons": {"label": text}}, "algorithms": {"nc": {"label": text}}}
    rows = [record("nc", "R=x", 0, dataset="moons", accuracy=0.9, fit_time_s=1.0, **sizes)]
    rows += [record("nc", "R=y", 0, dataset="moons", status="error", message=message)] if message else []
    return write(folder, rows, {"name": "mine", "repeats": 1, "sweep": {"nc": {"R": ["x"]}}} | labels)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.drawn(0.02)
def test_a_table_with_odd_labels(tmp_path: Path, draw: Random) -> None:
    text, message = label(draw), odd(draw) + " lastword"
    built = table(labeled(tmp_path / "mine", text, message))
    text_of = printed(document(built))
    assert text in text_of
    assert "lastword" in text_of
    assert is_harmless(text_of)
    files = table_files(built, document(built), FORMATS)
    check_latex(files["table.tex"])
    markdown, values = files["table.md"], list(csv.reader(files["table.csv"].splitlines()))
    assert re.search(r"(?<!\\)[<*`\[$]", markdown.replace("|:---", "")) is None
    assert all(not cell.startswith(("=", "@", "+")) for row in values for cell in row)


def check_latex(text: str) -> None:
    """Check that braces are in pairs, signs are escaped, and no row begins as an argument."""
    assert len(re.findall(r"(?<!\\){", text)) == len(re.findall(r"(?<!\\)}", text))
    body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
    assert re.search(r"(?<!\\)[#%_]", body) is None
    assert re.search(r"\\\\\s*[\[*]", body) is None
    signs = ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar", "quotedbl", "asciigrave")
    assert set(re.findall(r"\\([a-zA-Z]+)", body)) <= {"midrule", "quad", "pm", *(f"text{sign}" for sign in signs)}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", '=HYPERLINK("x")'])
def test_no_text_is_a_formula_of_a_spreadsheet(tmp_path: Path, text: str) -> None:
    assert no_formula(text) == f"'{text}"
    assert no_formula(f"x{text}") == f"x{text}"
    folder = labeled(tmp_path / "mine", "x", message=text)
    with (folder / "records.csv").open(encoding="utf-8", newline="") as file:
        assert no_formula(printable(text)) in [row["message"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_without_the_letters(tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    labeled(tmp_path / "results" / "mine", "日本 ± é", message="日本")
    (tmp_path / "configs" / "dataset").mkdir(parents=True)
    content = "# @package datasets.mine\nlabel: 日本\n"
    (tmp_path / "configs" / "dataset" / "mine.yaml").write_text(content, encoding="utf-8")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    for arguments in (["report", "experiment=mine"], ["list", "datasets"], ["show", "dataset", "mine"]):
        assert main(arguments) == 0
    sys.stdout.flush()
    assert ("日本" if encoding == "utf-8" else "\\u65e5\\u672c") in raw.getvalue().decode(encoding)

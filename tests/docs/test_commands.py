"""The commands of docs/get_started.md and docs/your_data.md run as they stand, and say what the pages say they do.

`<!-- tested -->` stands above a block of commands that is run, `<!-- said -->` above lines that the last one has
printed.  A Python block below the name of a file is that file.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from klr_bench.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
STEP = re.compile(
    r"`(?P<file>\w+\.py)`:\n\n```python\n(?P<code>.*?)^```$"
    r"|<!-- tested -->\n\n```sh\n(?P<commands>.*?)^```$"
    r"|<!-- said -->\n\n```output\n(?P<said>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SMALL = ["repeats=2", "selection.folds=2", "algorithm=[auxiliary_default,lr_linear]", "n_jobs=1", "data.cache=cache"]
"""Settings with which a run takes seconds; the page's own come after them and win."""


class Reader:
    """A reader who follows a page in an empty folder."""

    def __init__(self, folder: Path, output: pytest.CaptureFixture[str]) -> None:
        self.folder, self.output = folder, output
        self.printed: dict[str, str] = {}
        """What each command has printed."""

    def follow(self, page: str) -> dict[str, str]:
        """Write the files and run the commands of a page; compare their output with the page."""
        for step in STEP.finditer((DOCS / page).read_text(encoding="utf-8")):
            if step["file"]:
                (self.folder / step["file"]).write_text(step["code"], encoding="utf-8")
            elif step["commands"]:
                self.printed |= {command: self.run(command) for command in step["commands"].splitlines()}
            else:
                *_, last = self.printed.values()
                missing = [line for line in step["said"].splitlines() if line not in last]
                assert not missing, f"{page}: not printed: {missing}; this was: {last}"
        return self.printed

    def run(self, command: str) -> str:
        """Run a command; `klr-bench` runs in this process, where its imports are loaded already."""
        program, *words = shlex.split(command)
        if program == "klr-bench":
            small = SMALL if words[0] == "run" else []
            status = main([words[0], *small, *words[1:]])
        else:
            assert program == "python"
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # in place of an installation
            done = subprocess.run(
                [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
            )
            status = done.returncode
            sys.stdout.write(done.stderr + done.stdout)
        printed = self.output.readouterr()
        assert status == 0, f"{command}\n{printed.err}{printed.out}"
        return printed.err + printed.out


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Reader]:
    """Return a reader in an empty folder, at a terminal of 120 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    handler = signal.getsignal(signal.SIGTERM)
    yield Reader(tmp_path, capfd)
    signal.signal(signal.SIGTERM, handler)


def test_the_first_quarter_of_an_hour(tmp_path: Path, reader: Reader) -> None:
    shutil.copytree(ROOT / "results" / "reference" / "quickstart", tmp_path / "results" / "quickstart")
    printed = reader.follow("get_started.md")
    assert list(printed) == [
        "klr-bench --version",
        "klr-bench report experiment=quickstart",
        "klr-bench report experiment=quickstart format=html output=quickstart.html",
        "python first.py",
    ]
    assert "OSKL G=4" in printed["klr-bench report experiment=quickstart"]
    assert "Checkerboard" in (tmp_path / "quickstart.html").read_text(encoding="utf-8")
    *_, accuracy, _, kept = printed["python first.py"].splitlines()  # after notes on compiling, if any
    assert float(accuracy.split()[-1]) > 0.9
    assert 0 < int(kept.split()[0]) < 1000


def test_from_a_file_to_a_table_and_a_page(tmp_path: Path, reader: Reader) -> None:
    printed = reader.follow("your_data.md")
    assert len(printed) == 9
    assert (tmp_path / "customers.csv").read_bytes() == (DOCS / "_static" / "customers.csv").read_bytes()
    predictions = (tmp_path / "predictions.csv").read_text().splitlines()
    assert (len(predictions), predictions[0]) == (1001, "prediction,probability_no,probability_yes")
    lines = printed["klr-bench report experiment=own_file"].splitlines()
    (line,) = [line.split() for line in lines if line.startswith("AuxiliaryKLR() ") and "±" in line]
    assert float(line[line.index("±") - 1]) > 73.6  # the share of customers who stay
    assert "AuxiliaryKLR()" in (tmp_path / "customers.html").read_text(encoding="utf-8")
    assert "data.scale" in printed["klr-bench report experiment=own_file compare=minmax"]
    assert printed["python use.py"].endswith("]]\n")


def settings() -> list[str]:
    """Return the settings of the table of what to change."""
    table = (DOCS / "your_data.md").read_text(encoding="utf-8").split("| you want | add |\n")[1].split("\n\n")[0]
    found = [setting for row in table.splitlines()[1:] for setting in re.findall(r"`([^`]*=[^`]*)`", row)]
    return [setting for setting in found if not setting.startswith("klr-bench")]


@pytest.mark.parametrize("setting", settings())
def test_a_setting_that_the_page_names_is_taken(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOCS / "_static" / "customers.csv", tmp_path)
    words = ["run", "experiment=own_file", "data.path=customers.csv", "data.cache=cache", *shlex.split(setting)]
    assert main([*words, "--dry-run"]) == 0, capfd.readouterr().err


def rows(header: str, *, to: int = 30, **at: str) -> str:
    """Return a CSV file of rows with two classes; `at` are other lines, as in line5="1,ja"."""
    lines = {f"line{n}": f"{n}.5,{'ja' if n % 3 else 'nein'}" for n in range(2, to + 2)}
    return "\n".join([header, *(lines | at).values()]) + "\n"


CASES = {
    "lft": ("customers.csv", None, ["data.label=lft"]),
    "numbers": ("numbers.csv", "a,b\n" + "".join(f"{n % 7},{n}\n" for n in range(120)), []),
    "single": ("single.csv", rows("temp,broken", to=60, **{f"line{n}": f"{n % 7},c{n}" for n in range(2, 62)}), []),
    "either": (
        "prices.csv",
        rows("price,broken", **{f"line{n}": f'"4,{797 + n}",ja' for n in range(2, 17)}, to=15),
        [],
    ),
    "comma": ("comma.csv", rows("temp,broken", line5='"12,5",ja'), []),
    "short": ("short.csv", rows("temp,broken", line4="12"), []),
    "key": ("sensor.csv", rows("temp,broken"), ["data.colums={temp: text}"]),
    "nothere": ("nothere.csv", "", []),
}
"""File, its content (None: the customers; "": there is none), and settings, that lead to a message of the page."""


def test_the_messages_are_those_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    messages = []
    for case, (name, content, changes) in CASES.items():
        folder = tmp_path / case
        folder.mkdir()
        monkeypatch.chdir(folder)
        if content is None:
            shutil.copy(DOCS / "_static" / "customers.csv", folder)
        elif content:
            Path(name).write_text(content, encoding="utf-8")
        assert main(["run", "experiment=own_file", f"data.path={name}", "data.cache=cache", "n_jobs=1", *changes]) == 2
        messages.append(capfd.readouterr().err.splitlines()[-1].replace(str(folder), "/home/you"))
    assert sorted(messages) == sorted(shown())


def shown() -> list[str]:
    """Return the messages of the page."""
    text = (DOCS / "your_data.md").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith("error: ")]

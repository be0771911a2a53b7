"""Names of outputs: pandas can read compressed tables, and misleading names are refused."""

import errno
import os
from pathlib import Path

import pandas as pd
import pytest

from klr_bench.cli import main
from klr_bench.cli.outputs import COMPRESSED, FILES, OTHER_MODELS
from klr_bench.errors import KlrBenchError
from klr_bench.files import write_atomic
from klr_bench.printing import LONGEST_WORD, shortened
from tests.attack.promise import files_in
from tests.cli.test_model import missing_values
from tests.report.folders import record, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a training file, a model and the results of an experiment."""
    folder = tmp_path_factory.mktemp("outputs")
    missing_values()[0].to_csv(folder / "train.csv", index=False)
    words = [f"data.path={folder}/train.csv", f"output={folder}/model.skops", "algorithm=oskl_default"]
    assert main(["fit", *words]) == 0
    write(folder / "results" / "mine", [record("nc", "", n, dataset="moons", accuracy=0.5) for n in range(2)], {})
    return folder


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that a command is refused in one line, before it changes anything."""
    before = sorted(Path().rglob("*")), files_in(Path())
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {message}")
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert (sorted(Path().rglob("*")), files_in(Path())) == before


@pytest.mark.parametrize("ending", ["", ".csv", ".CSV", ".txt", *(f".csv{ending}" for ending in COMPRESSED), ".csv.GZ"])
def test_predictions_are_compressed_by_name(ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["predict", "model=model.skops", "data.path=train.csv"]
    assert main([*words, "output=plain.csv"]) == 0
    capsys.readouterr()
    words += [f"output=predictions{ending}"]
    try:
        pd.DataFrame().to_csv(f"other{ending}")
    except ImportError:
        refused(words, f"output=predictions{ending}: cannot be compressed (", capsys)
        return
    assert main(words) == 0
    frame = pd.read_csv(f"predictions{ending}")
    pd.testing.assert_frame_equal(frame, pd.read_csv("plain.csv"))
    assert (Path(f"predictions{ending}").read_bytes() == Path("plain.csv").read_bytes()) == (ending.count(".") < 2)


@pytest.mark.parametrize(
    "name", ["p.parquet", "p.json", "p.xlsx", "p.tsv", "p.tar.gz", "p.parquet.gz", "p.csv.7z", "p.skops"]
)
def test_predictions_in_another_format_are_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["predict", "model=model.skops", "data.path=train.csv", f"output={name}"]
    refused(words, f"output={name}: expected the name of a CSV file (.csv, .csv.gz, ", capsys)


def test_a_pipe_or_a_device_is_not_replaced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo("pipe")
    for words in (["fit", "data.path=train.csv"], ["predict", "model=model.skops", "data.path=train.csv"]):
        refused([*words, "output=pipe"], "output=pipe: expected the name of a file to write, got a named pipe", capsys)
    monkeypatch.setattr(Path, "is_char_device", Path.is_fifo)  # a test must not endanger a device
    with pytest.raises(KlrBenchError, match="expected the name of a file to write, but it is a device"):
        write_atomic(Path("pipe"), b"")
    assert Path("pipe").is_fifo()
    Path("pipe").unlink()


@pytest.mark.parametrize("ending", OTHER_MODELS)
def test_a_model_is_no_file_of_another_kind(ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fit", "data.path=train.csv", f"output=m{ending}"]
    refused(words, f"output=m{ending}: expected the name of a model file (.skops), which is", capsys)


FOLDERS = {
    "report": ["report", "experiment=mine", "format=csv", "output={}"],
    "page": ["report", "experiment=mine", "format=html", "output={}"],
    "site": ["site", "output={}"],
    "merge": ["merge", "results", "into={}"],
}


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize("verb", FOLDERS)
def test_a_folder_does_not_get_the_name_of_a_file(verb: str, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word.format(f"new{ending}") for word in FOLDERS[verb]]
    key = words[-1].partition("=")[0]
    if (verb, ending) in (("page", ".html"), ("merge", ".csv"), ("merge", ".parquet"), ("merge", ".zip")):
        assert main(words) == 0
        assert Path(f"new{ending}").is_file()
        return
    refused(words, f"{key}=new{ending}: expected the name of a folder, got '{ending}'.", capsys)
    if ending == ".csv":
        Path("old.csv").mkdir(exist_ok=True)
        assert main([word.format("old.csv") for word in FOLDERS[verb]]) == 0, "a folder may have this name already"


@pytest.mark.parametrize("name", ["lr=0.1", "./lr=0.1", "a,b", "into=x", "a=b,c"])
def test_folders_and_archives_may_have_names_with_equals_signs_and_commas(name: str) -> None:
    words = ["merge", f"./{name}" if name.startswith("into") else name, "into=all.csv"]
    write(Path(name) / "mine", [record("nc", "", 0, dataset="moons", accuracy=0.5)], {})
    assert main(words) == 0
    assert main([*words[:2], f"into={name}.zip"]) == 0
    for folder in (name, f"{name}.zip"):
        assert main(["report", "experiment=mine", f"results_dir={folder}"]) == 0


@pytest.mark.parametrize("column", ["a", "last, first", "[a]", "a,b"])
def test_a_kept_column_may_have_a_comma(column: str) -> None:
    table = pd.read_csv("train.csv").rename(columns={"a": column})
    table.to_csv("commas.csv", index=False)
    assert main(["fit", "data.path=commas.csv", "algorithm=majority", "output=commas.skops"]) == 0
    assert main(["predict", "model=commas.skops", "data.path=commas.csv", "output=kept.csv", f"keep={column}"]) == 0
    assert pd.read_csv("kept.csv").columns[0] == column


@pytest.mark.parametrize("name", ["prediction", "probability_3"])
def test_a_kept_column_is_no_column_of_the_predictions(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.read_csv("train.csv").assign(**{name: 0, f"{name}_date": "today"})
    table.to_csv("new.csv", index=False)
    words = ["predict", "model=model.skops", "data.path=new.csv", "output=p.csv"]
    assert main([*words, f"keep={name}_date"]) == 0
    assert pd.read_csv("p.csv")[f"{name}_date"].eq("today").all()
    capsys.readouterr()
    refused(
        [*words, f"keep={name}"],
        f"keep: '{name}' is also a column of the predictions; rename it in {Path.cwd()}/new.csv.",
        capsys,
    )


def test_a_paper_is_not_reported_against_another_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["format=html"]):
        words = ["report", "paper=zhang2013icml", "results_dir=results,other", *more]
        refused(words, "paper=zhang2013icml: has no effect with results_dir=results,other; leave it out.", capsys)


@pytest.mark.parametrize("columns", ["0", "00", "1", "5", "20", "200"])
def test_every_width_of_a_terminal_has_a_report(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["report", "experiment=mine"]) == main(["data", "list"]) == 0
    assert main(["run", "dataset=moons", "algorithm=majority", "--dry-run"]) == 0


READ = {
    "the same name": "{folder}/{name}",
    "a name with ..": "{folder}/../{base}/{name}",
    "a linked folder": "linked/{name}",
    "a link": "link.csv",
}


@pytest.mark.parametrize("spelling", READ)
@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("fit data.path={} output=train.csv algorithm=majority", "train.csv"),
        ("fit data.path=train.csv output={} algorithm=majority", "train.csv"),
        ("predict model=model.skops data.path={} output=train.csv", "train.csv"),
        ("predict model={} data.path=train.csv output=model.skops.csv", "model.skops.csv"),
        ("merge results into={}", "results/mine/records.csv"),
    ],
)
def test_the_file_that_is_read_is_not_replaced(
    words: str, name: str, spelling: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("model.skops.csv").write_bytes(Path("model.skops").read_bytes())
    for link, target in (("linked", folder), ("link.csv", folder / name)):
        Path(link).unlink(missing_ok=True)
        Path(link).symlink_to(target)
    path = READ[spelling].format(folder=folder, base=folder.name, name=name)
    key = "into" if "into=" in words else "output"
    arguments = words.format(path).split()
    setting = next(word for word in arguments if word.startswith(f"{key}="))
    reason = (
        "a new table, got a file of the run mine" if key == "into" else "a file to write, got the file that is read"
    )
    refused(arguments, f"{setting}: expected the name of {reason}.", capsys)


PLACES = {
    "train.csv/m": "train.csv: expected a folder, got a file. ",
    "train.csv/below/m": "train.csv: expected a folder, got a file. ",
    "read_only/m": "read_only/m: cannot be written (",
    "read_only/new/m": "read_only/new/m: cannot be written (",
    "dangling/m": "dangling: expected a folder, got a link that leads nowhere. ",
}
"""Places that cannot be written, with the message."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "words",
    ["fit data.path=train.csv algorithm=majority output={}", "predict model=model.skops data.path=train.csv output={}"],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_computed(
    words: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    read_only = Path("read_only")
    if not read_only.exists():
        read_only.mkdir(mode=0o555)
        if os.access(read_only, os.W_OK):  # as root
            read_only.rmdir()
            read_only.symlink_to("/sys")
    Path("dangling").unlink(missing_ok=True)
    Path("dangling").symlink_to("nowhere")
    refused(words.format(place).split(), PLACES[place], capsys)


@pytest.mark.parametrize("below", ["", "new/"])
@pytest.mark.parametrize("length", [1, 100, 200, 220, 255, 256, 1000])
def test_a_name_that_is_too_long_is_refused_before_anything_is_computed(
    length: int, below: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = below + "m" * length
    words = ["fit", "data.path=train.csv", "algorithm=majority", f"output={name}"]
    if length <= 255:
        assert main(words) == 0
        assert Path(name).is_file()
    else:
        reason = f"cannot be written ({os.strerror(errno.ENAMETOOLONG)})"
        refused(words, f"{shortened(f'{name}:', LONGEST_WORD)} {reason}", capsys)

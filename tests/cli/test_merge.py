"""klr-bench merge writes all runs as one table, or as an archive that klr-bench report reads."""

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from klr_bench.cli import main
from klr_bench.results.archive import FILES, LARGEST
from tests.attack.promise import check_message, files_in, refused
from tests.report.folders import record, write


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with the results of two runs."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name, accuracies in (("first", (0.5, 0.75)), ("second", (0.25,))):
        rows = [
            record("nc", "G=1", repeat, dataset="moons", accuracy=value, message="=1+1")
            for repeat, value in enumerate(accuracies)
        ]
        write(Path("results", name), rows, {"datasets": {"moons": {}}, "algorithms": {"nc": {}}})
    return tmp_path / "here"


def report(*words: str) -> int:
    return main(["report", "experiment=first", *words])


@pytest.mark.parametrize("name", ["all.csv", "all.csv.gz", "all.csv.zip", "all.parquet"])
def test_one_table_has_the_records_of_all_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "results", f"into={name}"]) == 0
    assert capsys.readouterr().out == f"{name}: 2 runs, 3 cells\n"
    frame = pd.read_parquet(name) if name.endswith("parquet") else pd.read_csv(name)
    assert [*frame.columns[:2]] == ["run", "key"]
    assert [*frame["run"]] == ["first", "first", "second"]
    assert [*frame["accuracy"]] == [0.5, 0.75, 0.25]
    assert {*frame["variant"]} == {'{"G": 1}'}
    assert {*frame["message"]} == {"'=1+1"}


def test_a_folder_is_a_run_or_holds_runs_of_different_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "results/first", "into=first.csv"]) == 0
    assert len(pd.read_csv("first.csv")) == 2
    message = "results/second and other/second have the same name. Merge them into a folder first."
    Path("other").mkdir()
    Path("results/second").rename("other/second")
    Path("results/second").symlink_to("../other/second")
    refused(capsys, ["merge", "results", "other", "into=all.csv"], message)
    refused(capsys, ["merge", "nowhere", "into=all.zip"], "merge: nowhere: expected a results folder or the folder of")
    assert not Path("all.csv").exists()


def test_a_report_reads_an_archive_as_it_reads_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert report("format=csv,md") == 0
    Path("results/first/report/link.md").symlink_to("/etc/hostname")
    assert main(["merge", "results", "into=runs.zip"]) == 0
    with zipfile.ZipFile("runs.zip") as archive:
        files = {"report/table.csv", "report/table.md", *FILES} - {"rows.csv"}
        assert {name for name in archive.namelist() if name.startswith("first/")} == {f"first/{file}" for file in files}
    capsys.readouterr()
    assert report() == 0
    of_folder = capsys.readouterr().out
    before = files_in(Path())
    assert report("results_dir=runs.zip") == 0
    assert capsys.readouterr().out == of_folder
    assert files_in(Path()) == before
    assert report("results_dir=runs.zip", "format=csv,html") == 0
    written = capsys.readouterr().out.split()
    assert written == ["runs/first/report/report.html", "runs/first/report/table.csv"]
    assert Path(written[1]).read_bytes() == Path("results/first/report/table.csv").read_bytes()
    assert "/tmp" not in Path(written[0]).read_text("utf-8").partition("<script")[0]
    assert report("results_dir=results,runs.zip") == 0, "a comparison of two runs"


def test_the_same_runs_give_the_same_bytes() -> None:
    for name in ("a.zip", "b.zip"):
        assert main(["merge", "results", f"into={name}"]) == 0
    assert Path("a.zip").read_bytes() == Path("b.zip").read_bytes()


def test_only_the_tables_of_runs_are_read(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_in(place.parent)
    with zipfile.ZipFile("runs.zip", "w") as archive:
        for name in ("manifest.yaml", "records.csv"):
            archive.write(f"results/first/{name}", f"first/{name}")
        for odd in (
            "../records.csv",
            "/tmp/records.csv",
            "..\\x/records.csv",
            "first/../../records.csv",
            ".x/rows.csv",
        ):
            archive.writestr(odd, "written")
        archive.writestr("first/configs/figure/mine.py", "raise RuntimeError")
        archive.writestr("C:\\records.csv", "written")
    assert report("results_dir=runs.zip") == 0, capsys.readouterr().err
    assert files_in(place.parent).keys() - before.keys() == {place / "runs.zip"}


def zipped(name: str, content: bytes, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def changed(archive: bytes, local: int, central: int, content: bytes) -> bytes:
    """Return an archive of one file with bytes at these places of its two headers replaced."""
    for place in (archive.index(b"PK\x03\x04") + local, archive.index(b"PK\x01\x02") + central):
        archive = archive[:place] + content + archive[place + len(content) :]
    return archive


WHOLE = zipped("first/records.csv", b"key\n" * 1000)
BAD = {
    "empty": (b"", "File is not a zip file"),
    "text": (b"key,dataset\n", "File is not a zip file"),
    "cut": (WHOLE[:-30], "File is not a zip file"),
    "damaged": (WHOLE[:55] + bytes(4) + WHOLE[59:], "got a file that cannot be read ("),
    "encrypted": (changed(WHOLE, 6, 8, b"\1"), "got a file that cannot be read ("),
    "of another tool": (zipped("x.txt", b""), "got none of its files, such as <experiment>/records.csv."),
    "another compression": (
        zipped("a/records.csv", b"x", zipfile.ZIP_BZIP2),
        "got another compression of a/records.csv",
    ),
    "large": (changed(WHOLE, 22, 24, struct.pack("<I", LARGEST + 1)), f"at most {LARGEST:,} bytes in total, got 256,"),
    "larger than stated": (changed(WHOLE, 22, 24, struct.pack("<I", 8)), "Bad CRC-32"),
    "no manifest": (WHOLE, "error: bad.zip/first/manifest.yaml: expected a YAML file, got none."),
    "another run": (zipped("other/records.csv", b"key\n"), "error: bad.zip/first: no records.csv there."),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_archive_is_refused(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    content, message = BAD[kind]
    Path("bad.zip").write_bytes(content)
    before = files_in(Path())
    refused(capsys, ["report", "experiment=first", "results_dir=bad.zip"], "bad.zip", message)
    assert files_in(Path()) == before


@pytest.mark.exhaustive
def test_no_change_of_a_byte_causes_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "results/first", "into=whole.zip"]) == 0
    whole, random = Path("whole.zip").read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(whole)
        for place in random.integers(len(content), size=3):
            content[place] = random.integers(256)
        Path("bad.zip").write_bytes(content)
        if report("results_dir=bad.zip") != 0:
            check_message(capsys.readouterr().err)

"""Excel workbooks and Parquet files are read as the same table in CSV; without the library they are refused by name."""

import importlib.util
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from klr_bench import TablePreparer
from klr_bench.datasets import workbook
from klr_bench.datasets.compression import DamagedFileError, open_utf8
from klr_bench.datasets.readers import Reading, read, recognize
from klr_bench.datasets.readers.user_table import read_frame, take_labels
from klr_bench.errors import KlrBenchError

READING = Reading(table=1, multiclass=True)


def table(n: int = 60) -> pd.DataFrame:
    random = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "id": [f"{7 * i % 60:05}" for i in range(n)],
            "size": np.where(np.arange(n) % 9 == 4, np.nan, random.randint(0, 50, n)),
            "weight": [f"{i % 7}.5 kg" for i in range(n)],
            "plan": pd.Categorical(random.choice(["1", "2", "3"], n)),
            "zip": [f"{1067 + i % 7:05}" for i in range(n)],
            "day": pd.date_range("2021-03-04", periods=n, freq="31h"),
            "ok": random.rand(n) < 0.5,
            "class": random.choice(["no", "yes"], n),
        }
    )


def write_excel(frame: pd.DataFrame, path: Path) -> None:
    frame.astype({"plan": str}).to_excel(path, index=False, startrow=3)
    import openpyxl

    book = openpyxl.load_workbook(path)
    book.active["A1"] = "Customers of the year 2021"
    book.save(path)


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    frame.to_parquet(path)


@pytest.mark.parametrize("save", [write_excel, write_parquet])
def test_a_workbook_has_the_features_of_the_data_frame(
    save: Callable[[pd.DataFrame, Path], None], tmp_path: Path
) -> None:
    frame, path = table(), tmp_path / "mine.xlsx"
    save(frame, path)
    columns = frame.drop(columns="class")
    if save is write_excel:  # which is read as if it had been saved as CSV
        columns = columns.astype({"plan": int, "zip": int})
    expected = TablePreparer().fit(columns)
    found, _, _ = take_labels(read_frame(path)[0], "class")
    again = TablePreparer().fit(found)
    assert again.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    np.testing.assert_allclose(again.transform(found), expected.transform(columns), atol=1e-6)
    arrays = read([path], READING)
    assert (arrays.y == np.where(frame["class"] == "yes", 1, -1)).all()
    assert ("left out: 3 lines above the table" in "".join(arrays.said)) == (save is write_excel)


@pytest.mark.parametrize(("save", "library"), [(write_excel, "openpyxl"), (write_parquet, "pyarrow")])
def test_without_the_library_the_message_names_it(
    save: Callable[[pd.DataFrame, Path], None], library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(table(), tmp_path / "mine.xlsx")
    for module in (workbook, recognize):
        monkeypatch.setattr(
            module, "find_spec", lambda name: None if name == library else importlib.util.find_spec(name)
        )
    with pytest.raises(KlrBenchError, match=rf"mine\.xlsx: expected .* run pip install {library}, or "):
        read([tmp_path / "mine.xlsx"], READING)


@pytest.mark.parametrize("save", [write_excel, write_parquet])
def test_a_damaged_workbook_is_refused(save: Callable[[pd.DataFrame, Path], None], tmp_path: Path) -> None:
    path = tmp_path / "mine.xlsx"
    save(table(), path)
    content = path.read_bytes()
    path.write_bytes(content[:200] + b"\0" * 200 + content[400:])
    with pytest.raises((KlrBenchError, DamagedFileError), match="mine"):
        read_frame(path)


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 20_000_000)
    with pytest.raises(DamagedFileError, match="more than 200 times its size"), open_utf8(path, None):
        pass


def test_a_changed_workbook_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.xlsx"
    for n in (40, 50):
        write_excel(table(n), path)
        assert len(read([path], READING).y) == n


def test_texts_of_a_workbook_are_not_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "mine.xlsx"
    pd.DataFrame({"size": [1, 5, 3, 2] * 15, "class": ["None", "01", "1"] * 20}).to_excel(path, index=False)
    assert read([path], READING).classes == ("01", "1", "None")


def test_whole_numbers_beside_missing_ones_keep_their_digits(tmp_path: Path) -> None:
    path, codes = tmp_path / "mine.parquet", [2**60 + 1, 2**60 + 2, None]
    frame = pd.DataFrame({"size": range(60), "class": pd.array(codes * 20, dtype="Int64")})
    frame.to_parquet(path)
    assert read([path], READING).classes == (str(codes[0]), str(codes[1]))
    rows, train = read_frame(path)
    assert take_labels(rows, train.label)[1].tolist()[:2] == codes[:2]


def test_a_long_name_has_its_type_and_can_be_requested(tmp_path: Path) -> None:
    name, path = "the number of the " * 5 + "house", tmp_path / "mine.parquet"
    frame = pd.DataFrame({name: ["01", "1", "7"] * 20, "class": ["a", "b"] * 30})
    frame.to_parquet(path)
    assert read([path], READING).X.shape == (60, 3)
    frame.to_csv(path, index=False)
    assert read([path], READING).X.shape == (60, 1)
    assert read([path], Reading(table=1, columns={name: "text"})).X.shape == (60, 3)


@pytest.mark.parametrize("same_name", [True, False])
def test_a_file_of_the_same_size_and_time_is_read_again(tmp_path: Path, same_name: bool) -> None:
    path, other = tmp_path / "mine.parquet", tmp_path / "new.parquet"
    for name, value in ((path, "1"), (other, "2")):
        pd.DataFrame({"x": [5, 3, 1, 4] * 10, "class": ["0", value] * 20}).to_parquet(name)
    assert path.stat().st_size == other.stat().st_size
    assert read([path], READING).classes == ("0", "1")
    if same_name:
        times = path.stat().st_atime_ns, path.stat().st_mtime_ns
        path.write_bytes(other.read_bytes())
        os.utime(path, ns=times)
    assert read([path if same_name else other], READING).classes == ("0", "2")


@pytest.mark.parametrize("cell", ["XFD1", "A1048576", "XFD2000", "CV1000000"])
def test_a_cell_far_from_the_table_does_not_fill_the_memory(cell: str, tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in [["x", "class"], *([i, "ab"[i % 2]] for i in range(40))]:
        book.active.append(row)
    book.active[cell] = 1
    book.active["A1048576"] = 1
    book.save(tmp_path / "mine.xlsx")
    with (
        pytest.raises(DamagedFileError, match="first sheet has cells as far as"),
        open_utf8(tmp_path / "mine.xlsx", None),
    ):
        pass


def test_rows_that_no_sheet_can_have_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.xlsx"
    write_excel(table(), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    members[sheet] = members[sheet].replace(b"</sheetData>", b'<row r="1000000000"></row></sheetData>')
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(DamagedFileError, match="first sheet has cells as far as"), open_utf8(path, None):
        pass


@pytest.mark.parametrize("kind", ["string", "category", "bytes"])
def test_a_long_text_in_many_rows_does_not_fill_the_memory(kind: str, tmp_path: Path) -> None:
    path, text = tmp_path / "mine.parquet", "x" * 1_000_000
    codes = pa.array(np.zeros(20_000, dtype=np.int32))
    column = pa.DictionaryArray.from_arrays(codes, pa.array([text.encode() if kind == "bytes" else text]))
    parts = pa.table({"x": np.arange(20_000), "note": column})
    if kind != "category":
        parts = parts.replace_schema_metadata(None)
    pq.write_table(parts, path, compression="zstd", store_schema=kind == "category")
    assert path.stat().st_size < 500_000
    with pytest.raises(DamagedFileError, match="more than 200 times its size"), open_utf8(path, None):
        pass


@pytest.mark.parametrize("index", [["patient"], ["patient", "day"], ["class"], ["zip "], [" zip"]])
def test_the_columns_of_a_named_index_are_columns(index: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    frame = table().rename(columns={"id": "patient", "zip": "zip " if index != [" zip"] else " zip"})
    frame.set_index(index).to_parquet(path)
    rows, _ = read_frame(path, "class")
    assert {*rows.columns} == {name.strip() for name in frame}
    features, _, _ = take_labels(rows, "class")
    kinds = TablePreparer(columns={"patient": "leave_out"}).fit(features).report_.set_index("column")["kind"]
    assert kinds["zip"] == "text"


def test_an_index_without_a_name_is_no_column(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    table().iloc[::2].to_parquet(path)
    assert [*read_frame(path)[0].columns] == [*table()]


@pytest.mark.parametrize("version", [64, 99, 255])
def test_an_archive_of_a_later_version_is_refused(version: int, tmp_path: Path) -> None:
    path = tmp_path / "mine.xlsx"
    write_excel(table(), path)
    content = bytearray(path.read_bytes())
    place = -1
    while (place := content.find(b"PK\x01\x02", place + 1)) >= 0:
        content[place + 6] = version
    path.write_bytes(content)
    with pytest.raises(KlrBenchError, match="it is a zip archive"):
        read([path], READING)


def test_the_names_of_a_parquet_file_are_its_header(tmp_path: Path) -> None:
    names = ["400", "410", "420", "label"]
    rows = [[0.1 * i, 0.2, i % 3, "ab"[i % 2]] for i in range(20)]
    pd.DataFrame(rows, columns=names).to_parquet(tmp_path / "mine.parquet")
    frame, train = read_frame(tmp_path / "mine.parquet")
    assert (frame.columns.tolist(), len(frame), train.has_header) == (names, 20, True)


@pytest.mark.parametrize("names", [["0", "1"], ["a", "b"]])
def test_the_names_of_new_rows_in_a_parquet_file_are_no_row(names: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("".join(f"{i / 9},{i % 5},{'ab'[i % 2]}\n" for i in range(20)))
    _, train = read_frame(tmp_path / "train.csv")
    pd.DataFrame([[0.5, 2], [0.1, 3]], columns=names).to_parquet(tmp_path / "new.parquet")
    frame, _ = read_frame(tmp_path / "new.parquet", train=train)
    assert frame.to_numpy().tolist() == [["0.5", "2"], ["0.1", "3"]]


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, b"a", pd.Timedelta(5)])
def test_columns_of_lists_bytes_or_durations_are_refused(value: object, tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    frame = pd.DataFrame({"v": [value] * 20, "x": np.arange(20.0) % 7, "y": list("ab") * 10})
    frame.to_parquet(path)
    with pytest.raises(KlrBenchError, match=r"column 'v' contains values of the type .*or leave it out"):
        read([path], READING)
    rows, _ = read_frame(path)
    with pytest.raises(ValueError, match=r"column 'v' contains values of the type .*or leave it out"):
        TablePreparer().fit(rows.drop(columns="y"))
    assert TablePreparer({"v": "leave_out"}).fit_transform(rows.drop(columns="y")).shape == (20, 1)


def test_a_table_that_pandas_saved_twice_is_read(tmp_path: Path) -> None:
    frame, path = pd.DataFrame({"a": range(20), "y": list("ab") * 10}), tmp_path / "mine.csv"
    frame.to_csv(path)
    pd.read_csv(path).to_csv(path)
    rows, _ = read_frame(path)
    assert rows.columns.tolist() == pd.read_csv(path).columns.tolist()
    columns = TablePreparer().fit(rows.drop(columns="y").sample(frac=1, random_state=0)).columns_
    assert [column.kind for column in columns] == ["leave_out", "leave_out", "number"]

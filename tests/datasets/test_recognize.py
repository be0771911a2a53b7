"""Files that are not tables of text are refused by name, with what to do; encodings; and unusual tables are read."""

import gzip
import io
import json
import pickle
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from klr_bench import stream
from klr_bench.cli import main
from klr_bench.datasets.layout import layout_of
from klr_bench.datasets.readers import Reading, read, recognize
from tests.attack.promise import check_message, rejected
from tests.datasets.conftest import Write
from tests.datasets.samples import rows_of

FRAME = pd.DataFrame({"a": [0.5, 1.5, 2.5], "b": [3, 4, 5], "y": ["no", "yes", "no"]})
CSV = FRAME.to_csv(index=False)


def zipped(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, CSV)
    return content.getvalue()


def tar() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        member = tarfile.TarInfo("train.csv")
        member.size = len(CSV)
        archive.addfile(member, io.BytesIO(CSV.encode()))
    return content.getvalue()


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    content = io.BytesIO()
    save(content)
    return content.getvalue()


def database() -> bytes:
    connection = sqlite3.connect(":memory:")
    FRAME.to_sql("t", connection)
    return connection.serialize()


RECORDS = FRAME.to_dict("records")
REAL: dict[str, tuple[bytes, str]] = {
    "parquet, compressed": (gzip.compress(saved(FRAME.to_parquet)), "a Parquet file that is compressed or cut off"),
    "feather": (saved(FRAME.to_feather), "a Feather (Arrow) file; convert it"),
    "stata": (saved(lambda file: FRAME.to_stata(file, version=117)), "a Stata file; convert it"),
    "npy": (saved(lambda file: np.save(file, FRAME["a"])), "a NumPy array (.npy); convert it"),
    "npz": (saved(lambda file: np.savez(file, X=FRAME["a"])), "NumPy arrays (.npz); convert them"),
    "xlsb": (zipped("[Content_Types].xml", "xl/workbook.bin"), "an Excel workbook; save it as CSV"),
    "ods": (zipped("mimetype", "content.xml"), "an OpenDocument spreadsheet; save it as CSV"),
    "zip": (zipped("train.csv"), "a zip archive; extract the table from it"),
    "empty zip": (zipped(), "a zip archive"),
    "tar": (tar(), "a tar archive; extract"),
    "tar.gz": (gzip.compress(tar()), "a tar archive; extract"),
    "sqlite": (database(), "an SQLite database; convert it"),
    **{f"pickle {version}": (pickle.dumps(RECORDS, version), "a pickle; save the table") for version in range(2, 6)},
    "json": (json.dumps(RECORDS, indent=1).encode(), "JSON; convert it with pandas.read_json(FILE).to_csv"),
    "json in a line": (json.dumps(RECORDS).encode(), "JSON; convert it"),
    "json of columns": (FRAME.to_json().encode(), "JSON; convert it"),
    "json with a BOM": (json.dumps(RECORDS).encode("utf-8-sig"), "JSON; convert it"),
    "json lines": (FRAME.to_json(orient="records", lines=True).encode(), "JSON Lines; convert it with pandas.read"),
    "lists": (b"[0.1, 0.2, 1]\n[0.3, 0.1, 0]\n[0.4, 0.5, 1]\n", "JSON; convert it"),
    "nested lists": (b"[0.1, [1, 2], 1]\n[0.3, [2, 1], 0]\n[0.4, [0, 5], 1]\n", "JSON; convert it"),
    "lists with a text": (b'[0.1, "a [b]", "no"]\n[0.3, "c", "yes"]\n', "JSON; convert it"),
    "an apostrophe in a key": (b'{"it\'s": 0.1, "y": "no"}\n{"it\'s": 0.3, "y": "yes"}\n', "JSON Lines; convert it"),
    "a quote in a key": (b'{"a\\"b": 0.1, "y": "no"}\n{"a\\"b": 0.3, "y": "yes"}\n', "JSON Lines; convert it"),
    "keys without quotes": (b"{a: 0.1, y: no}\n{a: 0.3, y: yes}\n", "JSON Lines; convert it"),
    "dicts": ("\n".join(map(str, RECORDS)).encode(), "JSON Lines; convert it"),
    "html": (FRAME.to_html().encode(), "HTML or XML; obtain the table as CSV"),
    "page": (b"\n\n  <!DOCTYPE html>\n<html><title>404</title>", "HTML or XML; obtain"),
    "xml": (FRAME.to_xml(parser="etree").encode(), "HTML or XML; obtain"),
    "xml without a declaration": (b"<data>\n<row a='1'/>\n</data>\n", "HTML or XML; obtain"),
    "long xml": (b'<t n="2" m="3">\n' + b'<row a="1" y="no"/>\n' * 500 + b"</t>\n", "HTML or XML; obtain"),
    "markdown": (b"| a | y |\n|---|:-:|\n" + b"| 1 | n |\n" * 9, "a table of Markdown; obtain"),
    "old lfs": (b"version https://hawser.github.com/spec/v1\noid sha256:0\nsize 1\n", "not the data; run git lfs pull"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "not the data; run git lfs pull"),
    "annex": (b"/annex/objects/MD5E-s1--a.csv\n", "a pointer of git-annex, not the data; run git annex get"),
    "arff": (b"% a comment\n\n@RELATION iris\n@ATTRIBUTE a NUMERIC\n@DATA\n1,a\n", "an ARFF file; obtain"),
    **{
        f"arff after {n} lines": (b"%% Title: 1\n" * n + b"@relation a\n" + b"@attribute a real\n" * 99, "ARFF file")
        for n in (300, 339, 340, 341, 342, 2000)
    },
    "matrix market": (b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n", "a Matrix Market file; conv"),
    **{
        name: (CSV.encode(name), f"it is {name.upper()} text; set data.encoding={name} (encoding= of stream, or")
        for name in ("utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
    },
    "noise": (bytes(range(256)) * 20, "it is not UTF-8 text"),
}  # fmt: skip
LISTED = {
    **{f"{name} {magic[:8]!r}": (magic + bytes(range(32)) * 9, name) for magic, name, _ in recognize.BINARY},
    **{f"{name} {member}": (zipped(f"{member}x"), name) for member, name, _ in recognize.ZIPPED},
}


@pytest.mark.parametrize("kind", [*REAL, *LISTED])
def test_other_files_are_refused_by_name(kind: str, write: Write) -> None:
    content, expected = (REAL | LISTED)[kind]
    path = write(content, "train.csv")
    for call in (lambda: read([path], Reading(table=1)), lambda: stream(path)):
        assert rejected(call, expected).startswith(f"{path}: expected svmlight or CSV text")


@pytest.mark.parametrize("kind", ["json lines", "html", "xlsb", "tar.gz", "lfs", "arff", "utf-16", "noise"])
def test_commands_refuse_other_files(
    kind: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    content, expected = REAL[kind]
    write(content, "train.csv")
    good = write(CSV, "good.csv")
    for words in (
        ["fit", "data.path=train.csv", "output=m.skops"],
        ["run", "experiment=own_file", "data.path=train.csv", "--dry-run"],
        ["run", "experiment=own_file", f"data.path={good}", "data.test_path=train.csv", "--dry-run"],
    ):
        assert main(words) == 2
        captured = capsys.readouterr()
        check_message(captured.err, expected)
        assert captured.err.startswith("error: ")
    assert not Path("m.skops").exists()


TABLES = [
    *(
        "PAR1,PAR2,y",
        "FEA1,FEA2,y",
        "ORC,b,y",
        "A,b,y",
        "X,b,y",
        "RDX,b,y",
        "MATLAB,b,y",
        "x,b,y",
        "Obj,b,y",
        "$FL,b,y",
    ),
    *(
        "<a>,<b>,<y>",
        "<TICKER>,<PER>,<DATE>",
        "{a},{b},{y}",
        "[a],[b],[y]",
        "{1 2},{3},{y}",
        "%a,%b,y",
        "GIF8,b,y",
        "@a,b,y",
    ),
    *("version,b,y", "a b,b,y", "sep,b,y", "sep=,b,y", "% of a,b,y", "BZh,b,y", "PK,b,y", "<b,b>,y", "-,b,y"),
]


@pytest.mark.parametrize("header", TABLES)
def test_tables_that_begin_like_other_files_are_read(header: str, write: Write) -> None:
    path = write(f"{header}\n" + CSV.partition("\n")[2])
    arrays = read([path], Reading(table=1))
    np.testing.assert_array_equal(arrays.X, FRAME[["a", "b"]])
    assert arrays.classes == ("no", "yes")


ENCODED = "größe;farbe;y\n" + "".join(
    f"{i}.5;{['weiß', 'grün', 'né'][i % 3]};{['für', 'gegen'][i % 2]}\n" for i in range(60)
)


@pytest.mark.parametrize(
    "encoding", ["cp1252", "latin-1", "utf-16", "utf-16-be", "utf-32", "utf-8", "utf-8-sig", "mac-roman"]
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_a_file_in_any_encoding_is_read_as_in_utf8(
    encoding: str, pack: Callable[[bytes], bytes], write: Write, block: None
) -> None:
    expected = read([write(ENCODED)], Reading(table=1))
    found = read([write(pack(ENCODED.encode(encoding)), "other")], Reading(table=1, encoding=encoding))
    np.testing.assert_array_equal(found.X, expected.X)
    assert (found.y.tolist(), found.classes) == (expected.y.tolist(), ("für", "gegen"))
    assert [note.replace("other", "train") for note in found.said] == [*expected.said]
    numbers = "a;y\n" + "".join(f"{i}.5;{['für', 'gegen'][i % 2]}\n" for i in range(60))
    X, y = rows_of(stream(write(pack(numbers.encode(encoding)), "rows"), encoding=encoding))
    assert y.tolist() == ["für", "gegen"] * 30
    np.testing.assert_array_equal(X[:, 0], np.arange(60) + 0.5)
    svmlight = "".join(f"{['für', 'gegen'][i % 2]} 1:{i + 1}\n" for i in range(60))
    assert rows_of(stream(write(pack(svmlight.encode(encoding)), "svm"), encoding=encoding))[1].tolist() == y.tolist()


def test_the_encoding_on_the_command_line(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(ENCODED.encode("cp1252"), "old.csv")
    write(ENCODED, "new.csv")
    where = f"{tmp_path}/old.csv, line 1: byte 3 of the line, 0xf6, is not UTF-8 text. Set data.encoding= (encoding= of"
    fit = ["fit", "output=m.skops", "algorithm=oskl_default"]
    assert main([*fit, "data.path=old.csv"]) == 2
    assert f"error: {where}" in capsys.readouterr().err
    assert main([*fit, "data.path=old.csv", "data.encoding=cp1252"]) == 0
    assert main(["predict", "model=m.skops", "data.path=new.csv", "output=p.csv"]) == 0
    assert main(["predict", "model=m.skops", "data.path=old.csv", "output=q.csv", "data.encoding=cp1252"]) == 0
    assert Path("p.csv").read_bytes() == Path("q.csv").read_bytes()
    assert capsys.readouterr().err == ""
    assert {*pd.read_csv("p.csv")["prediction"]} == {"für", "gegen"}
    for words in (["predict", "model=m.skops", "output=q.csv"], fit, ["run", "experiment=own_file"]):
        assert main([*words, "data.path=old.csv", "data.encoding=cp1253x"]) == 2
        assert "data.encoding: expected an encoding that Python knows, such as cp1252 or" in capsys.readouterr().err
    rejected(lambda: stream("old.csv", encoding="hex"), "encoding: expected an encoding that Python knows")
    rejected(
        lambda: stream("new.csv", encoding="ascii"), "new.csv, line 1: byte 3 of the line, 0xc3, is not ascii text"
    )
    rejected(lambda: stream("new.csv", encoding="utf-16"), "new.csv: expected utf-16 text, got another encoding.")


@pytest.mark.parametrize(
    "line",
    [
        *("sep=;\n", '"sep=;"\r\n', "\ufeffsep=;\n", "sep=|\n", "sep=\t\n", "sep=:\n"),
        *("SEP=;\n", "sep=; \n", "sep=;;\r\n", "sep=\\t\n"),
    ],
)
def test_the_separator_that_excel_names(line: str, write: Write, block: None) -> None:
    sign = line.replace("\\t", "\t").strip('" \r\n\ufeff')[-1]
    path = write(line + CSV.replace(",", sign))
    np.testing.assert_array_equal(read([path], Reading(table=1)).X, FRAME[["a", "b"]])
    np.testing.assert_array_equal(read([path, path], Reading()).X, pd.concat([FRAME, FRAME])[["a", "b"]])
    X, y = rows_of(stream([path, path]))
    np.testing.assert_array_equal(X, pd.concat([FRAME, FRAME])[["a", "b"]])
    assert y.tolist() == FRAME["y"].tolist() * 2
    write(line + CSV.replace(",", sign) + f"x{sign}1{sign}no\n")
    for call in (lambda: read([path], Reading()), lambda: list(stream(path))):
        rejected(call, f"{path}, line 6, column 1 ('a'): 'x' is not a number")


@pytest.mark.parametrize("inner", [";", ",", "|"])
@pytest.mark.parametrize("outer", [" ", "\t", ",", ";"])
@pytest.mark.parametrize("header", [True, False])
def test_a_separator_inside_brackets_is_part_of_a_field(write: Write, inner: str, outer: str, header: bool) -> None:
    rows = [["A", "B", "L", "y"]] * header
    rows += [[f"0.{i}7", "abc"[i % 3], f"[{i % 2}{inner}2]", str(i % 2)] for i in range(8)]
    if inner == outer:
        return
    path = write("".join(outer.join(row) + "\n" for row in rows))
    arrays = read([path], Reading(table=1))
    a, b, c = rows[0][:3] if header else ("column 1", "column 2", "column 3")
    notes = f"1 column of numbers: {a}", f"2 columns of text as 4 binary features: {b} (3), {c} (1)"
    assert arrays.said[1:3] == notes


@pytest.mark.parametrize("inner", [";", ",", "|"])
@pytest.mark.parametrize("header", [True, False])
def test_a_separator_inside_quotes_is_part_of_a_field(write: Write, inner: str, header: bool) -> None:
    rows = [["A", "B", "L", "y"]] * header
    rows += [[f"0.{i}7", "abc"[i % 3], f'"a{i % 2}{inner}2"', str(i % 2)] for i in range(8)]
    arrays = read([write("".join(" ".join(row) + "\n" for row in rows))], Reading(table=1))
    assert arrays.said[1].startswith("1 column of numbers")
    assert "2 columns of text as 4 binary features" in arrays.said[2]


@pytest.mark.parametrize("row", ['12" pipe,{i}" x 3', '0.{i},"20 "" TV"', 'LED {i} " TV,0.5', '"w {i} """,2" deep'])
def test_inches_are_no_quotations(write: Write, row: str) -> None:
    path = write("".join(f"{row.format(i=i)},{'ab'[i % 2]}\n" for i in range(8)))
    assert layout_of(path, None).n_columns == 3


@pytest.mark.parametrize(
    "row", ["[{i}0-2],{i},[{c}]", "[{i}],[{i}],[{c}]", "[0-{i}] {i} [{c}]", "{{a: {i}}}\t{i}\t{{{c}}}"]
)
def test_brackets_at_both_ends_of_lines_are_no_json(write: Write, row: str) -> None:
    path = write("".join(f"{row.format(i=i, c='ab'[i % 2])}\n" for i in range(8)))
    assert read([path], Reading(table=1)).X.shape[0] >= 7


@pytest.mark.parametrize("delimiter", ["\t", " ", ","])
@pytest.mark.parametrize("first", ["", "sep=\t\n"])
def test_clock_times_below_a_header_are_no_libsvm_text(write: Write, delimiter: str, first: str) -> None:
    rows = [["y", "from", "to"], *([f"{i % 2}", f"0{i % 9}:1{i % 6}", f"1{i % 9}:05"] for i in range(20))]
    start = first if delimiter == "\t" else ""
    path = write(start + "".join(delimiter.join(row) + "\n" for row in rows))
    hours = [[i % 9 + (10 + i % 6) / 60, 10 + i % 9 + 5 / 60] for i in range(20)]
    np.testing.assert_allclose(read([path], Reading(table=1, label_column="y")).X, hours, rtol=1e-6)
    assert recognize.detect_format(write("".join(f"{i % 2} 1:{10 + i} 2:30\n" for i in range(20)))) == "svmlight"

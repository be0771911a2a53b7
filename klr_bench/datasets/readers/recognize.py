"""Recognize spreadsheets, archives, web pages and other files that are not tables of text."""

from __future__ import annotations

import re
import zipfile
from codecs import BOM_UTF8
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from klr_bench.datasets.compression import MAGIC, lines, open_plain, open_utf8
from klr_bench.datasets.dates import date_form
from klr_bench.datasets.workbook import library_of
from klr_bench.errors import fail

SAMPLE = 4096
"""Number of bytes at the beginning of a file that are examined."""
EXTRACT = "extract the table from it"
PANDAS = "convert it with pandas.{}(FILE).to_csv('data.csv', index=False)"
FROM_R = "convert it in R with write.csv(DATA, 'data.csv', row.names=FALSE)"
SAVE_AS = f"save it as CSV, or {PANDAS.format('read_excel')}"
TO_CSV = "obtain the table as CSV"
FROM_ARFF = f"{TO_CSV}, or convert it with liac-arff and pandas"

BINARY: tuple[tuple[bytes, str, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook (.xls)", SAVE_AS),
    (b"PAR1", "a Parquet file that is compressed or cut off", TO_CSV),
    (b"ARROW1", "a Feather (Arrow) file", PANDAS.format("read_feather")),
    (b"FEA1", "a Feather file", PANDAS.format("read_feather")),
    (b"\xff\xff\xff\xff", "an Arrow stream", "convert it with pyarrow.ipc.open_stream and pyarrow.csv.write_csv"),
    (b"ORC", "an ORC file", PANDAS.format("read_orc")),
    (b"Obj\x01", "an Avro file", TO_CSV),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", PANDAS.format("read_hdf")),
    (b"MATLAB", "a MATLAB file", "convert it with scipy.io.loadmat and numpy.savetxt"),
    (b"SQLite format 3\0", "an SQLite database", "convert it with pandas.read_sql and to_csv('data.csv', index=False)"),
    (b"RDX", "an R data file (.RData)", FROM_R),
    (b"X\n\0\0\0", "an R data file (.rds)", FROM_R),
    (b"<stata_dta>", "a Stata file", PANDAS.format("read_stata")),
    (b"$FL", "an SPSS file", PANDAS.format("read_spss")),
    (b"\0" * 12 + b"\xc2\xea\x81\x60", "a SAS file", PANDAS.format("read_sas")),
    (
        b"\x93NUMPY",
        "a NumPy array (.npy)",
        "convert it with numpy.savetxt('data.csv', numpy.load(FILE), delimiter=',')",
    ),
    *(
        (bytes([0x80, protocol]), "a pickle", "save the table as CSV in the program that wrote it")
        for protocol in range(2, 6)
    ),
    (b"%PDF", "a PDF document", TO_CSV),
    (b"\x89PNG", "an image", TO_CSV),
    (b"\xff\xd8\xff", "an image", TO_CSV),
    (b"GIF8", "an image", TO_CSV),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", EXTRACT),
    (b"Rar!\x1a\x07", "a RAR archive", EXTRACT),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", "decompress it with zstd -d FILE"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4", "decompress it with lz4 -d FILE"),
    (b"\x1f\x9d", "compressed with compress (.Z)", "decompress it with gzip -d FILE"),
    (b"x\x01", "compressed with zlib", TO_CSV),
    (b"x\x9c", "compressed with zlib", TO_CSV),
    (b"x\xda", "compressed with zlib", TO_CSV),
)
"""First bytes, name and advice of formats whose files contain control characters, unlike text."""
XLSX = ("an Excel workbook", SAVE_AS)
ZIPPED = (
    ("xl/", *XLSX),
    ("content.xml", "an OpenDocument spreadsheet", SAVE_AS),
    ("klr-bench.json", "a model file of klr-bench", "pass it to klr-bench predict as model=FILE"),
    ("schema.json", "a skops file", TO_CSV),
    ("word/", "a Word document", TO_CSV),
)
"""Beginning of the name of a member, name and advice of formats that are zip archives."""
TAGS = "html|head|body|table|div|script|svg|rss|feed|gml|kml|pmml|gexf|graphml"
STRING = r"(\"([^\"\\\n]|\\.)*\"|'([^'\\\n]|\\.)*')"
TEXT: tuple[tuple[str, str, str], ...] = (
    (r"version https://(git-lfs|hawser)\.", "a pointer of Git LFS, not the data", "run git lfs pull"),
    (
        r"(\.\./)*(\.git/annex/objects/|/annex/objects/)",
        "a pointer of git-annex, not the data",
        "run git annex get FILE",
    ),
    (
        rf"\{{\s*({STRING}\s*:[^\n]*|\w+\s*:[^{{}}\n]*)\}}\s*\n\s*\{{",
        "JSON Lines",
        "convert it with pandas.read_json(FILE, lines=True) and to_csv",
    ),
    (
        rf"\{{\s*({STRING}\s*:|\}}\s*$)|\[\s*(\{{\s*[\"}}]|\[|\"[^\"\n]*\"\s*[,\]]|\n)"
        r"|\[[^\[\]\n]*\],?\s*\n\s*\[[^\[\]\n]*\],?\s*\n"
        r"|\[\s*[-\d](\"([^\"\\\n]|\\.)*\"|[^\[\]\"\n]|\[[^\[\]\n]*\])*\],?\s*\n\s*\[\s*[-\d]",
        "JSON",
        PANDAS.format("read_json"),
    ),
    (
        rf"(?i:<!doctype|<\?xml|<!--|<({TAGS})[\s>])|<(?P<tag>[\w:.-]+)(\s[^>]*)?>((?s:.*)</(?P=tag)>|\s*\n\s*<)",
        "HTML or XML",
        TO_CSV,
    ),
    (r"(%[^\n]*\n|\s)*(?i:@relation)\b", "an ARFF file", FROM_ARFF),
    (
        r"%%MatrixMarket",
        "a Matrix Market file",
        "convert it with scipy.io.mmread and sklearn.datasets.dump_svmlight_file",
    ),
    (r"\|[^\n]*\|\s*\n\s*\|[\s:|-]*-[\s:|-]*\|\s*\n", "a table of Markdown", TO_CSV),
    (r"%PDF-", "a PDF document", TO_CSV),
    (r"A\n[23]\n\d{6}\n\d{5,6}\n", "an R data file (.rds)", FROM_R),
    (r"(%[^\n]*(\n\s*|\Z))+(@\w*)?\Z", "a text that begins with comments, as ARFF files do", FROM_ARFF),
)
"""Regular expression for the beginning of a text, name and advice."""
CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")


def foreign_format(path: Path, encoding: str | None) -> str | None:
    """Return what a file is and what to do if it is not a table of text, otherwise None.

    Raises DamagedFileError, and KlrBenchError for text that is not in the given encoding.
    """
    with open_plain(path) as (stream, raw):
        start = stream.read(SAMPLE) or b""
        library = library_of(path, start) if stream is raw else None
    if start.startswith(MAGIC):
        return "it is compressed twice; decompress it once"
    if library is not None:
        return _installed(library)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped(path)
    if CONTROL.search(start):
        for magic, name, advice in (*BINARY, (start[:257] + b"ustar", "a tar archive", EXTRACT)):
            if start.startswith(magic):
                return f"it is {name}; {advice}"
    if encoding is None and (wide := _wide_encoding(start)):
        return f"it is {wide.upper()} text; set data.encoding={wide} (encoding= of stream, or of a source)"
    if encoding is None and b"\0" in start:
        return "it is not UTF-8 text; obtain the table as text"
    with open_utf8(path, encoding) as stream:
        text = (stream.read(SAMPLE) or b"").decode("utf-8-sig", "replace").lstrip()
    for pattern, name, advice in TEXT:
        if re.match(pattern, text):
            return f"it is {name}; {advice}"
    return None


def _installed(library: str) -> str | None:
    """Return advice for a workbook if its library is not installed, otherwise None."""
    if find_spec(library) is not None:
        return None
    name, advice = XLSX if library == "openpyxl" else ("a Parquet file", TO_CSV)
    return f"it is {name}; run pip install {library}, or {advice}"


def _zipped(path: Path) -> str:
    names: list[str] = []
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, RuntimeError):  # damaged, compressed again, or of a later version
        pass
    for member, name, advice in ZIPPED:
        if any(entry.startswith(member) for entry in names):
            return f"it is {name}; {advice}"
    if names and all(name.endswith(".npy") for name in names):
        return "it is NumPy arrays (.npz); convert them with numpy.load and numpy.savetxt"
    return f"it is a zip archive; {EXTRACT}"


def _wide_encoding(start: bytes) -> str | None:
    """Return the name of the encoding if the bytes are UTF-16 or UTF-32, with or without a mark."""
    if start.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    places = [start[offset::4].count(0) / max(len(start[offset::4]), 1) for offset in range(4)]
    for zeros, name in (
        ((0, 1, 1, 1), "utf-32-le"),
        ((1, 1, 1, 0), "utf-32-be"),
        ((0, 1, 0, 1), "utf-16-le"),
        ((1, 0, 1, 0), "utf-16-be"),
    ):
        if len(start) >= 8 and all(abs(place - zero) < 0.2 for place, zero in zip(places, zeros, strict=True)):
            return name
    return None


def check_text(paths: Sequence[Path], encoding: str | None = None) -> None:
    """Raise KlrBenchError if a file is not a table of text, but a spreadsheet or an archive.

    Raises DamagedFileError for damaged files.
    """
    for path in paths:
        if reason := foreign_format(path, encoding):
            fail(f"{path}: expected svmlight or CSV text, plain or compressed with xz, gzip or bzip2, but {reason}.")


def detect_format(path: Path, encoding: str | None = None) -> str:
    """Detect the format of a text file: "svmlight" or "csv".

    It is "svmlight" if most of the first rows contain ``index:value`` pairs, and not a date and a clock time, or clock
    times or ratios below a header.  Comments, and LIBSVM rows without features, do not count.
    """
    with open_utf8(path, encoding) as stream:
        content = (line.removeprefix(BOM_UTF8).partition(b"#")[0].split(None, 3)[:3] for line in lines(stream, path))
        rows = [*islice((row for row in content if len(row) > 1 or (row and re.search(rb"[,;|]", row[0]))), 100)]
    tokens = [row for row in rows if len(row) > 1]
    pairs = [
        (first, *others)
        for first, *others in tokens
        if all(re.fullmatch(rb"(\d+|qid):[^:,;|]*", token) for token in others) and not _ends_with_date(first)
    ]
    if tokens and not any(b":" in token for token in tokens[0]):
        return "csv"  # a header
    return "svmlight" if 2 * len(pairs) > len(tokens) else "csv"


def _ends_with_date(token: bytes) -> bool:
    *_, field = re.split(rb"[,;|]", token)
    return date_form(field.strip(b'"').decode("utf-8", "replace")) is not None

"""Convert Excel workbooks and Parquet files to CSV text.

pandas needs openpyxl and pyarrow for them.
"""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from klr_bench.datasets.columns import CATEGORY, DATES, STRING


class WorkbookError(Exception):
    """Raised if a workbook or a Parquet file cannot be read."""


EXCEL, PARQUET = b"PK\x03\x04", b"PAR1"
LIBRARIES = {EXCEL: "openpyxl", PARQUET: "pyarrow"}
"""Libraries by the first bytes of the files that they read."""
MOST_RATIO, SMALLEST_BOMB = 200, 1 << 23
"""Maximum ratio of the unpacked size to the size of a file, and the size to which any file may grow."""


def library_of(path: Path, start: bytes) -> str | None:
    """Return the library that reads a file with these first bytes: openpyxl, pyarrow or None."""
    if start.startswith(EXCEL):
        with suppress(OSError, zipfile.BadZipFile, ValueError), zipfile.ZipFile(path) as archive:
            return LIBRARIES[EXCEL] if "xl/workbook.xml" in archive.namelist() else None
        return None
    if not start.startswith(PARQUET):
        return None
    with path.open("rb") as file:  # a text may begin in this way, too
        file.seek(-len(PARQUET), io.SEEK_END)
        return LIBRARIES[PARQUET] if file.read() == PARQUET else None


def as_csv(path: Path, start: bytes) -> bytes | None:
    """Return the first sheet of a workbook, or a Parquet file, as CSV text in UTF-8.

    Return None for other files, and if the library is not installed.  Raises WorkbookError if the file cannot be read.
    """
    library = library_of(path, start)
    if library is None or find_spec(library) is None:
        return None
    status = path.stat()
    return _converted(path, library, (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=2)
def _converted(path: Path, library: str, state: tuple[int, int]) -> bytes:
    """Convert a file.

    `state` are its time and size: a changed file is converted again.
    """
    import pandas as pd

    most, text = max(SMALLEST_BOMB, MOST_RATIO * state[1]), io.StringIO()
    try:
        if library == LIBRARIES[EXCEL]:
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
        else:
            import pyarrow.parquet

            about = pyarrow.parquet.read_metadata(path)
            size = about.num_rows * about.num_columns
        if size > most:
            message = f"its content is more than {MOST_RATIO} times its size; save it as CSV"
            raise WorkbookError(message)
        if library == LIBRARIES[EXCEL]:  # lines above the header are text; texts such as NA stay texts
            sheet = pd.read_excel(path, header=None, dtype=object, keep_default_na=False, engine="openpyxl")
            sheet.to_csv(text, header=False, index=False)
        else:  # by nullable types, because a whole number beside a missing one would become a float
            table = pd.read_parquet(path, engine="pyarrow", dtype_backend="numpy_nullable")
            table.to_csv(text, index=False)
    except WorkbookError:
        raise
    except Exception as error:  # damaged files raise exceptions of many kinds
        message = f"truncated or corrupted ({type(error).__name__}: {error})"
        raise WorkbookError(message) from error
    return text.getvalue().encode()


def declared_types(path: Path | None) -> dict[str, str]:
    """Return the types CATEGORY, STRING or DATES of columns of a Parquet file.

    Their names are the keys.  The result is empty for other files.
    """
    if path is None or find_spec(LIBRARIES[PARQUET]) is None:
        return {}
    try:
        with path.open("rb") as file:
            library = library_of(path, file.read(len(PARQUET)))
    except OSError:  # a file that is gone is refused where its rows are read
        return {}
    if library != LIBRARIES[PARQUET]:
        return {}
    import pyarrow.parquet
    from pyarrow import types

    declared = {}
    for column in pyarrow.parquet.read_schema(path):
        if types.is_dictionary(column.type) or types.is_boolean(column.type):
            declared[column.name] = CATEGORY
        elif types.is_string(column.type) or types.is_large_string(column.type):
            declared[column.name] = STRING
        elif types.is_timestamp(column.type) or types.is_date(column.type):
            declared[column.name] = DATES
    return declared

"""Convert Excel workbooks and Parquet files to CSV text.

pandas needs openpyxl and pyarrow for them.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from klr_bench.datasets.cache import State, state_of
from klr_bench.datasets.columns import CATEGORY, DATES, STRING
from klr_bench.errors import fail


class WorkbookError(Exception):
    """Raised if a workbook or a Parquet file cannot be read."""


EXCEL, PARQUET = b"PK\x03\x04", b"PAR1"
LIBRARIES = {EXCEL: "openpyxl", PARQUET: "pyarrow"}
"""Libraries by the first bytes of the files that they read."""
MOST_RATIO, SMALLEST_BOMB = 200, 1 << 23
"""Maximum ratio of the unpacked size to the size of a file, and the size to which any file may grow."""
MOST_ROWS, CELL = 1 << 20, 8
"""Maximum number of rows of a sheet, and number of bytes that an empty cell takes."""


def library_of(path: Path, start: bytes) -> str | None:
    """Return the library that reads a file with these first bytes: openpyxl, pyarrow or None."""
    if start.startswith(EXCEL):
        with suppress(OSError, zipfile.BadZipFile, ValueError, RuntimeError), zipfile.ZipFile(path) as archive:
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
    return _converted(path.resolve(), library, state_of(path))


@lru_cache(maxsize=2)
def _converted(path: Path, library: str, state: State) -> bytes:
    """Convert a file, unless it has been converted and has not changed since."""
    import pandas as pd

    most, text = max(SMALLEST_BOMB, MOST_RATIO * state[0]), io.StringIO()
    try:
        if library == LIBRARIES[EXCEL]:
            with zipfile.ZipFile(path) as archive:
                _check_size(sum(member.file_size for member in archive.infolist()), most)
            with pd.ExcelFile(path, engine="openpyxl") as book:
                _check_sheet(book.book.worksheets[0], most)
                # Lines above the header are text; texts such as NA stay texts.
                sheet = pd.read_excel(book, header=None, dtype=object, keep_default_na=False)
            sheet.to_csv(text, header=False, index=False)
        else:
            _check_parquet(path, most)
            # With other types, integers in a column with missing values would become floats.
            table = pd.read_parquet(path, engine="pyarrow", dtype_backend="numpy_nullable")
            table = table if set(table.index.names) == {None} else table.reset_index()
            table.to_csv(text, index=False)
    except WorkbookError:
        raise
    except Exception as error:  # damaged files raise exceptions of many kinds
        message = f"truncated or corrupted ({type(error).__name__}: {error})"
        raise WorkbookError(message) from error
    return text.getvalue().encode()


def _check_size(size: int, most: int) -> None:
    if size > most:
        message = f"its content is more than {MOST_RATIO} times its size; save it as CSV"
        raise WorkbookError(message)


def _check_sheet(sheet: Any, most: int) -> None:
    """Raise WorkbookError if a sheet has so many empty cells that they would fill the memory."""
    width = 0
    sheet.reset_dimensions()  # the declared ones may be wrong
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        width = max([width, *(place for place, value in enumerate(row, 1) if value is not None)])
        if number > MOST_ROWS or number * width * CELL > most:
            message = (
                f"its first sheet has cells as far as row {number:,} and column {width:,}, most of them empty; delete "
                "the rows and columns that are not part of the table, or save it as CSV"
            )
            raise WorkbookError(message)


def _check_parquet(path: Path, most: int) -> None:
    """Raise WorkbookError if the values of a Parquet file are too large.

    They may be stored once for many rows.
    """
    import pyarrow.compute
    import pyarrow.parquet
    from pyarrow import types

    with pyarrow.parquet.ParquetFile(path) as file:
        about, schema = file.metadata, file.schema_arrow
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    _check_size(sum(group.total_byte_size for group in groups), most)
    _check_size(sum(group.column(place).num_values for group in groups for place in range(about.num_columns)), most)
    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_dictionary)
    names = [column.name for column in schema if any(is_kind(column.type) for is_kind in kinds)]
    size = 0
    for column in pyarrow.parquet.read_table(path, columns=names, read_dictionary=names).columns:
        for part in column.chunks:
            values = getattr(part, "dictionary", None)
            if values is not None and not types.is_primitive(values.type):
                lengths = pyarrow.compute.binary_length(values).take(part.indices)
                size += pyarrow.compute.sum(lengths).as_py() or 0
    _check_size(size, most)


def is_parquet(path: Path) -> bool:
    """Return True for a Parquet file, if it can be read here."""
    if find_spec(LIBRARIES[PARQUET]) is None:
        return False
    try:
        with path.open("rb") as file:
            return library_of(path, file.read(len(PARQUET))) == LIBRARIES[PARQUET]
    except OSError:  # a file that is gone is refused where its rows are read
        return False


def declared_types(path: Path | None, used: Collection[str]) -> dict[str, str]:
    """Return the types CATEGORY, STRING or DATES of columns of a Parquet file.

    Their names are the keys.  The result is empty for other files.  Raises KlrBenchError if a column that is used
    contains lists, structures, bytes or durations.
    """
    if path is None or not is_parquet(path):
        return {}
    import pyarrow.parquet
    from pyarrow import types

    refused = types.is_nested, types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_duration
    declared = {}
    for column in pyarrow.parquet.read_schema(path):
        name = column.name.strip()  # as `fields_of` reads it
        if types.is_dictionary(column.type) or types.is_boolean(column.type):
            declared[name] = CATEGORY
        elif types.is_string(column.type) or types.is_large_string(column.type):
            declared[name] = STRING
        elif types.is_timestamp(column.type) or types.is_date(column.type):
            declared[name] = DATES
        elif name in used and any(is_kind(column.type) for is_kind in refused):
            fail(
                f"{path}: column {name!r} contains values of the type {column.type}; expected numbers, texts, truth "
                "values or dates. Convert the column, or leave it out."
            )
    return declared

"""From the files of a results folder to typed values: each number, name and mapping is checked when it is read."""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klr_bench.config.locations import folders, names
from klr_bench.errors import KlrBenchError, nearest
from klr_bench.files import LARGEST_CSV, regular
from klr_bench.instantiate import Parameters
from klr_bench.metrics.labels import METRICS
from klr_bench.parsing import check_choice
from klr_bench.printing import is_file_name, shortened
from klr_bench.report.manifest import Manifest, read_manifest
from klr_bench.results.migrate import algorithm_name
from klr_bench.results.record import (
    ANY,
    COLUMNS,
    LATER,
    LONGEST_MESSAGE,
    NAMES,
    RANGES,
    RELIABILITY_COLUMNS,
    ROWS_COLUMNS,
    STATUSES,
    TRACE_COLUMNS,
    possible,
)
from klr_bench.results.store import read_variant
from klr_bench.results.variants import Variant, is_variant

if TYPE_CHECKING:
    import pandas as pd

REBUILD = "Run the experiment again to rebuild it from its cells; nothing finished is computed twice."
LONGEST_HEADER = 100_000
"""Bytes of the first line of a table."""


Texts = tuple[Sequence[str], Sequence[Sequence[str]]]


@dataclass(frozen=True)
class Results:
    """A results folder: its manifest, and a frame for each of its files; empty frames for files that there are not."""

    manifest: Manifest
    records: pd.DataFrame
    """A row a cell: `variant` holds Variants, `params` dicts, metrics are float64 (NaN where there is none)."""
    traces: pd.DataFrame
    reliability: pd.DataFrame
    rows: pd.DataFrame
    texts: Texts = ((), ())
    """The names of the columns of records.csv, and its rows as they stand there."""
    folder: Path | None = None


def was_run(folder: Path) -> bool:
    """Say whether a folder holds the records of an experiment."""
    return (folder / "records.csv").is_file()


def load_results(folder: str | Path, file: str = "records") -> pd.DataFrame:
    """Return a file of a results folder as a pandas frame, each value of the type that it was written as.

    Every number is checked: it must be in the range of its column.  Columns that an experiment has not measured are
    NaN.

    Parameters
    ----------
    folder : str or Path
        ``results/<experiment>``, or a folder of ``results/reference``.
    file : {"records", "traces", "reliability", "rows"}, default="records"
        "records" has one row per fit: names, ``variant`` (a mapping that can be grouped by), ``params`` (a dict) and
        metrics as float64, rates as fractions and times in seconds, NaN where there is none; "traces" one row per
        number at a checkpoint, "reliability" one row per bin of predicted probabilities, "rows" training rows of data
        in the plane.

    Returns
    -------
    DataFrame
        The rows of the file in their order; no rows where the folder has no such file, but for "records".

    Raises
    ------
    KlrBenchError
        If the folder has no records, if ``file`` is none of the four, or if a value is not what it should be.

    Examples
    --------
    >>> from klr_bench import load_results
    >>> records = load_results("results/reference/oskl_magic")
    >>> means = records.groupby(["algorithm", "variant"], sort=False)["accuracy"].mean()
    >>> bool(means.max() > 0.85)
    True
    """
    files = [field.name for field in fields(Results) if field.name not in ("manifest", "texts", "folder")]
    check_choice("file", file, files)
    frame: pd.DataFrame = getattr(read_results(Path(folder)), file)
    return frame


def read_results(folder: Path) -> Results:
    """Return what a results folder holds.

    KlrBenchError where it has no records, and where a value of any of its files is not of the declared type.
    """
    path = folder / "records.csv"
    if not os.path.lexists(path):
        others = [path.parent.name for path in folder.parent.glob("*/records.csv")]
        known = names("experiment", folders())
        advice = f" Make it with: klr-bench run experiment={folder.name}."
        if folder.name not in known:
            advice = f" There is no experiment of this name.{nearest(folder.name, others or known)}"
        message = f"{folder}: no records.csv there.{advice}"
        raise KlrBenchError(message)
    manifest, texts = read_manifest(folder), read_texts(path)
    optional = [name for name in (*METRICS, *LATER) if name in COLUMNS]
    records = _frame(path, texts, COLUMNS, optional, others=True)
    if records.empty:
        message = f"{path}: no rows in it. Make some with: klr-bench run experiment={folder.name}."
        raise KlrBenchError(message)
    for columns in (["key"], ["dataset", "algorithm", "variant", "repeat"]):
        again = records.duplicated(columns)
        if again.any():
            what = ", ".join(columns)
            message = f"{path}: row {again.argmax() + 1}: expected another {what} in each row, got one again. {REBUILD}"
            raise KlrBenchError(message)
    if manifest.schema_version == 1:
        records["algorithm"] = records["algorithm"].map(algorithm_name)
    traces = _read_if_there(folder / "traces.csv", TRACE_COLUMNS)
    for row, (name, value) in enumerate(zip(traces["metric"], traces["value"], strict=True), 1):
        if not possible(name, value):
            expected = f"{RANGES.get(name, ANY).range} for {name}"
            message = f"{folder / 'traces.csv'}: row {row}, value: expected {expected}, got {value!r}. {REBUILD}"
            raise KlrBenchError(message)
    bins, rows = (
        _read_if_there(folder / f"{name}.csv", columns)
        for name, columns in (("reliability", RELIABILITY_COLUMNS), ("rows", ROWS_COLUMNS))
    )
    return Results(manifest, records, traces, bins, rows, texts, folder)


def _read_if_there(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return _frame(path, read_texts(path), columns) if os.path.lexists(path) else pd.DataFrame(columns=list(columns))


def _frame(
    path: Path, texts: Texts, columns: Sequence[str], optional: Sequence[str] = (), *, others: bool = False
) -> pd.DataFrame:
    """Return a file as a frame whose columns are of the declared types.

    With `others`, columns besides the declared ones are metrics of the user's own estimators.
    """
    import pandas as pd

    header, rows = texts
    expected = f"{path}: expected the columns {', '.join(columns)}, got "
    missing = [name for name in columns if name not in header and name not in optional]
    if missing:
        message = f"{expected}{shortened(', '.join(header), 500)}: no {', '.join(missing)}. {REBUILD}"
        raise KlrBenchError(message)
    more = [name for name in header if name not in columns] if others else []
    absent = [name for name in optional if name not in header]
    for name in more:
        if difflib.get_close_matches(name, absent):
            message = f"{expected}{name!r}.{nearest(name, absent)} {REBUILD}"
            raise KlrBenchError(message)
    places = {name: place for place, name in enumerate(header)}
    names = [*columns, *more]
    found = {name: [row[places[name]] for row in rows] if name in places else [""] * len(rows) for name in names}
    return pd.DataFrame({name: _column(column, name, path) for name, column in found.items()}, columns=names)


def read_texts(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns of a CSV file, and its rows, each with as many texts.

    KlrBenchError for what is no such file.
    """
    try:
        with regular(path, LARGEST_CSV) as file:
            if len(file.readline(LONGEST_HEADER)) == LONGEST_HEADER:
                message = f"{path}: expected a header of at most {LONGEST_HEADER:,} bytes, got more. {REBUILD}"
                raise KlrBenchError(message)
            file.seek(0)
            rows = csv.reader(io.TextIOWrapper(file, encoding="utf-8", newline=""), strict=True)
            header, *others = [row for row in rows if row] or [[]]
    except (ValueError, csv.Error) as error:  # ValueError: no UTF-8
        reason = shortened(str(error).strip(), 200)
        message = f"{path}: expected a table with a header, got something else ({reason}). {REBUILD}"
        raise KlrBenchError(message) from error
    if len(set(header)) < len(header) or not header:
        got = "a column that comes twice" if header else "an empty file"
        message = f"{path}: expected a table with a header, got {got}. {REBUILD}"
        raise KlrBenchError(message)
    for number, row in enumerate(others, 1):
        if len(row) != len(header):
            message = f"{path}: row {number}: expected {len(header)} values, got {len(row):,}. {REBUILD}"
            raise KlrBenchError(message)
    return header, others


def _column(texts: Iterable[str], name: str, path: Path) -> pd.Series[Any]:
    """Parse the values of a column; KlrBenchError names the row of one that is not of its type."""
    import pandas as pd

    parse, expected, kind = COLUMN_TYPES.get(name) or _number_of(name)
    values = []
    for row, text in enumerate(texts, 1):
        try:
            values.append(parse(text))
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            message = f"{path}: row {row}, {name}: expected {expected}, got {text[:80]!r}. {REBUILD}"
            raise KlrBenchError(message) from error
    return pd.Series(values, dtype=kind)


def _number(text: str) -> float:
    """The built-in float, unlike the fast parsers, gives back what repr wrote."""
    value = float(text) if text else math.nan
    if text and (math.isnan(value) or "_" in text or not text.isascii()):
        raise ValueError(text)
    return value


def _number_of(column: str) -> Reader:
    """Return what parses the numbers of a column, which must be in its range; a missing metric is NaN."""
    needed = column in RANGES.keys() - METRICS.keys() - {"seed"}

    def number(text: str) -> float:
        value = _number(text)
        if (text or needed) and not possible(column, value):
            raise ValueError(text)
        return value

    return number, RANGES.get(column, ANY).range, "float64"


def _name(text: str) -> str:
    """A name may become part of the name of a file."""
    if not is_file_name(text):
        raise ValueError(text)
    return text


def _status(text: str) -> str:
    if text not in STATUSES:
        raise ValueError(text)
    return text


def _message(text: str) -> str:
    """Any text; what is not printable, such as a colour of a terminal, is left out."""
    words = " ".join(shortened(text, LONGEST_MESSAGE).split())
    return "".join(character for character in words if character.isprintable())


def _variant(text: str) -> Variant:
    variant = read_variant(text)
    if (text and "=" not in text and not text.startswith("{")) or not is_variant(variant):
        raise ValueError(text)
    return variant


def _params(text: str) -> Parameters:
    values = json.loads(text) if text else {}
    if not isinstance(values, dict):
        raise ValueError(text)
    return values


Reader = tuple[Callable[[str], Any], str, str]
"""What parses a text, what it expects in words, and the type of the column."""

COLUMN_TYPES: dict[str, Reader] = {
    **dict.fromkeys(NAMES, (_name, "a name without slashes", "object")),
    "status": (_status, " or ".join(STATUSES), "object"),
    **dict.fromkeys(("message", *LATER), (_message, "text", "object")),
    "variant": (_variant, 'a variant such as {"G": 1}', "object"),
    "params": (_params, 'parameters such as {"G": 1}', "object"),
}
"""Of the columns that do not hold numbers."""

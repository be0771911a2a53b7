"""Read results folders, and check every value, name and mapping in them."""

from __future__ import annotations

import csv
import io
import json
import logging
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from klr_bench.config.locations import folders, names
from klr_bench.errors import fail, nearest
from klr_bench.files import LARGEST_CSV, regular
from klr_bench.metrics.labels import METRICS
from klr_bench.parsing import check_choice
from klr_bench.printing import is_file_name, no_formula, shortened
from klr_bench.report.manifest import Manifest, read_manifest
from klr_bench.results import record
from klr_bench.results.row_cache import Row
from klr_bench.results.store import Store, damaged_cells
from klr_bench.results.variants import is_variant, read_variant

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

REBUILD = "Run the experiment again to rebuild the file from its cells; finished work is not repeated."
FILES = {"traces": record.TRACE_COLUMNS, "reliability": record.RELIABILITY_COLUMNS, "rows": record.ROWS_COLUMNS}
"""Columns of the optional files in a results folder."""
LAG_S, REBUILD_S = 600.0, 10.0
"""Maximum seconds between the end of a fit and the storing of its cell, and of a rebuild of the tables."""
EXPECTED = {
    **dict.fromkeys(record.NAMES, "a name without slashes"),
    "status": " or ".join(record.STATUSES),
    **dict.fromkeys(record.TEXTS, "text"),
    "variant": 'a variant such as {"G": 1}',
    "params": 'parameters such as {"G": 1}',
}
"""Non-numeric columns and a description of their valid values, used in messages."""
Texts = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Header and rows of a CSV file."""


@dataclass(frozen=True)
class Results:
    """Content of a results folder: the manifest, and one data frame per CSV file.

    A missing file is an empty data frame.
    """

    manifest: Manifest
    records: pd.DataFrame
    """One row per cell, with `Variant` objects in `variant`, dicts in `params`, and metrics as float64."""
    traces: pd.DataFrame
    reliability: pd.DataFrame
    rows: pd.DataFrame
    texts: Texts = ((), ())
    """The unparsed content of records.csv."""
    folder: Path | None = None
    over: Sequence[str] = ()
    """The settings of a sweep by which the combined runs differ."""


def load_results(folder: str | Path, file: str = "records") -> pd.DataFrame:
    """Load one file of a results folder as a data frame with typed values.

    Every number is in the range of its column, else KlrBenchError is raised.  Metrics that were not measured are NaN.

    Parameters
    ----------
    folder : str or Path
        ``results/<experiment>``, or a folder of ``results/reference``.
    file : {"records", "traces", "reliability", "rows"}, default="records"
        "records" has one row per fit: names, ``variant`` (a mapping that can be grouped by), ``params`` (a dict) and
        metrics as float64, rates as fractions and times in seconds; "traces" one row per number at a checkpoint,
        "reliability" one row per bin of predicted probabilities, "rows" training rows of data in the plane.  Except
        for "records", a file that does not exist gives an empty frame.

    Examples
    --------
    >>> from klr_bench import load_results
    >>> records = load_results("results/reference/oskl_magic")
    >>> means = records.groupby(["algorithm", "variant"], sort=False)["accuracy"].mean()
    >>> bool(means.max() > 0.85)
    True
    """
    check_choice("file", file, ["records", *FILES])
    frame: pd.DataFrame = getattr(read_results(Path(folder)), file)
    return frame


def read_results(folder: Path) -> Results:
    """Read a results folder.

    Raises KlrBenchError if records are missing or a value is invalid.
    """
    path = folder / "records.csv"
    if not os.path.lexists(path):
        others = [other.parent.name for other in folder.parent.glob("*/records.csv")]
        experiments = names("experiment", folders())
        advice = f"Run it with: klr-bench run experiment={folder.name}"
        if folder.name not in experiments:
            advice = f"There is no experiment of this name.{nearest(folder.name, others or experiments)}"
        fail(f"{folder}: no records.csv there. {advice}")
    manifest, texts = read_manifest(folder), read_texts(path)
    more = [name for name in texts[0] if name not in record.COLUMNS]  # a user's own estimators may add metrics
    records = _frame(path, texts, [*record.COLUMNS, *more])
    if records.empty:
        fail(f"{path}: the file has no rows. Create them with: klr-bench run experiment={folder.name}")
    for identity in (["key"], ["dataset", "algorithm", "variant", "repeat"]):
        again = records.duplicated(identity)
        if again.any():
            _refuse(path, int(again.argmax()) + 1, "", f"another {', '.join(identity)} in each row", "one again")
    cells = _compare_with_cells(folder, texts, {*manifest.configurations.values()})
    frames = {}
    for name, columns in FILES.items():
        path = folder / f"{name}.csv"
        parts = read_texts(path) if os.path.lexists(path) else (columns, ())
        frames[name] = _frame(path, parts, columns)
        if os.path.lexists(path):
            _compare_parts(path, parts, {cell.key: getattr(cell, name) for cell in cells})
    for row, (name, value) in enumerate(zip(frames["traces"]["metric"], frames["traces"]["value"], strict=True), 1):
        if not record.possible(name, value):
            expected = f"{record.RANGES.get(name, record.ANY).range} for {name}"
            _refuse(folder / "traces.csv", row, "value", expected, repr(value))
    traces, reliability, rows = (frames[name] for name in FILES)
    return Results(manifest, records, traces, reliability, rows, texts, folder)


def read_runs(folders: Iterable[Path]) -> pd.DataFrame:
    """Return the records of several runs as one frame that can be written to a file.

    Column `run` is the name of a run's folder; `variant` and `params` are JSON.  Raises the errors of `read_results`.
    """
    import pandas as pd

    frames = []
    for folder in folders:
        records = read_results(folder).records
        texts = {name: [json.dumps(dict(values)) for values in records[name]] for name in ("variant", "params")}
        texts |= {name: [no_formula(text) for text in records[name]] for name in ("dataset", *record.TEXTS)}
        records = records.assign(**texts)
        records.insert(0, "run", no_formula(folder.resolve().name))
        frames.append(records)
    return pd.concat(frames, ignore_index=True)


def _compare_with_cells(folder: Path, texts: Texts, current: Collection[str]) -> list[Row]:
    """Raise KlrBenchError if records.csv contradicts existing cells: a row differs or is absent.

    Return the listed cells.  `current` has the hashes of the configurations that must be listed.  Damaged cells, and
    rows without a cell, are named in a warning, since these rows cannot be compared.  Cells that were stored after the
    table, as during a run, are not compared.
    """
    store, path = Store(folder), folder / "records.csv"
    if not store.cells.is_dir():
        return []
    header, rows = texts
    written = path.stat().st_mtime
    cells, unreadable = store.rows()
    by_key, listed = {cell.key: cell for cell in cells if not _is_newer(store, cell, written)}, set()
    keys = [row[header.index("key")] for row in rows]
    for number, (key, row) in enumerate(zip(keys, rows, strict=True), 1):
        if key not in by_key:
            continue
        listed.add((by_key[key].method, by_key[key].config_hash))
        stored = by_key[key].texts()
        for name, text in zip(header, row, strict=True):
            expected = stored.get(name, text)  # a column that was added by hand
            _compare(path, number, name, text, expected, key)
    present = set(keys)
    for cell in by_key.values():
        is_required = (cell.method, cell.config_hash) in listed or cell.config_hash in current
        if is_required and cell.key not in present and not _is_newer(store, cell, written - REBUILD_S):
            fail(f"{path}: expected a row for cells/{cell.key}.json, got none. {REBUILD}")
    if unreadable:
        logger.warning("%s: %s Their rows of records.csv cannot be verified.", folder, damaged_cells(unreadable))
    elif without := len(present - {cell.key for cell in cells}):
        logger.warning("%s: %d rows of records.csv cannot be verified, because they have no cell.", folder, without)
    return [by_key[key] for key in keys if key in by_key]


def _compare_parts(path: Path, parts: Texts, cells: Mapping[str, str]) -> None:
    """Raise KlrBenchError if the rows of a table differ from those of the cells.

    `cells` has the rows of each cell as CSV.
    """
    header, rows = parts
    by_key: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        by_key.setdefault(row[header.index("key")], []).append(number)
    for key, text in cells.items():
        numbers, stored = by_key.get(key, []), list(csv.reader(io.StringIO(text, newline="")))
        if len(numbers) != len(stored):
            fail(f"{path}: expected {len(stored):,} rows for cells/{key}.json, got {len(numbers):,}. {REBUILD}")
        for number, expected in zip(numbers, stored, strict=True):
            if rows[number] != expected:
                fields = dict(zip(header, rows[number], strict=True))
                for name, value in zip(FILES[path.stem], expected, strict=True):
                    _compare(path, number + 1, name, fields[name], value, key)


def _compare(path: Path, row: int, column: str, text: str, expected: str, key: str) -> None:
    """Raise KlrBenchError if the text in a field does not have the value that its cell has."""
    if text != expected and repr(_value(column, text)) != repr(_value(column, expected)):
        _refuse(path, row, column, f"{expected!r} as in cells/{key}.json", repr(text[:80]))


def _is_newer(store: Store, cell: Row, written: float) -> bool:
    """Return True for a cell that was stored later than `written`, in seconds since 1970.

    The files of a copied folder have new times; the time at which a cell was computed stays.
    """
    try:
        return cell.created > written - LAG_S and os.path.getmtime(store.cells / f"{cell.key}.json") > written
    except FileNotFoundError:
        return True


def read_texts(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of a CSV file.

    Raises KlrBenchError if the file is not a table.
    """
    try:
        with regular(path, LARGEST_CSV) as file:
            lines = csv.reader(io.TextIOWrapper(file, encoding="utf-8", newline=""), strict=True)
            header, *rows = [line for line in lines if line] or [[]]
    except (ValueError, csv.Error) as error:  # ValueError: not UTF-8
        reason = shortened(str(error).strip(), 200)
        fail(f"{path}: expected a table with a header, got a file that cannot be parsed ({reason}). {REBUILD}")
    if not header or len(set(header)) < len(header):
        got = "a column twice" if header else "an empty file"
        fail(f"{path}: expected a table with a header, got {got}. {REBUILD}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            _refuse(path, number, "", f"{len(header)} values", f"{len(row):,}")
    return header, rows


def _frame(path: Path, texts: Texts, columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    header, rows = texts
    missing = [name for name in columns if name not in header and name not in METRICS]
    if missing:
        got = shortened(", ".join(header), 500)
        fail(f"{path}: expected the columns {', '.join(columns)}, got {got} (missing: {', '.join(missing)}). {REBUILD}")
    frame = {}
    for name in columns:
        place = header.index(name) if name in header else None
        expected = EXPECTED.get(name) or record.RANGES.get(name, record.ANY).range
        fields = [""] * len(rows) if place is None else [row[place] for row in rows]
        values = {}
        for text in dict.fromkeys(fields):
            try:
                values[text] = _value(name, text)
            except (ValueError, TypeError, RecursionError, OverflowError):
                _refuse(path, fields.index(text) + 1, name, expected, repr(text[:80]))
        frame[name] = pd.Series([values[text] for text in fields], dtype="object" if name in EXPECTED else "float64")
    return pd.DataFrame(frame)


def _value(column: str, text: str) -> Any:
    """Convert the string in one field to its value.

    Raises ValueError, TypeError, RecursionError or OverflowError if the string is invalid.
    """
    value: Any = text
    if column not in EXPECTED:
        value = float(text) if text else math.nan  # float() is exact, unlike the fast parsers of pandas
        is_metric = column in METRICS or column not in record.RANGES
        may_be_empty = is_metric or column == "seed"
        valid = may_be_empty if not text else text.isascii() and "_" not in text and record.possible(column, value)
    elif column in record.NAMES:
        valid = is_file_name(text)
    elif column == "status":
        valid = text in record.STATUSES
    elif column == "variant":
        value = read_variant(text)
        valid = is_variant(value)
    elif column == "params":
        value = json.loads(text) if text else {}
        valid = isinstance(value, dict)
    else:
        value, valid = "".join(filter(str.isprintable, " ".join(shortened(text, record.LONGEST_MESSAGE).split()))), True
    if not valid:
        raise ValueError(text)
    return value


def _refuse(path: Path, row: int, column: str, expected: str, got: str) -> NoReturn:
    place = f"row {row}, {column}" if column else f"row {row}"
    fail(f"{path}: {place}: expected {expected}, got {got}. {REBUILD}")

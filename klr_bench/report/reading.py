"""From the files of a results folder to frames, with the schema checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.experiment.records import (
    COLUMNS,
    RELIABILITY_COLUMNS,
    ROWS_COLUMNS,
    SCHEMA_VERSION,
    TEXT_COLUMNS,
    TRACE_COLUMNS,
    Store,
    read_variant,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

REBUILD = "Run the experiment again to rebuild it from its cells; nothing finished is computed twice."


def read_records(path: Path) -> pd.DataFrame:
    """Return a records.csv as a frame: the text columns as str, the others as float64 (NaN where empty).

    Raises KlrBenchError where there is no such file, or where its columns, its numbers or the schema
    version in the manifest beside it are not those of this version of klr-bench.
    """
    found = Store(path.parent).read_manifest().get("schema_version", SCHEMA_VERSION)
    if found not in (1, SCHEMA_VERSION):
        message = (
            f"{path}: written with schema version {found}, this klr-bench reads version {SCHEMA_VERSION}. "
            "Use the klr-bench that wrote it, or run the experiment again with another results_dir."
        )
        raise KlrBenchError(message)
    return _read(path, COLUMNS)


def read_traces(path: Path) -> pd.DataFrame:
    """Return a traces.csv as a frame; empty where there is no such file."""
    return _read_if_there(path, TRACE_COLUMNS)


def read_reliability(path: Path) -> pd.DataFrame:
    """Return a reliability.csv as a frame; empty where there is no such file."""
    return _read_if_there(path, RELIABILITY_COLUMNS)


def read_rows(path: Path) -> pd.DataFrame:
    """Return a rows.csv as a frame; empty where there is no such file."""
    return _read_if_there(path, ROWS_COLUMNS)


def _read_if_there(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return _read(path, columns) if path.exists() else pd.DataFrame(columns=list(columns))


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror or error}). Run the experiment to make it."
        raise KlrBenchError(message) from error
    except ValueError as error:  # also what pandas raises for an empty file and for ragged rows
        message = f"{path}: expected a table with a header, got something else ({error}). {REBUILD}"
        raise KlrBenchError(message) from error
    for name in METRICS:
        if name in columns and name not in frame.columns:
            frame[name] = ""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        unknown = [name for name in frame.columns if name not in columns]
        message = (
            f"{path}: no column {', '.join(missing)}; schema version {SCHEMA_VERSION} has the columns "
            f"{', '.join(columns)}. Columns found beside these: {', '.join(unknown) or 'none'}. {REBUILD}"
        )
        raise KlrBenchError(message)
    for name in columns:
        if name == "variant":
            variants: list[Any] = [read_variant(text) for text in frame[name]]
            frame[name] = pd.Series(variants, index=frame.index, dtype=object)
        elif name not in (*TEXT_COLUMNS, "params", "metric"):
            frame[name] = _numbers(frame[name], path)
    return frame[list(columns)]


def _numbers(column: pd.Series[str], path: Path) -> list[float]:
    """Parse a column; the built-in float, unlike the fast parsers, gives back what repr wrote."""
    numbers = []
    for row, text in enumerate(column):
        try:
            numbers.append(float(text or "nan"))
        except ValueError as error:
            message = f"{path}: row {row + 1}, {column.name}: expected a number, got {text!r}. {REBUILD}"
            raise KlrBenchError(message) from error
    return numbers

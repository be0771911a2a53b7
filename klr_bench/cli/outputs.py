"""Outputs of commands: CSV tables, which may be compressed, models and folders."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from klr_bench.errors import fail, sanitize
from klr_bench.files import write_atomic

if TYPE_CHECKING:
    import pandas as pd

COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")
"""Endings of names of compressed files; pandas compresses and reads a table by them."""
TABLES = ("", ".csv", ".txt")
FILES = (
    *(".csv", ".feather", ".html", ".json", ".md", ".parquet", ".pdf", ".png", ".svg", ".tar", ".tex", ".tgz", ".tsv"),
    *(".txt", ".xls", ".xlsx", *COMPRESSED),
)
"""File name extensions that are refused for folders and models."""
OTHER_MODELS = (".joblib", ".onnx", ".pickle", ".pkl", *FILES)


def check_table(output: Path) -> None:
    """Raise KlrBenchError unless a table can be written with this name."""
    plain = output.with_suffix("") if output.suffix.lower() in COMPRESSED else output
    if plain.suffix.lower() not in TABLES:
        endings = ", ".join(f".csv{ending}" for ending in ("", *COMPRESSED))
        _refuse(output, f"the name of a CSV file ({endings})", plain)
    import pandas as pd

    try:
        _content(pd.DataFrame(), output)
    except ImportError as error:  # of the library for .zst
        fail(f"output={sanitize(output)}: cannot be compressed ({sanitize(error)}). Use .gz, .bz2, .xz or .zip.")


def write_table(table: pd.DataFrame, output: Path) -> None:
    """Write a table as CSV, compressed as the name says.  Raises KlrBenchError."""
    write_atomic(output, _content(table, output))


def check_model(output: Path) -> None:
    """Raise KlrBenchError if a name is that of a file other than a model file of skops."""
    if output.suffix.lower() in OTHER_MODELS:
        _refuse(output, "the name of a model file (.skops), which is compressed already", output)


def check_folder(key: str, output: Path) -> None:
    """Raise KlrBenchError if the name of a new folder is that of a file."""
    if output.suffix.lower() in FILES and not output.is_dir():
        _refuse(output, "the name of a folder", output, key)


def _refuse(output: Path, expected: str, named: Path, key: str = "output") -> None:
    fail(f"{key}={sanitize(output)}: expected {expected}, got {sanitize(repr(named.suffix))}.")


def _content(table: pd.DataFrame, output: Path) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, output.name)
        table.to_csv(path, index=False)
        return path.read_bytes()

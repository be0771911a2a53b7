"""Results folders for tests of the report, from a few rows."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from klr_bench.config.locations import config_dir
from klr_bench.console import PlainConsole
from klr_bench.report import report
from klr_bench.report.load import read_results
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.render import Document, show_all
from klr_bench.report.table import Table, results_table
from klr_bench.results.record import IDENTITY, Bin, CellFile, Checkpoint, Record
from klr_bench.results.store import Store
from klr_bench.results.variants import Variant

Make = Callable[..., Path]
REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
USUAL = {"name": "demo", "title": "Demo", "repeats": 1}
"""What a configuration has unless a test says otherwise."""
DATASET = {"source": {"format": "generated"}, "split": {"test_size": 0.2}}


def record(algorithm: str, variant: str, repeat: int, **values: Any) -> Record:
    """Return a record; `variant` as text such as "G=1; R=2", metrics among the values; None: no such metric."""
    fields: dict[str, Any] = {"key": f"{algorithm}-{variant}-{repeat}".replace("/", ":"), "status": "ok", "params": {}}
    fields |= {"experiment": "demo", "seed": None} | values
    metrics = {name: value for name, value in fields.items() if name not in IDENTITY and value is not None}
    identity = {name: value for name, value in fields.items() if name in IDENTITY}
    pairs = (pair.split("=") for pair in variant.split("; ") if pair)
    values = Variant({name: yaml.safe_load(value) for name, value in pairs})
    return Record(algorithm=algorithm, variant=values, repeat=repeat, metrics=metrics, **identity)


def write(
    folder: Path,
    rows: Sequence[Record],
    config: Mapping[str, Any],
    *,
    traces: Sequence[Checkpoint] = (),
    bins: Sequence[Bin] = (),
    **manifest: Any,
) -> Path:
    """Write a results folder with these rows, beside those that are there, and return it."""
    cells = [CellFile(row, f"c-{row.algorithm}-{dict(row.variant)}", 1.0, traces, bins) for row in rows]
    return write_cells(folder, cells, config, **manifest)


def configuration(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration in a manifest, with what a run always stores."""
    content = USUAL | changes
    datasets = {name: DATASET | entry for name, entry in content.get("datasets", {}).items()}
    algorithms = {name: {"estimator": {}} | entry for name, entry in content.get("algorithms", {}).items()}
    return content | {"datasets": datasets, "algorithms": algorithms}


def write_cells(folder: Path, cells: Iterable[CellFile], config: Mapping[str, Any], **manifest: Any) -> Path:
    """Write a results folder with these cells, beside those that are there, and return it."""
    store = Store(folder)
    for cell in cells:
        store.write_cell(cell)
    store.rebuild()
    content = {"experiment": folder.name, "config": configuration(config), "machine": {"cpu": "A CPU & co"}}
    store.write_manifest(content | manifest)
    return folder


def table(folder: Path, number: str | None = None) -> Table:
    """Return the table of a results folder."""
    return results_table(read_results(folder), number)


def shown(folder: Path, **options: Any) -> str:
    """Return what a report prints."""
    file = io.StringIO()
    report(folder, console=Console(file=file, **options))
    return file.getvalue()


@cache
def reproduction(paper: str) -> Reproduction:
    """Return a shipped paper with the references."""
    return Reproduction(paper, config_dir() / "paper" / paper, REFERENCE)


def printed(*documents: Document) -> str:
    """Return what is printed of some documents on a very wide console."""
    file = io.StringIO()
    show_all(documents, PlainConsole(file=file, width=400))
    return file.getvalue()


def quiet() -> Console:
    """Return a console whose output is discarded."""
    return Console(file=io.StringIO(), width=150)

"""The commands ``klr-bench data list``, ``fetch``, ``verify`` and ``info``.

The commands print to a console and return the exit status.  SciPy and scikit-learn are not imported, so listings are
fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import filesize
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from klr_bench.config import locations as config_files
from klr_bench.config.datasets import read_dataset
from klr_bench.config.models import DatasetConfig, LabelsFile
from klr_bench.datasets.cache import Progress as Callback
from klr_bench.datasets.download import UNKNOWN, cached_path, copy_path, fetch, files, verify
from klr_bench.datasets.identity import UndeclaredFile, identified
from klr_bench.errors import fail
from klr_bench.files import no_file


def datasets(config_dirs: Sequence[Path]) -> dict[str, DatasetConfig]:
    """Return the configurations of all data sets as a dictionary sorted by name."""
    return {name: read_dataset(name, config_dirs) for name in config_files.names("dataset", config_dirs)}


def _state(dataset: DatasetConfig, cache: Path) -> tuple[int, str]:
    paths = [_path(file, cache) for file in files(dataset)]
    present = [path for path in paths if no_file(path) is None]
    if not paths:
        state = "your own" if dataset.source.is_own_file else "built in"
    else:
        state = "not fetched" if not present else "fetched" if len(present) == len(paths) else "partly fetched"
    return sum(path.stat().st_size for path in present), state


def _path(entry: LabelsFile, cache: Path) -> Path:
    """Return the path of a file in the cache; of any of its contents without a declared hash."""
    copies = UndeclaredFile(entry, cache, None).copies() if entry.sha256 == UNKNOWN else []
    return next(iter(copies), cached_path(entry, cache))


def list_(config_dirs: Sequence[Path], cache: Path, console: Console) -> int:
    """Print a table of all data sets: number of rows and features, status, size in the cache."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)  # users copy the names
    table.add_column("data set")
    for heading in ("rows", "features"):
        table.add_column(heading, justify="right")
    table.add_column("state")
    for name, dataset in datasets(config_dirs).items():
        n_bytes, state = _state(dataset, cache)
        size = f", {filesize.decimal(n_bytes)}" if n_bytes else ""
        counts = _count(dataset.declared_rows()), _count(dataset.source.n_features)
        table.add_row(name, dataset.label or name, *counts, state + size)
    console.print(table)
    _print_line(console, f"cache: {cache}")
    return 0


def fetch_(names: Sequence[str], config_dirs: Sequence[Path], cache: Path, mirror: str | None, console: Console) -> int:
    """Fetch the files of the given data sets into the cache, and check the hashes of the files."""
    if not names:
        available = ", ".join(datasets(config_dirs))
        fail(f"klr-bench data fetch: expected the names of data sets, got none. Known data sets: {available}.")
    for name, dataset in {name: read_dataset(name, config_dirs) for name in names}.items():
        with progress(console) as report:
            entries = files(identified(dataset, cache=cache, mirror=mirror, progress=report))
            paths = [fetch(entry, cache=cache, mirror=mirror, progress=report) for entry in entries]
        for path in paths:
            _print_line(console, f"{name}: {path} ({filesize.decimal(path.stat().st_size)})")
        if not entries:
            _print_line(console, f"{name}: {_state(dataset, cache)[1]}, nothing to fetch")
    return 0


def verify_(
    names: Sequence[str], config_dirs: Sequence[Path], cache: Path, console: Console, mirror: str | None = None
) -> int:
    """Check the cached files and parsed arrays of the given data sets against stored hashes.

    A local file without a declared hash is compared with its content in the cache.  Return 2 if anything is corrupt,
    otherwise 0.  Without names, everything in the cache is checked.
    """
    from klr_bench.datasets import parsed
    from klr_bench.datasets.dataset import dataset_hash, parsed_folder

    selected = {name: read_dataset(name, config_dirs) for name in names} if names else datasets(config_dirs)
    with_files = {name: dataset for name, dataset in selected.items() if files(dataset)}
    states: list[tuple[str, str, Path]] = [
        (state, name, path)
        for name, dataset in with_files.items()
        for entry in files(dataset)
        for state, path in _states(entry, cache, mirror)
    ]
    present_data = {
        name: identified(dataset, cache=cache, mirror=mirror, fetching=False) for name, dataset in with_files.items()
    }
    folders = {parsed_folder(dataset_hash(name, dataset), cache) for name, dataset in present_data.items()}
    parent = parsed_folder("*", cache).parent
    present = sorted(path for path in parent.glob("*") if not path.suffix) if no_file(parent) == "is a folder" else []
    states += [(*parsed.verify(path), path) for path in present if not names or path in folders]
    for state, name, path in states:
        _print_line(console, f"{state:8} {name}: {path}")
    corrupt, changed = (sum(state == kind for state, _, _ in states) for kind in ("corrupt", "changed"))
    if changed:
        _print_line(console, f"Changed since they were fetched: {changed}. The next run uses their new content.")
    if corrupt:
        _print_line(console, f"Corrupt: {corrupt}. The next run, or klr-bench data fetch, replaces the corrupt files.")
    return 2 if corrupt else 0


def _states(entry: LabelsFile, cache: Path, mirror: str | None) -> list[tuple[str, Path]]:
    """Return the states and paths of the contents of a cached file, and of a changed local one."""
    if entry.sha256 != UNKNOWN:
        return [(verify(entry, cache=cache), cached_path(entry, cache))]
    file = UndeclaredFile(entry, cache, mirror)
    states = [("ok" if file.is_whole(path) else "corrupt", path) for path in file.copies()]
    states += [("changed", path) for path in file.changed()]
    return states or [("missing", file.plain)]


def info(name: str, config_dirs: Sequence[Path], cache: Path, console: Console, mirror: str | None = None) -> int:
    """Print the properties of a data set and the locations of its files."""
    dataset = read_dataset(name, config_dirs)
    source, values = dataset.source, dataset.model_dump()
    lines: list[tuple[str, object]] = [
        ("name", name),
        ("label", dataset.label or name),
        ("reference", dataset.reference),
        ("source", source.name),
        ("format", source.format),
        ("rows", _count(dataset.declared_rows())),
        ("features", _count(source.n_features)),
        *((key, values[key]) for key in ("parts", "positive", "only", "derive", "scale", "split")),
        ("generator", source.generator),
        ("state", _state(dataset, cache)[1]),
    ]
    for entry in files(dataset):
        path, place, here = cached_path(entry, cache), entry.url, None
        if entry.sha256 == UNKNOWN:
            file = UndeclaredFile(entry, cache, mirror)
            if content := file.present() or next(iter(file.fetched()), None):
                place, here = content.place, content.sha256
                path = copy_path(path, here) if here else path
        lines += [("file", path), ("from", place), ("sha256", entry.sha256), ("here", here)]
    for key, value in lines:
        if value not in (None, ""):
            _print_line(console, f"{key:10} {value}")
    return 0


@contextmanager
def progress(console: Console) -> Iterator[Callback]:
    """Yield a callback that shows progress: a bar on a terminal, otherwise one line per step."""
    if not console.is_terminal:
        printed: set[str] = set()

        def print_once(done: int, total: int | None, description: str) -> None:
            if description not in printed:
                printed.add(description)
                _print_line(console, description)

        yield print_once
        return
    columns = TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(done: int, total: int | None, description: str) -> None:
            if description not in tasks:
                tasks[description] = bar.add_task(description, total=total)
            bar.update(tasks[description], completed=done, total=total)

        yield show


def _print_line(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True)  # long paths are not wrapped


def _count(n: int | None) -> str:
    return "" if n is None else f"{n:,}"

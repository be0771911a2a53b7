"""Functions that run on a dask worker: check its code, locate the data, and run the task."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from klr_bench.datasets import dataset_hash, default_cache
from klr_bench.datasets.dataset import OWN_PATHS, fetched
from klr_bench.datasets.download import cached_path, files
from klr_bench.errors import KlrBenchError
from klr_bench.files import expanded, replace_file
from klr_bench.runner import machine
from klr_bench.runner.executors import Failure, call_safely
from klr_bench.runner.plan import Cell, Fold, Source, is_current

OTHER_CODE, NO_DATA = "other code", "no data"
"""Statuses of a task that a worker cannot run, because the worker's code differs or the data cannot be obtained."""


def run_here(item: Fold | Cell, call: partial[Any]) -> Any:
    """Run a call on a fold or cell with the data on this machine; return its result.

    `item` is the first argument of the call.  If this worker cannot run the call, return a Failure with the status
    OTHER_CODE or NO_DATA.
    """
    machine.follow(os.getppid())  # all workers on this machine have this parent
    try:
        has_same_code = is_current(item)
    except KlrBenchError as error:
        return Failure(
            OTHER_CODE,
            f"{error} Install the files and packages of the machine that started the run, and restart the worker.",
        )
    if not has_same_code:
        message = "the worker's code differs from the code of the run. Install the same code, and restart the worker."
        return Failure(OTHER_CODE, message)
    source = _local_source(item.source)
    try:
        fetched(source.spec, cache=source.cache, mirror=source.mirror, progress=None)
    except KlrBenchError as error:
        return Failure(NO_DATA, str(error))
    if source == item.source:
        return call_safely(call)
    local_item = replace(item, source=source)
    if isinstance(item, Cell):
        vars(local_item).update(config_hash=item.config_hash, key=item.key)  # keys must not depend on paths
    return call_safely(partial(call.func, local_item, *call.args[1:], **call.keywords))


def _local_source(source: Source) -> Source:
    """Return the data source of a task, with the paths of the files on this machine."""
    cache = source.cache if source.cache.is_dir() else default_cache()
    spec = source.spec
    if spec.source.is_own_file and not _has_own_files(source):
        paths = {key: str(cache / place) for key, place in _own_file_paths(source).items()}
        spec = spec.model_copy(update={"source": spec.source.model_copy(update=paths)})
    return source if (cache, spec) == (source.cache, source.spec) else replace(source, cache=cache, spec=spec)


def _has_own_files(source: Source) -> bool:
    """Return True if this machine has its own copy of the user's file, with the same content."""
    with suppress(KlrBenchError):
        return dataset_hash(source.stem, source.spec) == source.data_key
    return False


def _own_file_paths(source: Source) -> dict[str, Path]:
    """Return the paths of the user's files in a cache, keyed by their names in the spec."""
    paths = {key: path for key in OWN_PATHS if (path := getattr(source.spec.source, key))}
    return {key: Path("sent", source.data_key, key, Path(path).name) for key, path in paths.items()}


def files_to_send(source: Source) -> dict[Path, Path]:
    """Return the files of a data set, keyed by their relative paths in a cache."""
    if source.spec.source.is_own_file:
        paths = fetched(source.spec, cache=source.cache, mirror=source.mirror, progress=None)
        return dict(zip(_own_file_paths(source).values(), paths, strict=True))
    cache = expanded(str(source.cache)).absolute()
    paths = [cached_path(entry, cache) for entry in files(source.spec)]
    return {path.relative_to(cache): path for path in paths}


def receive(cache: Path, place: Path, chunk: bytes, number: int) -> None:
    """Append a chunk of a file to the cache of this machine.

    The first chunk has number 0; number -1 completes the file.
    """
    target = (cache if cache.is_dir() else default_cache()) / place
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb" if number == 0 else "ab") as file:
        file.write(chunk)
    if number == -1:
        replace_file(part, target)

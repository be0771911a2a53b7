"""The part of a task that runs on a dask worker: check the code, find the data, run."""

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
from klr_bench.runner import machine
from klr_bench.runner.executors import Failure, run_guarded
from klr_bench.runner.plan import Cell, Fold, Source

OTHER_CODE, NO_DATA = "other code", "no data"
"""Status of a task that a worker cannot run, because its code differs or the data are missing."""


def run_here(item: Fold | Cell, call: partial[Any]) -> Any:
    """Run a call whose first argument is `item` with the data of this machine.

    Returns a Failure if the code differs or the data are missing.

    The status of the failure is OTHER_CODE or NO_DATA if another worker may be able to run the call.
    """
    machine.follow(os.getppid())  # the parent process of all workers that were started together
    try:
        key = replace(item).key  # recomputed from the code of this worker
    except KlrBenchError as error:
        return Failure(
            OTHER_CODE, f"{error} Provide the same files as on the machine of the run, and restart the worker."
        )
    if key != item.key:
        message = "the code of this worker differs from that of the run. Install the same code and restart it."
        return Failure(OTHER_CODE, message)
    source = _of_this_machine(item.source)
    try:
        fetched(source.spec, cache=source.cache, mirror=source.mirror, progress=None)
    except KlrBenchError as error:
        return Failure(NO_DATA, str(error))
    if source == item.source:
        return run_guarded(call)
    there = replace(item, source=source)
    if isinstance(item, Cell):
        vars(there).update(config_hash=item.config_hash, key=item.key)  # the path on this machine does not count
    return run_guarded(partial(call.func, there, *call.args[1:], **call.keywords))


def _of_this_machine(source: Source) -> Source:
    """Return a source that uses the cache of this machine and received user files."""
    cache = source.cache if source.cache.is_dir() else default_cache()
    spec = source.spec
    if spec.source.is_own_file and not _has(source):
        sent = {key: str(cache / place) for key, place in _own_places(source).items()}
        spec = spec.model_copy(update={"source": spec.source.model_copy(update=sent)})
    return source if (cache, spec) == (source.cache, source.spec) else replace(source, cache=cache, spec=spec)


def _has(source: Source) -> bool:
    """Return True if the user's file exists on this machine with the same content."""
    with suppress(KlrBenchError):
        return dataset_hash(source.stem, source.spec) == source.data_key
    return False


def _own_places(source: Source) -> dict[str, Path]:
    """Return the cache paths of the user's files, keyed by their keys in the spec."""
    paths = {key: path for key in OWN_PATHS if (path := getattr(source.spec.source, key))}
    return {key: Path("sent", source.data_key, key, Path(path).name) for key, path in paths.items()}


def files_to_send(source: Source) -> dict[Path, Path]:
    """Map the files of a data set to their paths in a cache."""
    if source.spec.source.is_own_file:
        paths = fetched(source.spec, cache=source.cache, mirror=source.mirror, progress=None)
        return dict(zip(_own_places(source).values(), paths, strict=True))
    return {Path(entry.name): cached_path(entry, source.cache) for entry in files(source.spec)}


def receive(cache: Path, place: Path, chunk: bytes, number: int) -> None:
    """Append a chunk to a file in the cache of this machine; number -1 marks the last chunk."""
    target = (cache if cache.is_dir() else default_cache()) / place
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb" if number == 0 else "ab") as file:
        file.write(chunk)
    if number == -1:
        part.replace(target)

"""What a worker on another machine does: check that it has the same code, find its data, run the task."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from klr_bench.datasets import dataset_hash, default_cache
from klr_bench.datasets.dataset import OWN_PATHS, fetched
from klr_bench.datasets.download import cached_path, files
from klr_bench.errors import KlrBenchError
from klr_bench.runner import machine
from klr_bench.runner.executors import guarded
from klr_bench.runner.plan import Cell, Fold, Source


@dataclass(frozen=True)
class MissingData:
    """The result of a task for which a worker does not have the data and cannot fetch them."""

    message: str


@dataclass(frozen=True)
class OtherCode:
    """The result of a task that a worker would compute with other code than the run."""

    message: str


def run_here(item: Fold | Cell, call: partial[Any]) -> Any:
    """Run a call whose first argument is `item` with the data of this machine.

    Returns its result or a Failure, or MissingData or OtherCode if this worker cannot run it.
    """
    machine.follow(os.getppid())  # the parent of all workers that were started together
    try:
        key = replace(item).key  # computed again, of the code that is here
    except KlrBenchError as error:
        return OtherCode(f"{error} Give it what the run has, and start it again.")
    if key != item.key:
        return OtherCode("its code differs from that of the run. Give it the same code, and start it again.")
    source = _of_this_machine(item.source)
    try:
        fetched(source.spec, cache=source.cache, mirror=source.mirror, progress=None)
    except KlrBenchError as error:
        return MissingData(str(error))
    if source == item.source:
        return guarded(call)
    there = replace(item, source=source)
    if isinstance(item, Cell):
        vars(there).update(config_hash=item.config_hash, key=item.key)  # a path on this machine is not part of them
    return guarded(partial(call.func, there, *call.args[1:], **call.keywords))


def _of_this_machine(source: Source) -> Source:
    """Return a source with the cache of this machine, and with a user's file that has been sent to it."""
    cache = source.cache if source.cache.is_dir() else default_cache()
    spec = source.spec
    if spec.source.is_own_file and not _has(source):
        sent = {key: str(cache / place) for key, place in _own_places(source).items()}
        spec = spec.model_copy(update={"source": spec.source.model_copy(update=sent)})
    return source if (cache, spec) == (source.cache, source.spec) else replace(source, cache=cache, spec=spec)


def _has(source: Source) -> bool:
    """Return True if a user's file is here, with the same content."""
    with suppress(KlrBenchError):
        return dataset_hash(source.stem, source.spec) == source.data_key
    return False


def _own_places(source: Source) -> dict[str, Path]:
    """Return where in a cache a user's files are sent to, by their keys in the spec."""
    given = {key: path for key in OWN_PATHS if (path := getattr(source.spec.source, key))}
    return {key: Path("sent", source.data_key, key, Path(path).name) for key, path in given.items()}


def files_to_send(source: Source) -> dict[Path, Path]:
    """Return the files of a data set, by where in a cache they belong."""
    if source.spec.source.is_own_file:
        paths = fetched(source.spec, cache=source.cache, mirror=source.mirror, progress=None)
        return dict(zip(_own_places(source).values(), paths, strict=True))
    return {Path(entry.name): cached_path(entry, source.cache) for entry in files(source.spec)}


def receive(cache: Path, place: Path, chunk: bytes, number: int) -> None:
    """Write a chunk of a file into the cache of this machine; the file is complete after the chunk with number -1."""
    target = (cache if cache.is_dir() else default_cache()) / place
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb" if number == 0 else "ab") as file:
        file.write(chunk)
    if number == -1:
        part.replace(target)

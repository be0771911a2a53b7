"""What a worker of a cluster does for a run: it has each task done by a process of its own, as a run does at home.

So what a learner does to its process is no harm to the worker: a fit that holds Python's lock for an hour does not keep
it from answering its cluster, one that takes too long is ended, and one that nobody waits for any more, too.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.schema import FILE
from klr_bench.experiment.data import dataset_hash, default_cache
from klr_bench.experiment.data.catalogue import files
from klr_bench.experiment.data.dataset import OWN_PATHS, fetched
from klr_bench.experiment.data.fetch import cached_path
from klr_bench.experiment.keys import INSTALLED, file_hash, package_hash, source_hash
from klr_bench.experiment.measure.own import own_files
from klr_bench.experiment.runner import machine
from klr_bench.experiment.runner.failure import Failure, Task
from klr_bench.experiment.runner.manifest import library_versions
from klr_bench.experiment.runner.plan import Cell, Fold, Source
from klr_bench.experiment.runner.pool import run_one
from klr_bench.experiment.runner.process import Ended, Surroundings, surroundings
from klr_bench.experiment.strangers import PATIENCE

NOT_THERE = "not there"
"""Stands for the hash of code that a worker does not have."""
OF_DASK = ("MALLOC_TRIM_THRESHOLD_",)
"""Variables that dask sets for its workers: with this one, memory goes back to the system at each turn, and a fit with
short-lived arrays takes three times as long."""

_one_at_a_time = threading.Lock()
"""A worker with several threads fits one learner at a time nevertheless, for times to be those of one."""


@dataclass(frozen=True)
class Home:
    """What a task finds in the process of a run, and is to find with a worker as far as it is there."""

    folder: str
    path: tuple[str, ...]
    """Folders of the user's modules."""
    environment: Mapping[str, str]

    def there(self) -> Surroundings:
        """Return the surroundings of tasks in this process, that of a worker."""
        here = surroundings()
        own = [entry for entry in self.path if entry not in here.path and os.path.isdir(entry)]
        folder = self.folder if os.path.isdir(self.folder) else here.folder
        environment = {name: value for name, value in here.environment.items() if name not in OF_DASK}
        return Surroundings((*here.path, *own), folder, {**environment, **self.environment})


def home() -> Home:
    """Return what tasks find in this process, that of a run."""
    installed = {sys.prefix, sys.base_prefix}
    own = [entry for entry in surroundings().path if entry and not INSTALLED & {*Path(entry).parts}]
    outside = tuple(entry for entry in own if not any(Path(entry).is_relative_to(prefix) for prefix in installed))
    return Home(os.getcwd(), outside, {PATIENCE: os.environ[PATIENCE]} if PATIENCE in os.environ else {})


@dataclass(frozen=True)
class Errand:
    """A task of a run that a worker is to have done."""

    task: Task
    kind: Hashable
    home: Home


@dataclass(frozen=True)
class Lacking:
    """The result of a task for which a worker does not have the data, and cannot fetch them."""

    message: str


class Worker(NamedTuple):
    """What a worker says of itself."""

    machine: str
    process: int
    code: dict[str, str]
    """Hashes of the code that the results depend on, by name."""
    versions: dict[str, str]


def done(pickled: bytes, wanted: Callable[[], bool]) -> bytes:
    """Have the task of a pickled errand done, and return its pickled `Ended`; it is ended where it is `wanted` no more.

    What is pickled here is nobody else's business: the scheduler passes bytes on.
    """
    with _one_at_a_time:
        try:
            errand: Errand = pickle.loads(pickled)
            end = run_one(errand.task, errand.kind, partial(_go_on, wanted), errand.home.there(), alone=True)
        except _NotWantedError:
            end = Ended(Failure("error", "given up"))
    try:
        return pickle.dumps(end)
    except Exception as error:
        return pickle.dumps(Ended(Failure("error", f"its result cannot be sent: {error}")))


class _NotWantedError(Exception):
    """Nobody waits for a task any more."""


def _go_on(wanted: Callable[[], bool], seconds: float) -> None:
    if not wanted():
        raise _NotWantedError


def at_worker(task: partial[Any], run: Iterable[int]) -> Any:
    """Do a task whose first argument is a fold or a cell, with the data of this machine.

    `run` are the processes of this machine that work for the run: what they use is not counted as load of others.
    """
    machine.follow(*run)
    item: Fold | Cell = task.args[0]
    source = _of_this_machine(item.source)
    try:
        fetched(source.spec, cache=source.cache, mirror=source.mirror, progress=None)
    except KlrBenchError as error:
        return Lacking(str(error))
    there = item if source == item.source else replace(item, source=source)
    return task.func(there, *task.args[1:], **task.keywords)


def _of_this_machine(source: Source) -> Source:
    """Return a source with the cache of this machine, and with a user's file that has been sent there."""
    cache = source.cache if source.cache.is_dir() else default_cache()
    spec = source.spec
    if spec["source"]["format"] == FILE and not _has(source):
        sent = {key: str(cache / place) for key, place in _own_places(source).items()}
        spec = {**spec, "source": {**spec["source"], **sent}}
    return source if (cache, spec) == (source.cache, source.spec) else replace(source, cache=cache, spec=spec)


def _has(source: Source) -> bool:
    """Say whether a user's file is here, with the content that it has where the run is."""
    with suppress(KlrBenchError):
        return dataset_hash(source.stem, source.spec) == source.data_key
    return False


def _own_places(source: Source) -> dict[str, Path]:
    """Return the places in a cache of files of the user's that are sent, by their keys in the spec."""
    given = {key: source.spec["source"][key] for key in OWN_PATHS if source.spec["source"].get(key)}
    return {key: Path("sent", source.data_key, key, Path(path).name) for key, path in given.items()}


def files_to_send(source: Source) -> dict[Path, Path]:
    """Return the files of a data set where the run is, by their places in a cache."""
    if source.spec["source"]["format"] == FILE:
        paths = fetched(source.spec, cache=source.cache, mirror=source.mirror, progress=None)
        return dict(zip(_own_places(source).values(), paths, strict=True))
    return {Path(entry["name"]): cached_path(entry, source.cache) for entry in files(source.spec)}


def receive(cache: Path, place: Path, chunk: bytes, *, first: bool, last: bool) -> None:
    """Write a part of a file that the run sends into the cache of this machine; the file is there after its last."""
    target = (cache if cache.is_dir() else default_cache()) / place
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb" if first else "ab") as file:
        file.write(chunk)
    if last:
        part.replace(target)


def about(targets: Iterable[str], metrics: Iterable[str]) -> Worker:
    """Return what the process that asks, or the worker that is asked, says of itself.

    The code is that of klr-bench, of what stands under `targets` and of the user's `metrics`.
    """
    own = own_files(config_files.folders())
    code = {"klr_bench": package_hash()}
    code |= {target: _hash(partial(source_hash, target)) for target in targets}
    code |= {f"metric {name}": _hash(partial(file_hash, own[name])) if name in own else NOT_THERE for name in metrics}
    return Worker(machine.host(), os.getpid(), code, library_versions())


def _hash(of: Callable[[], str]) -> str:
    try:
        return of()
    except KlrBenchError:
        return NOT_THERE

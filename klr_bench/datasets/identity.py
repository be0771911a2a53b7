"""Identify data files with ``sha256: unknown`` by their present content.

The hash of the content takes the place of the unknown one, so it is part of the keys of results, and the file is cached
under it: data sets whose files have the same name never replace each other.  A local file is hashed at each run, so
that the next run uses a changed file.  A download, and a local file that has been removed since, keep the content that
was fetched last.

    <cache>/<data set>/<16 digits>/<file>    a content; the digits are the first ones of its hash
    <cache>/sources/<hash>.json              [crc32, `Content`]: what was fetched last from a path or URL
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache as once
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from klr_bench.config.models import DatasetConfig, LabelsFile
from klr_bench.datasets.cache import (
    Progress,
    content_sha256,
    find_or_make,
    ignore_progress,
    stamp_of,
    stamped_sha256,
    state_of,
)
from klr_bench.datasets.compression import SUFFIXES, is_compressed
from klr_bench.datasets.download import N_DIGITS, UNKNOWN, cached_path, copy_path, fetch_from, files, is_url, locations
from klr_bench.errors import KlrBenchError, fail
from klr_bench.files import expanded, no_file, read_checked_json, unreadable, write_checked_json
from klr_bench.results.keys import content_hash

logger = logging.getLogger(__name__)

Entry = TypeVar("Entry", bound=LabelsFile)


def identified(
    dataset: DatasetConfig, *, cache: Path, mirror: str | None, progress: Progress | None = None, fetching: bool = True
) -> DatasetConfig:
    """Return a data set with the hash of the present content of each file whose hash is unknown.

    With `fetching`, these contents are in the cache afterwards.  Otherwise nothing is written, and the hash of a file
    that must be fetched first stays unknown.  Raises KlrBenchError.
    """

    def with_hash(entry: Entry) -> Entry:
        if entry.sha256 != UNKNOWN:
            return entry
        file = UndeclaredFile(entry, cache, mirror)
        content = file.fetch(progress or ignore_progress) if fetching else file.present()
        return entry.model_copy(update={"sha256": content.sha256}) if content and content.sha256 else entry

    if all(entry.sha256 != UNKNOWN for entry in files(dataset)):
        return dataset
    used, parts = dataset.files(), dict[str, Any]()
    for part in ("train", "test"):
        if (file := getattr(dataset.source, part)) in used:
            parts[part] = with_hash(file).model_copy(update={"labels": file.labels and with_hash(file.labels)})
    return dataset.model_copy(update={"source": dataset.source.model_copy(update=parts)})


@dataclass(frozen=True)
class Content:
    """Content of a file, and the place from which it comes."""

    place: str
    """Path or URL."""
    stored: str | None
    """Hash of a local file as it is stored, which may be compressed; None for a URL."""
    sha256: str | None
    """Hash of the uncompressed content; None if the file must be decompressed first."""


@dataclass(frozen=True)
class UndeclaredFile:
    """File without a declared hash, and where it may be found."""

    entry: LabelsFile
    cache: Path
    mirror: str | None

    @property
    def plain(self) -> Path:
        """Path in the cache at which a copy of the file may be put by hand."""
        return cached_path(self.entry, self.cache)

    def fetch(self, progress: Progress) -> Content:
        """Return the present content, which is in the cache afterwards.  Raises KlrBenchError."""
        content = find_or_make(self.plain, self.entry.name, progress, self._cached, lambda: self._fetched(progress))
        note = self._note_path(content.place)
        if read_checked_json(note) != asdict(content):
            with suppress(KlrBenchError):  # a read-only cache
                write_checked_json(note, asdict(content))
        return content

    def present(self) -> Content | None:
        """Return the content of the local file; without one, the cached content fetched last."""
        place = self._local_place()
        if place:
            return self._local(place)
        for content in filter(None, map(self._last, chain.from_iterable(self._sources().values()))):
            if copy := self.copy(content):
                if not is_url(content.place):
                    _say_removed(content.place, copy)
                return content
        return None

    def copy(self, content: Content) -> Path | None:
        """Return the path of a content in the cache, or None if it is not there or damaged."""
        path = copy_path(self.plain, str(content.sha256))
        return path if content.sha256 and stamped_sha256(path) == content.sha256 else None

    def copies(self) -> list[Path]:
        """Return the paths of all contents in the cache."""
        return sorted(
            folder / self.plain.name
            for folder in self.plain.parent.glob("[0-9a-f]" * N_DIGITS)
            if os.path.lexists(folder / self.plain.name)
        )

    def is_whole(self, path: Path) -> bool:
        """Return True if one of the `copies` has the hash in its path."""
        return str(stamped_sha256(path, recompute=True)).startswith(path.parent.name)

    def changed(self) -> list[Path]:
        """Return the paths of local files that have changed since they were fetched.

        Without a local file, as if the mirror is not set, they are those from which files of this name were fetched.
        """
        place = self._local_place()
        fetched = filter(None, [self._last(place)]) if place else self.fetched()
        paths = [(Path(content.place), content.stored) for content in fetched]
        return [path for path, stored in paths if no_file(path) is None and self._local(str(path)).stored != stored]

    def fetched(self) -> list[Content]:
        """Return the last content from each source of a file of this name, latest first."""
        notes = sorted(self._notes.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        ends = tuple(f"/{self.entry.name}{suffix}" for suffix in ("", *SUFFIXES))
        contents = map(_read_note, notes)
        return [
            content
            for content in contents
            if content and (content.place.endswith(ends) or content.place == self.entry.url)
        ]

    def _sources(self) -> dict[str, list[str]]:
        sources = locations(self.entry, self.plain, self.mirror)
        if not stamp_of(self.plain):  # a file with a stamp was fetched for a data set that declares the hash
            sources[""].insert(0, str(self.plain))
        return sources

    def _local_place(self) -> str | None:
        places = chain.from_iterable(self._sources().values())
        return next((place for place in places if not is_url(place) and no_file(Path(place)) is None), None)

    def _local(self, place: str) -> Content:
        path = Path(place)
        try:
            stored, last = content_sha256(path, state_of(path)), self._last(place)
            if not is_compressed(path):
                return Content(place, stored, stored)
        except OSError as error:
            raise unreadable(path, error) from error
        return Content(place, stored, last.sha256 if last and last.stored == stored else None)

    def _cached(self) -> Content | None:
        content = self.present()
        return content if content and self.copy(content) else None

    def _fetched(self, progress: Progress) -> Content:
        place = self._local_place()
        sources, before = ({place: [place]}, self._local(place).stored) if place else (self._sources(), None)
        place, path = fetch_from(sources, self.entry, self.plain, self.mirror, progress)
        if before is not None and before != self._local(place).stored:
            fail(f"{place} changed while it was being copied; run the same command again.")
        return Content(place, before, stamped_sha256(path))

    def _last(self, place: str) -> Content | None:
        return _read_note(self._note_path(place))

    @property
    def _notes(self) -> Path:
        return expanded(str(self.cache)).absolute() / "sources"

    def _note_path(self, place: str) -> Path:
        return self._notes / f"{content_hash(place)}.json"


def _read_note(path: Path) -> Content | None:
    """Return the content that was fetched last from a place, or None if it is not known."""
    with suppress(KlrBenchError, TypeError):
        return Content(**read_checked_json(path))
    return None


@once
def _say_removed(place: str, copy: Path) -> None:
    logger.warning("%s is gone; its last content is used. To search for the file elsewhere, remove %s", place, copy)

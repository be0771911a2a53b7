"""Downloads of data files into the cache, with verification of their content.

A file is looked for next to its place in the cache (a compressed copy put there by hand), at the mirror, and at its
upstream address, in this order.  It is unpacked into a temporary file, its sha256 is compared, and only then is it
moved to its place, so the cache never holds an incomplete or wrong file.

``sha256: unknown`` accepts any content; the hash of the first content is noted, and a file that is edited afterwards is
fetched anew.  No file is larger than its ``max_bytes``.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import Literal

from klr_bench.config.models import DatasetConfig, LabelsFile
from klr_bench.datasets.cache import Progress, make_once, silent, stamp_of, stamped_sha256, suffixed
from klr_bench.datasets.compression import SUFFIXES, DamagedFileError, plain_chunks
from klr_bench.datasets.transfer import NotThereError, TransferError, UnreachableError, check_size, discard, download
from klr_bench.errors import KlrBenchError, sanitize
from klr_bench.files import expanded, no_file

logger = logging.getLogger(__name__)

UNKNOWN = "unknown"
MOST_BYTES = 1 << 36
"""Maximum size of a file whose entry has no ``max_bytes``."""


def files(dataset: DatasetConfig) -> list[LabelsFile]:
    """Return the files of a data set; a separate label file follows its example file."""
    return [file for part in dataset.files() for file in (part, part.labels) if file]


def fetch(entry: LabelsFile, *, cache: Path, mirror: str | None = None, progress: Progress | None = None) -> Path:
    """Return the cached file of an entry, downloading it if it is missing or corrupt.

    Several processes may call this at once: one fetches the file, the others wait for it.  Raises KlrBenchError.
    """
    target, report = cached_path(entry, cache), progress or silent

    def find() -> Path | None:
        return target if _matches(stamped_sha256(target), _expected(entry, target)) else None

    return make_once(target, entry.name, report, find, lambda: _obtain(entry, target, mirror, report))


def verify(entry: LabelsFile, *, cache: Path) -> Literal["ok", "corrupt", "missing"]:
    """Hash a cached file again; the next `fetch` replaces a corrupt file.

    A file of unknown content is compared with the hash noted when it was fetched, and removed if it differs.
    """
    target = cached_path(entry, cache)
    expected = _expected(entry, target)
    sha256 = stamped_sha256(target, anew=True)
    if sha256 is None:
        return "corrupt" if os.path.lexists(target) else "missing"
    if _matches(sha256, expected):
        return "ok"
    if entry.sha256 == UNKNOWN:
        target.unlink()
        suffixed(target, ".stamp").unlink(missing_ok=True)
    return "corrupt"


def cached_path(entry: LabelsFile, cache: Path) -> Path:
    """Return the path of an entry's uncompressed file in the cache."""
    return expanded(str(cache)).absolute() / entry.name


def _expected(entry: LabelsFile, target: Path) -> str:
    """Return the expected hash of a cached file.

    Without a declared hash it is the one stored at download.
    """
    return stamp_of(target).get("sha256", UNKNOWN) if entry.sha256 == UNKNOWN else str(entry.sha256)


def _matches(sha256: str | None, expected: str) -> bool:
    return sha256 is not None and expected in (sha256, UNKNOWN)


def _obtain(entry: LabelsFile, target: Path, mirror: str | None, progress: Progress) -> Path:
    """Try one location after the other.

    Raises KlrBenchError with all problems if none has the right content.
    """
    problems = []
    if os.path.lexists(target):
        edited = f"; to keep it as it is, remove {target.name}.stamp" if entry.sha256 == UNKNOWN else ""
        fault = no_file(target) or _wrong_content(stamped_sha256(target), _expected(entry, target)) + edited
        problems.append(f"{target}: {fault}")
    for source, places in _locations(entry, target, mirror).items():
        absent, n_problems = None, len(problems)
        for place in places:
            try:
                _take(place, entry, target, progress)
            except NotThereError as error:
                absent = absent or error
            except TransferError as error:
                problems.append(f"{place}: {sanitize(error, 300)}")
                if isinstance(error, UnreachableError):
                    break
            else:
                discard(suffixed(target, ".part"))  # left by an interrupted run that used another source
                for problem in problems:
                    logger.warning("%s; now taken from %s", problem, place)
                return target
        if absent and source and len(problems) == n_problems:
            problems.append(f"{source}: not there ({sanitize(absent)})")
    raise KlrBenchError(_nowhere(entry, target, mirror, problems))


def _locations(entry: LabelsFile, target: Path, mirror: str | None) -> dict[str, list[str]]:
    """Return the locations to try, keyed by source; the source "" is not mentioned in errors."""
    places = {"": [str(target) + suffix for suffix in SUFFIXES]}
    if mirror:
        base = f"{mirror.rstrip('/') if _is_url(mirror) else expanded(mirror).absolute()}/{entry.name}"
        places[f"{base}[{'|'.join(SUFFIXES)}]"] = [base + suffix for suffix in ("", *SUFFIXES)]
    return places | ({entry.url: [entry.url]} if entry.url else {})


def _is_url(place: str) -> bool:
    return place.lower().startswith(("http://", "https://"))


def _take(place: str, entry: LabelsFile, target: Path, progress: Progress) -> None:
    """Get the file from one location.

    Raises TransferError; at most a resumable partial file remains.
    """
    if not _is_url(place):
        fault = no_file(Path(place))
        if fault:
            raise (NotThereError("no such file") if fault == "does not exist" else TransferError(fault))
        _unpack(Path(place), entry, target, progress)
        return
    part = suffixed(target, ".part")
    download(place, part, progress, f"{entry.name}: downloading", entry.max_bytes or MOST_BYTES)
    try:
        _unpack(part, entry, target, progress)
    finally:
        discard(part)


def _unpack(source: Path, entry: LabelsFile, target: Path, progress: Progress) -> None:
    """Decompress to a temporary file, check the hash, and move the file into place."""
    temporary = suffixed(target, ".tmp")
    temporary.unlink(missing_ok=True)  # do not write through a link or into a FIFO
    sha256, size = hashlib.sha256(), source.stat().st_size
    try:
        with temporary.open("wb") as out:
            for chunk, position in plain_chunks(source):
                sha256.update(chunk)
                out.write(chunk)
                check_size(out.tell(), entry.max_bytes or MOST_BYTES, suffixed(target, ".part"))
                progress(position, size, f"{entry.name}: unpacking")
        if not _matches(sha256.hexdigest(), entry.sha256):
            raise TransferError(_wrong_content(sha256.hexdigest(), entry.sha256) + "; not kept")
        os.replace(temporary, target)
    except DamagedFileError as error:
        message = f"{error}; not kept"
        raise TransferError(message) from error
    finally:
        temporary.unlink(missing_ok=True)
    stamped_sha256(target, anew=True)


def _wrong_content(sha256: str | None, expected: str) -> str:
    return f"wrong content: sha256 is {sha256 or 'not readable'}, expected {expected}"


def _nowhere(entry: LabelsFile, target: Path, mirror: str | None, problems: list[str]) -> str:
    """Return the message about a file that no source provides, with at most five lines."""
    first, *others = problems if mirror else [*problems, "no mirror: none is set"]
    lines = [f"The data file {entry.name} is unavailable. Tried:", f"  {sanitize(first, 1000)}"]
    lines += [f"  {sanitize('; '.join(others), 1000)}"] if others else []
    advice = "Connect to the network, or set" if entry.url else "It has no address upstream. Set"
    lines += [
        f"{advice} KLR_BENCH_MIRROR (or data.mirror=) to a folder or http(s) prefix",
        f"that holds {entry.name}, or place the file (plain or {', '.join(SUFFIXES)}) at {target}",
    ]
    return "\n".join(lines)

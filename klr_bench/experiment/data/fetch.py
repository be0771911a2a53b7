"""From a file entry of a data set (``{name, url, sha256}``) to a file in the cache whose content is checked.

A file is looked for next to its place in the cache (a compressed copy put there by hand), at the mirror, and at its
upstream address, in this order.  The file found is unpacked into a temporary file, its sha256 is compared, and only
then is it moved to its place, so the cache never holds an incomplete or wrong file.

``sha256: unknown`` accepts any content; the hash of the first content is noted.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.data.cache import Progress, beside, disk_errors, locked, restamp, silent, stamped_sha256
from klr_bench.experiment.data.compression import SUFFIXES, DamagedFileError, plain_chunks
from klr_bench.experiment.data.transfer import NotThereError, TransferError, UnreachableError, discard, download

logger = logging.getLogger(__name__)

UNKNOWN = "unknown"


def fetch(
    entry: Mapping[str, Any], *, cache: Path, mirror: str | None = None, progress: Progress | None = None
) -> Path:
    """Return the cached file of an entry; fetch it first if it is missing or wrong.

    Several processes may call this at once: one fetches the file, the others wait for it.  Raises KlrBenchError.
    """
    target = cached_path(entry, cache)
    if _is_it(stamped_sha256(target), entry):
        return target
    with disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target, entry["name"], progress or silent):
            if not _is_it(stamped_sha256(target), entry):  # another process may have fetched it meanwhile
                _obtain(entry, target, mirror, progress or silent)
    return target


def verify(entry: Mapping[str, Any], *, cache: Path) -> Literal["ok", "corrupt", "missing"]:
    """Hash a cached file again, whatever its stamp says; the next `fetch` of a corrupt file replaces it.

    A file of unknown content is compared with the hash noted when it was fetched, and removed if it differs.
    """
    target = cached_path(entry, cache)
    expected = stamped_sha256(target) if entry["sha256"] == UNKNOWN else entry["sha256"]
    sha256 = restamp(target)
    if sha256 is None:
        return "corrupt" if target.exists() else "missing"
    if sha256 != expected and entry["sha256"] == UNKNOWN:
        target.unlink()
    return "ok" if sha256 == expected else "corrupt"


def cached_path(entry: Mapping[str, Any], cache: Path) -> Path:
    """Return the place of an entry's uncompressed file in the cache."""
    for key in ("name", "sha256"):
        if not entry.get(key):
            message = f"A data file needs {key!r} (given: {dict(entry)}); add it to configs/dataset."
            raise KlrBenchError(message)
    name = PurePosixPath(entry["name"])
    if name.is_absolute() or ".." in name.parts:
        message = f"The name of a data file must lie inside the cache, got {entry['name']!r}: use <data set>/<file>."
        raise KlrBenchError(message)
    return Path(cache).expanduser().absolute() / name


def _is_it(sha256: str | None, entry: Mapping[str, Any]) -> bool:
    """Tell whether content with this hash, None for no file, is what an entry requires."""
    return sha256 is not None and entry["sha256"] in (sha256, UNKNOWN)


def _obtain(entry: Mapping[str, Any], target: Path, mirror: str | None, progress: Progress) -> None:
    """Try one place after the other; raise a KlrBenchError that lists them all if none has the right content."""
    tried = []
    if target.exists():
        tried.append(f"{target}: {_differs(stamped_sha256(target), entry['sha256'])}")
    for base, places in _places(entry, target, mirror):
        problems: dict[str, TransferError] = {}
        for place in places:
            try:
                _take(place, entry, target, progress)
            except TransferError as error:
                problems[place] = error
                if isinstance(error, UnreachableError):
                    break
            else:
                discard(beside(target, ".part"))  # left by an earlier run that was interrupted at another source
                for problem in tried + _told("", problems):
                    logger.warning("%s; now taken from %s", problem, place)
                return
        tried += _told(base, problems)
    raise KlrBenchError(_nowhere(entry, target, mirror, tried))


def _told(base: str, problems: Mapping[str, TransferError]) -> list[str]:
    """Return the message lines about a source: its errors or, if it only lacks the file, that."""
    wrong = [f"{place}: {error}" for place, error in problems.items() if not isinstance(error, NotThereError)]
    if wrong or not base:
        return wrong
    return [f"{base}: not there ({next(iter(problems.values()))})"]


def _places(entry: Mapping[str, Any], target: Path, mirror: str | None) -> Iterator[tuple[str, list[str]]]:
    """Yield each source with the places to try there; a source without a name is not mentioned if it is empty."""
    yield "", [str(target) + suffix for suffix in SUFFIXES]
    if mirror:
        root = mirror.rstrip("/") if _is_url(mirror) else str(Path(mirror).expanduser().absolute())
        base = f"{root}/{entry['name']}"
        yield f"{base}[{'|'.join(SUFFIXES)}]", [base + suffix for suffix in ("", *SUFFIXES)]
    if entry.get("url"):
        yield entry["url"], [entry["url"]]


def _is_url(place: str) -> bool:
    return place.lower().startswith(("http://", "https://"))


def _take(place: str, entry: Mapping[str, Any], target: Path, progress: Progress) -> None:
    """Get the file from one place.  Raises TransferError; leaves at most a partial file, which can be resumed."""
    if not _is_url(place):
        if not Path(place).is_file():
            message = "no such file"
            raise NotThereError(message)
        _unpack(Path(place), entry, target, progress)
        return
    part = beside(target, ".part")
    resumed = download(place, part, progress, f"{entry['name']}: downloading")
    try:
        _unpack(part, entry, target, progress)
    except TransferError:
        if not resumed:
            raise
        discard(part)  # its beginning, from an earlier run, may be wrong
        download(place, part, progress, f"{entry['name']}: downloading again")
        _unpack(part, entry, target, progress)
    finally:
        discard(part)


def _unpack(source: Path, entry: Mapping[str, Any], target: Path, progress: Progress) -> None:
    """Decompress into a temporary file, compare the hash, and move it to its place."""
    temporary = beside(target, ".tmp")
    sha256 = hashlib.sha256()
    size = source.stat().st_size
    try:
        with temporary.open("wb") as out:
            for chunk, position in plain_chunks(source):
                sha256.update(chunk)
                out.write(chunk)
                progress(position, size, f"{entry['name']}: unpacking")
        if not _is_it(sha256.hexdigest(), entry):
            raise TransferError(_differs(sha256.hexdigest(), entry["sha256"]) + "; not kept")
        os.replace(temporary, target)
    except DamagedFileError as error:
        message = f"{error}; not kept"
        raise TransferError(message) from error
    finally:
        temporary.unlink(missing_ok=True)
    restamp(target)


def _differs(got: str | None, expected: str) -> str:
    return f"wrong content: sha256 is {got or 'not readable'}, expected {expected}"


def _nowhere(entry: Mapping[str, Any], target: Path, mirror: str | None, tried: list[str]) -> str:
    """Return the message about a file that no source provides."""
    lines = [f"The data file {entry['name']} cannot be had. Tried:", *(f"  {line}" for line in tried)]
    if not mirror:
        lines.append("  no mirror: none is set")
    lines += [
        "Connect to the network, or set KLR_BENCH_MIRROR (or data.mirror=) to a folder or http(s) prefix"
        if entry.get("url")
        else "It has no address upstream. Set KLR_BENCH_MIRROR (or data.mirror=) to a folder or http(s) prefix",
        f"that holds {entry['name']}, or put the file by hand (plain or {', '.join(SUFFIXES)}) at {target}",
    ]
    return "\n".join(lines)

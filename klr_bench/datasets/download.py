"""Fetch data files into the cache, and verify their SHA-256 hashes.

A file is searched for next to its cached path (a compressed copy put there by hand), at the mirror, and at its upstream
URL, in this order.  It is decompressed into a temporary file, which is moved to the cached path only if its hash is
correct, so the cache never contains an incomplete or wrong file.

``sha256: unknown`` accepts any content; the hash of the first content is recorded, and a file that changes afterwards
is fetched again.  No file may be larger than its ``max_bytes``.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import Literal

from klr_bench.config.models import DatasetConfig, LabelsFile
from klr_bench.datasets.cache import Progress, find_or_make, ignore_progress, stamp_of, stamped_sha256, suffixed
from klr_bench.datasets.compression import SUFFIXES, DamagedFileError, plain_chunks
from klr_bench.datasets.transfer import NotFoundError, TransferError, UnreachableError, check_size, discard, download
from klr_bench.errors import KlrBenchError, sanitize
from klr_bench.files import expanded, no_file

logger = logging.getLogger(__name__)

UNKNOWN = "unknown"
MOST_BYTES = 1 << 36
"""Maximum size of a file whose entry has no ``max_bytes``."""


def files(dataset: DatasetConfig) -> list[LabelsFile]:
    """Return the entries of all files of a data set, including separate label files."""
    return [file for part in dataset.files() for file in (part, part.labels) if file]


def fetch(entry: LabelsFile, *, cache: Path, mirror: str | None = None, progress: Progress | None = None) -> Path:
    """Return the path of a file in the cache, after fetching the file if necessary.

    A file is fetched if it is missing or has the wrong content.

    If several processes call this at once, one fetches the file and the others wait.  Raises KlrBenchError.
    """
    target, report = cached_path(entry, cache), progress or ignore_progress

    def find() -> Path | None:
        return target if _matches(stamped_sha256(target), _expected(entry, target)) else None

    return find_or_make(target, entry.name, report, find, lambda: _fetch_from_sources(entry, target, mirror, report))


def verify(entry: LabelsFile, *, cache: Path) -> Literal["ok", "corrupt", "missing"]:
    """Check the hash of a cached file; return "ok", "corrupt" or "missing".

    The next `fetch` replaces a corrupt file.  A file with an unknown hash is compared with the hash recorded when it
    was fetched, and is removed if it differs.
    """
    target = cached_path(entry, cache)
    expected = _expected(entry, target)
    sha256 = stamped_sha256(target, recompute=True)
    if sha256 is None:
        return "corrupt" if os.path.lexists(target) else "missing"
    if _matches(sha256, expected):
        return "ok"
    if entry.sha256 == UNKNOWN:
        target.unlink()
        suffixed(target, ".stamp").unlink(missing_ok=True)
    return "corrupt"


def cached_path(entry: LabelsFile, cache: Path) -> Path:
    """Return the path at which the cache stores the uncompressed content of a file."""
    return expanded(str(cache)).absolute() / entry.name


def _expected(entry: LabelsFile, target: Path) -> str:
    """Return the declared hash of a file or, if unknown, the hash recorded when it was fetched."""
    return stamp_of(target).get("sha256", UNKNOWN) if entry.sha256 == UNKNOWN else str(entry.sha256)


def _matches(sha256: str | None, expected: str) -> bool:
    return sha256 is not None and expected in (sha256, UNKNOWN)


def _fetch_from_sources(entry: LabelsFile, target: Path, mirror: str | None, progress: Progress) -> Path:
    problems = []
    if os.path.lexists(target):
        hint = f"; to keep the changed file, remove {target.name}.stamp" if entry.sha256 == UNKNOWN else ""
        fault = no_file(target) or _wrong_content(stamped_sha256(target), _expected(entry, target)) + hint
        problems.append(f"{target}: {fault}")
    for source, places in _locations(entry, target, mirror).items():
        absent, n_problems = None, len(problems)
        for place in places:
            try:
                _fetch_from(place, entry, target, progress)
            except NotFoundError as error:
                absent = absent or error
            except TransferError as error:
                problems.append(f"{place}: {sanitize(error, 300)}")
                if isinstance(error, UnreachableError):
                    break
            else:
                discard(suffixed(target, ".part"))  # an interrupted download may have left a partial file
                for problem in problems:
                    logger.warning("%s; fetched from %s instead", problem, place)
                return target
        if absent and source and len(problems) == n_problems:
            problems.append(f"{source}: not found ({sanitize(absent)})")
    raise KlrBenchError(_unavailable_message(entry, target, mirror, problems))


def _locations(entry: LabelsFile, target: Path, mirror: str | None) -> dict[str, list[str]]:
    # The key "" stands for compressed copies next to the cached path; messages do not mention missing copies.
    places = {"": [str(target) + suffix for suffix in SUFFIXES]}
    if mirror:
        base = f"{mirror.rstrip('/') if _is_url(mirror) else expanded(mirror).absolute()}/{entry.name}"
        places[f"{base}[{'|'.join(SUFFIXES)}]"] = [base + suffix for suffix in ("", *SUFFIXES)]
    return places | ({entry.url: [entry.url]} if entry.url else {})


def _is_url(place: str) -> bool:
    return place.lower().startswith(("http://", "https://"))


def _fetch_from(place: str, entry: LabelsFile, target: Path, progress: Progress) -> None:
    """Fetch a file from a path or a URL into the cache.

    After a failure, at most a partial download that can be resumed is left.  Raises TransferError.
    """
    if not _is_url(place):
        fault = no_file(Path(place))
        if fault:
            raise (NotFoundError("no such file") if fault == "does not exist" else TransferError(fault))
        _decompress(Path(place), entry, target, progress)
        return
    part = suffixed(target, ".part")
    download(place, part, progress, f"{entry.name}: downloading", entry.max_bytes or MOST_BYTES)
    try:
        _decompress(part, entry, target, progress)
    finally:
        discard(part)


def _decompress(source: Path, entry: LabelsFile, target: Path, progress: Progress) -> None:
    temporary = suffixed(target, ".tmp")
    temporary.unlink(missing_ok=True)  # an existing link or FIFO would redirect the output
    sha256, size = hashlib.sha256(), source.stat().st_size
    try:
        with temporary.open("wb") as out:
            for chunk, position in plain_chunks(source):
                sha256.update(chunk)
                out.write(chunk)
                check_size(out.tell(), entry.max_bytes or MOST_BYTES, suffixed(target, ".part"))
                progress(position, size, f"{entry.name}: unpacking")
        if not _matches(sha256.hexdigest(), entry.sha256):
            raise TransferError(_wrong_content(sha256.hexdigest(), entry.sha256) + "; discarded")
        os.replace(temporary, target)
    except DamagedFileError as error:
        message = f"{error}; discarded"
        raise TransferError(message) from error
    finally:
        temporary.unlink(missing_ok=True)
    stamped_sha256(target, recompute=True)


def _wrong_content(sha256: str | None, expected: str) -> str:
    return f"wrong content: sha256 is {sha256 or 'not readable'}, expected {expected}"


def _unavailable_message(entry: LabelsFile, target: Path, mirror: str | None, problems: list[str]) -> str:
    first, *others = problems if mirror else [*problems, "mirror: not set"]
    lines = [f"The data file {entry.name} is not available. Tried:", f"  {sanitize(first, 1000)}"]
    lines += [f"  {sanitize('; '.join(others), 1000)}"] if others else []
    advice = "Connect to the network, or set" if entry.url else "The file has no upstream URL. Set"
    lines.append(
        f"{advice} KLR_BENCH_MIRROR (or data.mirror=) to a folder or an http(s) prefix\n"
        f"that contains {entry.name}, or copy the file (plain or {', '.join(SUFFIXES)}) to {target}"
    )
    return "\n".join(lines)

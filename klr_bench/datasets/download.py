"""Fetch data files into the cache, and verify their SHA-256 hashes.

A file is searched for next to its cached path (a compressed copy put there by hand), at the mirror, and at its upstream
URL, in this order.  It is decompressed into a temporary file, which is moved to the cached path only if its hash is
correct, so the cache never contains an incomplete or wrong file.  No file may be larger than its ``max_bytes``.

A file with ``sha256: unknown`` is cached under the hash of its content; see `klr_bench.datasets.identity`.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from klr_bench.config.models import DatasetConfig, LabelsFile
from klr_bench.datasets.cache import Progress, find_or_make, ignore_progress, stamp_of, stamped_sha256, suffixed
from klr_bench.datasets.compression import SUFFIXES, DamagedFileError, plain_chunks
from klr_bench.datasets.transfer import NotFoundError, TransferError, UnreachableError, check_size, discard, download
from klr_bench.errors import UnavailableError, sanitize
from klr_bench.files import expanded, no_file, replace_file

logger = logging.getLogger(__name__)

UNKNOWN = "unknown"
MOST_BYTES = 1 << 36
"""Maximum size of a file whose entry has no ``max_bytes``."""
N_DIGITS = 16
"""Number of digits of the hash in the path of a file whose hash is not declared."""


def files(dataset: DatasetConfig) -> list[LabelsFile]:
    """Return the entries of all files of a data set, including separate label files."""
    return [file for part in dataset.files() for file in (part, part.labels) if file]


def fetch(entry: LabelsFile, *, cache: Path, mirror: str | None = None, progress: Progress | None = None) -> Path:
    """Return the path in the cache of a file with a known hash, which is fetched if necessary.

    A file is fetched if it is missing or has the wrong content.

    If several processes call this at once, one fetches the file and the others wait.  Raises KlrBenchError.
    """
    target, report = cached_path(entry, cache), progress or ignore_progress

    def find() -> Path | None:
        return target if stamped_sha256(target) == entry.sha256 else None

    def make() -> Path:
        return fetch_from(locations(entry, target, mirror), entry, target, mirror, report)[1]

    return find_or_make(target, entry.name, report, find, make)


def verify(entry: LabelsFile, *, cache: Path) -> Literal["ok", "corrupt", "missing"]:
    """Check a cached file with a known hash; return "ok", "corrupt" or "missing".

    The next `fetch` replaces a corrupt file.
    """
    target = cached_path(entry, cache)
    sha256 = stamped_sha256(target, recompute=True)
    if sha256 is None:
        return "corrupt" if os.path.lexists(target) else "missing"
    return "ok" if sha256 == entry.sha256 else "corrupt"


def cached_path(entry: LabelsFile, cache: Path) -> Path:
    """Return the path at which the cache stores the uncompressed content of a file."""
    plain = expanded(str(cache)).absolute() / entry.name
    copy = copy_path(plain, entry.sha256)
    return copy if entry.sha256 != UNKNOWN and os.path.lexists(copy) else plain


def copy_path(plain: Path, sha256: str) -> Path:
    """Return the path in the cache of a content of the file `plain` without a declared hash."""
    return plain.parent / sha256[:N_DIGITS] / plain.name


def fetch_from(
    sources: Mapping[str, Sequence[str]], entry: LabelsFile, target: Path, mirror: str | None, progress: Progress
) -> tuple[str, Path]:
    """Fetch a file from its first source that has it; return that place and the cached path.

    `sources` has paths or URLs to try, by source.  The path in the cache is `target`, or `copy_path` if the hash of the
    file is unknown.  Raises UnavailableError if no source has the file.
    """
    is_known, fault = entry.sha256 != UNKNOWN, _fault(entry, target)
    problems = [fault] if fault and is_known else []
    for source, places in sources.items():
        absent, n_problems = None, len(problems)
        for place in places:
            try:
                path = _fetch_from(place, entry, target, progress)
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
                return place, path
        if absent and source and len(problems) == n_problems:
            problems.append(f"{source}: not found ({sanitize(absent)})")
    problems += [fault] if fault and not is_known else []
    raise UnavailableError(_unavailable_message(entry, target, mirror, problems))


def _fault(entry: LabelsFile, target: Path) -> str:
    """Return why the file at the cached path cannot be used, or "" if there is no such file."""
    if not os.path.lexists(target):
        return ""
    if entry.sha256 != UNKNOWN:
        return f"{target}: {no_file(target) or _wrong_content(stamped_sha256(target), entry.sha256)}"
    reason = f"belongs to a data set that declares its hash; to use it here, remove {target.name}.stamp"
    fault = no_file(target) or (reason if stamp_of(target) else "")
    return fault and f"{target}: {fault}"


def locations(entry: LabelsFile, target: Path, mirror: str | None) -> dict[str, list[str]]:
    """Return the paths and URLs at which a file may be, by source.

    The source "" stands for compressed copies next to the cached path; messages do not mention missing copies.
    """
    places = {"": [str(target) + suffix for suffix in SUFFIXES]}
    if mirror:
        base = f"{mirror.rstrip('/') if is_url(mirror) else expanded(mirror).absolute()}/{entry.name}"
        places[f"{base}[{'|'.join(SUFFIXES)}]"] = [base + suffix for suffix in ("", *SUFFIXES)]
    return places | ({entry.url: _addresses(entry.url)} if entry.url else {})


def _addresses(url: str) -> list[str]:
    """Return an address, and those of the same file in other compressions, if it has one."""
    suffix = Path(url).suffix
    others = [url.removesuffix(suffix) + other for other in SUFFIXES if suffix in SUFFIXES and other != suffix]
    return [url, *others]


def is_url(place: str) -> bool:
    """Return True for an http(s) address, and False for a path."""
    return place.lower().startswith(("http://", "https://"))


def _fetch_from(place: str, entry: LabelsFile, target: Path, progress: Progress) -> Path:
    """Fetch a file from a path or a URL into the cache; return its path there.

    After a failure, at most a partial download that can be resumed is left.  Raises TransferError.
    """
    if not is_url(place):
        fault = no_file(Path(place))
        if fault:
            raise (NotFoundError("no such file") if fault == "does not exist" else TransferError(fault))
        return _decompress(Path(place), entry, target, progress)
    part = suffixed(target, ".part")
    download(place, part, progress, f"{entry.name}: downloading", entry.max_bytes or MOST_BYTES)
    try:
        path = _decompress(part, entry, target, progress)
    except TransferError:
        discard(part)
        raise
    discard(part)
    return path


def _decompress(source: Path, entry: LabelsFile, target: Path, progress: Progress) -> Path:
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
        if entry.sha256 == UNKNOWN:
            target = copy_path(target, sha256.hexdigest())
            target.parent.mkdir(exist_ok=True)
        elif entry.sha256 != sha256.hexdigest():
            raise TransferError(_wrong_content(sha256.hexdigest(), entry.sha256) + "; discarded")
        replace_file(temporary, target)
    except DamagedFileError as error:
        message = f"{error}; discarded"
        raise TransferError(message) from error
    finally:
        temporary.unlink(missing_ok=True)
    stamped_sha256(target, recompute=True)
    return target


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

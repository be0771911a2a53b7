"""Download a file over HTTP; an interrupted download can be resumed from its ``.part`` file."""

from __future__ import annotations

import json
import re
import stat
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import requests
from urllib3.exceptions import HTTPError

from klr_bench.datasets.cache import Progress, suffixed
from klr_bench.errors import KlrBenchError
from klr_bench.files import read_json

ATTEMPTS = 4  # maximum number of attempts in a row that each receive less than CHUNK bytes
BACKOFF_S = 0.5  # doubled after each attempt
TIMEOUT_S = (10.0, 60.0)  # maximum time for establishing a connection, and for waiting for the next bytes
CHUNK = 1 << 14  # bytes


class TransferError(Exception):
    """Raised if a file cannot be obtained from a source; the message is a short reason."""


class NotFoundError(TransferError):
    """Raised if a source responds that it does not have the file."""


class UnreachableError(TransferError):
    """Raised if all attempts to reach a source, or to receive a complete response, fail."""


class _AttemptError(Exception):
    """Raised if an attempt to download a file fails, but another attempt may succeed."""


def download(url: str, part: Path, progress: Progress, description: str, limit: int) -> None:
    """Download a file from a URL to the path `part`, resuming an earlier download if possible.

    Connection errors, truncated responses and HTTP 5xx errors are retried with increasing delays, from the point where
    the transfer stopped; other responses are not.  Raises TransferError, also for more than `limit` bytes, and
    UnreachableError after the last attempt.
    """
    furthest, failures = _resumable(url, part)[0], 0
    while True:
        try:
            return _attempt(url, part, progress, description, limit)
        except (requests.TooManyRedirects, ValueError) as error:  # also raised for redirects
            message = f"not a usable URL ({error})"
            raise TransferError(message) from error
        except (_AttemptError, requests.RequestException, HTTPError, HTTPException) as error:
            reached = part.stat().st_size if part.exists() else 0
            failures = 0 if reached >= furthest + CHUNK else failures + 1
            furthest = max(furthest, reached)
            if failures >= ATTEMPTS:
                message = f"{_reason(error)} ({ATTEMPTS} attempts)"
                raise UnreachableError(message) from error
            progress(reached, None, f"{description}: {_reason(error)}, trying again")
            time.sleep(BACKOFF_S * 2**failures)


def _reason(error: Exception) -> str:
    if isinstance(error, _AttemptError):
        return str(error)
    if isinstance(error, requests.exceptions.SSLError):
        return f"no secure connection ({error})"
    return "timed out" if isinstance(error, requests.Timeout) else "no connection"


def check_size(size: int, limit: int, part: Path) -> None:
    """Raise TransferError and remove the partial download if the file is larger than the limit."""
    if size > limit:
        discard(part)
        message = f"the file has more than {limit:,} bytes; if this is correct, increase max_bytes in configs/source"
        raise TransferError(message)


def discard(part: Path) -> None:
    """Remove a partial download (a ``.part`` file) and its metadata."""
    part.unlink(missing_ok=True)
    suffixed(part, ".json").unlink(missing_ok=True)


def _resumable(url: str, part: Path) -> tuple[int, str]:
    """Return the size and version of a partial download, or (0, "") if it cannot be resumed."""
    with suppress(OSError, KlrBenchError, KeyError, TypeError):
        note, state = read_json(suffixed(part, ".json")), part.lstat()
        if note["url"] == url and note["validator"] and stat.S_ISREG(state.st_mode):
            return state.st_size, str(note["validator"])
    return 0, ""


def _attempt(url: str, part: Path, progress: Progress, description: str, limit: int) -> None:
    have, validator = _resumable(url, part)
    headers = {"Accept-Encoding": "identity"}  # no compression, because byte ranges must refer to the file itself
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as response:
        if have and response.status_code == 416 and response.headers.get("Content-Range") == f"bytes */{have}":
            return  # it was complete already
        start, total = _extent(response, have, validator, part)
        if not start:
            discard(part)
            note = json.dumps({"url": url, "validator": _validator(response)})
            suffixed(part, ".json").write_text(note, encoding="utf-8")
        done = start
        with part.open("ab") as out:
            progress(done, total, description)
            for piece in response.raw.stream(CHUNK, decode_content=False):
                done += len(piece)
                check_size(max(done, total or 0), limit, part)
                out.write(piece)
                progress(done, total, description)
    if total is not None and done != total:
        message = f"the response ended after {done} of {total} bytes"
        raise _AttemptError(message)


def _extent(response: requests.Response, have: int, validator: str, part: Path) -> tuple[int, int | None]:
    """Return the file position at which an HTTP response starts, and the file size or None.

    Raises TransferError or _AttemptError for an unusable response.
    """
    status = response.status_code
    answer = f"HTTP {status} {response.reason or ''}".rstrip()
    if status in {404, 410}:
        raise NotFoundError(answer)
    if status == 416:  # the partial download is longer than the file, so it belongs to another file
        discard(part)
    if status == 416 or status >= 500:
        raise _AttemptError(answer)
    if status == 200:
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if re.fullmatch(r"\d{1,18}", length, re.ASCII) else None
    if status != 206:
        raise TransferError(answer)
    content_range = response.headers.get("Content-Range", "")
    match = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18})", content_range, re.ASCII)
    if not match or int(match[1]) != have or (have and _validator(response) != validator):
        discard(part)
        message = "the server sent part of a different file"
        raise _AttemptError(message)
    return have, int(match[2])


def _validator(response: requests.Response) -> str:
    """Return the version of a file: its strong ETag, otherwise its date, otherwise ""."""
    etag = response.headers.get("ETag", "")
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    return validator if validator.isascii() and validator.isprintable() else ""

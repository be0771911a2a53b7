"""Download one file over HTTP into a ``.part`` file, which a later attempt or run can resume."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from pathlib import Path

import requests
from urllib3.exceptions import HTTPError

from klr_bench.experiment.data.cache import Progress, beside

ATTEMPTS = 4  # consecutive attempts without a new byte
BACKOFF_S = 0.5  # doubled after each attempt
TIMEOUT_S = (10.0, 60.0)  # to connect; between two pieces of the answer
CHUNK = 1 << 14  # bytes; a broken connection loses at most this many


class TransferError(Exception):
    """A source did not provide the file; the message says why in a few words."""


class NotThereError(TransferError):
    """A source answered, and does not have the file."""


class UnreachableError(TransferError):
    """A source did not answer, or broke off, in all attempts."""


class _BrokenError(Exception):
    """An attempt failed in a way that another attempt may not."""


def download(url: str, part: Path, progress: Progress, description: str) -> bool:
    """Download `url` into the file `part`; return True if some of its bytes may come from an earlier call.

    Connection errors, truncated answers and HTTP 5xx are tried again, with increasing waits, from the point where the
    transfer stopped; other answers are not.  Raises TransferError, and UnreachableError after the last attempt.
    """
    resumed = furthest = _resumable(url, part)[0]
    failures = 0
    while True:
        try:
            start = _attempt(url, part, progress, description)
        except (requests.RequestException, HTTPError, _BrokenError) as error:
            if isinstance(error, ValueError):  # not a valid address
                raise TransferError(str(error)) from error
            reached = part.stat().st_size if part.exists() else 0
            failures = failures + 1 if reached <= furthest else 0
            furthest = max(furthest, reached)
            if failures >= ATTEMPTS:
                message = f"{_reason(error)} ({ATTEMPTS} attempts)"
                raise UnreachableError(message) from error
            progress(reached, None, f"{description}: {_reason(error)}, trying again")
            time.sleep(BACKOFF_S * 2**failures)
        else:
            return bool(resumed and start)


def discard(part: Path) -> None:
    """Remove a ``.part`` file and its notes."""
    part.unlink(missing_ok=True)
    beside(part, ".json").unlink(missing_ok=True)


def _resumable(url: str, part: Path) -> tuple[int, str]:
    """Return how many bytes of `url` the part holds, and their validator; (0, "") to start over."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        noted = json.loads(beside(part, ".json").read_text(encoding="utf-8"))
        if noted["url"] == url and noted["validator"]:
            return part.stat().st_size, str(noted["validator"])
    return 0, ""


def _attempt(url: str, part: Path, progress: Progress, description: str) -> int:
    """Request the missing bytes and append them to the part; return the position of the first of them."""
    have, validator = _resumable(url, part)
    headers = {"Accept-Encoding": "identity"}  # ranges count the bytes of the file
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as response:
        _check_status(response, part)
        start = have if response.status_code == 206 else 0
        if start and (not _continues(response, have) or _validator(response) != validator):
            discard(part)
            message = "the server continued another file"
            raise _BrokenError(message)
        if not start:
            discard(part)
            noted = json.dumps({"url": url, "validator": _validator(response)})
            beside(part, ".json").write_text(noted, encoding="utf-8")
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdigit() else None
        done = start
        with part.open("ab") as out:
            progress(done, total, description)
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                out.write(chunk)
                done += len(chunk)
                progress(done, total, description)
    if total is not None and done != total:
        message = f"the answer ended after {done} of {total} bytes"
        raise _BrokenError(message)
    return start


def _check_status(response: requests.Response, part: Path) -> None:
    """Raise for an answer without content."""
    status = response.status_code
    answer = f"HTTP {status} {response.reason or ''}".rstrip()
    if status in {404, 410}:
        raise NotThereError(answer)
    if status == 416:  # the part is longer than the file, so it belongs to another file
        discard(part)
    if status == 416 or status >= 500:
        raise _BrokenError(answer)
    if status not in {200, 206}:
        raise TransferError(answer)


def _continues(response: requests.Response, have: int) -> bool:
    """Tell whether a partial answer begins where the part ends."""
    return bool(re.match(rf"bytes {have}-", response.headers.get("Content-Range", "")))


def _validator(response: requests.Response) -> str:
    """Return what identifies this version of the file: a strong ETag, else its date, else nothing."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _reason(error: Exception) -> str:
    """Return an exception in a few words; requests wraps the informative exception several layers deep."""
    if isinstance(error, requests.exceptions.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return f"no secure connection ({error})"
    if isinstance(error, requests.exceptions.ConnectionError):
        return "no connection"
    if isinstance(error, HTTPError):
        return "the connection broke"
    return str(error)

"""Transfer one file over HTTP into a ``.part`` file, which a later attempt or run can resume.

A thread receives what the server sends, so that a server that sends next to nothing, even within the headers, does not
block the caller, who writes.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import closing, suppress
from http.client import HTTPException, LineTooLong
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from klr_bench.datasets.cache import Progress, beside
from klr_bench.errors import KlrBenchError
from klr_bench.files import read_json

ATTEMPTS = 4  # consecutive attempts without a new byte
BACKOFF_S = 0.5  # doubled after each attempt
TIMEOUT_S = (10.0, 60.0)  # to connect; between two pieces of the answer
CHUNK = 1 << 14  # bytes; a broken connection loses at most this many, and an attempt that brings fewer has failed
WINDOW_S, LEAST = 90.0, 90_000  # a server that sends fewer bytes in so many seconds is given up
AHEAD = 16  # chunks that are received before the first of them is written
FREE_SHARE = 0.9  # share of the free disk that an answer of unknown length may take


class TransferError(Exception):
    """A source did not provide the file; the message says why in a few words."""


class NotThereError(TransferError):
    """A source answered, and does not have the file."""


class UnreachableError(TransferError):
    """A source did not answer, or broke off, in all attempts."""


class _AttemptError(Exception):
    """An attempt failed in a way that another attempt may not."""


def download(url: str, part: Path, progress: Progress, description: str, limit: int) -> bool:
    """Download `url` into the file `part`; return True if some of its bytes may come from an earlier call.

    Connection errors, truncated answers and HTTP 5xx are tried again, with increasing waits, from the point where the
    transfer stopped; other answers are not.  Raises TransferError, also for more than `limit` bytes, and
    UnreachableError after the last attempt and for a server that is too slow.
    """
    resumed = furthest = _resumable(url, part)[0]
    failures = 0
    while True:
        try:
            start = _attempt(url, part, progress, description, limit)
        except _AttemptError as error:
            reached = part.stat().st_size if part.exists() else 0
            failures = 0 if reached >= furthest + CHUNK else failures + 1
            furthest = max(furthest, reached)
            if failures >= ATTEMPTS:
                message = f"{error} ({ATTEMPTS} attempts)"
                raise UnreachableError(message) from error
            progress(reached, None, f"{description}: {error}, trying again")
            time.sleep(BACKOFF_S * 2**failures)
        else:
            return bool(resumed and start)


def check_size(size: int, limit: int) -> None:
    """Refuse a file that is larger than the limit."""
    if size > limit:
        message = f"more than {limit:,} bytes; if that is right, give the file a larger max_bytes in configs/source"
        raise TransferError(message)


def discard(part: Path) -> None:
    """Remove a ``.part`` file and the note about it."""
    part.unlink(missing_ok=True)
    beside(part, ".json").unlink(missing_ok=True)


def _resumable(url: str, part: Path) -> tuple[int, str]:
    """Return how many bytes of `url` the part holds, and their validator; (0, "") to start over."""
    with suppress(OSError, KlrBenchError, KeyError, TypeError):
        note, state = read_json(beside(part, ".json")), part.lstat()
        if note["url"] == url and _is_validator(note["validator"]) and stat.S_ISREG(state.st_mode):
            return state.st_size, str(note["validator"])
    return 0, ""


def _attempt(url: str, part: Path, progress: Progress, description: str, limit: int) -> int:
    """Request the missing bytes and append them to the part; return the position of the first of them."""
    have, validator = _resumable(url, part)
    headers = {"Accept-Encoding": "identity"}  # ranges count the bytes of the file
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    with closing(_answer(url, headers)) as answer:
        response: requests.Response = next(answer)
        start, total = _extent(response, have, validator, part)
        if not start:
            discard(part)
            note = json.dumps({"url": url, "validator": _validator(response)})
            beside(part, ".json").write_text(note, encoding="utf-8")
        if total is None:
            limit = min(limit, start + int(shutil.disk_usage(part.parent).free * FREE_SHARE))
        done = start
        with part.open("ab") as out:
            progress(done, total, description)
            for chunk in answer:
                done += len(chunk)
                try:
                    check_size(max(done, total or 0), limit)
                except TransferError:
                    discard(part)
                    raise
                out.write(chunk)
                progress(done, total, description)
    if total is not None and done != total:
        message = f"the answer ended after {done} of {total} bytes"
        raise _AttemptError(message)
    return start


def _extent(response: requests.Response, have: int, validator: str, part: Path) -> tuple[int, int | None]:
    """Return where the content of an answer begins in the file, and the size of the whole file, if it is known.

    Raises TransferError and _AttemptError for an answer that is of no use.
    """
    status = response.status_code
    answer = f"HTTP {status} {response.reason or ''}".rstrip()
    if status in {404, 410}:
        raise NotThereError(answer)
    if status == 416:  # the part is longer than the file, so it belongs to another file
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
        message = "the server continued another file"
        raise _AttemptError(message)
    return have, int(match[2])


def _validator(response: requests.Response) -> str:
    """Return what identifies this version of the file: a strong ETag, else its date, else nothing."""
    etag = response.headers.get("ETag", "")
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    return validator if _is_validator(validator) else ""


def _is_validator(text: Any) -> bool:
    return isinstance(text, str) and text.isascii() and text.isprintable() and bool(text)


def _answer(url: str, headers: Mapping[str, str]) -> Generator[Any]:
    """Yield the response, then its content in chunks.  Raises TransferError and _AttemptError."""
    pieces: Queue[Any] = Queue(AHEAD)
    closed = threading.Event()
    threading.Thread(target=_receive, args=(url, headers, pieces, closed), daemon=True).start()
    begun, count = time.monotonic(), 0
    try:
        while True:
            try:
                piece = pieces.get(timeout=max(0.0, begun + WINDOW_S - time.monotonic()))
            except Empty:
                if count < LEAST:
                    message = f"too slow: fewer than {LEAST:,} bytes in {WINDOW_S:g} seconds"
                    raise UnreachableError(message) from None
                begun, count = time.monotonic(), 0
                continue
            if piece is None:
                return
            if isinstance(piece, Exception):
                raise piece
            count += len(piece) if isinstance(piece, bytes) else 0
            yield piece
    finally:
        closed.set()


def _receive(url: str, headers: Mapping[str, str], pieces: Queue[Any], closed: threading.Event) -> None:
    """Put the response, the chunks of its content, and None or an exception; end when `closed` is set."""

    def put(piece: Any) -> None:
        while not closed.is_set():
            with suppress(Full):
                pieces.put(piece, timeout=1.0)
                break

    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as response:
            put(response)
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                put(chunk)
                if closed.is_set():
                    return
        put(None)
    except Exception as error:
        put(_explained(error))


def _explained(error: Exception) -> Exception:
    """Return a TransferError or an _AttemptError that says in a few words why there is no answer."""
    if isinstance(error, requests.TooManyRedirects):
        return TransferError("it redirects without end")
    if isinstance(error, ValueError):  # requests and urllib3 raise several kinds, also for a redirect
        return TransferError(f"no address that can be asked ({error})")
    if _has_endless_headers(error):
        return TransferError("its answer begins with more than a server of files sends (headers without end)")
    if isinstance(error, requests.exceptions.Timeout):
        return _AttemptError("no answer in time")
    if isinstance(error, requests.exceptions.SSLError):
        return _AttemptError(f"no secure connection ({error})")
    if isinstance(error, requests.exceptions.ConnectionError):
        return _AttemptError("no connection")
    return _AttemptError("the connection broke" if isinstance(error, HTTPError) else str(error))


def _has_endless_headers(error: BaseException) -> bool:
    """Return True if http.client gave up on the headers; several libraries wrap its exception."""
    errors = [error]
    while errors:
        one = errors.pop()
        if type(one) in (HTTPException, LineTooLong):
            return True
        errors += [inner for inner in (*one.args, one.__cause__, one.__context__) if isinstance(inner, BaseException)]
    return False

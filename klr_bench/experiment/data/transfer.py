"""Download one file over HTTP into a ``.part`` file, which a later attempt or run can resume.

A thread reads what the server sends, so that one that sends next to nothing, be it in the headers, does not hold up the
caller, who writes.
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

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.data.cache import Progress, beside
from klr_bench.files import read_json

ATTEMPTS = 4  # consecutive attempts without a new byte
BACKOFF_S = 0.5  # doubled after each attempt
TIMEOUT_S = (10.0, 60.0)  # to connect; between two pieces of the answer
CHUNK = 1 << 14  # bytes; a broken connection loses at most this many, and an attempt that brings fewer has failed
WINDOW_S, LEAST = 90.0, 90_000  # a server that sends fewer bytes in so many seconds is given up
AHEAD = 16  # chunks that are read before the first of them is written
FREE_SHARE = 0.9  # of the free disk: the most that an answer of unknown length may take


class TransferError(Exception):
    """A source did not provide the file; the message says why in a few words."""


class NotThereError(TransferError):
    """A source answered, and does not have the file."""


class UnreachableError(TransferError):
    """A source did not answer, or broke off, in all attempts."""


class _BrokenError(Exception):
    """An attempt failed in a way that another attempt may not."""


def download(url: str, part: Path, progress: Progress, description: str, limit: int) -> bool:
    """Download `url` into the file `part`; return True if some of its bytes may come from an earlier call.

    Connection errors, truncated answers and HTTP 5xx are tried again, with increasing waits, from the point where the
    transfer stopped; other answers are not.  Raises TransferError, also for more than `limit` bytes, and
    UnreachableError after the last attempt and of a server that is too slow.
    """
    resumed = furthest = _resumable(url, part)[0]
    failures = 0
    while True:
        try:
            start = _attempt(url, part, progress, description, limit)
        except _BrokenError as error:
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


def beyond(limit: int) -> str:
    """Return the reason why a file is refused that is larger than the limit."""
    return f"more than {limit:,} bytes; if that is right, give the file a larger max_bytes in configs/source"


def discard(part: Path) -> None:
    """Remove a ``.part`` file and its notes."""
    part.unlink(missing_ok=True)
    beside(part, ".json").unlink(missing_ok=True)


def _resumable(url: str, part: Path) -> tuple[int, str]:
    """Return how many bytes of `url` the part holds, and their validator; (0, "") to start over."""
    with suppress(OSError, KlrBenchError, KeyError, TypeError):
        noted, state = read_json(beside(part, ".json")), part.lstat()
        if noted["url"] == url and _is_validator(noted["validator"]) and stat.S_ISREG(state.st_mode):
            return state.st_size, str(noted["validator"])
    return 0, ""


def _attempt(url: str, part: Path, progress: Progress, description: str, limit: int) -> int:
    """Request the missing bytes and append them to the part; return the position of the first of them."""
    have, validator = _resumable(url, part)
    headers = {"Accept-Encoding": "identity"}  # ranges count the bytes of the file
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    with closing(_answer(url, headers)) as answer:
        response: Any = next(answer)
        _check_status(response, part)
        start = have if response.status_code == 206 else 0
        if response.status_code == 206 and (
            _range(response)[0] != have or (have and _validator(response) != validator)
        ):
            discard(part)
            message = "the server continued another file"
            raise _BrokenError(message)
        if not start:
            discard(part)
            noted = json.dumps({"url": url, "validator": _validator(response)})
            beside(part, ".json").write_text(noted, encoding="utf-8")
        total = _total(response, start)
        if total is None:
            limit = min(limit, start + int(shutil.disk_usage(part.parent).free * FREE_SHARE))
        done = start
        with part.open("ab") as out:
            progress(done, total, description)
            for chunk in answer:
                done += len(chunk)
                _check_size(max(done, total or 0), limit, part)
                out.write(chunk)
                progress(done, total, description)
    if total is not None and done != total:
        message = f"the answer ended after {done} of {total} bytes"
        raise _BrokenError(message)
    return start


def _answer(url: str, headers: Mapping[str, str]) -> Generator[Any]:
    """Yield the head of an answer, then its content in chunks.  Raises TransferError and _BrokenError."""
    pieces: Queue[Any] = Queue(AHEAD)
    left = threading.Event()
    threading.Thread(target=_receive, args=(url, headers, pieces, left), daemon=True).start()
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
        left.set()


def _receive(url: str, headers: Mapping[str, str], pieces: Queue[Any], left: threading.Event) -> None:
    """Put the head of an answer, the chunks of its content, and None or an exception; end when the taker has left."""

    def put(piece: Any) -> None:
        while not left.is_set():
            with suppress(Full):
                pieces.put(piece, timeout=1.0)
                break

    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as response:
            put(response)
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                put(chunk)
                if left.is_set():
                    return
        put(None)
    except Exception as error:
        put(_failure(error))


def _failure(error: Exception) -> Exception:
    """Return the TransferError or _BrokenError that says why there is no answer."""
    if isinstance(error, requests.TooManyRedirects):
        return TransferError("it redirects without end")
    if isinstance(error, ValueError):  # requests and urllib3 raise several kinds, also for a redirect
        return TransferError(f"no address that can be asked ({error})")
    if _is_no_http(error):
        return TransferError("its answer begins with more than a server of files sends (headers without end)")
    return _BrokenError(_reason(error))


def _is_no_http(error: BaseException | None) -> bool:
    """Say whether http.client gave up over the number or length of headers: several libraries wrap its exception."""
    seen = [error] if error is not None else []
    while seen:
        one = seen.pop()
        if type(one) in (HTTPException, LineTooLong):
            return True
        seen += [inner for inner in (*one.args, one.__cause__, one.__context__) if isinstance(inner, BaseException)]
    return False


def _check_size(size: int, limit: int, part: Path) -> None:
    if size > limit:
        discard(part)
        raise TransferError(beyond(limit))


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


def _range(response: requests.Response) -> tuple[int, int] | tuple[None, None]:
    """Return where a partial answer begins, and the size of the whole file, as far as they are said."""
    said = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18})", response.headers.get("Content-Range", ""), re.ASCII)
    return (int(said[1]), int(said[2])) if said else (None, None)


def _total(response: requests.Response, start: int) -> int | None:
    """Return the size of the whole file, None where the answer does not say it."""
    if response.status_code == 206:
        return _range(response)[1]
    length = response.headers.get("Content-Length", "")
    return start + int(length) if re.fullmatch(r"\d{1,18}", length, re.ASCII) else None


def _validator(response: requests.Response) -> str:
    """Return what identifies this version of the file: a strong ETag, else its date, else nothing."""
    etag = response.headers.get("ETag", "")
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    return validator if _is_validator(validator) else ""


def _is_validator(text: Any) -> bool:
    """Say whether text may stand in a header."""
    return isinstance(text, str) and text.isascii() and text.isprintable() and bool(text)


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

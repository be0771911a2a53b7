"""Attacks on downloads: whatever a server sends, the right bytes land in the cache, or one message says why not."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from klr_bench.config.models import FileEntry
from klr_bench.datasets import download as fetch_module
from klr_bench.datasets import transfer
from klr_bench.datasets.download import fetch
from klr_bench.errors import KlrBenchError
from tests.attack.promise import check_message, rejected

PLAIN = Random(0).randbytes(60_000)
SHA256 = hashlib.sha256(PLAIN).hexdigest()
NAME = "set/file"
Behaviour = Callable[[socket.socket, bytes], None]


class Server:
    """A server on the loopback that does with each connection what `behaviours` says for its path."""

    def __init__(self) -> None:
        self.behaviours: dict[str, Behaviour] = {}
        self.asked: list[str] = []
        self.stopped = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self.stopped.set()
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            request = b""
            while request[:1] in b"G" and b"\r\n\r\n" not in request and (piece := connection.recv(65536)):
                request += piece
            path = request.split(b" ")[1].decode("latin-1") if request.count(b" ") > 1 else ""
            self.asked.append(path)
            if path in self.behaviours:
                self.behaviours[path](connection, request)
            else:
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(1.0)
            while connection.recv(65536):  # so that what was sent is not lost in a reset
                pass


def sends(content: bytes) -> Behaviour:
    return lambda connection, request: connection.sendall(content)


def answer(*headers: str, status: str = "200 OK", body: bytes = PLAIN, length: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close", *([f"Content-Length: {len(body)}"] if length else []), *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(transfer, "BACKOFF_S", 0.0)
    monkeypatch.setattr(transfer, "ATTEMPTS", 2)
    monkeypatch.setattr(transfer, "TIMEOUT_S", (2.0, 2.0))
    monkeypatch.setenv("NO_PROXY", "*")
    running = Server()
    running.behaviours["/right"] = sends(answer())
    yield running
    running.close()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def entry(server: Server, path: str = "/up", **more: Any) -> FileEntry:
    return FileEntry(**{"name": NAME, "sha256": SHA256, "url": server.url + path, **more})


def left_over(cache: Path) -> set[str]:
    """Return the names in the cache beyond the file, its stamp and lock, and what a later run resumes."""
    usual = {f"{NAME}{suffix}" for suffix in ("", ".stamp", ".lock", ".part", ".part.json")}
    return {str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()} - usual


def check_beside_a_right_place(server: Server, cache: Path) -> None:
    """What is at the mirror is odd: the file comes from upstream; what is upstream is odd: one message."""
    mirrored = entry(server, "/right")
    odd = server.behaviours["/up"]
    server.behaviours |= {f"/mirror/{NAME}{suffix}": odd for suffix in ("", ".xz", ".gz", ".bz2")}
    assert fetch(mirrored, cache=cache, mirror=f"{server.url}/mirror").read_bytes() == PLAIN
    assert left_over(cache) == set()


CHUNKED = "Transfer-Encoding: chunked"
REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "no connection (2 attempts)"),
    "rubbish": (b"\x16\x03\x01\x02\0\x01\0\x01\xfc" * 50, ""),
    "a banner of ssh": (b"SSH-2.0-OpenSSH_9.2\r\n", ""),
    "HTTP/0.9": (PLAIN, ""),
    "a header without end": (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 2**18, ""),
    "a thousand headers": (answer(*(f"X-{i}: {i}" for i in range(1000))), ""),
    "a status of four digits": (answer(status="2000 OK"), ""),
    "a status without a number": (answer(status="OK"), ""),
    "control characters in the status": (answer(status="403 \x1b[31mred\x07"), "HTTP 403 \\x1b[31mred\\x07"),
    "an endless status": (answer(status="403 " + "a" * 60_000), "HTTP 403 aaa"),
    "204": (answer(status="204 No Content", body=b""), "HTTP 204 No Content"),
    "304": (answer(status="304 Not Modified", body=b""), "HTTP 304 Not Modified"),
    "300 without a place": (answer(status="300 Multiple Choices"), "HTTP 300 Multiple Choices"),
    "206 that nobody asked for": (answer("Content-Range: bytes 0-9/20", status="206 Partial", body=PLAIN[:10]), ""),
    "206 from another place": (answer("Content-Range: bytes 9-18/20", status="206 Partial", body=PLAIN[:10]), ""),
    "206 without a range": (answer(status="206 Partial"), "the server continued another file"),
    "206 with a range of words": (answer("Content-Range: bytes all", status="206 Partial"), "another file"),
    "416": (answer(status="416 Range Not Satisfiable"), "HTTP 416"),
    "a length that is too long": (answer("Content-Length: 999999", length=False), "(2 attempts)"),
    "a length that is too short": (answer("Content-Length: 10", length=False), "wrong content"),
    "two lengths": (answer("Content-Length: 10"), ""),
    "chunks of no number": (answer(CHUNKED, length=False, body=b"zz\r\nabc\r\n"), "(2 attempts)"),
    "chunks of a negative size": (answer(CHUNKED, length=False, body=b"-5\r\nabc\r\n"), ""),
    "a chunk that is cut": (answer(CHUNKED, length=False, body=b"ffff\r\nabc"), "(2 attempts)"),
    "a chunk of 2^62 bytes": (answer(CHUNKED, length=False, body=b"4000000000000000\r\nabc"), "(2 attempts)"),
    "other bytes": (answer(body=PLAIN[::-1]), "wrong content: sha256 is"),
    "a page of HTML": (answer("Content-Type: text/html", body=b"<html>"), "wrong content: sha256 is"),
    "a gz that is cut": (answer(body=gzip.compress(PLAIN)[:-100]), "truncated or corrupted"),
    "an xz that is cut": (answer(body=lzma.compress(PLAIN)[:-100]), "truncated or corrupted"),
    "a bz2 that is cut": (answer(body=bz2.compress(PLAIN)[:-100]), "truncated or corrupted"),
    "rubbish behind a gz": (answer(body=gzip.compress(PLAIN) + b"rubbish"), "truncated or corrupted"),
    "compressed twice": (answer(body=gzip.compress(gzip.compress(PLAIN))), "wrong content"),
    "a compressed bomb": (answer(body=gzip.compress(bytes(2**24)) * 8), "unpacks to more than 200 times its size"),
    "a body beyond the limit": (answer(body=PLAIN * 20), "more than 1,000,000 bytes"),
    "a declared length beyond the limit": (
        answer("Content-Length: 1000001", length=False),
        "more than 1,000,000 bytes",
    ),
    "a declared length beyond 64 bits": (answer(f"Content-Length: {10**30}", length=False), ""),
}
PLACES = [
    *("http://", "http://[", "http://[::1", "http://a..b/", "http://.../", "http://127.0.0.1:99999/", "http://\x01/"),
    *("file:///etc/passwd", "ftp://127.0.0.1/a", "//", "http:///a", "javascript:1", "data:,a", "http://" + "a" * 300),
    *("http://127.0.0.1:a/", "http://user:pass@[::1]:x/", "\x1b[31m", "http://xn--/", "http://\xff/", "/up", "?", ""),
]
REFUSED |= {
    f"a redirect to {place[:30]!a}": (answer(f"Location: {place}", status="302 Found", body=b""), "")
    for place in PLACES
}
ACCEPTED: dict[str, bytes] = {
    "a negative length": answer("Content-Length: -5", length=False),
    "a length in words": answer("Content-Length: many", length=False),
    "a length of a superscript": answer("Content-Length: \xb2", length=False),
    "no length": answer(length=False),
    "gzip as Content-Encoding": answer("Content-Encoding: gzip", body=gzip.compress(PLAIN)),
    "a wrong Content-Encoding": answer("Content-Encoding: br"),
    "a validator of control characters": answer('ETag: "\x01\x1b"'),
    "chunks": answer(CHUNKED, length=False, body=b"".join(b"1\r\n%c\r\n" % byte for byte in PLAIN) + b"0\r\n\r\n"),
    "206 of the whole": answer(f"Content-Range: bytes 0-{len(PLAIN) - 1}/{len(PLAIN)}", status="206 Partial Content"),
    "a hundred 100 Continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 50 + answer(),
    "packed with gz": answer(body=gzip.compress(PLAIN)),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", REFUSED)
def test_an_answer_that_is_refused(name: str, server: Server, cache: Path) -> None:
    content, reason = REFUSED[name]
    server.behaviours["/up"] = sends(content)
    message = rejected(lambda: fetch(entry(server, max_bytes=10**6), cache=cache), reason, f"{server.url}/up")
    assert "cannot be had" in message
    assert not (cache / NAME).exists()
    check_beside_a_right_place(server, cache)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ACCEPTED)
def test_an_odd_answer_with_the_right_bytes(name: str, server: Server, cache: Path) -> None:
    server.behaviours["/up"] = sends(ACCEPTED[name])
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    assert left_over(cache) == set()


def damaged(content: bytes, draw: Random) -> bytes:
    """Return an answer with one to three changes, most of them in its head."""
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(min(len(content), draw.choice([20, 200, 70_000])) or 1)
        insert = draw.choice([b"", b"\r\n", b"\n", b"\0", b":", b"9", b"\xff", b"a" * 70_000, b"\r\n\r\n"])
        content = content[:at] + insert + content[at + draw.choice([0, 1, 1, 5, 50]) :]
    return content[: draw.choice([len(content), len(content), draw.randrange(len(content) + 1)])]


@pytest.mark.timeout(120)
@pytest.mark.exhaustive
@pytest.mark.drawn(0.05)
def test_a_damaged_answer(draw: Random, server: Server, cache: Path) -> None:
    right = draw.choice(list(ACCEPTED.values()))
    server.behaviours["/up"] = sends(damaged(right, draw))
    try:
        found = fetch(entry(server, max_bytes=10**6), cache=cache)
    except KlrBenchError as error:
        check_message(str(error))
        assert not (cache / NAME).exists()
    else:
        assert found.read_bytes() == PLAIN
    assert left_over(cache) == set()


def resume(cache: Path, server: Server, noted: Any, part: bytes = PLAIN[:20_000]) -> None:
    """Leave the part of an earlier run, and its note."""
    (cache / "set").mkdir(parents=True)
    (cache / f"{NAME}.part").write_bytes(part)
    text = noted if isinstance(noted, str) else json.dumps({"url": f"{server.url}/up", "validator": '"one"'} | noted)
    (cache / f"{NAME}.part.json").write_text(text)


RESUMED = {
    "the whole with 200": answer('ETag: "one"'),
    "the rest": answer('ETag: "one"', "Content-Range: bytes 20000-59999/60000", status="206 P", body=PLAIN[20_000:]),
    "another part": answer(
        'ETag: "one"', "Content-Range: bytes 30000-59999/60000", status="206 P", body=PLAIN[30_000:]
    ),
    "less of it": answer(
        'ETag: "one"', "Content-Range: bytes 20000-29999/60000", status="206 P", body=PLAIN[20_000:30_000]
    ),
    "of another version": answer(
        'ETag: "two"', "Content-Range: bytes 20000-59999/60000", status="206 P", body=PLAIN[20_000:]
    ),
    "beyond its end": answer(status="416 Range Not Satisfiable"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", RESUMED)
@pytest.mark.parametrize("part", [PLAIN[:20_000], PLAIN[1:20_001]], ids=["right", "wrong"])
@pytest.mark.parametrize(
    "noted", [{}, {"validator": '"o\nne"'}, {"validator": 5}, {"url": None}, "[]", "{", "\0"], ids=str
)
def test_a_part_is_continued_with_the_right_bytes_or_begun_anew(
    name: str, part: bytes, noted: Any, server: Server, cache: Path
) -> None:
    def behave(connection: socket.socket, request: bytes) -> None:
        ranged = b"range: bytes=20000-" in request.lower()
        connection.sendall(RESUMED[name] if ranged else answer('ETag: "one"'))

    server.behaviours["/up"] = behave
    resume(cache, server, noted, part)
    try:
        assert fetch(entry(server), cache=cache).read_bytes() == PLAIN
    except KlrBenchError as error:
        check_message(str(error))
        assert name == "less of it"
    assert left_over(cache) == set()


# -- without end -----------------------------------------------------------------------------------------


def drips(head: bytes, drop: bytes = b"1") -> Behaviour:
    """Return what sends a head, then a drop at a time until the test ends."""

    def behave(connection: socket.socket, request: bytes) -> None:
        connection.sendall(head)
        for _ in range(3000):
            connection.sendall(drop)
            time.sleep(0.01)

    return behave


DRIPS = {
    "in the status": b"",
    "in a header": b"HTTP/1.1 200 OK\r\nX: ",
    "in the body": b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n",
    "in a body of no length": b"HTTP/1.1 200 OK\r\n\r\n",
    "in the size of a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;",
    "in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
    "in the body of an error": b"HTTP/1.1 500 No\r\nContent-Length: 9999999\r\n\r\n",
    "in a redirect": b"HTTP/1.1 302 No\r\nLocation: ",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", DRIPS)
def test_a_server_that_drips_is_given_up(
    name: str, server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "WINDOW_S", 0.15)
    server.behaviours["/up"] = drips(DRIPS[name])
    reason = "HTTP 500 No" if name == "in the body of an error" else "too slow: fewer than 90,000 bytes in 0.15 seconds"
    rejected(lambda: fetch(entry(server), cache=cache), reason)
    monkeypatch.setattr(transfer, "WINDOW_S", 30.0)
    assert fetch(entry(server, "/right"), cache=cache).read_bytes() == PLAIN


@pytest.mark.timeout(60)
def test_a_slow_server_that_sends_enough_is_waited_for(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "WINDOW_S", 0.2)
    monkeypatch.setattr(transfer, "LEAST", 100)
    monkeypatch.setattr(transfer, "CHUNK", 1000)

    def behave(connection: socket.socket, request: bytes) -> None:
        connection.sendall(answer()[:-60_000])
        for at in range(0, 60_000, 5000):
            connection.sendall(PLAIN[at : at + 5000])
            time.sleep(0.05)

    server.behaviours["/up"] = behave
    assert fetch(entry(server), cache=cache).read_bytes() == PLAIN


def endless(head: bytes, piece: bytes) -> Behaviour:
    def behave(connection: socket.socket, request: bytes) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return behave


ENDLESS = {
    "bytes": (b"HTTP/1.1 200 OK\r\n\r\n", PLAIN),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"ea60\r\n" + PLAIN + b"\r\n"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X: a\r\n"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ENDLESS)
def test_an_answer_without_end_is_refused(
    name: str, server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "MOST_BYTES", 2**20)
    server.behaviours["/up"] = endless(*ENDLESS[name])
    larger = "more than 1,048,576 bytes; if that is right, give the file a larger"
    reason = "headers without end" if name == "headers" else larger
    rejected(lambda: fetch(entry(server), cache=cache), reason)
    assert not list(cache.rglob("*.part"))
    check_beside_a_right_place(server, cache)


@pytest.mark.exhaustive
def test_a_server_that_drips_lines_of_headers_is_asked_once(server: Server, cache: Path) -> None:
    """Python's reader gives up after a hundred lines: another attempt would take as long again."""
    server.behaviours["/up"] = drips(b"HTTP/1.1 200 OK\r\n", b"X: a\r\n")
    rejected(lambda: fetch(entry(server), cache=cache), "headers without end")
    assert server.asked == ["/up"]


def test_an_answer_of_unknown_length_leaves_room_on_the_disk(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "FREE_SHARE", 0.0)
    server.behaviours["/up"] = sends(answer(length=False))
    rejected(lambda: fetch(entry(server), cache=cache), "more than 0 bytes")
    assert fetch(entry(server, "/right"), cache=cache).read_bytes() == PLAIN


def test_what_unpacks_beyond_the_limit_is_refused(server: Server, cache: Path) -> None:
    server.behaviours["/up"] = sends(answer(body=gzip.compress(bytes(10**6))))
    rejected(lambda: fetch(entry(server, max_bytes=10**5), cache=cache), "more than 100,000 bytes")


def test_redirects_in_a_circle_are_not_followed_for_ever(server: Server, cache: Path) -> None:
    for path, to in (("/up", "/other"), ("/other", "/up")):
        server.behaviours[path] = sends(answer(f"Location: {server.url}{to}", status="301 Moved", body=b""))
    rejected(lambda: fetch(entry(server), cache=cache), "it redirects without end")
    assert len(server.asked) <= 31


def test_a_redirect_to_a_malformed_address_does_not_hide_a_working_upstream(server: Server, cache: Path) -> None:
    server.behaviours[f"/mirror/{NAME}"] = sends(answer("Location: http://a..b/", status="302 Found", body=b""))
    assert fetch(entry(server, "/right"), cache=cache, mirror=f"{server.url}/mirror").read_bytes() == PLAIN
    assert server.asked[-1] == "/right"


def test_https_on_a_plain_port(server: Server, cache: Path) -> None:
    address = entry(server).model_copy(update={"url": server.url.replace("http:", "https:") + "/right"})
    rejected(lambda: fetch(address, cache=cache), "no secure connection")


@pytest.mark.parametrize(
    "mirror", ["http://", "http://[", "https://a..b", "http://\x1b[31m", "", " ", "\0", "ftp://a", "-"]
)
def test_odd_mirrors(mirror: str, server: Server, cache: Path) -> None:
    assert fetch(entry(server, "/right"), cache=cache, mirror=mirror).read_bytes() == PLAIN

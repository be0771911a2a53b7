"""Unusual responses: either the correct bytes reach the cache, or one message says why not."""

import gzip
import lzma
import socket
from pathlib import Path

import pytest

from klr_bench.datasets import download as fetch_module
from klr_bench.datasets import transfer
from klr_bench.datasets.download import fetch
from tests.attack.promise import rejected
from tests.datasets.server import Behavior, Request, Server, answer
from tests.datasets.test_download import NAME, PLAIN, check_complete, entry


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "ATTEMPTS", 2)
    monkeypatch.setattr(transfer, "TIMEOUT_S", (2.0, 2.0))


def sends(content: bytes) -> Behavior:
    return lambda connection, request: connection.sendall(content)


def whole(*headers: str, status: str = "200 OK", body: bytes = PLAIN) -> bytes:
    return answer(*headers, status=status, body=body, length=len(body))


def check_fallback(server: Server, cache: Path, odd: Behavior) -> None:
    """Check that a file is fetched from upstream if the mirror sends an odd response, and that nothing else is left."""
    server.replies |= {f"/mirror/{NAME}{suffix}": [odd] for suffix in ("", ".xz", ".gz", ".bz2")}
    server.replies["/right"] = [sends(whole())]
    fetch(entry(server, "/right"), cache=cache, mirror=f"{server.url}/mirror")
    check_complete(cache)


CHUNKED = "Transfer-Encoding: chunked"
REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "no connection (2 attempts)"),
    "a header without end": (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 2**18, ""),
    "control characters in the status": (whole(status="403 \x1b[31mred\x07"), "HTTP 403 \\x1b[31mred\\x07"),
    "204": (whole(status="204 No Content", body=b""), "HTTP 204 No Content"),
    "206 without a range": (whole(status="206 Partial"), "the server sent part of a different file"),
    "a length that is too long": (answer(length=999_999, body=PLAIN), "(2 attempts)"),
    "chunks of no number": (answer(CHUNKED, body=b"zz\r\nabc\r\n"), "(2 attempts)"),
    "other bytes": (whole(body=PLAIN[::-1]), "wrong content: sha256 is"),
    "an xz that is cut": (whole(body=lzma.compress(PLAIN)[:-100]), "truncated or corrupted"),
    "a compressed bomb": (whole(body=gzip.compress(bytes(2**25)) * 4), "more than 1,000,000 bytes"),
    "a declared length beyond the limit": (answer(length=1_000_001, body=PLAIN), "more than 1,000,000 bytes"),
    "a circle": (answer("Location: /up", status="301 Moved", length=0), "not a usable URL"),
}
PLACES = ["http://[", "http://127.0.0.1:99999/", "file:///etc/passwd", "ftp://127.0.0.1/a", "\x1b[31m", "//", ""]
REFUSED |= {f"a redirect to {place[:30]!a}": (whole(f"Location: {place}", status="302 Found"), "") for place in PLACES}
ACCEPTED: dict[str, bytes] = {
    "no length": answer(body=PLAIN),
    "gzip as Content-Encoding": whole("Content-Encoding: gzip", body=gzip.compress(PLAIN)),
    "a wrong Content-Encoding": whole("Content-Encoding: br"),
    "chunks": answer(CHUNKED, body=b"".join(b"1\r\n%c\r\n" % byte for byte in PLAIN) + b"0\r\n\r\n"),
    "206 of the whole": whole(f"Content-Range: bytes 0-{len(PLAIN) - 1}/{len(PLAIN)}", status="206 Partial Content"),
    "a hundred 100 Continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 50 + whole(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_responses_are_rejected(name: str, server: Server, cache: Path) -> None:
    content, reason = REFUSED[name]
    server.replies["/up"] = [sends(content)]
    at_most = entry(server).model_copy(update={"max_bytes": 10**6})
    message = rejected(lambda: fetch(at_most, cache=cache), reason, f"{server.url}/up")
    assert "is not available" in message
    assert not (cache / NAME).exists()
    check_fallback(server, cache, sends(content))


@pytest.mark.parametrize("name", ACCEPTED)
def test_unusual_responses_with_correct_bytes(name: str, server: Server, cache: Path) -> None:
    check_fallback(server, cache, sends(ACCEPTED[name]))
    assert [request.path for request in server.requests] == [f"/mirror/{NAME}"]


HEAD = b"HTTP/1.1 200 OK\r\n"


def endless(head: bytes, piece: bytes) -> Behavior:
    """Return a behavior that sends a head, then pieces without end."""

    def behave(connection: socket.socket, request: Request) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return behave


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("head", "piece", "reason"),
    [
        (HEAD + b"\r\n", PLAIN, "more than 1,048,576 bytes; if this is correct, increase max_bytes"),
        (HEAD + CHUNKED.encode() + b"\r\n\r\n", b"%x\r\n" % len(PLAIN) + PLAIN + b"\r\n", "more than 1,048,576 bytes"),
        (HEAD, b"X: a\r\n", "no connection (2 attempts)"),
    ],
)
def test_an_endless_response_is_rejected(
    head: bytes, piece: bytes, reason: str, server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "MOST_BYTES", 2**20)
    server.replies["/up"] = [endless(head, piece)]
    rejected(lambda: fetch(entry(server), cache=cache), reason)
    assert not list(cache.rglob("*.part"))


def test_https_on_a_plain_port(server: Server, cache: Path) -> None:
    address = entry(server).model_copy(update={"url": server.url.replace("http:", "https:") + "/right"})
    rejected(lambda: fetch(address, cache=cache), "no secure connection")

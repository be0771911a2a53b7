"""An HTTP server on the loopback interface that misbehaves on demand and records requests and responses."""

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

PATIENCE_S = 60.0
"""Time after which a gate that a failed test has left closed opens by itself."""
Behavior = Callable[[socket.socket, "Request"], object]


@dataclass(frozen=True)
class Reply:
    """The response to one request."""

    body: bytes = b""
    status: int = 200
    ranges: bool = True  # False: a Range header is ignored
    checks_if_range: bool = True  # False: a range is honored regardless of If-Range
    etag: str | None = '"one"'
    cut: int | None = None  # the connection is closed after this many bytes
    gate: threading.Event | None = None  # awaited before the bytes from the `free`-th on are sent
    free: int = 0
    shift: int = 0  # a partial response starts this many bytes too late

    def __call__(self, connection: socket.socket, request: "Request") -> None:
        start = self._start(request)
        status = self.status if start is None or self.status != 200 else 416 if start >= len(self.body) else 206
        request.status = status
        first = (start or 0) + self.shift * bool(start)
        body = self.body[first:] if status in {200, 206} else b""
        reasons = {403: "Forbidden", 404: "Not Found", 500: "Internal Server Error"}
        headers = [f"ETag: {self.etag}"] if self.etag else []
        if status == 206:
            headers.append(f"Content-Range: bytes {first}-{len(self.body) - 1}/{len(self.body)}")
        if status == 416:
            headers.append(f"Content-Range: bytes */{len(self.body)}")
        connection.sendall(answer(*headers, status=f"{status} {reasons.get(status, '')}", length=len(body)))
        body = body if self.cut is None else body[: self.cut]
        for offset in range(0, len(body), 20_000):
            if self.gate and offset >= self.free:
                self.gate.wait(PATIENCE_S)
            connection.sendall(body[offset : offset + 20_000])
            request.sent += len(body[offset : offset + 20_000])

    def _start(self, request: "Request") -> int | None:
        """Return the position at which a partial response starts, or None for a complete response."""
        if not request.range or not self.ranges or (self.checks_if_range and request.if_range not in {None, self.etag}):
            return None
        return int(request.range.removeprefix("bytes=").removesuffix("-"))


def answer(*headers: str, status: str = "200 OK", body: bytes = b"", length: int | None = None) -> bytes:
    """Return the bytes of a response, without a Content-Length header if `length` is None."""
    lengths = [] if length is None else [f"Content-Length: {length}"]
    return "\r\n".join([f"HTTP/1.1 {status}", "Connection: close", *lengths, *headers, "", ""]).encode("latin-1") + body


@dataclass
class Request:
    """A request, with the status and the number of bytes of the response."""

    path: str
    range: str | None
    if_range: str | None
    status: int = 0
    sent: int = 0


class Server:
    """The server; `replies` lists the behaviors for each path, used in turn, with the last one repeated."""

    def __init__(self) -> None:
        self.replies: dict[str, list[Behavior]] = {}
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            head = b""
            while head[:1] in b"G" and b"\r\n\r\n" not in head and (piece := connection.recv(65536)):
                head += piece
            text = head.decode("latin-1")
            if not text.startswith("GET "):  # such as the start of TLS
                return
            ranges = [re.search(rf"\r\n{name}: (.*)\r\n", text) for name in ("Range", "If-Range")]
            request = Request(text.split(" ")[1], *(match and match[1] for match in ranges))
            with self._lock:
                self.requests.append(request)
                waiting = self.replies.get(request.path, [Reply(status=404)])
                reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            reply(connection, request)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(1.0)
            while connection.recv(65536):  # prevents loss of the response by a reset
                pass

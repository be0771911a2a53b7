"""An HTTP server on the loopback that misbehaves as it is told, and notes what it is asked and sends."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE_S = 60.0
"""After this a gate that a failed test has left closed opens by itself."""


@dataclass(frozen=True)
class Reply:
    """How one request is answered."""

    body: bytes = b""
    status: int = 200
    ranges: bool = True  # False: a Range header is ignored
    checks_if_range: bool = True  # False: a range is honoured whatever If-Range says
    etag: str | None = '"one"'
    cut: int | None = None  # the connection is closed after so many bytes
    gate: threading.Event | None = None  # what is awaited before the bytes from the `free`-th on are sent
    free: int = 0
    shift: int = 0  # a partial answer begins so many bytes too late


@dataclass
class Request:
    """What one request asked for, and what it got."""

    path: str
    range: str | None
    if_range: str | None
    status: int = 0
    sent: int = 0


@dataclass
class Loopback:
    """The server: `replies` holds for each path what is answered in turn; the last one is repeated."""

    replies: dict[str, list[Reply]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> Loopback:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def sent(self) -> int:
        """All bytes of content that were sent."""
        return sum(request.sent for request in self.requests)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request with the next reply for its path, 404 where there is none."""
        with self._lock:
            waiting = self.replies.get(handler.path, [Reply(status=404)])
            reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            request = Request(handler.path, handler.headers["Range"], handler.headers["If-Range"])
            self.requests.append(request)
        start = self._start(reply, request)
        request.status = reply.status
        if start is not None and reply.status == 200:
            request.status = 416 if start >= len(reply.body) else 206
        body = b"" if request.status not in {200, 206} else reply.body[(start or 0) + reply.shift * bool(start) :]
        handler.send_response(request.status)
        handler.send_header("Content-Length", str(len(body)))
        if reply.etag:
            handler.send_header("ETag", reply.etag)
        if request.status == 206:
            first = (start or 0) + reply.shift
            handler.send_header("Content-Range", f"bytes {first}-{len(reply.body) - 1}/{len(reply.body)}")
        handler.end_headers()
        allowed = body if reply.cut is None else body[: reply.cut]
        try:
            for offset in range(0, len(allowed), 20_000):
                if reply.gate and offset >= reply.free:
                    reply.gate.wait(PATIENCE_S)
                piece = allowed[offset : offset + 20_000]
                handler.wfile.write(piece)
                request.sent += len(piece)
        except OSError:
            pass  # the client has gone

    def _start(self, reply: Reply, request: Request) -> int | None:
        """Return where a partial answer begins, None for a whole one."""
        if not request.range or not reply.ranges:
            return None
        if reply.checks_if_range and request.if_range not in {None, reply.etag}:
            return None
        asked = re.fullmatch(r"bytes=(\d+)-", request.range)
        assert asked, request.range
        return int(asked[1])

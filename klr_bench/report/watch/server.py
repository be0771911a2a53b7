"""The server of the page: a few addresses that can be read, and nothing else.

/               the page
/state.json     how the run stands, and the version of its results
/table          what the page holds, as HTML; its version is in the header X-Version
/assets/NAME    its scripts and styles
"""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import platform
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import urlsplit

from klr_bench.errors import KlrBenchError, raised, shown
from klr_bench.report.page.spelling import SHARED, WATCH_SCRIPT, WATCH_STYLE, asset, layout, policy
from klr_bench.report.watch.watched import Watched

LOOPBACK = "127.0.0.1"
PATIENCE_S = 10.0
"""Seconds that a browser may take for its request."""
NOTHING = "default-src 'none'; frame-ancestors 'none'"
"""The policy of what is no page."""
ASSETS = "/assets/"
KINDS = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "txt": "text/plain; charset=utf-8"}
HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"

Headers = dict[str, str]


class Server(ThreadingHTTPServer):
    """Serves the page of a watched folder; `port` 0 is any that is free.

    Raises KlrBenchError where the address cannot be had.
    """

    def __init__(self, watched: Watched, host: str = LOOPBACK, port: int = 0) -> None:
        self.watched = watched
        self.asked = 0.0
        """When a page asked last how the run stands, in seconds of the monotonic clock."""
        try:
            self.address_family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            super().__init__((str(address[0]), port), Handler)
        except (OSError, OverflowError, UnicodeError) as error:
            raise _unavailable(host, port, error) from error
        self.is_loopback = ipaddress.ip_address(str(self.server_address[0]).partition("%")[0]).is_loopback

    def server_bind(self) -> None:
        """Take the address, without a look for its name in the network."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page; of a server for all addresses of this machine, that with its name."""
        host = self.server_name
        if ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
            host = platform.node()
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say in a line what is wrong with the server; nothing of a browser that has gone."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError | TimeoutError):
            sys.stderr.write(f"watch: {raised(error)}\n")


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        """Answer with what there is at an address."""
        if self.server.is_loopback and not is_loopback_name(self.headers.get("Host", "")):
            # another site whose name was made to lead here (DNS rebinding) would read what only this machine may
            self._answer(HTTPStatus.FORBIDDEN, "This address is served to 127.0.0.1 and localhost alone.\n", TEXT)
            return
        answers: dict[str, Callable[[], None]] = {"/": self._page, "/state.json": self._state, "/table": self._table}
        answers |= {f"{ASSETS}{name}": partial(self._asset, name) for name in (*SHARED, WATCH_SCRIPT, WATCH_STYLE)}
        answer = answers.get(self.path.partition("?")[0])
        if answer is None:
            self._answer(HTTPStatus.NOT_FOUND, "There is nothing here. The page is at /\n", TEXT)
            return
        answer()

    do_HEAD = do_GET

    def _page(self) -> None:
        version, held = self.server.watched.table()
        text = layout(held, self.server.watched.folder.name, shared=ASSETS, watched=version)
        headers = {"Content-Security-Policy": f"{policy(shared=True, watched=True)}; frame-ancestors 'none'"}
        self._answer(HTTPStatus.OK, text, HTML, headers)

    def _asset(self, name: str) -> None:
        self._answer(HTTPStatus.OK, asset(name), KINDS[name.rpartition(".")[2]])

    def _state(self) -> None:
        self.server.asked = time.monotonic()
        self._answer(HTTPStatus.OK, json.dumps(self.server.watched.state()), JSON)

    def _table(self) -> None:
        version, table = self.server.watched.table()
        self._answer(HTTPStatus.OK, table, HTML, {"X-Version": version})

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is none, or that asks for something to be done."""
        status, more = HTTPStatus(code), {}
        if status == HTTPStatus.NOT_IMPLEMENTED:
            status, more = HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "GET, HEAD"}
        self._answer(status, f"{status.phrase}.\n", TEXT, more)

    def _answer(self, status: HTTPStatus, text: str, kind: str, more: Headers | None = None) -> None:
        content = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": NOTHING,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        for name, value in (headers | (more or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def version_string(self) -> str:
        """Return what the server says of itself."""
        return "klr-bench"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of requests."""


def is_loopback_name(host: str) -> bool:
    """Say whether the header Host of a request, with or without a port, names this machine alone."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _unavailable(host: str, port: int, error: Exception) -> KlrBenchError:
    """Return the error that says why an address cannot be served."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, socket.gaierror | UnicodeError) or number == errno.EADDRNOTAVAIL:
        return KlrBenchError(
            f"host={shown(host)}: expected an address of this machine, such as 127.0.0.1 or 0.0.0.0 (all). "
            "Leave host= out to serve this machine alone."
        )
    if number == errno.EADDRINUSE:
        return KlrBenchError(f"port={port}: another process has it. Choose another one, or leave port= out.")
    if number in (errno.EACCES, errno.EPERM):
        return KlrBenchError(f"port={port}: may not be used by you. Choose one above 1023, or leave port= out.")
    reason = os.strerror(number) if number else error
    return KlrBenchError(f"host={shown(host)} port={port}: cannot be served ({reason}).")

"""The server of the live view, by itself or in a process beside a run.

/               the page, whose script asks for the rest
/state.json     how the run stands, and the version of its results
/results.json   the report of the results so far
/assets/NAME    scripts and styles
"""

from __future__ import annotations

import ipaddress
import json
import os
import platform
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from urllib.parse import urlsplit

from klr_bench.errors import KlrBenchError, raised, shown
from klr_bench.printing import error_message
from klr_bench.report.page.html import SHARED, asset, layout, policy
from klr_bench.report.watch.state import Watched

LOOPBACK = "127.0.0.1"
ASSETS = "/assets/"
ASSET_NAMES = (*SHARED, "watch.js", "watch.css")
HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".txt": TEXT}

PROGRAM = "import sys; sys.path[:] = {!r}; from klr_bench.report.watch.server import serve; serve({!r}, {}, {})"
TICK_S = 0.2
"""Seconds after which the server looks whether the run is still there."""
OPEN_S = 5.0
"""Seconds after which a page that has not asked is taken for closed."""
LAST_S = 1.0
"""Seconds that an open page has to fetch its last table."""
NICENESS = 10
"""Of a process that serves: it yields to fits."""


class Server(ThreadingHTTPServer):
    """Serves the page of a watched folder; `port` 0 is any that is free.

    Raises KlrBenchError if the address cannot be had.
    """

    def __init__(self, watched: Watched, host: str = LOOPBACK, port: int = 0) -> None:
        self.watched = watched
        self.asked = 0.0
        """When a page asked last how the run stands, in seconds of the monotonic clock."""
        try:
            self.address_family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            super().__init__((str(address[0]), port), Handler)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            message = (
                f"host={shown(host)} port={port}: cannot be served ({reason}). Expected an address of this machine, "
                "such as 127.0.0.1 or 0.0.0.0 (all), and a free port above 1023. Leave both out to serve this machine "
                "alone, at any free port."
            )
            raise KlrBenchError(message) from error
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
        """Report an error of the server in one line; a browser that has gone is none."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError | TimeoutError):
            sys.stderr.write(f"watch: {raised(error)}\n")


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    timeout = 10.0

    def do_GET(self) -> None:
        """Answer with what there is at an address."""
        if self.server.is_loopback and not is_loopback_name(self.headers.get("Host", "")):
            # another site whose name was made to lead here (DNS rebinding) would read what only this machine may
            self._answer(HTTPStatus.FORBIDDEN, TEXT, "This address is served to 127.0.0.1 and localhost alone.\n")
            return
        watched, path = self.server.watched, self.path.partition("?")[0]
        asset_name = path.removeprefix(ASSETS)
        if path == "/":
            allowed = f"{policy(shared=True, watched=True)}; frame-ancestors 'none'"
            page = layout("", watched.folder.name, shared=ASSETS, watched=True)
            self._answer(HTTPStatus.OK, HTML, page, allowed)
        elif path == "/state.json":
            self.server.asked = time.monotonic()
            self._answer(HTTPStatus.OK, JSON, json.dumps(watched.state()))
        elif path == "/results.json":
            self._answer(HTTPStatus.OK, JSON, json.dumps(watched.results()))
        elif path.startswith(ASSETS) and asset_name in ASSET_NAMES:
            self._answer(HTTPStatus.OK, KINDS[Path(asset_name).suffix], asset(asset_name))
        else:
            self._answer(HTTPStatus.NOT_FOUND, TEXT, "There is nothing here. The page is at /\n")

    def _answer(self, status: HTTPStatus, kind: str, text: str, allowed: str = "default-src 'none'") -> None:
        content = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": allowed,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


def is_loopback_name(host: str) -> bool:
    """Return True if the header Host of a request, with or without a port, names this machine alone."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@contextmanager
def serve_beside(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve the page of a results folder in another process while the block runs; yield its address.

    A page that is open when the block ends has some seconds to show how the run has ended.  The address is "" if it
    cannot be served; the reason stands on stderr then.
    """
    program = PROGRAM.format(sys.path, str(folder.absolute()), port, os.getpid())
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.stdin.close()
            try:
                process.wait(OPEN_S + 2 * LAST_S)
            except subprocess.TimeoutExpired:
                process.kill()


def serve(folder: str, port: int, parent: int) -> None:
    """Serve the page of a results folder as long as `parent`, which holds the other end of stdin, is there."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, with which this ends
    yield_to_fits()
    try:
        server = Server(Watched(Path(folder)), port=port)
    except KlrBenchError as error:
        sys.stderr.write(error_message(str(error)))
        return
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()

    def leave() -> None:
        while os.getppid() == parent and not select.select([sys.stdin], [], [], TICK_S)[0]:
            pass
        ended = time.monotonic()
        while server.asked < ended < server.asked + OPEN_S and time.monotonic() < ended + OPEN_S:
            time.sleep(TICK_S)
        if server.asked >= ended:
            time.sleep(LAST_S)
        server.shutdown()

    threading.Thread(target=leave, daemon=True).start()
    with server:
        server.serve_forever(poll_interval=TICK_S)


def yield_to_fits() -> None:
    """Let this process have only the time that others leave."""
    with suppress(OSError):
        os.nice(NICENESS)

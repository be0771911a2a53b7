"""Live view of a run: a web page served from the files of a results folder.

/               the page, whose script requests the rest
/state.json     the state of the run, and the version of its results
/results.json   the report of the results so far
/assets/NAME    scripts and styles
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

from klr_bench.errors import KlrBenchError, exception_text, fail, sanitize
from klr_bench.files import regular, stamp_of
from klr_bench.printing import error_message
from klr_bench.report.page.content import experiment_part
from klr_bench.report.page.html import SHARED, asset, fragment, layout, policy
from klr_bench.results.archive import FILES
from klr_bench.results.progress import SILENT_S, Progress, read_progress, standing

LOOPBACK, ANY = "127.0.0.1", "0.0.0.0"
ASSETS = {f"/assets/{name}": name for name in (*SHARED, "watch.js", "watch.css")}
HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "txt": TEXT}
INTERVAL_S, SHARE = 2.0, 0.05
"""During a run, the minimum number of seconds between two reports and the maximum share of a CPU that reports use."""
LONGEST_LINE = 10**6
PROGRAM = "import sys; sys.path[:] = {!r}; from klr_bench.report.watch import serve; serve({!r}, {}, {})"
TICK_S = 0.2
OPEN_S, GRACE_S = 5.0, 4.0
"""A page counts as open if it sent a request in the last OPEN_S seconds; after a run it gets GRACE_S seconds to fetch
the final results.
"""
NICENESS = 10
"""Priority of the server process, lower than that of fits."""
AGAIN = "Run the same command again to continue."


class Watched:
    """State of the live view of one results folder, which all open browsers share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._results = {"version": "", "html": "", "message": ""}
        self._due = 0.0

    def state(self) -> dict[str, Any]:
        """Return the state of the run, and the version of its results, as a JSON-serializable dict."""
        state: dict[str, Any] = {"experiment": self.folder.name, "version": self._version(), "problem": ""}
        try:
            progress = read_progress(self.folder)
        except (KlrBenchError, OSError) as error:
            sentence = "The state of the run cannot be read."
            return state | {"standing": "unknown", "sentence": sentence, "problem": str(error)}
        if progress is not None:
            return state | describe(progress, time.time())
        sentence = f"Waiting for a run: klr-bench run experiment={self.folder.name}"
        if (self.folder / "records.csv").exists():
            sentence = "No run is active. The table shows earlier runs."
        return state | {"standing": "none", "sentence": sentence}

    def results(self) -> dict[str, str]:
        """Return the version and the report (HTML) of the results, or an error message.

        There is one report per version.  If it fails, the message says why, and the next request tries again.
        """
        with self._lock:
            version, start = self._version(), time.thread_time()
            if version != self._results["version"]:
                self._results = {"version": version, "html": "", "message": ""}
                try:
                    if self._has_rows():
                        self._results["html"] = fragment([experiment_part(self.folder)], self.folder.name)
                    else:
                        self._results["message"] = "Waiting for the first result."
                except Exception as error:  # a file may be damaged, replaced or removed at any time
                    message = str(error) if isinstance(error, KlrBenchError) else exception_text(error)
                    self._results |= {"version": "", "message": message}
                self._due = time.monotonic() + max(INTERVAL_S, (time.thread_time() - start) / SHARE)
            return self._results

    def _version(self) -> str:
        """Return a string that changes whenever the watched files change.

        During a run it does not change before the next report is due.
        """
        with suppress(KlrBenchError, OSError):
            progress = read_progress(self.folder)
            if time.monotonic() < self._due and progress and standing(progress) == "running":
                return self._results["version"]
        return str([stamp_of(self.folder / name) for name in FILES])

    def _has_rows(self) -> bool:
        with suppress(FileNotFoundError), regular(self.folder / "records.csv") as file:
            return bool(file.readline(LONGEST_LINE) and file.readline(LONGEST_LINE))
        return False


def describe(progress: Progress, now: float) -> dict[str, Any]:
    """Return a description of the state of a run; `now` is in seconds since 1970."""
    stands = standing(progress, now)
    is_alive = stands == "running"
    remaining = progress.left_s if is_alive else None
    return {
        "standing": stands,
        "sentence": _sentence(progress, now),
        "done": progress.cells.done,
        "failed": progress.cells.failed,
        "total": progress.cells.total,
        "n_running": progress.n_running if is_alive else 0,
        "left": "-" if remaining is None else f"about {span(remaining - (now - progress.updated))}",
        "running": [(task.what, span(now - task.started)) for task in progress.running if is_alive],
        "failures": [(failure.what, failure.status, failure.message) for failure in progress.failures],
    }


def _sentence(progress: Progress, now: float) -> str:
    process = f"process {progress.pid} on {progress.host}"
    lasted, silence = span(progress.updated - progress.started), span(now - progress.updated)
    match standing(progress, now):
        case "running":
            tasks = f"{progress.tasks.done + progress.tasks.failed:,} of {progress.tasks.total:,} folds and cells"
            is_late = now - progress.updated > SILENT_S
            quiet = f" No update for {silence}: a long fit may be in progress." if is_late else ""
            return f"Running for {span(now - progress.started)} ({process}): {tasks}.{quiet}"
        case "silent":
            return f"No update for {silence} from {process}: it was killed, or a long fit delays updates."
        case "killed":
            return f"Killed after {lasted}, within the last {silence} ({process}). {AGAIN}"
        case "interrupted":
            return " ".join(filter(None, [f"Stopped after {lasted}, {silence} ago.", progress.message, AGAIN]))
        case "finished":
            retry = " Run the same command again to retry the failed cells." if progress.cells.failed else ""
            return f"Finished after {lasted}, {silence} ago.{retry}"


def span(seconds: float) -> str:
    """Format a duration, such as "8 s", "12 min", "3 h 5 min" or "2 d 4 h"."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    if minutes < 2 * 1440:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


class Server(ThreadingTCPServer):
    """HTTP server of a page that shows a results folder; port 0 selects a free port.

    Raises KlrBenchError if the address is not available.
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self, folder: Path, host: str = LOOPBACK, port: int = 0) -> None:
        self.watched = Watched(folder)
        self.last_request = -math.inf
        """Time of the last request by a page, on the monotonic clock."""
        try:
            super().__init__((host, port), Handler)
        except (OSError, ValueError, TypeError) as error:
            fail(
                f"host={sanitize(host)} port={port}: cannot serve here ({getattr(error, 'strerror', None) or error}). "
                "Expected an address of this machine, such as 127.0.0.1 or 0.0.0.0 (all), and a free port above 1023."
            )
        address, self.port = str(self.server_address[0]), int(self.server_address[1])
        self.is_loopback = ipaddress.ip_address(address).is_loopback
        self.url = f"http://{platform.node() if address == ANY else address}:{self.port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print a server error as one line. Connections closed by the browser are ignored."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError | TimeoutError):
            sys.stderr.write(f"watch: {exception_text(error)}\n")


class Handler(BaseHTTPRequestHandler):
    """Request handler of the server."""

    server: Server
    timeout = 10.0

    def do_GET(self) -> None:
        """Respond to a request for the page, the state, the results or an asset."""
        watched, path = self.server.watched, self.path.partition("?")[0]
        if self.server.is_loopback and not is_loopback_name(self.headers.get("Host", "")):
            # Prevent DNS rebinding: pages of other sites whose name resolves to this machine must not read results.
            self._answer(TEXT, "Only 127.0.0.1 and localhost are served.\n", HTTPStatus.FORBIDDEN)
        elif path == "/":
            allowed = f"{policy(shared=True, watched=True)}; frame-ancestors 'none'"
            self._answer(HTML, layout("", watched.folder.name, shared="/assets/", watched=True), allowed=allowed)
        elif path == "/state.json":
            self.server.last_request = time.monotonic()
            self._answer(JSON, json.dumps(watched.state()))
        elif path == "/results.json":
            self._answer(JSON, json.dumps(watched.results()))
        elif path in ASSETS:
            self._answer(TYPES[path.rpartition(".")[2]], asset(ASSETS[path]))
        else:
            self._answer(TEXT, "Not found. The page is at /\n", HTTPStatus.NOT_FOUND)

    def _answer(
        self, kind: str, text: str, status: HTTPStatus = HTTPStatus.OK, allowed: str = "default-src 'none'"
    ) -> None:
        content = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", allowed)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


def is_loopback_name(host: str) -> bool:
    """Return True if the Host header of a request names the local machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@contextmanager
def serve_in_background(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve the page on a results folder in a child process while the `with` block runs.

    Yields its address.

    A page that is open when the block ends has some seconds to show the end of the run.  If the page cannot be served,
    the address is "" and stderr has the reason.
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
                process.wait(2 * GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def lower_priority() -> None:
    """Lower the priority of this process below that of fits, where the system has `nice`."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def serve(folder: str, port: int, parent: int) -> None:
    """Serve the progress page of a results folder until the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C stops the run, which then stops this server
    lower_priority()
    try:
        server = Server(Path(folder), port=port)
    except KlrBenchError as error:
        sys.stderr.write(error_message(str(error)))
        return
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()

    ended = threading.Event()

    def wait_for_end() -> None:
        os.read(sys.stdin.fileno(), 1)  # returns when the parent closes the pipe, or exits
        ended.set()

    def stop() -> None:
        while os.getppid() == parent and not ended.wait(TICK_S):
            pass
        if time.monotonic() < server.last_request + OPEN_S:
            time.sleep(GRACE_S)
        server.shutdown()

    for target in (wait_for_end, stop):
        threading.Thread(target=target, daemon=True).start()
    with server:
        server.serve_forever(poll_interval=TICK_S)

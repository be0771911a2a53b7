"""``klr-bench watch``: a page that shows a run while it goes on."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from klr_bench.cli.words import is_true, split_keys
from klr_bench.errors import KlrBenchError, nearest
from klr_bench.printing import is_file_name, printable

KEYS = ("experiment", "results_dir", "port", "host", "open")
LARGEST_PORT = 65535


def main(arguments: Sequence[str]) -> int:
    """Serve the page of a results folder until Ctrl-C or SIGTERM; return the exit status."""
    words, values = split_keys(arguments, KEYS)
    name = values.get("experiment", "")
    if words or not is_file_name(name):
        got = repr(" ".join(words) or name) if words or name else "none"
        message = f"watch: expected experiment=<name>, got {got}. Try klr-bench watch experiment=oskl_magic"
        raise KlrBenchError(message)
    port, opened = _port(values.get("port", "0")), is_true("open", values.get("open", "false"))
    from klr_bench.report.watch import LOOPBACK, NICENESS, Server

    folder = Path(values.get("results_dir", "results")) / name
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    with Server(folder, values.get("host", LOOPBACK), port) as server:
        _say(f"{folder} at {server.url}  (Ctrl-C ends it)")
        if not server.is_loopback:
            _say(f"Everybody who reaches this machine by host={values['host']} can read it.")
        if not folder.exists():
            _say(f"There are no results yet. Start them with: klr-bench run experiment={name}{_hint(name)}")
        if opened:
            _open(server.url)
        os.nice(NICENESS)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            _say("")
    return 0


@contextmanager
def watching(folder: Path, port: int) -> Iterator[int]:
    """Serve the page of a run on this machine while the block runs; yield its port, or 0 if it cannot be served."""
    from klr_bench.report.watch import serve_in_background

    with serve_in_background(folder, port) as url:
        if url:
            _say(f"Watch it at {url}")
        yield int(url.rstrip("/").rpartition(":")[2]) if url else 0


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:6]) <= LARGEST_PORT):
        message = f"port: expected a whole number from 0 (any that is free) to {LARGEST_PORT}, got {text!r}."
        raise KlrBenchError(message)
    return int(text[:6])


def _hint(name: str) -> str:
    """Return a hint with the nearest name if no experiment has this name, else an empty text."""
    from klr_bench.config.locations import folders, names

    known = names("experiment", folders())
    return "" if name in known else f", though there is no experiment of this name.{nearest(name, known)}"


def _open(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        _say("There is no browser to open here; open the address yourself.")


def _say(text: str) -> None:
    sys.stdout.write(printable(f"{text}\n"))
    sys.stdout.flush()

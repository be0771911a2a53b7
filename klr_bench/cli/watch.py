"""Command ``klr-bench watch``: a web page that shows the progress of a run."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from klr_bench.cli.arguments import is_true, split_keys
from klr_bench.errors import fail, nearest
from klr_bench.printing import is_file_name, print_line

KEYS = ("experiment", "results_dir", "port", "host", "open")
LARGEST_PORT = 65535


def watch(arguments: Sequence[str]) -> int:
    """Serve a web page about a run until Ctrl-C or SIGTERM; return the exit status."""
    words, values = split_keys(arguments, KEYS)
    name, port = values.get("experiment", ""), values.get("port", "0")
    if words or not is_file_name(name):
        got = repr(" ".join(words) or name) if words or name else "none"
        fail(f"watch: expected experiment=<name>, got {got}. Try klr-bench watch experiment=oskl_magic")
    if not (port.isascii() and port.isdecimal() and int(port[:6]) <= LARGEST_PORT):
        fail(f"port: expected a whole number from 0 (any free port) to {LARGEST_PORT}, got {port!r}.")
    in_browser = is_true("open", values)
    from klr_bench.config.locations import folders, names
    from klr_bench.report.watch import LOOPBACK, Server, lower_priority

    folder = Path(values.get("results_dir", "results")) / name
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    with Server(folder, values.get("host", LOOPBACK), int(port)) as server:
        print_line(f"{folder} at {server.url}  (Ctrl-C ends it)")
        if not server.is_loopback:
            print_line(f"Anyone who can reach this machine at host={values['host']} can read this page.")
        if not folder.exists():
            experiments = names("experiment", folders())
            hint = "" if name in experiments else f"; no experiment has this name.{nearest(name, experiments)}"
            print_line(f"There are no results yet. To produce some, run: klr-bench run experiment={name}{hint}")
        if in_browser:
            import webbrowser

            if not webbrowser.open(server.url):
                print_line("No browser is available; open the address yourself.")
        lower_priority()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print_line("")
    return 0


@contextmanager
def watching(folder: Path, port: int) -> Iterator[int]:
    """Serve a web page about a run during a ``with`` block; yield the server's port.

    The port is 0 if the page cannot be served.
    """
    from klr_bench.report.watch import serve_in_background

    with serve_in_background(folder, port) as url:
        if url:
            print_line(f"Watch it at {url}")
        yield int(url.rstrip("/").rpartition(":")[2]) if url else 0

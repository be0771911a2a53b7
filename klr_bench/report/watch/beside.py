"""The page beside a run: a process of its own, so that fits keep theirs, which ends with the run."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from klr_bench.errors import KlrBenchError
from klr_bench.printing import error_message
from klr_bench.report.watch.server import Server
from klr_bench.report.watch.table import held
from klr_bench.report.watch.watched import Watched

PROGRAM = "import sys; sys.path[:] = {!r}; from klr_bench.report.watch.beside import serve; serve({!r}, {}, {})"
TICK_S = 0.2
"""Seconds after which the server looks whether the run is still there."""
OPEN_S = 5.0
"""Seconds after which a page that has not asked is taken for closed."""
LAST_S = 1.0
"""Seconds that an open page has to fetch its last table."""
NICENESS = 10
"""Of the processes that make the page: they yield to fits."""


@contextmanager
def beside(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve the page of a results folder on this machine while the block runs; yield its address.

    A page that is open when the block ends has some seconds to show how the run has ended.  The address is "" where it
    cannot be served; why stands on stderr then.
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
    watched = Watched(Path(folder), held)
    try:
        server = Server(watched, port=port)
    except KlrBenchError as error:
        sys.stderr.write(error_message(str(error)))
        return
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()

    def leave() -> None:
        while os.getppid() == parent and not select.select([sys.stdin], [], [], TICK_S)[0]:
            pass
        ended = time.monotonic()
        watched.hurry()
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

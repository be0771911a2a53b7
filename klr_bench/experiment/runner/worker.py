"""The inside of a worker process: take a task, run it, send its result, until the parent ends it."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

from klr_bench.experiment.measure.supervision import connect, restored
from klr_bench.experiment.runner import machine
from klr_bench.experiment.runner.descendants import adopt_orphans, end_descendants
from klr_bench.experiment.runner.failure import Task, guarded

LENGTH = struct.Struct("!Q")
"""What stands before a message: the number of its bytes."""
STANDARD = (0, 1, 2)
"""The file descriptors of input, output and errors."""


def serve(channel: int, parent: int) -> None:
    """Run the tasks that come through a socket, given by its file descriptor; never returns."""
    try:
        follow(parent)
        adopt_orphans()
        machine.follow(parent)
        os.set_inheritable(channel, False)
        connection = socket.socket(fileno=channel)
        tell = partial(_tell, connection, os.getpid())
        connect(tell)
        streams = [os.dup(descriptor) for descriptor in STANDARD]
        with connection.makefile("rb") as tasks:
            while True:
                _renew(streams)
                result = guarded(partial(_run, pickle.load(tasks)))
                _flush()
                tell("done", result)
    except BaseException:  # the parent is gone, or a learner has closed the socket or taken Python apart
        os._exit(1)


def follow(parent: int) -> None:
    """Leave when the parent is gone, and with all that learners have started; leave to it what Ctrl-C means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        end_descendants(os.getpid())
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _run(pickled: bytes) -> bytes:
    """Run a pickled task, and return its result pickled."""
    task: Task = pickle.loads(pickled)
    with restored():
        result = task()
    return pickle.dumps(result)


def _tell(connection: socket.socket, process: int, *message: Any) -> None:
    """Send a message to the parent; a copy of the worker that a learner has forked ends here."""
    if os.getpid() != process:
        os._exit(0)
    content = pickle.dumps(message)
    connection.sendall(LENGTH.pack(len(content)) + content)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a learner may have put anything there
            stream.flush()


def _renew(streams: list[int]) -> None:
    """Give the next learner streams that nobody has closed."""
    for descriptor, kept in zip(STANDARD, streams, strict=True):
        os.dup2(kept, descriptor)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(descriptor, mode, buffering=1, closefd=False, errors="backslashreplace")
        for descriptor, mode in zip(STANDARD, "rww", strict=True)
    )

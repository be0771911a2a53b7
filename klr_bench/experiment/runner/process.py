"""A worker process seen from its parent: it runs one task at a time, and can be ended at any moment."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from klr_bench.experiment.runner.descendants import end_descendants
from klr_bench.experiment.runner.failure import Failure, Task, guarded
from klr_bench.experiment.runner.worker import LENGTH

LIBRARIES = ("OMP_NUM", "MKL_NUM", "OPENBLAS_NUM", "BLIS_NUM", "NUMEXPR_NUM", "NUMBA_NUM", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{library}_THREADS": "1" for library in LIBRARIES}
PROGRAM = "import sys; sys.path[:] = {!r}; from klr_bench.experiment.runner.worker import serve; serve({}, {})"
TICK_S = 0.2
"""Seconds after which a worker is looked at that says nothing."""
STOPPED_S = 5.0
"""Seconds that a worker may be stopped (SIGSTOP) while its parent runs."""
SEND_S = 300.0
"""Seconds that a worker may take to receive a task."""
LEAVING_S = 2.0
"""Seconds that a worker may take to end when it has closed its socket."""
LARGEST_MESSAGE = 2**30
"""Bytes of a result: many times those of a cell with ten thousand checkpoints."""
CHUNK = 2**16
"""Bytes that are read at once: what a pipe holds."""


class Surroundings(NamedTuple):
    """What a worker has of the process that starts it: one that differs in it is not used again."""

    path: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Ended:
    """The end of a task: its result, or a Failure; or how its process has ended before it."""

    result: Any = None
    death: str = ""


@dataclass(frozen=True)
class _Limit:
    """The seconds that a part of a task may take from `started` on, and what it has led to where it takes longer."""

    started: float
    seconds: float
    stopped: Failure

    def left(self) -> float:
        """Return the seconds that are left, negative ones where the time is up."""
        return self.started + self.seconds - time.monotonic()


class Worker:
    """A process that runs tasks, one at a time, with one thread for each numerical library.

    It has a session of its own, so that it can be ended with everything that a learner has started, and neither input
    nor the output of this process: what it prints comes through a pipe, and is printed on stderr here.

    Parameters
    ----------
    there : its path of modules, folder and environment; None for those of this process
    """

    def __init__(self, there: Surroundings | None = None) -> None:
        ours, theirs = socket.socketpair()
        self._printed, output = os.pipe()
        self.surroundings = there or surroundings()
        with theirs, open(output, "wb") as printing:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM.format([*self.surroundings.path], theirs.fileno(), os.getpid())],
                cwd=self.surroundings.folder,
                stdin=subprocess.DEVNULL,
                stdout=printing,
                stderr=printing,
                env={**self.surroundings.environment, **ONE_THREAD},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.settimeout(SEND_S)
        self._channel = ours
        self._received = bytearray()
        self._parts: list[Any] = []
        self._limit: _Limit | None = None
        self._looked = self._running = time.monotonic()

    def start(self, task: Task) -> None:
        """Run a task, the result of which `outcome` will return."""
        self._parts, self._limit = [], None
        self._looked = self._running = time.monotonic()
        try:
            self._channel.sendall(pickle.dumps(pickle.dumps(task)))
        except OSError:  # it has died, or does not listen; `outcome` will say so
            self._kill()

    def outcome(self) -> Ended | None:
        """Return the end of the task, None as long as it runs.  Never waits."""
        self._print()
        try:
            while wait([self._channel], 0):
                received = self._channel.recv(CHUNK)
                if not received:
                    return self._death()
                self._received += received
        except OSError:
            return self._death()
        try:
            while (message := self._next_message()) is not None:
                kind, *content = message
                if kind == "done":
                    self._print()
                    (sent,) = content
                    return Ended(sent if isinstance(sent, Failure) else guarded(partial(pickle.loads, sent)))
                self._note(kind, *content)
        except Exception:  # a learner has written to the socket
            self.end()
            return Ended(death="it sent what is no message")
        if self._limit and self._limit.left() < 0:
            self.end()
            return Ended(self._limit.stopped)
        if self._process.poll() is not None:
            return self._death()
        if self._is_stopped():
            self.end()
            return Ended(death=f"stopped for {STOPPED_S:g} s")
        return None

    def alive(self) -> bool:
        """Say whether the process is there."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process, whatever it does, and all that learners have started in its session."""
        self._kill()
        self._process.wait()
        self._channel.close()
        with suppress(OSError):
            os.close(self._printed)

    def _kill(self) -> None:
        if self._process.poll() is None:  # else its number may be that of another process
            end_descendants(self._process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _next_message(self) -> Any:
        """Take one whole message from what has been received; None where there is none yet."""
        start = LENGTH.size
        if len(self._received) < start:
            return None
        length = LENGTH.unpack(self._received[:start])[0]
        if length > LARGEST_MESSAGE:
            message = f"expected a message of at most {LARGEST_MESSAGE} bytes, got {length}"
            raise ValueError(message)
        end = start + length
        if len(self._received) < end:
            return None
        message = pickle.loads(self._received[start:end])
        del self._received[:end]
        return message

    def _note(self, kind: str, *content: Any) -> None:
        """Note a message of `klr_bench.experiment.measure.supervision`."""
        if kind == "part":
            self._parts += content
            return
        if kind == "again":
            self._limit = self._limit and replace(self._limit, started=time.monotonic())
            return
        seconds, reason, otherwise = content
        parts = (*self._parts, otherwise)
        self._limit = None
        if seconds:
            stopped = Failure("timeout", f"stopped after {seconds:g} s, {reason}", parts)
            self._limit = _Limit(time.monotonic(), seconds, stopped)

    def _death(self) -> Ended:
        """Return how the process has ended, which closes its socket a moment before."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVING_S)
        self.end()
        return Ended(death=how_ended(self._process.returncode))

    def _is_stopped(self) -> bool:
        """Say whether the process has been stopped for a while; where there is no /proc, never."""
        now = time.monotonic()
        state = ""
        with suppress(OSError):
            state = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state != "T" or now - self._looked > STOPPED_S / 2:  # the parent has been stopped, too
            self._running = now
        self._looked = now
        return now - self._running > STOPPED_S

    def _print(self) -> None:
        """Print what the process has printed, at most what the pipe holds."""
        with suppress(OSError, ValueError):
            if wait([self._printed], 0):
                sys.stderr.write(os.read(self._printed, CHUNK).decode("utf-8", "backslashreplace"))
                sys.stderr.flush()

    @property
    def signs(self) -> list[Any]:
        """What is readable when the process has something to say."""
        return [self._channel, self._printed]

    @property
    def time_left(self) -> float:
        """Seconds until the process is to be looked at."""
        return max(0.0, min(TICK_S, self._limit.left())) if self._limit else TICK_S


def surroundings() -> Surroundings:
    """Return those of this process."""
    return Surroundings(tuple(map(str, sys.path)), os.getcwd(), dict(os.environ))


def how_ended(status: int) -> str:
    """Return the name of the signal that has ended a process, or its exit status."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"

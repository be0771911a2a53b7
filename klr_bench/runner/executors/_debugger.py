"""Run tasks in the current process, and open Python's debugger at the first exception."""

from __future__ import annotations

import pdb
import traceback
from collections.abc import Generator, Iterable
from typing import Any

from klr_bench.errors import KlrBenchError, StoppedError, exception_message
from klr_bench.runner.executors import Task
from klr_bench.runner.executors.serial import SerialExecutor


class Debugger(SerialExecutor):
    """Serial executor that opens the debugger where a task raises an exception."""

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Any]]:
        """Yield each task with its result, in order; end the run after the debugger.

        Raises StoppedError for the first exception of a task.
        """
        for task in tasks:
            try:
                result = task.call()
            except Exception as error:
                traceback.print_exc()
                cause = error.__context__ if isinstance(error, KlrBenchError) else None
                pdb.post_mortem((cause or error).__traceback__)
                message = f"{exception_message(error)}; the run ends after the debugger. Run it again without --pdb."
                raise StoppedError(message) from error
            yield task, result

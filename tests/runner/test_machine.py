"""Tests of the names and the load of the machine."""

import os
import subprocess
import sys

import psutil
import pytest
from threadpoolctl import threadpool_limits

from klr_bench.runner import machine
from klr_bench.runner.machine import OutsideLoad, Usage, fraction_outside_run, usage
from tests.runner.test_interruptions import patiently


def test_the_outside_load_excludes_the_run() -> None:
    before = Usage(0.0, 0, 0, 0)
    for after, expected in (
        (Usage(1.0, 100, 100, 200), 0.0),  # the run keeps one of two cores busy
        (Usage(1.0, 100, 150, 200), 0.25),
        (Usage(1.0, 120, 100, 200), 0.0),  # counters are not read simultaneously
        (Usage(1.0, 0, 0, 0), None),
    ):
        assert fraction_outside_run(before, after) == expected


def test_descendants_belong_to_the_run() -> None:
    """A busy child process counts as load unless its parent belongs to the run."""
    with (
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinning,
        subprocess.Popen(["sleep", "600"]) as asleep,
    ):
        try:
            before, others = usage(os.getpid()), usage(asleep.pid)
            patiently(lambda: usage(os.getpid()).inside - before.inside > 0.1)
            patiently(lambda: (fraction_outside_run(others, usage(asleep.pid)) or 0) > 0.2 / (os.cpu_count() or 1))
        finally:
            spinning.kill()
            asleep.kill()


def test_the_fraction_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_times", lambda: (_ for _ in ()).throw(OSError))
    assert OutsideLoad(1).fraction() is None


def test_the_processor_is_named_with_its_blas_and_threads() -> None:
    for n, end in ((1, ", 1 thread"), (2, ", 2 threads")):
        with threadpool_limits(n):
            name = machine.processor()
        assert name.startswith(machine.cpu_name())
        assert "openblas" not in name or name.endswith(end)

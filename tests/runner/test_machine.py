"""What a record says of the machine: its names, and the share that others than the run use."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from klr_bench.runner import machine
from klr_bench.runner.machine import Look, Others, look, share

linux = pytest.mark.skipif(not (machine.PROC / "stat").exists(), reason="only Linux counts like this")
SPIN = "while True: pass"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (Look(1.0, 100, 100, 200), 0.0),  # one of two cores is busy, with the run
        (Look(1.0, 100, 150, 200), 0.25),
        (Look(1.0, 0, 200, 200), 1.0),
        (Look(1.0, 120, 100, 200), 0.0),  # the two counters are not read at the same moment
        (Look(1.0, 0, 0, 0), None),
    ],
)
def test_the_share_of_others_is_what_is_used_less_what_the_run_uses(after: Look, expected: float | None) -> None:
    assert share(Look(0.0, 0, 0, 0), after) == expected


@pytest.fixture
def spinning() -> Iterator[int]:
    """A process that keeps a core busy."""
    with subprocess.Popen([sys.executable, "-c", SPIN]) as process:
        yield process.pid
        process.kill()


def used(run: int, seconds: float) -> float:
    before = look(run)
    time.sleep(seconds)
    found = share(before, look(run))
    assert found is not None
    return found


@linux
def test_a_process_of_the_run_is_no_other(spinning: int) -> None:
    """Of a run that is asleep the spinning process is an other; of the run that has started it, it is none."""
    ticks = look(os.getpid()).own
    with subprocess.Popen(["sleep", "60"]) as asleep:
        foreign = used(asleep.pid, 1.0)
        asleep.kill()
    assert look(os.getpid()).own - ticks > 10, "hundredths of a second of a child"
    cores = os.cpu_count() or 1
    assert foreign > 0.2 / cores, "the spinning process has had at least a fifth of a core"


@linux
def test_the_share_is_that_of_the_last_second(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([Look(0.0, 0, 0, 0), Look(0.4, 0, 40, 40), Look(1.5, 0, 40, 150), Look(1.6, 0, 40, 160)])
    monkeypatch.setattr(machine, "look", lambda _: next(looks))
    others = Others(1)
    assert others.share() == 1.0, "since the start, which is not yet a second ago"
    assert others.share() == 0.0, "since 0.4"
    assert others.share() == 0.0


def test_where_the_system_does_not_tell_the_share_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "PROC", tmp_path)
    assert Others(1).share() is None
    (tmp_path / "stat").write_text("nothing of the kind\n")
    assert Others(1).share() is None


def test_the_processor_is_named_with_its_linear_algebra_and_threads() -> None:
    for n, end in ((1, ", 1 thread"), (2, ", 2 threads")):
        with threadpool_limits(n):
            said = machine.processor()
        assert said.startswith(machine.cpu_name())
        assert "openblas" not in said or said.endswith(end)

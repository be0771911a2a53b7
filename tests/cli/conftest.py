"""A replacement of the runner for tests of the command line."""

import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from klr_bench import runner
from klr_bench.config.models import RunConfig
from klr_bench.estimators.core import jit


class Runner:
    """Replacement of `klr_bench.runner.run` that stores its arguments."""

    def __init__(self) -> None:
        self.configs: list[RunConfig] = []
        self.options: list[dict[str, Any]] = []
        self.n_failed = 0
        self.error: BaseException | None = None

    def __call__(self, config: RunConfig, *, console: Any, **options: bool) -> SimpleNamespace:
        self.configs.append(config)
        self.options.append(options)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(n_failed=self.n_failed, score=0.5, time_left=None)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Runner]:
    """Return the replacement of the runner, in an empty current folder; restore the process afterwards."""
    stand_in = Runner()
    monkeypatch.setattr(runner, "run", stand_in)
    monkeypatch.setattr(jit, "is_cold", lambda: False)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # --info adds one that writes to this stdout,
    monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)  # and asks for every detail
    logging.getLogger().manager._clear_cache()  # type: ignore[attr-defined]
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGTERM)
    yield stand_in
    signal.signal(signal.SIGTERM, handler)

"""Fixtures for tests of data files."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klr_bench.datasets import transfer
from klr_bench.datasets.readers import chunks
from tests.datasets.server import Server

Patch = pytest.MonkeyPatch
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a file."""

    def write(content: bytes | str, name: str = "train") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(params=[17, 64, 1 << 21], ids=lambda size: f"blocks of {size}")
def block(request: pytest.FixtureRequest, monkeypatch: Patch) -> None:
    """Read text in blocks of a given size."""
    monkeypatch.setattr(chunks, "BLOCK", request.param)


@pytest.fixture
def server(monkeypatch: Patch) -> Iterator[Server]:
    """Return a server on the loopback interface; requests are retried almost without delay."""
    monkeypatch.setattr(transfer, "BACKOFF_S", 0.001)
    monkeypatch.setenv("NO_PROXY", "*")
    running = Server()
    yield running
    running.close()

"""There are enough attacks."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
LEAST = 5_000


def test_there_are_thousands_of_attacks(request: pytest.FixtureRequest) -> None:
    """With as many drawn ones as usual; asked only where all files of this folder were collected."""
    collected = [item.path for item in request.session.items if item.path.parent == HERE]
    if {*HERE.glob("test_*.py")} - {*collected}:
        pytest.skip("some files of the attacks were not asked for")
    assert len(collected) >= min(LEAST, request.config.getoption("--attacks"))

"""Random attacks: tests with the fixture `draw` run with as many seeds as ``--attacks`` says."""

from random import Random

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test marked ``drawn(share)`` with that share of the seeds."""
    marker = metafunc.definition.get_closest_marker("drawn")
    if marker is not None:
        count = max(1, round(marker.args[0] * metafunc.config.getoption("--attacks")))
        metafunc.parametrize("draw", range(count), indirect=True)


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> Random:
    """Return the random numbers of an attack; they depend on the test and the number of the attack."""
    return Random(f"{request.function.__name__} {request.param}")

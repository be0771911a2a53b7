"""A clock for the search of KLR."""

from types import SimpleNamespace

import pytest

from klr_bench.estimators.batch import klr, selection


@pytest.fixture
def now(monkeypatch):
    """Return a list with the time of a clock, by which the fit of each path of the search takes 0.1 seconds."""
    path, now = selection.Search._path, [0.0]

    def slow(*arguments):
        now[0] += 0.1
        return path(*arguments)

    monkeypatch.setattr(selection.Search, "_path", slow)
    for module in (klr, selection):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now

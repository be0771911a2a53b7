"""A verbose fit prints its progress and learns the same model."""

import re

import numpy as np
import pytest
from sklearn.base import clone

import klr_bench as klr
from klr_bench.estimators.core import checks
from tests.estimators.samples import CLASSIFIERS, FEW, small, toy

LEARNERS = [
    klr.DualCDKLR(random_state=0),
    klr.PrimalCDKLR(random_state=0),
    klr.ImportVectorMachine(max_import_vectors=3),
    klr.NystroemKLR(n_centers=20, random_state=0),
    klr.L1KLR(),
    klr.PrototypeKLR(3, solver="adam", max_iter=5, random_state=0),
    klr.SparDCA(l1=0.1, random_state=0),
    klr.SparseBatchConfidenceWeighted(n_features_to_select=3, n_group=1),
    klr.FeatureGeneratingMachine(n_features_to_select=3, n_group=1),
]
"""Those that print a line per call of the callback."""
WITH_VERBOSE = {name for name in CLASSIFIERS if "verbose" in CLASSIFIERS[name]._parameter_constraints}
SEARCHES = sorted(WITH_VERBOSE - {type(learner).__name__ for learner in LEARNERS})
"""Those that print a line per round or width of their search."""


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_verbose_fit_prints_its_progress(learner, capsys, monkeypatch):
    X, y = toy(n=80)
    calls = []
    silent = clone(learner).fit(X, y, callback=lambda *_: calls.append(1))
    assert capsys.readouterr().out == ""
    verbose = clone(learner).set_params(verbose=2).fit(X, y)
    np.testing.assert_array_equal(verbose.decision_function(X), silent.decision_function(X))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(calls) > 0
    assert all(re.match(rf"\[{type(learner).__name__}\] n_iter \d+, \d+\.\d s, \w+ [\d.e+-]+", line) for line in lines)
    for pause, n_lines in ((1e9, 0), (0.0, len(calls))):
        monkeypatch.setattr(checks, "PAUSE_S", pause)
        clone(learner).set_params(verbose=True).fit(X, y)
        assert len(capsys.readouterr().out.splitlines()) == n_lines
    stopped = clone(learner).set_params(verbose=True).fit(X, y, callback=lambda *_: True)
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert stopped.decision_function(X).shape == (80,)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.usefixtures("short_search")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_verbose_search_prints_what_it_tries(name, capsys):
    X, y = toy(n=80)
    silent = small(CLASSIFIERS[name](), **FEW, random_state=0).fit(X, y)
    assert capsys.readouterr().out == ""
    verbose = small(CLASSIFIERS[name](verbose=True), **FEW, random_state=0).fit(X, y)
    np.testing.assert_array_equal(verbose.decision_function(X), silent.decision_function(X))
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(re.match(rf"\[({name}|KLR)\] .*log loss \d", line) for line in lines)

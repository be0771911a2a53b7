"""Linear learners stay finite for repeated, linearly dependent and uninformative rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import klr_bench as klr
from klr_bench.estimators.linear import confidence
from klr_bench.estimators.linear.base import LinearClassifier
from tests.estimators.linear.test_engine import LEARNERS
from tests.estimators.samples import CLASSIFIERS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FULL = [*LEARNERS, klr.ConfidenceWeighted(0.7, safeguard=False), klr.SoftConfidenceWeighted(2, 16.0, 0.9)]
OTHERS = [
    *(clone(learner).set_params(covariance="diagonal") for learner in FULL if "covariance" in learner.get_params()),
    *(klr.PassiveAggressive(variant) for variant in (0, 1, 2)),
    *(klr.BatchConfidenceWeighted(q=q) for q in (1, 2)),
    klr.SOFS(2),
    *(klr.SparDCA(q=q, max_iter=20, random_state=0) for q in (1, 2)),
    *(klr.SparseBatchConfidenceWeighted(q=q) for q in (1, 2)),
    *(klr.FeatureGeneratingMachine(q=q) for q in (1, 2)),
]


def test_every_linear_class_is_here():
    linear = {cls for cls in CLASSIFIERS.values() if issubclass(cls, LinearClassifier)}
    assert {type(learner) for learner in FULL + OTHERS} == linear


def repeated_rows(seed, n=60):
    """Return rows (n, d) with few distinct values, possibly zero or with a huge column, and their classes."""
    random = np.random.RandomState(seed)
    k, d = random.randint(1, 6, 2)
    kinds = [random.standard_normal((k, d)), random.randint(-2, 3, (k, d)), np.full((k, d), random.randint(-3, 4))]
    X = kinds[seed % 3] * np.where(np.arange(d) == 0, [1.0, 1e6][seed % 5 == 0], 1.0)
    rows = random.randint(k, size=n)
    y = random.randint(2, size=k)[rows] ^ (random.random_sample(n) < 0.1 * (seed % 2))
    y[:2] = 0, 1
    return X[rows], y


def assert_all_finite(learner):
    learned = {name: getattr(learner, name) for name in dir(learner) if name.endswith("_") and name[0] != "_"}
    for name, values in learned.items():
        if isinstance(values, np.ndarray):
            assert np.isfinite(values).all(), name
    if hasattr(learner, "covariance_") and getattr(learner, "safeguard", True):
        assert np.diagonal(np.atleast_2d(learner.covariance_)).min() > 0


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 120), marks=pytest.mark.exhaustive)], ids=str)
@pytest.mark.parametrize("learner", FULL + OTHERS, ids=str)
def test_fits_to_repeated_rows_are_finite(learner, seeds, monkeypatch):
    for seed in seeds:
        X, y = repeated_rows(seed)
        monkeypatch.setattr(confidence, "IN_CACHE", [0, 256][seed // 2 % 2])  # with or without blocks
        X = X.astype([np.float64, np.float32][seed % 2])
        assert_all_finite(clone(learner).fit(sp.csr_matrix(X) if seed % 7 == 0 else X, y))

"""Support vectors that are equally near, or equally small: the oldest is taken, however the rows come."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from klr_bench.estimators.core.vectors import LANES, first_of_largest
from tests.estimators.budget.test_budget import CASES, assert_same_learner, expected, fitted, kernel_matrix
from tests.estimators.one_pass import ALMA, BSGD, DUOL
from tests.reference import kernel as reference

LEARNERS = {name: clone(learner).set_params(budget=10) for name, learner in CASES.items()} | {
    "bsgd merging": BSGD(10, 0.02, maintenance="merging"),
    "bsgd merging logit": BSGD(10, 0.05, "logit", "merging"),
    "duol": DUOL(),
    "alma": ALMA(),
}
KINDS = ["grid", "duplicates", "collinear"]
PERCEPTRONS = ["forgetron", "forgetron self-tuned", "rbp", "projectron"]
"""Learners whose f is 0 but for rounding between symmetric support vectors, which then decides about a mistake."""


def tied(kind, seed, n=150):
    """Return rows (n, 3), many of which are equally far from others, and labels -1 or +1."""
    random = np.random.RandomState(seed)
    if kind == "grid":
        X = random.randint(-3, 4, (n, 3)).astype(float)
    elif kind == "duplicates":
        X = random.standard_normal((25, 3))[random.randint(25, size=n)]
    else:
        X = np.outer(random.randint(-4, 5, n), [0.3, -0.7, 0.2])
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 2] + 0.5 * random.standard_normal(n) > 0, 1, -1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("case", "kind"),
    [(case, kind) for case in LEARNERS for kind in KINDS if kind != "collinear" or case not in PERCEPTRONS],
)
def test_cuts_into_calls_do_not_matter(case, kind, dtype):
    learner = clone(LEARNERS[case]).set_params(gamma=0.3, average=True, random_state=0)
    tolerance = 1e-6 if dtype == np.float64 else 1e-3
    for seed in range(2):
        X, y = tied(kind, seed)
        X = X.astype(dtype)
        whole = clone(learner).partial_fit(X, y, classes=[-1, 1])
        values = whole.decision_function(X)
        for size in (1, 7):
            parts = clone(learner)
            for start in range(0, len(y), size):
                parts.partial_fit(X[start : start + size], y[start : start + size], classes=[-1, 1])
            np.testing.assert_allclose(parts.support_vectors_, whole.support_vectors_, rtol=0, atol=1e-6)
            atol = tolerance * np.abs(values).max()
            np.testing.assert_allclose(parts.decision_function(X), values, rtol=0, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["oskl", "oskl square", "bsgd", "bsgd logit"])
def test_ties_are_those_of_the_reference(case, kind):
    for dtype, tolerance in ((np.float64, 1e-8), (np.float32, 1e-3)):
        for seed in range(2):
            X, y = tied(kind, seed)
            X = X.astype(dtype)
            f = expected(case, kernel_matrix(X, {"gamma": 0.3}).astype(dtype), y, 10)
            for average in (False, True):
                learner = fitted(case, X, y, 10, gamma=0.3, average=average)
                assert_same_learner(learner, X, f, rtol=tolerance, atol=tolerance * np.abs(f.coef).max())


@pytest.mark.parametrize("kind", KINDS)
def test_conflicts_of_duol_are_those_of_the_reference(kind):
    X, y = tied(kind, 0)
    f = reference.duol(kernel_matrix(X, {"gamma": 0.3}), y, DUOL().C, DUOL().rho)
    for average in (False, True):
        assert_same_learner(DUOL(gamma=0.3, average=average).fit(X, y), X, f, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("m", [1, LANES - 1, LANES, 3 * LANES + 5])
@pytest.mark.parametrize(("dtype", "equal", "less"), [(np.float64, 5e-10, 2e-9), (np.float32, 1e-5, 4e-5)])
def test_the_first_of_the_largest(m, dtype, equal, less):
    random = np.random.RandomState(0)
    for _ in range(50):
        values, scales = random.uniform(-0.5, 0.5, m).astype(dtype), random.uniform(0.5, 1.0, m)
        ties = np.sort(random.randint(m, size=3))
        signs = random.choice([-1, 1], 3)
        values[ties] = signs * (1 - equal * random.random_sample(3)) / scales[ties]
        if ties[0] > 0:
            values[0] = (1 - less) / scales[0]
        assert first_of_largest(values, scales) == ties[0]
    assert first_of_largest(np.zeros(m, dtype), np.ones(m)) == -1
    assert first_of_largest(np.ones(m, dtype), np.zeros(m)) == -1

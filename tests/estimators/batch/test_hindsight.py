"""The best function in hindsight: in its ball, the best there, and evaluated along the rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from klr_bench import DualCDKLR
from klr_bench.datasets.synthetic import moons
from klr_bench.estimators.batch.hindsight import BestInHindsight
from tests.reference import kernel as reference

X, Y = moons(700, 0.3, 0)
SIGNS = np.where(Y == 1, 1, -1)


def test_inside_the_ball_it_is_the_solution_of_the_problem():
    model = BestInHindsight(R=50.0, lam=1e-2, gamma=2.0, tol=1e-6, random_state=0).fit(X, Y)
    solver = DualCDKLR(lam=1e-2, gamma=2.0, tol=1e-6, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), solver.decision_function(X), atol=1e-4)
    K = reference.kernel_matrix(X, X, gamma=2.0)
    assert model.norm_ == pytest.approx(np.sqrt(model.dual_coef_ @ K @ model.dual_coef_))
    assert model.norm_ < 50
    assert model.lam_ == pytest.approx(1e-2)


def test_the_usual_lam_minimises_the_bound_of_gradient_descent():
    """It is sum_i l(y_i f(x_i)) + ||f||^2 / (2 eta) with eta = R / sqrt(n)."""
    eta = 9.0 / np.sqrt(len(Y))
    model = BestInHindsight(R=9.0, gamma=2.0, random_state=0).fit(X, Y)
    least = model.cumulative_loss_ + model.norm_**2 / (2 * eta)
    for lam in (model.lam_ / 3, model.lam_ * 3):
        other = BestInHindsight(R=1e3, lam=lam, gamma=2.0, random_state=0).fit(X, Y)
        assert least < other.cumulative_loss_ + other.norm_**2 / (2 * eta)


@pytest.mark.parametrize("R", [0.05, 1.0, 3.0])
def test_of_the_functions_in_a_small_ball_it_is_the_best(R):
    model = BestInHindsight(R=R, gamma=2.0, random_state=0).fit(X, Y)
    assert 0.99 * R < model.norm_ <= R
    for lam in np.geomspace(model.lam_ / 100, model.lam_ * 100, 9):
        other = DualCDKLR(lam=lam, gamma=2.0, random_state=0).fit(X, Y)
        f = other.decision_function(X)
        f *= min(1.0, R / np.sqrt(other.dual_coef_ @ f))
        assert model.cumulative_loss_ <= np.logaddexp(0, -SIGNS * f).sum() * 1.001


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_sums_along_the_rows(layout):
    seen = {}
    shape = {"h": "hard_cutoff", "aux_delta": 0.5}
    model = BestInHindsight(R=3.0, gamma=2.0, random_state=0, **shape)
    model.fit(layout(X), Y, callback=lambda learner, t: seen.update({t: learner.progress()}))
    assert list(seen) == [256, 512, 700], "those of the online learners"
    assert [seen[700][name] for name in ("norm", "cumulative_loss")] == [model.norm_, model.cumulative_loss_]
    z = SIGNS * model.decision_function(layout(X))
    for t, numbers in seen.items():
        assert numbers["cumulative_loss"] == pytest.approx(np.logaddexp(0, -z[:t]).sum())
        h = np.logaddexp(0, -np.minimum(z[:t], 0.5)).sum()
        assert numbers["cumulative_h"] == pytest.approx(h)
    assert model.summary().items() >= seen[700].items()
    stopped = model.fit(layout(X), Y, callback=lambda learner, t: t >= 512)
    assert stopped.cumulative_loss_ == pytest.approx(np.logaddexp(0, -z[:512]).sum())


def test_refusals():
    with pytest.raises(ValueError, match="'R' parameter of BestInHindsight must be a float in the range"):
        BestInHindsight(R=0.0).fit(X, Y)
    with pytest.raises(ValueError, match="expected two classes, got 3"):
        BestInHindsight().fit(X, np.arange(700) % 3)

"""Test the bounds of the papers against hand calculations, runs and nearly tight sequences."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.base import clone

from klr_bench import fit_many
from klr_bench.datasets.synthetic import moons, repeated_points
from klr_bench.estimators.batch.hindsight import BestInHindsight
from klr_bench.estimators.online import bounds
from tests.estimators.one_pass import OSKL, AuxiliaryKLR, MarginKLR, NonConservativeKLR

X, Y = moons(400, 0.3, 0)
DELTA = 0.05
SEEDS = 100
GAMMA = 8.0
"""Of the kernel, with which `repeated_points` at a distance of 10 are orthogonal."""


def test_bounds_equal_hand_calculations():
    # T = 100, loss 30, ||f|| = 2, eta = 1/2
    assert bounds.nc_loss_bound(100, 30, 2, 0.5) == pytest.approx(30 / 0.75 + 4 / 0.75), "theorem 2 is the smaller"
    assert bounds.nc_loss_bound(10, 30, 2, 0.5) == pytest.approx(30 + 4 + 2.5), "theorem 1 is the smaller"
    assert bounds.nc_loss_bound(10, 30, 2, 4.0) == pytest.approx(30 + 0.5 + 20), "theorem 2 needs a step below 2"
    assert bounds.margin_loss_bound(30, 2, 0.5) == pytest.approx(45.333333333)
    assert bounds.auxiliary_loss_bound(100, 40, 2, 0.5) == pytest.approx(40 + 4 + 25)
    assert bounds.margin_support_bound(100, 40, 0.5) == pytest.approx(75 + 10)
    assert bounds.auxiliary_support_bound(40, "log_gamma", gamma=math.e) == pytest.approx(40)
    assert bounds.auxiliary_support_bound(40, "log_one_plus_gamma", gamma=9.0) == np.inf
    assert bounds.auxiliary_support_bound(40, "hard_cutoff", delta=0.0) == pytest.approx(40 / math.log(2))
    # T = 1024: m = log2(2^20) = 20, ln(20 / 0.05) = ln 400
    c = 0.5 + 16 * math.log(400)
    assert bounds.oskl_constant(1024, DELTA) == pytest.approx(c) == pytest.approx(96.3633527)
    assert bounds.oskl_constant(1024, DELTA, G=1e5, G1=1e5) == pytest.approx(2 * math.sqrt(1e5))
    assert bounds.oskl_constant([6, 7], DELTA).tolist() == [np.inf, pytest.approx(0.5 + 16 * math.log(120))]
    expected = (30 + (0.25 * 4 + 9 / 0.25 + 3 * 2) * c) / 0.5 + 3 * c
    assert bounds.oskl_loss_bound(1024, 30, R=3, eta=0.25, G=2, delta=DELTA) == pytest.approx(expected)
    assert bounds.oskl_support_bound(1024, 40, G=2, delta=DELTA) == pytest.approx(0.75 * 40 + c)
    assert bounds.few_support_loss(100, 5) == pytest.approx(20 * math.log(2))


@given(
    T=st.integers(20, 10**6),
    share=st.floats(0, 1),
    R=st.floats(0.1, 100),
    G=st.floats(1, 50),
    gamma=st.floats(0.01, 0.99),
    delta=st.floats(1e-6, 0.3),
)
def test_remark_2_of_the_icml_paper(T, share, R, G, gamma, delta):
    """Substituting eta = gamma / (L G), and equation (2) into (3), gives the bounds of remark 2."""
    loss, c = share * T, float(bounds.oskl_constant(T, delta, G))
    regret = loss / (1 - gamma) + R * c + G * (gamma + R**2 / gamma + R) / (1 - gamma) * c
    ours = bounds.oskl_loss_bound(T, loss, R, gamma / G, G, delta)
    assert ours == pytest.approx(regret)
    support = (1 + 1.5 * (gamma + R**2 / gamma + R) / (1 - gamma)) * c + 1.5 / G * (loss / (1 - gamma) + R * c)
    assert bounds.oskl_support_bound(T, ours, G, delta) == pytest.approx(support)


@given(z=st.floats(-700, 700), gamma=st.floats(1, 1e6), delta=st.floats(-5, 5))
def test_h_is_an_upper_bound_of_the_loss_with_a_slope_of_at_most_one(z, gamma, delta):
    loss = np.logaddexp(0, -z)
    for h in bounds.AUXILIARY:
        value, beyond = (bounds.auxiliary_values(at, h, gamma, delta) for at in (z, z + 1e-3))
        assert value >= loss * (1 - 1e-12)
        assert -1e-3 * (1 + 1e-6) - 1e-9 <= beyond - value <= 1e-9
        assert value >= bounds.auxiliary_values(np.inf, h, gamma, delta)


@pytest.mark.parametrize("gamma", [2.0, 1.9])
def test_auxiliary_bound_exceeds_the_loss_of_zero_for_gamma_of_two_or_more(gamma):
    """As h >= log(gamma), the bound of theorem 4 is never below the loss of f = 0."""
    least = bounds.auxiliary_values(np.inf, "log_gamma", gamma)
    assert least == pytest.approx(math.log(gamma))
    first = bounds.first_below(
        lambda T: bounds.auxiliary_loss_bound(T, least * T, gamma < 2, 1e-3), lambda T: T * bounds.LOG_2
    )
    assert first == (None if gamma == 2 else math.ceil(500 / (bounds.LOG_2 - math.log(1.9) - 5e-4)))


@given(start=st.integers(1, 10**12))
def test_first_below(start):
    assert bounds.first_below(lambda T: start, lambda T: T + 0.5) == start


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (bounds.margin_loss_bound, (1, 1, 2.0), "expected 0 < eta < 2, as in theorem 3, got eta=2.0"),
        (bounds.oskl_loss_bound, (9, 1, 1, 0.5, 2.0, DELTA), r"0 < eta \* L \* G < 1, got 1; use an eta below"),
        (bounds.oskl_support_bound, (9, 1, 1.0, 1.5), "delta: expected a probability between 0 and 1, got 1.5"),
        (bounds.auxiliary_values, (1.0, "log"), "h: expected log_gamma, log_one_plus_gamma, hard_cutoff, got"),
    ],
)
def test_refusals(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


def many(learner):
    """Return the cumulative loss and number of support vectors per seed, both (SEEDS,)."""
    fitted = fit_many([clone(learner).set_params(random_state=seed) for seed in range(SEEDS)], X, Y)
    return np.transpose([(learner.cumulative_loss_, learner.n_support_) for learner in fitted])


def assert_mean_below(values, bound):
    """Assert that the mean exceeds the bound by at most four standard errors (1 in 30,000 by chance)."""
    assert values.mean() <= np.mean(bound) + 4 * np.std(values - bound, ddof=1) / math.sqrt(len(values))


@pytest.mark.parametrize("eta", [0.05, 0.5, 1.9, 30.0])
@pytest.mark.parametrize("R", [1.0, 3.0, np.inf])
def test_nc_at_each_checkpoint(eta, R):
    """The bound holds for every f in the ball; test the best f and its multiples."""
    f = BestInHindsight(min(R, 10.0), gamma=GAMMA, random_state=0).fit(X, Y)
    z = np.where(Y == 1, 1, -1) * f.decision_function(X)
    learner, T = NonConservativeKLR(eta=eta, R=R, gamma=GAMMA, dtype="float64"), 0
    for chunk in np.split(np.arange(len(Y)), 8):
        learner.partial_fit(X[chunk], Y[chunk], classes=[0, 1])
        T += len(chunk)
        for part in (0.0, 0.3, 1.0):
            loss = np.logaddexp(0, -part * z[:T]).sum()
            assert learner.cumulative_loss_ <= bounds.nc_loss_bound(T, loss, part * f.norm_, eta)


@pytest.mark.parametrize("eta", [0.1, 1.0, 1.9])
def test_margin_in_expectation(eta):
    losses, supports = many(MarginKLR(eta=eta, R=3.0, gamma=GAMMA))
    f = BestInHindsight(3.0, gamma=GAMMA, random_state=0).fit(X, Y)
    assert_mean_below(losses, bounds.margin_loss_bound(f.cumulative_loss_, f.norm_, eta))
    assert_mean_below(supports, bounds.margin_support_bound(len(Y), losses, eta))


@pytest.mark.parametrize("h", bounds.AUXILIARY)
@pytest.mark.parametrize("aux_gamma", [1.1, 3.0])
def test_auxiliary_in_expectation(h, aux_gamma):
    shape = {"h": h, "aux_gamma": aux_gamma, "aux_delta": 0.5, "gamma": GAMMA}
    losses, supports = many(AuxiliaryKLR(eta=0.3, R=3.0, **shape))
    f = BestInHindsight(3.0, random_state=0, **shape).fit(X, Y)
    assert_mean_below(losses, bounds.auxiliary_loss_bound(len(Y), f.cumulative_h_, f.norm_, 0.3))
    if h != "log_one_plus_gamma":  # for which there is no bound
        assert_mean_below(supports, bounds.auxiliary_support_bound(losses, h, aux_gamma, 0.5))


@pytest.mark.parametrize(("G", "eta", "R"), [(1.0, 0.3, 3.0), (1.0, 0.9, 1.0), (4.0, 0.1, 3.0)])
def test_oskl_with_probability(G, eta, R):
    """The bounds and equation (7) are violated as often as delta allows (1 false alarm in 10^6)."""
    losses, supports = many(OSKL(G=G, eta=eta, R=R, gamma=GAMMA))
    f = BestInHindsight(R, gamma=GAMMA, random_state=0).fit(X, Y)
    allowed = binom.ppf(1 - 1e-6, SEEDS, 2 * DELTA)
    regret = losses > bounds.oskl_loss_bound(len(Y), f.cumulative_loss_, R, eta, G, DELTA)
    support = supports > bounds.oskl_support_bound(len(Y), losses, G, DELTA)
    assert np.sum(regret | support) <= allowed
    proofs = 1.5 / G * losses + 8 / 3 * math.log(math.ceil(math.log2(len(Y) ** 2)) / DELTA)  # equation (7)
    assert np.sum(supports > proofs) <= binom.ppf(1 - 1e-6, SEEDS, DELTA)


def test_theorem_2_of_the_icml_paper():
    """OSKL has few support vectors and a small loss; fewer than n vectors give at least T log(2) / n."""
    n, T = 5, 3000
    sets = [repeated_points(T, n, 10.0, seed) for seed in range(20)]
    loss, norm = bounds.separating_function(T, n)
    assert loss <= n
    best = BestInHindsight(norm, lam=1e-7, gamma=GAMMA, random_state=0).fit(*sets[0])
    assert best.cumulative_loss_ <= loss * 1.05, "the best f in its ball is as good"
    for X, y in sets[:3]:
        learner = OSKL(eta=0.5, gamma=GAMMA, R=norm, random_state=0).fit(X, y)
        assert learner.n_support_ < n * math.log(T) ** 2 / 4
        assert learner.cumulative_loss_ < n * math.log(T) ** 2 / 4 < bounds.few_support_loss(T, n)
    # loss if all points but the last are support vectors and have no loss
    few = np.array([bounds.LOG_2 * (1 + np.sum(X[1:] == X[:-1])) for X, _ in sets])
    assert few.mean() == pytest.approx(bounds.few_support_loss(T, n), abs=4 * few.std(ddof=1) / math.sqrt(len(few)))

"""Tests of the confidence-weighted learners against reference implementations."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import klr_bench as klr
from klr_bench.estimators.linear import bcw, confidence, engine
from tests.estimators.samples import CLASSIFIERS
from tests.reference import linear as reference

CASES = {
    "arow": (klr.AROW(0.5), reference.arow(0.5)),
    "arow strong": (klr.AROW(32.0), reference.arow(32.0)),
    "narow": (klr.NAROW(2.0), reference.narow(2.0)),
    "narow careful": (klr.NAROW(16.0), reference.narow(16.0)),
    "cw": (klr.ConfidenceWeighted(0.55), reference.cw(0.55)),
    "cw sure": (klr.ConfidenceWeighted(0.95), reference.cw(0.95)),
    "scw1": (klr.SoftConfidenceWeighted(1, C=0.0625), reference.cw(0.75, 0.0625)),
    "scw1 of libol": (klr.SoftConfidenceWeighted(1, 16.0, 0.9, compat="libol"), reference.cw(0.9, 16.0)),
    "scw2": (klr.SoftConfidenceWeighted(2), reference.scw2(0.75, 1.0)),
    "scw2 sure": (klr.SoftConfidenceWeighted(2, 0.0625, 0.9), reference.scw2(0.9, 0.0625)),
    "scw2 of libol": (klr.SoftConfidenceWeighted(2, 4.0, 0.95, compat="libol"), reference.scw2_of_libol(0.95, 4.0)),
}
LEARNERS = [learner for learner, _ in CASES.values()] + [
    klr.SecondOrderPerceptron(),
    klr.SecondOrderPerceptron(update="always"),
    klr.SecondOrderPerceptron(compat="libol"),
]


def test_every_class_with_a_covariance_of_each_row_is_here():
    learners = {cls for cls in CLASSIFIERS.values() if issubclass(cls, confidence.ConfidenceLearner)}
    assert {type(learner) for learner in LEARNERS} == learners


def toy(n=300, d=6, seed=1):
    """Return rows with overlapping classes and correlated features, some of them 0, and labels."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) @ random.standard_normal((d, d)) * (random.random_sample((n, d)) < 0.7)
    y = np.where(X @ random.standard_normal(d) + 1.5 * random.standard_normal(n) > 0, 1, -1)
    return X / np.sqrt(d), y


@pytest.fixture(params=["diagonal", "loop", "blocks of 1", "blocks of 7", "blocks of 128"])
def mode(request, monkeypatch):
    """Configure how the covariance is updated; return the name of the method."""
    if request.param.startswith("blocks"):
        monkeypatch.setattr(confidence, "IN_CACHE", 0)
        size = int(request.param.split()[-1])
        monkeypatch.setattr(engine.Blocked, "chunk", size)
    return request.param


def assert_same(learner, mean, covariance, updates, mistakes, rtol=1e-8):
    np.testing.assert_allclose(learner.coef_, mean, rtol=rtol, atol=rtol * np.abs(mean).max())
    np.testing.assert_allclose(learner.covariance_, covariance, rtol=rtol, atol=rtol * np.abs(covariance).max())
    assert (learner.n_updates_, learner.n_mistakes_) == (updates, mistakes)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("case", CASES)
def test_the_learners_equal_the_reference(case, layout, mode):
    X, y = toy()
    learner, step = CASES[case]
    limit, diagonal = engine.LIMITS["float64"], mode == "diagonal"
    learner = clone(learner).set_params(covariance="diagonal" if diagonal else "full").fit(layout(X), y)
    assert_same(learner, *reference.online(X, y, step, diagonal=diagonal, limit=limit))


@pytest.mark.parametrize("mode", ["loop", "blocks of 1", "blocks of 7", "blocks of 128"], indirect=True)
@pytest.mark.parametrize(("update", "compat"), [("mistakes", None), ("always", None), ("mistakes", "libol")])
@pytest.mark.parametrize("a", [1.0, 0.1])
def test_second_order_perceptron_equals_the_reference(a, update, compat, mode):
    """With compat="libol" every row updates the covariance, and predictions do not use it."""
    X, y = toy()
    learner = klr.SecondOrderPerceptron(a, update, compat=compat).fit(X, y)
    w, S, updates, mistakes = reference.sop(X, y, a, always=update == "always" or compat is not None)
    assert_same(learner, w if compat else S @ w, S, updates, mistakes)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("variant", [0, 1, 2])
def test_passive_aggressive_equals_the_reference(variant, C, layout):
    X, y = toy()
    X[17] = 0.0
    learner = klr.PassiveAggressive(variant, C).fit(layout(X), y)
    np.testing.assert_allclose(learner.coef_, reference.passive_aggressive(X, y, variant, C), rtol=1e-10)
    weights = np.random.RandomState(0).uniform(0.5, 2.0, len(y))
    learner = klr.PassiveAggressive(variant, C).fit(layout(X), y, weights)
    np.testing.assert_allclose(learner.coef_, reference.passive_aggressive(X, y, variant, C, weights), rtol=1e-10)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(("C", "r"), [(0.0625, None), (16.0, None), (1.0, 0.25), (0.0625, 1.0)])
@pytest.mark.parametrize("q", [1, 2])
def test_batches_equal_the_reference(q, C, r, layout, monkeypatch):
    monkeypatch.setattr(bcw, "GRAM_ROWS", 33)
    X, y = toy()
    X[17] = 0.0
    batches = [slice(0, 40), slice(40, 50), slice(50, 300)]
    learner = klr.BatchConfidenceWeighted(C, q, r=r)
    for rows in batches:
        learner.partial_fit(layout(X[rows]), y[rows], classes=[-1, 1])
    assert_same(learner, *reference.bcw([(X[rows], y[rows]) for rows in batches], C, q, r))
    assert (learner.t_, learner.n_batches_) == (300, 3)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 9),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
    learner=st.sampled_from(LEARNERS),
    blocks=st.booleans(),
)
def test_the_covariance_stays_symmetric_and_positive_definite(seed, d, scale, learner, blocks):
    random = np.random.RandomState(seed)
    X = scale * random.standard_normal((200, d)) * (random.random_sample((200, d)) < 0.6)
    y = np.append([-1, 1], random.choice([-1, 1], 198))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confidence, "IN_CACHE", 0 if blocks else 256)
        S = clone(learner).fit(X, y).covariance_
    np.testing.assert_array_equal(S, S.T)
    assert np.linalg.eigvalsh(S).min() > 0
    if "covariance" in learner.get_params():
        assert (clone(learner).set_params(covariance="diagonal").fit(X, y).covariance_ > 0).all()


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_blocks_in_single_precision_give_the_same_predictions(learner, monkeypatch):
    """The data have no noise; with noise, S of CW would shrink below single precision."""
    random = np.random.RandomState(0)
    X = random.standard_normal((1000, 40)).astype(np.float32) / 6
    y = np.where(X @ random.standard_normal(40) > 0, 1, -1)
    loop = clone(learner).fit(X.astype(np.float64), y)
    monkeypatch.setattr(confidence, "IN_CACHE", 0)
    blocks = clone(learner).fit(X, y)
    assert blocks._state.S.dtype == np.float32
    assert abs(blocks.n_updates_ - loop.n_updates_) <= 1
    np.testing.assert_allclose(blocks.coef_, loop.coef_, atol=2e-3 * np.abs(loop.coef_).max())


def test_epochs_continue_from_the_state_of_the_previous_one():
    X, y = toy()
    np.testing.assert_array_equal(klr.AROW(n_epochs=2).fit(X, y).coef_, klr.AROW().fit(X, y).partial_fit(X, y).coef_)


@pytest.mark.parametrize(
    "learner", [klr.AROW(), klr.AROW(covariance="diagonal"), klr.PassiveAggressive(), klr.BatchConfidenceWeighted()]
)
def test_overflow_raises_an_error(learner, mode):
    X, y = toy(20)
    X[5] = 1e200
    with pytest.raises(ValueError, match=r"not finite.*scale the features"):
        learner.partial_fit(X[:5], y[:5]).partial_fit(X[5:], y[5:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rounded_singular_gram_matrix_gives_a_valid_covariance(dtype):
    X = np.random.default_rng(0).random((60, 100)).astype(dtype)
    model = klr.BatchConfidenceWeighted(C=1e6).fit(X, np.arange(60) % 2)
    e = np.linalg.eigvalsh(model.covariance_)
    assert np.isfinite(model.coef_).all()
    assert e.min() > 0
    assert e.max() == pytest.approx(1.0, rel=1e-6)


def test_large_rows_are_learned():
    X = np.random.RandomState(0).standard_normal((60, 3)) * 1e80
    y = X[:, 0] > 0
    for learner in (klr.AROW(), klr.NAROW()):
        assert learner.fit(X, y).score(X, y) > 0.8

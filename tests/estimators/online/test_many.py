"""Test that learners in a shared pass equal separate fits, and the softmax of many classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone

from klr_bench import fit_many
from klr_bench.estimators.online.classifier import OnlineClassifier
from klr_bench.estimators.online.many import SharedFit
from klr_bench.estimators.online.oskl import sampled_direction_step
from klr_bench.metrics.quality import measure
from tests.estimators.one_pass import OSKL, AuxiliaryKLR, MarginKLR, NonConservativeKLR
from tests.estimators.online.cases import CASES
from tests.estimators.online.cases import toy as toy_of_many
from tests.estimators.samples import KERNELS, toy
from tests.reference import kernel as reference


def assert_same(first, second, rtol):
    np.testing.assert_array_equal(first.support_vectors_.shape, second.support_vectors_.shape)
    assert abs(first.support_vectors_ - second.support_vectors_).sum() == 0
    np.testing.assert_allclose(first.dual_coef_, second.dual_coef_, rtol=rtol, atol=1e-280)
    assert (first.n_mistakes_, first.t_, first.n_support_) == (second.n_mistakes_, second.t_, second.n_support_)
    assert first.summary() == pytest.approx(second.summary(), rel=rtol)
    assert first.classes_.tolist() == second.classes_.tolist()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("layout", ["float32", "dense", "csr"])
def test_fit_many_equals_separate_fits(kernel, layout):
    X, y = toy(n=500, empty_rows=False)
    X = sp.csr_matrix(X) if layout == "csr" else X.astype("float32" if layout == "float32" else "float64")
    learners = [clone(learner).set_params(**KERNELS[kernel], random_state=0) for learner in CASES.values()]
    for together, alone in zip(fit_many(learners, X, y), learners, strict=True):
        assert_same(together, clone(alone).fit(X, y), rtol=1e-3 if layout == "float32" else 1e-9)


@settings(max_examples=20)
@given(st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=4), st.integers(1, 590), st.integers(1, 2))
def test_partial_fit_continues_after_fit_many(cases, cut, n_epochs):
    X, y = toy(n=600)
    learner = {"gamma": 0.7, "n_epochs": n_epochs}
    learners = [clone(CASES[case]).set_params(random_state=i // 2, **learner) for i, case in enumerate(cases)]
    cut = max(cut, 1 + int(np.argmax(y != y[0])))
    for learner in fit_many(learners, X[:cut], y[:cut]):
        whole = clone(learner).fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:])
        assert_same(learner.partial_fit(X[cut:], y[cut:]), whole, rtol=1e-9)


RADII = st.sampled_from([0.3, 1.0, 2.0, 4.0, 5.0, 7.0, 9.0, 12.0, 20.0, 1e3, np.inf])
FAMILIES = [NonConservativeKLR(eta=0.7), AuxiliaryKLR(eta=0.4), OSKL(G=1.5), MarginKLR(eta=0.05)]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(FAMILIES), RADII, st.booleans(), st.integers(0, 1)), min_size=2, max_size=10),
    st.integers(10, 590),
    st.integers(1, 2),
)
def test_learners_that_differ_in_radius_equal_separate_fits(choices, cut, n_epochs):
    X, y = toy(n=600)
    learners = [
        clone(learner).set_params(R=R, average=average, random_state=seed, gamma=0.7, n_epochs=n_epochs)
        for learner, R, average, seed in choices
    ]
    shared = SharedFit([clone(learner) for learner in learners], X, y).decision_function(X)
    for f, learner in zip(shared.T, learners, strict=True):
        np.testing.assert_allclose(f, clone(learner).fit(X, y).decision_function(X), rtol=1e-9, atol=1e-11)
    for learner in fit_many(learners, X[:cut], y[:cut]):
        assert_same(learner, whole := clone(learner).fit(X[:cut], y[:cut]), rtol=1e-9)
        assert_same(learner.partial_fit(X[cut:], y[cut:]), whole.partial_fit(X[cut:], y[cut:]), rtol=1e-9)


def test_a_learner_that_fails_does_not_stop_the_others():
    X, y = toy()
    learners = [OSKL(loss="exponential", G=1.0), OSKL(random_state=0)]
    shared = SharedFit(learners, X, y)
    assert shared.refused.tolist() == [True, False]
    alone = OSKL(random_state=0).fit(X, y)
    np.testing.assert_allclose(shared.decision_function(X)[:, 1], alone.decision_function(X), rtol=1e-9)
    with pytest.raises(ValueError, match="exponential loss exceeds G = 1"):
        fit_many([clone(learner) for learner in learners], X, y)


@pytest.mark.parametrize("n_epochs", [1, 3])
@pytest.mark.parametrize("seeds", [(1, 1), (1, 2), (None, None)])
def test_shuffling_learners_share_a_pass_if_seeds_are_equal(seeds, n_epochs):
    X, y = toy()
    learners = [OSKL(R=10.0**i, random_state=seed, shuffle=True, n_epochs=n_epochs) for i, seed in enumerate(seeds)]
    assert (learners[0].pass_key(2) == learners[1].pass_key(2)) == (seeds == (1, 1))
    for together, learner in zip(fit_many([clone(learner) for learner in learners], X, y), learners, strict=True):
        if learner.random_state is not None:
            assert_same(together, learner.fit(X, y), rtol=1e-9)


def test_default_number_of_passes():
    assert OSKL(n_epochs=2).pass_key(2) == NonConservativeKLR(n_epochs=2).pass_key(2)
    assert OSKL(n_epochs=None).steps(10_000) == (100_000, 256)
    assert OSKL(n_epochs=None).steps(50_000)[0] == AuxiliaryKLR(n_epochs=None).steps(50_000)[0] == 100_000
    assert OSKL(n_epochs=None).steps(100)[0] == 2 * AuxiliaryKLR(n_epochs=None).steps(100)[0] == 2000
    assert AuxiliaryKLR(n_epochs=None).steps(10**6)[0] == 2 * 10**6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_passes_end_when_the_losses_exceed_those_of_guessing_four_times(n_classes):
    random = np.random.RandomState(0)
    X, y = random.standard_normal((60, 2)), np.arange(60) % n_classes
    options, limit = {"eta": 1.5, "gamma": 1.0, "random_state": 0}, 4 * 60 * np.log(n_classes) / 1.5
    noisy = OSKL(n_epochs=None, **options).fit(X, y)
    passes = noisy.t_ // 60
    assert OSKL(n_epochs=passes - 1, **options).fit(X, y).cumulative_loss_ < limit < noisy.cumulative_loss_
    assert 2 < passes < 20
    assert_same(noisy, OSKL(n_epochs=passes, **options).fit(X, y), rtol=1e-12)
    (clean,) = fit_many([OSKL(n_epochs=None, **options)], X + 20 * y[:, None], y)
    assert clean.t_ == 20 * 60


def test_learners_must_share_the_kernel():
    X, y = toy()
    with pytest.raises(ValueError, match="must have the same kernel, dtype, n_epochs and class_weight"):
        fit_many([OSKL(gamma=1.0), OSKL(gamma=2.0)], X, y)
    with pytest.raises(ValueError, match="'eta' parameter"):
        fit_many([OSKL(), NonConservativeKLR(eta=-1.0)], X, y)


LOGISTIC = [case for case in CASES if CASES[case]._learns_log_loss]
SOFTMAX_LEARNERS = [NonConservativeKLR(R=3.0), MarginKLR(eta=1.5), AuxiliaryKLR(aux_gamma=3.0), OSKL(G=1.5)]


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("case", LOGISTIC)
def test_two_classes_equal_the_binary_learner(case, kernel, average, monkeypatch):
    learner = clone(CASES[case]).set_params(**kernel, average=average, dtype="float64", random_state=0)
    X, y = toy(n=600, empty_rows=False)
    binary = clone(learner).fit(X, y)
    probabilities = binary.predict_proba(X)
    monkeypatch.setattr(OnlineClassifier, "_has_many", lambda self: True)
    learner.fit(X, y)
    np.testing.assert_array_equal(learner.support_vectors_, binary.support_vectors_)
    np.testing.assert_allclose(learner.dual_coef_, np.outer([-0.5, 0.5], binary.dual_coef_), rtol=1e-9, atol=1e-280)
    assert (learner.n_mistakes_, learner.t_) == (binary.n_mistakes_, binary.t_)
    np.testing.assert_allclose(learner._state.functions["squared"], binary._state.functions["squared"][0], rtol=1e-9)
    np.testing.assert_allclose(learner.predict_proba(X), probabilities, rtol=1e-9)


@pytest.mark.parametrize("learner", SOFTMAX_LEARNERS, ids=str)
def test_decision_values_and_probabilities(learner):
    X, y = toy_of_many()
    Z = toy_of_many(n=70, seed=5)[0]
    learner = clone(learner).set_params(gamma=0.7, random_state=0).fit(X, y)
    f, p = learner.decision_function(Z), learner.predict_proba(Z)
    K = reference.kernel_matrix(learner.support_vectors_, Z, gamma=0.7)
    np.testing.assert_allclose(f, (learner.dual_coef_ @ K).T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(f.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(p, softmax(f, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(learner.predict(Z), np.argmax(f, axis=1))
    measured, p = measure(learner, X, y)[0], learner.predict_proba(X)
    assert measured["accuracy"] == learner.score(X, y) > 0.5
    assert measured["log_loss"] == pytest.approx(-np.mean(np.log(p[np.arange(len(y)), y])))


@given(z=st.floats(-800, 690), r=st.floats(0.7072, 1), G=st.floats(1, 20), eta=st.floats(1e-3, 20))
def test_the_sampled_step_is_the_gradient_step_on_average(z, r, G, eta):
    parameters = np.array(OSKL(G=G, eta=eta)._update().parameters)
    p = r * expit(-z) / G
    inserted, c = sampled_direction_step(z, r, p * (1 - 1e-12), parameters)
    assert inserted or p == 0
    assert not sampled_direction_step(z, r, p * (1 + 1e-12), parameters)[0]
    assert p * c == pytest.approx(eta * expit(-z), rel=1e-12)


def test_raises_for_unknown_labels_and_invalid_steps():
    X, y = toy_of_many()
    learner = MarginKLR().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y has labels \[7\], but the classes are \[0, 1, 2, 3\]"):
        learner.partial_fit(X[:1], [7])
    with pytest.raises(ValueError, match=r"classes: expected \[0, 1, 2, 3\] as in the first call, got \[0, 1, 2\]"):
        learner.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"below 2. Got R/sqrt\(T\) = 5"):
        MarginKLR(R=5 * 300**0.5, eta="R/sqrt(T)").fit(X, y)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"at example number \d+, .* is not finite"):
        NonConservativeKLR(eta=1e160).fit((1e7 * X).astype(np.float32), y)
    together = fit_many([clone(learner).set_params(random_state=0) for learner in SOFTMAX_LEARNERS], X, y)  # one by one
    np.testing.assert_array_equal(together[0].dual_coef_, clone(together[0]).fit(X, y).dual_coef_)
    with pytest.raises(ValueError, match="a shared pass requires two classes, got 4; fit the learners one by one"):
        SharedFit(SOFTMAX_LEARNERS, X, y)

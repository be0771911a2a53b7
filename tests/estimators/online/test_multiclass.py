"""Online learners of many classes against their reference, the binary learners, and their limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone

from klr_bench import fit_many
from klr_bench.estimators.core import expansion
from klr_bench.estimators.online import engine
from klr_bench.estimators.online.many import SharedFit
from klr_bench.estimators.online.oskl import sampled_direction_step
from klr_bench.estimators.online.softmax import SoftmaxKernelClassifier
from klr_bench.metrics.quality import measure
from tests.cover import cover
from tests.estimators.one_pass import OSKL, AuxiliaryKLR, MarginKLR, NonConservativeKLR
from tests.estimators.online.cases import CASES as BINARY_CASES
from tests.estimators.samples import KERNELS, LAYOUTS, draws, laid_out, suited
from tests.estimators.samples import toy as binary_toy
from tests.reference import kernel as reference
from tests.reference import multiclass as many

CASES = {
    "nc": (NonConservativeKLR(eta=0.5), many.nc(0.5), 1e3),
    "nc small ball": (NonConservativeKLR(R=1.0), many.nc(1.0), 1.0),
    "margin": (MarginKLR(eta=1.2, R=5.0), many.margin(1.2), 5.0),
    "auxiliary log_gamma": (AuxiliaryKLR(R=5.0), many.auxiliary(1.0, "log_gamma", 2.0, 1.0), 5.0),
    "auxiliary log_one_plus_gamma": (
        AuxiliaryKLR(eta=0.3, h="log_one_plus_gamma", aux_gamma=5.0),
        many.auxiliary(0.3, "log_one_plus_gamma", 5.0, 1.0),
        1e3,
    ),
    "auxiliary hard_cutoff": (
        AuxiliaryKLR(h="hard_cutoff", aux_delta=-0.5, R=2.0),
        many.auxiliary(1.0, "hard_cutoff", 2.0, -0.5),
        2.0,
    ),
    "oskl": (OSKL(G=2.0), many.oskl(2.0, 0.45), 1e3),
    "oskl small ball": (OSKL(R=1.0), many.oskl(1.0, 0.9), 1.0),
    "oskl long steps": (OSKL(eta=9.0, R=20.0), many.oskl(1.0, 9.0), 20.0),
}
LOGISTIC = [
    case
    for case, (learner, *_) in BINARY_CASES.items()
    if isinstance(learner, SoftmaxKernelClassifier) and learner._is_logistic()
]
LEARNERS = [NonConservativeKLR(R=3.0), MarginKLR(eta=1.5), AuxiliaryKLR(aux_gamma=3.0), OSKL(G=1.5)]


def toy(n=300, n_classes=4, d=4, seed=1):
    """Overlapping classes; some features are 0."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < 0.7)
    values = np.sin(2 * X) @ random.standard_normal((d, n_classes)) + 0.3 * random.standard_normal((n, n_classes))
    return X / np.sqrt(d), np.argmax(values, axis=1)


def assert_same_learner(learner, X, y, step, radius, *, rtol):
    """Compare a fitted learner with the reference: who is a support vector, and every coefficient."""
    dense = X.toarray() if sp.issparse(X) else X
    kernel = {name: getattr(learner, name) for name in ("kernel", "gamma", "degree", "coef0")}
    K = reference.kernel_matrix(dense, dense, **kernel)
    n_classes = len(learner.classes_)
    last, average, inserted, mistakes, losses = many.online(K, y, n_classes, draws(len(y)), step, radius)
    support = learner.support_vectors_.toarray() if sp.issparse(X) else learner.support_vectors_
    np.testing.assert_array_equal(support, dense[inserted].astype(support.dtype))
    expected = (average if learner.average else last)[:, inserted]
    assert learner.dual_coef_.shape == (n_classes, inserted.sum())
    size = np.abs(expected).max(axis=0)  # the shares of classes that are out of the question have few digits
    size[size == 0] = 1
    np.testing.assert_allclose(learner.dual_coef_ / size, expected / size, rtol=0, atol=rtol)
    assert learner.n_support_ == learner.n_updates_ == inserted.sum()
    assert learner.t_ == len(y)
    if rtol <= 1e-10:
        assert learner.n_mistakes_ == mistakes
    assert learner.cumulative_loss_ == pytest.approx(losses, rel=rtol)


@cover(3, case=list(CASES), kernel=KERNELS, layout=LAYOUTS, block=[1, 7, 256], average=[False, True])
def test_equals_the_reference_in_double(case, kernel, layout, block, average, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK", block)
    monkeypatch.setattr(expansion, "TILE", 33)
    learner, step, radius = CASES[case]
    X, y = toy(n=120)
    learner = clone(learner).set_params(**kernel, average=average, dtype="float64", random_state=0)
    X = laid_out(suited(X, layout), layout, monkeypatch)
    assert_same_learner(learner.fit(X, y), X, y, step, radius, rtol=1e-10)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("case", CASES)
def test_equals_the_reference_in_single(case, kernel, layout):
    learner, step, radius = CASES[case]
    X, y = toy()
    X = X.astype(np.float32) if layout == "dense" else sp.csr_matrix(X.astype(np.float32))
    learner = clone(learner).set_params(**kernel, random_state=0).fit(X, y)
    assert learner.support_vectors_.dtype == np.float32
    assert_same_learner(learner, X, y, step, radius, rtol=1e-3)


@settings(max_examples=60)
@given(
    case=st.sampled_from(sorted(CASES)),
    n=st.integers(3, 40),
    n_classes=st.integers(3, 6),
    d=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    spread=st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_equals_the_reference_on_any_data(case, n, n_classes, d, seed, spread):
    learner, step, radius = CASES[case]
    random = np.random.RandomState(seed)
    X = np.round(64 * spread * random.standard_normal((n, d))) / 64  # equal rows are likely
    y = np.append(np.arange(n_classes), random.randint(n_classes, size=n))[-max(n, n_classes) :]
    y[:n_classes] = np.arange(n_classes)
    X = np.resize(X, (len(y), d))
    learner = clone(learner).set_params(gamma=0.7, dtype="float64", random_state=0).fit(X, y)
    assert_same_learner(learner, X, y, step, radius, rtol=1e-9)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("case", LOGISTIC)
def test_two_classes_equal_the_binary_learner(case, kernel, average, monkeypatch):
    learner = clone(BINARY_CASES[case][0]).set_params(**kernel, average=average, dtype="float64", random_state=0)
    X, y = binary_toy(n=600, empty_rows=False)
    binary = clone(learner).fit(X, y)
    probabilities = binary.predict_proba(X)
    monkeypatch.setattr(SoftmaxKernelClassifier, "_has_many", lambda self: True)
    learner.fit(X, y)
    np.testing.assert_array_equal(learner.support_vectors_, binary.support_vectors_)
    np.testing.assert_allclose(learner.dual_coef_, np.outer([-0.5, 0.5], binary.dual_coef_), rtol=1e-9, atol=1e-280)
    assert (learner.n_mistakes_, learner.t_) == (binary.n_mistakes_, binary.t_)
    np.testing.assert_allclose(learner._state.scalars[0, 2], binary._state.scalars[0, 2], rtol=1e-9)
    np.testing.assert_allclose(learner.predict_proba(X), probabilities, rtol=1e-9)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_values_and_probabilities(learner):
    X, y = toy()
    Z = toy(n=70, seed=5)[0]
    learner = clone(learner).set_params(gamma=0.7, random_state=0, dtype="float64").fit(X, y)
    f, p = learner.decision_function(Z), learner.predict_proba(Z)
    K = reference.kernel_matrix(learner.support_vectors_, Z, gamma=0.7)
    np.testing.assert_allclose(f, (learner.dual_coef_ @ K).T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(f.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(p, softmax(f, axis=1), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(learner.predict(Z), np.argmax(f, axis=1))
    measured = measure(learner, X, y)[0]
    assert measured["accuracy"] == learner.score(X, y) > 0.5
    p = learner.predict_proba(X)
    assert measured["log_loss"] == pytest.approx(-np.mean(np.log(p[np.arange(len(y)), y])))


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_another_order_of_classes_orders_the_coefficients(learner):
    X, y = toy()
    learner = clone(learner).set_params(random_state=0, dtype="float64")
    before, names = clone(learner).fit(X, y), np.array(["c", "a", "d", "b"])
    after = learner.fit(X, names[y])
    assert after.classes_.tolist() == list("abcd")
    np.testing.assert_allclose(after.dual_coef_, before.dual_coef_[np.argsort(names)], rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(after.predict(X), names[before.predict(X)])


def test_projection_holds_the_norm():
    X, y = toy()
    for R in (0.5, 3.0):
        learner = NonConservativeKLR(R=R, average=False, gamma=0.7, dtype="float64").fit(X, y)
        K = reference.kernel_matrix(learner.support_vectors_, learner.support_vectors_, gamma=0.7)
        squared = 2 * np.sum((learner.dual_coef_ @ K) * learner.dual_coef_)
        assert squared <= R**2 * (1 + 1e-10)
        assert learner._state.scalars[0, 2] == pytest.approx(squared, rel=1e-10)


@given(z=st.floats(-800, 690), r=st.floats(0.7072, 1), G=st.floats(1, 20), eta=st.floats(1e-3, 20))
def test_the_sampled_step_is_the_gradient_step_on_average(z, r, G, eta):
    parameters = np.array(OSKL(G=G, eta=eta)._rule_arguments()[0])
    p = r * expit(-z) / G
    inserted, c = sampled_direction_step(z, r, p * (1 - 1e-12), parameters)
    assert inserted or p == 0
    assert not sampled_direction_step(z, r, p * (1 + 1e-12), parameters)[0]
    assert p * c == pytest.approx(eta * expit(-z), rel=1e-12)


@pytest.mark.parametrize("z", [-800.0, -40.0, 0.0, 40.0, 800.0, 1e300])
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_rules_at_extreme_odds(learner, z):
    parameters = np.array(learner._rule_arguments()[0])
    inserted, c = type(learner)._rule_of_many(z, 0.8, 0.5, parameters)
    assert 0 <= c <= 2
    assert inserted or z >= 0 or isinstance(learner, MarginKLR)


def test_refuses_what_it_cannot_learn():
    X, y = toy()
    learner = MarginKLR().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y has labels \[7\], which are not among the classes \[0, 1, 2, 3\]"):
        learner.partial_fit(X[:1], [7])
    with pytest.raises(ValueError, match=r"classes=\[0, 1, 2\]: the first call was with \[0, 1, 2, 3\]"):
        learner.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"below 2. Got R/sqrt\(T\) = 5"):
        MarginKLR(R=5 * 300**0.5, eta="R/sqrt(T)").fit(X, y)
    for learner in (OSKL(kernel="poly", degree=5), NonConservativeKLR(eta=1e160)):
        message = r"at example \d+, and the update or the norm of f is not finite"
        with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match=message):
            learner.fit((1e7 * X).astype(np.float32), y)


def test_many_learners_are_fitted_one_by_one():
    X, y = toy()
    learners = [clone(learner).set_params(random_state=0) for learner in LEARNERS]
    for together in fit_many(learners, X, y):
        np.testing.assert_array_equal(together.dual_coef_, clone(together).fit(X, y).dual_coef_)
    with pytest.raises(ValueError, match="share a pass over two classes only; got 4: fit them one by one"):
        SharedFit(learners, X, y)

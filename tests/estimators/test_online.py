"""The online learners against their references, their limits, and the conventions of scikit-learn."""

from __future__ import annotations

import lzma
import pickle
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.utils.estimator_checks import parametrize_with_checks

import klr_bench
from klr_bench import (
    OSKL,
    AuxiliaryKLR,
    KernelOGD,
    KernelPegasos,
    KernelPerceptron,
    MarginKLR,
    NonConservativeKLR,
    fit_many,
)
from klr_bench.estimators.core import expansion
from klr_bench.estimators.core.kernels import (
    dense_is_cheaper,
    exp_negative,
    raise_to,
    sparse_products,
    sum_exp_negative,
)
from klr_bench.estimators.online import engine
from klr_bench.estimators.online.many import SharedFit
from klr_bench.experiment.targets import build
from tests.reference import kernel as reference

KERNELS = [
    {"kernel": "rbf", "gamma": 0.7},
    {"kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 1.0},
    {"kernel": "linear"},
]
CASES = {
    "nc": (NonConservativeKLR(eta=0.5), reference.nc(0.5), 1e3),
    "nc small ball": (NonConservativeKLR(eta=1.0, R=1.0), reference.nc(1.0), 1.0),
    "margin": (MarginKLR(eta=1.2, R=5.0), reference.margin(1.2), 5.0),
    "margin small ball": (MarginKLR(eta=1.0, R=1.0), reference.margin(1.0), 1.0),
    "auxiliary log_gamma": (AuxiliaryKLR(R=5.0), reference.auxiliary(1.0, "log_gamma", 2.0, 1.0), 5.0),
    "auxiliary log_one_plus_gamma": (
        AuxiliaryKLR(eta=0.3, h="log_one_plus_gamma", aux_gamma=5.0),
        reference.auxiliary(0.3, "log_one_plus_gamma", 5.0, 1.0),
        1e3,
    ),
    "auxiliary hard_cutoff": (
        AuxiliaryKLR(h="hard_cutoff", aux_delta=0.5, R=2.0),
        reference.auxiliary(1.0, "hard_cutoff", 2.0, 0.5),
        2.0,
    ),
    "oskl logit": (OSKL(G=2.0), reference.oskl(2.0, 0.45, "logit", 0.1), 1e3),
    "oskl small ball": (OSKL(G=1.0, R=1.0), reference.oskl(1.0, 0.9, "logit", 0.1), 1.0),
    "oskl exponential": (
        OSKL(G=20.0, loss="exponential", R=2.0, eta=0.02),
        reference.oskl(20.0, 0.02, "exponential", 0.1),
        2.0,
    ),
    "oskl square": (
        OSKL(G=30.0, loss="square", delta=0.5, R=2.0),
        reference.oskl(30.0, 0.9 / (4.0 * 30.0), "square", 0.5),
        2.0,
    ),
    "pegasos": (KernelPegasos(lam=1e-2, average=True), reference.pegasos(1e-2), 10.0),
    "pegasos tiny lambda": (KernelPegasos(lam=1e-7), reference.pegasos(1e-7), 1e-7**-0.5),
    "pegasos tiny lambda, average": (
        KernelPegasos(lam=1e-7, average=True),
        reference.pegasos(1e-7),
        1e-7**-0.5,
    ),
    "pegasos without projection": (KernelPegasos(lam=1e-3, project=False), reference.pegasos(1e-3), np.inf),
    "perceptron": (KernelPerceptron(), reference.perceptron(), np.inf),
    "ogd hinge": (KernelOGD(), reference.ogd(0.5, "hinge"), np.inf),
    "ogd logit": (KernelOGD(loss="logit", average=True), reference.ogd(0.5, "logit"), np.inf),
    "ogd square": (KernelOGD(loss="square", eta=0.05), reference.ogd(0.05, "square"), np.inf),
}
LOGISTIC = [NonConservativeKLR(), MarginKLR(), AuxiliaryKLR(), OSKL(), KernelOGD(loss="logit")]
NOT_LOGISTIC = [OSKL(loss="square", G=9.0), KernelOGD(), KernelPegasos(), KernelPerceptron()]

ALGORITHMS = sorted((Path(__file__).parents[2] / "configs" / "algorithm").glob("*.yaml"))


def estimators():
    """The estimators of klr-bench's own that the configurations name, one for each class and solver."""
    specs = [yaml.safe_load(path.read_text())["estimator"] for path in ALGORITHMS]
    own = [spec for spec in specs if spec["_target_"].startswith("klr_bench.")]
    optional = {name for name in ("skglm", "celer") if find_spec(name) is None}
    solvers = {(spec["_target_"], spec.get("solver")): spec for spec in own if spec.get("solver") not in optional}
    return [build(spec) for spec in solvers.values()]


def draws(n, seed=0):
    return np.random.RandomState(seed).random_sample(n)


def toy(n=300, d=4, seed=1, *, empty_rows=True):
    """Overlapping classes, so that every method has something to correct until the end; some features are 0.

    Of a row without any feature f may be 0 but for rounding, which then decides whether it is a mistake.
    """
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < 0.7)
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.standard_normal(n) > 0, 1, -1)
    if not empty_rows:
        X[~X.any(axis=1), 0] = 1.0
    return X / np.sqrt(d), y


def assert_same_learner(learner, X, y, step, radius, *, rtol):
    """Compare a fitted learner with the reference: who is a support vector, and every coefficient."""
    dense = X.toarray() if sp.issparse(X) else X
    kernel = {name: getattr(learner, name) for name in ("kernel", "gamma", "degree", "coef0")}
    K = reference.kernel_matrix(dense, dense, **kernel)
    last, average, inserted, mistakes = reference.online(K, y, draws(len(y)), step, radius)
    support = learner.support_vectors_.toarray() if sp.issparse(X) else learner.support_vectors_
    assert len(support) == inserted.sum()
    np.testing.assert_array_equal(support, dense[inserted].astype(support.dtype))
    expected = (average if learner.average else last)[inserted]
    np.testing.assert_allclose(learner.dual_coef_, expected, rtol=rtol, atol=1e-280)
    assert learner.n_support_ == learner.n_updates_ == inserted.sum()
    assert learner.t_ == len(y)
    if rtol <= 1e-10:  # the sign of a sum that cancels is a matter of rounding
        assert learner.n_mistakes_ == mistakes


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("block", [1, 7, 256])
@pytest.mark.parametrize("layout", ["dense", "csr made dense", "csr by index"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
@pytest.mark.parametrize("case", CASES)
def test_equals_the_reference_in_double(case, kernel, layout, block, average, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK", block)
    monkeypatch.setattr(expansion, "TILE", 33)
    monkeypatch.setattr(expansion, "dense_is_cheaper", lambda X: layout == "csr made dense")
    learner, step, radius = CASES[case]
    X, y = toy(n=150)
    learner = clone(learner).set_params(**kernel, average=average, dtype="float64", random_state=0)
    X = X if layout == "dense" else sp.csr_matrix(X)
    learner.fit(X, y)
    assert_same_learner(learner, X, y, step, radius, rtol=1e-10)


@pytest.mark.parametrize("layout", ["dense", "csr made dense", "csr by index"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
@pytest.mark.parametrize("case", CASES)
def test_equals_the_reference_in_single(case, kernel, layout, monkeypatch):
    monkeypatch.setattr(expansion, "dense_is_cheaper", lambda X: layout == "csr made dense")
    learner, step, radius = CASES[case]
    X, y = toy()
    X = X.astype(np.float32)
    X = X if layout == "dense" else sp.csr_matrix(X)
    learner = clone(learner).set_params(**kernel, random_state=0).fit(X, y)
    assert learner.support_vectors_.dtype == np.float32
    assert_same_learner(learner, X, y, step, radius, rtol=1e-4)


@pytest.mark.mirror
@pytest.mark.parametrize("case", CASES)
def test_equals_the_reference_on_real_data(case, mirror):
    learner, step, radius = CASES[case]
    with lzma.open(mirror / "magic04" / "magic04.data.xz") as file:
        table = pd.read_csv(file, header=None).sample(600, random_state=0)
    X = table.iloc[:, :10].to_numpy(np.float64)
    X, y = (X - X.min(axis=0)) / np.ptp(X, axis=0), np.where(table[10] == "h", 1, -1)
    learner = clone(learner).set_params(gamma=4.0, dtype="float64", random_state=0).fit(X, y)
    assert_same_learner(learner, X, y, step, radius, rtol=1e-10)


@pytest.mark.mirror
@pytest.mark.parametrize("case", ["nc small ball", "auxiliary log_gamma", "oskl logit", "pegasos tiny lambda"])
def test_equals_the_reference_on_real_sparse_data(case, mirror):
    learner, step, radius = CASES[case]
    with lzma.open(mirror / "a9a" / "a9a.xz") as file:
        X, y = load_svmlight_file(file, n_features=123)
    rows = np.random.RandomState(0).permutation(len(y))[:500]
    learner = clone(learner).set_params(gamma=0.04, dtype="float64", random_state=0).fit(X[rows], y[rows])
    assert_same_learner(learner, X[rows], y[rows], step, radius, rtol=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    n=st.integers(2, 40),
    d=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    spread=st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_equals_the_reference_on_any_data(data, n, d, seed, spread):
    learner, step, radius = CASES[data.draw(st.sampled_from(sorted(CASES)))]
    kernel = data.draw(st.sampled_from(KERNELS[:1] if spread > 1 else KERNELS))
    random = np.random.RandomState(seed)
    # equal rows are likely, and sums that cancel are 0 in any order, as the perceptron's rule needs it
    X = np.round(1024 * spread * random.standard_normal((n, d))) / 1024
    y = np.where(random.random_sample(n) < 0.5, 1, -1)
    y[:2] = -1, 1
    learner = clone(learner).set_params(**kernel, dtype="float64", random_state=0).fit(X, y)
    assert_same_learner(learner, X, y, step, radius, rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(1, 299), unique=True, max_size=6), case=st.sampled_from(sorted(CASES)))
def test_partial_fit_in_any_chunks_equals_fit(cuts, case):
    X, y = toy()
    learner = clone(CASES[case][0]).set_params(gamma=0.7, dtype="float64", random_state=0)
    whole = clone(learner).fit(X, y)
    for rows in np.split(np.arange(len(y)), sorted(cuts)):
        learner.partial_fit(X[rows], y[rows], classes=[-1, 1])
    np.testing.assert_array_equal(learner.support_vectors_, whole.support_vectors_)
    np.testing.assert_allclose(learner.dual_coef_, whole.dual_coef_, rtol=1e-10, atol=1e-280)
    assert (learner.t_, learner.n_mistakes_) == (whole.t_, whole.n_mistakes_)


def test_partial_fit_row_by_row_equals_fit():
    X, y = sp.csr_matrix(toy()[0]), toy()[1]
    learner = OSKL(random_state=3, dtype="float64")
    for i in range(len(y)):
        learner.partial_fit(X[i], y[i : i + 1], classes=[-1, 1])
    whole = OSKL(random_state=3, dtype="float64").fit(X, y)
    np.testing.assert_allclose(learner.dual_coef_, whole.dual_coef_, rtol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
@pytest.mark.parametrize("layout", ["dense", "csr made dense", "csr by index"])
def test_decision_function_is_the_expansion(kernel, layout, monkeypatch):
    monkeypatch.setattr(expansion, "dense_is_cheaper", lambda X: layout == "csr made dense")
    X, y = toy()
    Z = toy(n=70, seed=5)[0]
    learner = NonConservativeKLR(**kernel, dtype="float64").fit(X, y)
    K = reference.kernel_matrix(X, Z, **kernel)
    data = Z if layout == "dense" else sp.csr_matrix(Z)
    learner.fit(X if layout == "dense" else sp.csr_matrix(X), y)
    np.testing.assert_allclose(learner.decision_function(data), learner.dual_coef_ @ K, rtol=1e-10, atol=1e-12)


def test_dense_and_csr_may_meet_at_prediction():
    X, y = toy()
    dense, csr = OSKL(random_state=0).fit(X, y), OSKL(random_state=0).fit(sp.csr_matrix(X), y)
    expected = dense.decision_function(X)
    for learner, data in [(csr, X), (dense, sp.csr_matrix(X)), (csr, sp.csr_matrix(X))]:
        np.testing.assert_allclose(learner.decision_function(data), expected, rtol=1e-4, atol=1e-5)


def test_auxiliary_with_gamma_one_is_non_conservative():
    X, y = toy()
    for h in ("log_gamma", "log_one_plus_gamma"):
        one = AuxiliaryKLR(h=h, aux_gamma=1.0, random_state=0, dtype="float64").fit(X, y)
        np.testing.assert_allclose(one.dual_coef_, NonConservativeKLR(dtype="float64").fit(X, y).dual_coef_, rtol=1e-12)


@pytest.mark.parametrize("value", [-800.0, -40.0, 0.0, 40.0, 800.0, 1e300])
@pytest.mark.parametrize("h", ["log_gamma", "log_one_plus_gamma"])
@pytest.mark.parametrize("aux_gamma", [1.0, 1.01, 1e6])
def test_auxiliary_rule_at_extreme_margins(value, h, aux_gamma):
    from klr_bench.estimators.online.auxiliary import step_on_auxiliary

    learner = AuxiliaryKLR(h=h, aux_gamma=aux_gamma)
    parameters, _ = learner._rule_arguments()
    insert, _, c = step_on_auxiliary(1.0, value, 0.5, 3, np.array(parameters))
    assert np.isfinite(c)
    assert 0 <= c <= 1
    assert insert or value >= 0


def test_translation_leaves_rbf_alone_even_in_single_precision():
    X, y = toy()
    X = (np.round(X * 64) / 64).astype(np.float32)  # exact after the shift: only the kernel can lose digits
    near, far = (OSKL(gamma=0.7, random_state=0).fit(data, y) for data in (X, X + 4096))
    np.testing.assert_allclose(far.dual_coef_, near.dual_coef_, rtol=1e-5)
    np.testing.assert_allclose(far.decision_function(X + 4096), near.decision_function(X), rtol=1e-4, atol=1e-5)


def test_projection_holds_the_norm():
    X, y = toy()
    for R in (0.5, 3.0):
        learner = NonConservativeKLR(R=R, average=False, gamma=0.7, dtype="float64").fit(X, y)
        K = reference.kernel_matrix(learner.support_vectors_, learner.support_vectors_, gamma=0.7)
        assert np.sqrt(learner.dual_coef_ @ K @ learner.dual_coef_) <= R * (1 + 1e-10)
        assert learner._state.scalars[0, 2] == pytest.approx(learner.dual_coef_ @ K @ learner.dual_coef_, rel=1e-10)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (
            MarginKLR(eta=2.0),
            r"'eta' parameter of MarginKLR must be a float in the range \(0.0, 2.0\) or a str among",
        ),
        (MarginKLR(R=0), "'R' parameter of MarginKLR must be a float in the range"),
        (NonConservativeKLR(R=-1.0), "'R' parameter"),
        (OSKL(G=0.5), "'G' parameter of OSKL must be at least G1 = 1, the bound of the logit loss. Got 0.5"),
        (OSKL(loss="hinge"), "'loss' parameter"),
        (KernelPegasos(lam=0.0), "'lam' parameter"),
        (AuxiliaryKLR(aux_gamma=0.9), "'aux_gamma' parameter"),
        (OSKL(dtype="float16"), "'dtype' parameter"),
        (OSKL(kernel="cosine"), "'kernel' parameter"),
        (OSKL(n_epochs=0), "'n_epochs' parameter"),
    ],
    ids=str,
)
def test_refuses_parameters(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(*toy())


def test_a_ball_may_be_infinite():
    X, y = toy()
    infinite, huge = (NonConservativeKLR(R=R, dtype="float64").fit(X, y) for R in (np.inf, 1e9))
    np.testing.assert_array_equal(infinite.dual_coef_, huge.dual_coef_)


@pytest.mark.parametrize(
    "learner",
    [
        KernelPegasos(kernel="poly", degree=5),
        KernelPerceptron(kernel="poly", degree=2.5, coef0=-1.0),
        OSKL(kernel="poly", degree=5),
        NonConservativeKLR(eta=1e160),
        KernelPegasos(lam=1e-310),
    ],
    ids=str,
)
def test_refuses_what_is_not_finite(learner):
    X, y = toy()
    message = r"at example \d+, and the update or the norm of f is not finite"
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match=message):
        learner.fit((1e7 * X).astype(np.float32), y)


@pytest.mark.parametrize("place", [0, 150])
@pytest.mark.parametrize("size", [1e3, 1e5])
def test_one_far_row_does_not_cost_the_others_their_digits(place, size):
    X, y = toy()
    X[place] = size
    single = NonConservativeKLR(gamma=0.7).fit(X.astype(np.float32), y)
    double = NonConservativeKLR(gamma=0.7).fit(X.astype(np.float32).astype(np.float64), y)
    near = np.delete(X, place, axis=0).astype(np.float32)
    np.testing.assert_allclose(single.decision_function(near), double.decision_function(near), rtol=1e-3, atol=1e-4)


def test_an_error_leaves_a_learner_as_it_says():
    X, y = toy()
    learner = OSKL(random_state=0)
    with pytest.raises(ValueError, match="not among the classes"):
        learner.partial_fit(X, np.where(y > 0, 7, 8), classes=[0, 1])
    with pytest.raises(ValueError, match="not among the classes"):
        learner.partial_fit(X, y, classes=[0, 1])
    learner = OSKL(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        learner.fit(X, np.ones(len(y)))
    assert not hasattr(learner, "dual_coef_")
    np.testing.assert_array_equal(learner.partial_fit(X, y).dual_coef_, OSKL(random_state=0).fit(X, y).dual_coef_)


def test_partial_fit_refuses_other_classes_and_parameters():
    X, y = toy()
    learner = MarginKLR().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"classes=\[3, 4\]: the first call was with \[-1, 1\]"):
        learner.partial_fit(X, y, classes=[3, 4])
    with pytest.raises(ValueError, match="'eta' parameter"):
        learner.set_params(eta=5.0).partial_fit(X, y)


def test_a_fitted_learner_keeps_its_kernel():
    X, y = toy()
    learner = OSKL(gamma=0.7, random_state=0).fit(X, y)
    before = learner.decision_function(X)
    np.testing.assert_array_equal(learner.set_params(gamma=50.0).decision_function(X), before)


def test_sparse_matrices_with_long_indices():
    X, y = toy()
    long = sp.csr_matrix(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    expected = OSKL(random_state=0).fit(sp.csr_matrix(X), y)
    np.testing.assert_array_equal(OSKL(random_state=0).fit(long, y).dual_coef_, expected.dual_coef_)
    np.testing.assert_array_equal(expected.decision_function(long), expected.decision_function(sp.csr_matrix(X)))


def test_oskl_refuses_an_unbounded_derivative_while_it_runs():
    X, y = toy()
    with pytest.raises(ValueError, match=r"exponential loss exceeds G = 1 at example \d+; G must be at least G1"):
        OSKL(loss="exponential", G=1.0).fit(X, y)


def test_refuses_one_class_three_classes_and_new_labels():
    X, y = toy()
    with pytest.raises(ValueError, match="needs two classes; got one class"):
        OSKL().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        KernelPegasos().fit(X, np.arange(len(X)) % 3)
    learner = OSKL().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y has labels \[7\], which are not among the classes \[-1, 1\]"):
        learner.partial_fit(X[:1], [7])


@pytest.mark.parametrize("labels", [(0, 1), (1, 2), (2, 4), ("g", "h"), (False, True), (-1.0, 1.0)])
def test_labels_of_any_kind(labels):
    X, y = toy()
    words = np.where(y > 0, labels[1], labels[0])
    learner = OSKL(random_state=0).fit(X, words)
    assert learner.classes_.tolist() == list(labels)
    np.testing.assert_array_equal(learner.predict(X) == labels[1], learner.decision_function(X) > 0)
    np.testing.assert_allclose(learner.dual_coef_, OSKL(random_state=0).fit(X, y).dual_coef_)


def test_a_decision_value_of_zero_goes_to_the_first_class():
    learner = KernelPerceptron().fit([[1.0], [2.0]], ["a", "b"])
    learner.dual_coef_ = np.zeros_like(learner.dual_coef_)
    assert learner.predict([[1.0]]).tolist() == ["a"]


@pytest.mark.parametrize("learner", LOGISTIC, ids=str)
def test_probabilities_are_the_sigmoid(learner):
    X, y = toy()
    learner = clone(learner).fit(X, y)
    probabilities = learner.predict_proba(X)
    np.testing.assert_array_equal(probabilities[:, 1], expit(learner.decision_function(X)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize("learner", NOT_LOGISTIC, ids=str)
def test_no_probabilities_without_the_logistic_loss(learner):
    assert not hasattr(learner, "predict_proba")


def test_callback_sees_a_fitted_learner_and_stops_it():
    X, y = toy(n=2000)
    seen = []

    def callback(learner, t):
        seen.append((t, learner.t_, learner.n_support_, learner.score(X[:50], y[:50])))
        return t >= 512

    learner = NonConservativeKLR(n_epochs=3).fit(X, y, callback=callback)
    assert [t for t, *_ in seen] == [256, 512]
    assert all(t == t_ == n_support for t, t_, n_support, _ in seen)
    np.testing.assert_array_equal(learner.dual_coef_, NonConservativeKLR().fit(X[:512], y[:512]).dual_coef_)


def test_gamma_defaults_to_one_over_the_number_of_features():
    X, y = toy()
    default, given = OSKL(random_state=0).fit(X, y), OSKL(gamma=0.25, random_state=0).fit(X, y)
    np.testing.assert_array_equal(default.dual_coef_, given.dual_coef_)


def test_going_on_leaves_what_was_read_before_alone():
    X, y = toy()
    for average in (False, True):
        learner = KernelPegasos(average=average).partial_fit(X, y)
        before = learner.dual_coef_
        copy = before.copy()
        learner.partial_fit(X, y)
        np.testing.assert_array_equal(before, copy)


def test_what_decays_beyond_precision_becomes_zero():
    X, y = toy(n=3000)
    learner = NonConservativeKLR(R=0.1, average=False, gamma=0.7).fit(X, y)
    tiny = np.abs(learner.dual_coef_) < 1e-294
    assert tiny.any()
    assert not learner.dual_coef_[tiny].any()


def test_epochs_go_on_where_the_last_one_ended():
    X, y = toy()
    twice = KernelPegasos(n_epochs=2, dtype="float64").fit(X, y)
    again = KernelPegasos(dtype="float64").partial_fit(X, y).partial_fit(X, y)
    assert twice.t_ == again.t_ == 600
    np.testing.assert_allclose(twice.dual_coef_, again.dual_coef_, rtol=1e-10)


def test_fit_forgets_and_pickle_goes_on():
    X, y = toy()
    learner = AuxiliaryKLR(random_state=0).fit(X, y)
    first = learner.dual_coef_.copy()
    np.testing.assert_array_equal(learner.fit(X, y).dual_coef_, first)
    half = AuxiliaryKLR(random_state=0).partial_fit(X[:150], y[:150])
    half = pickle.loads(pickle.dumps(half)).partial_fit(X[150:], y[150:])
    np.testing.assert_array_equal(half.support_vectors_, learner.support_vectors_)
    np.testing.assert_allclose(half.dual_coef_, first, rtol=1e-5)


def test_read_only_memory_maps_are_fine(tmp_path):
    X, y = toy()
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    X_mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    learner = OSKL(random_state=0).fit(X_mapped, y)
    np.testing.assert_array_equal(learner.dual_coef_, OSKL(random_state=0).fit(X, y).dual_coef_)


def test_every_algorithm_is_exported_and_configured():
    configured = {type(estimator).__name__ for estimator in estimators()}
    assert configured == set(klr_bench._EXPORTS)


@parametrize_with_checks(estimators())
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def test_sparse_rows_become_dense_where_that_is_cheaper():
    random = np.random.RandomState(0)
    few_features = sp.random(300, 100, density=0.3, format="csr", random_state=random)
    many_features = sp.random(300, 5000, density=0.01, format="csr", random_state=random)
    assert dense_is_cheaper(few_features)
    assert not dense_is_cheaper(many_features)
    assert not dense_is_cheaper(sp.csr_matrix((300, 10_000)))


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 20), m=st.integers(1, 20), d=st.integers(1, 30), density=st.floats(0, 1), seed=st.integers(0, 99)
)
def test_products_by_index_are_the_products(n, m, d, density, seed):
    random = np.random.RandomState(seed)
    left, right = (sp.random(k, d, density=density, format="csr", random_state=random) for k in (n, m))
    np.testing.assert_allclose(sparse_products(left, right.T.tocsr()), (left @ right.T).toarray(), rtol=1e-12)


def test_the_exponential_of_single_precision():
    x = -np.concatenate([np.linspace(0, 87, 100_001), np.logspace(-30, 0, 1001)]).astype(np.float32)
    y = x[None].copy()
    exp_negative(y)
    np.testing.assert_allclose(y[0], np.exp(x.astype(np.float64)), rtol=3e-7)
    edges = np.array([[0.0, 1e-6, 5.0, -87.5, -1e4, -np.inf]], dtype=np.float32)
    exp_negative(edges)
    np.testing.assert_array_equal(edges[0, :3], 1)
    assert (edges[0, 3:] < 2e-38).all()
    weights, exponents = np.array([1.0, -2.0], dtype=np.float32), np.stack([x, x / 2])
    expected = weights @ np.exp(exponents.astype(np.float64))
    np.testing.assert_allclose(sum_exp_negative(exponents, weights), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 2.5])
def test_powers(degree):
    values = np.linspace(0.1, 2, 50).reshape(5, 10)
    expected = values**degree
    raise_to(values, degree)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("learner", [NonConservativeKLR(R=9.0), MarginKLR(R=9.0), AuxiliaryKLR(R=9.0)])
def test_a_step_size_by_radius_and_number_of_rows(learner):
    X, y = toy(n=400)
    named = clone(learner).set_params(eta="R/sqrt(T)", random_state=0).fit(X, y)
    number = clone(learner).set_params(eta=9.0 / 20.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(named.dual_coef_, number.dual_coef_)
    (together,) = fit_many([clone(named)], X, y)
    np.testing.assert_allclose(together.dual_coef_, number.dual_coef_, rtol=1e-10)


def test_a_step_size_by_radius_that_margin_cannot_take():
    X, y = toy(n=400)
    with pytest.raises(ValueError, match=r"below 2. Got R/sqrt\(T\) = 5; use a smaller R"):
        MarginKLR(R=100.0, eta="R/sqrt(T)").fit(X, y)
    shared = SharedFit([MarginKLR(R=R, eta="R/sqrt(T)") for R in (100.0, 1.0)], X, y)
    assert shared.refused.tolist() == [True, False]

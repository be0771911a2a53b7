"""Weights of rows in the learners of one problem: those of repeated rows, and of classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.class_weight import compute_sample_weight

from klr_bench import (
    AROW,
    L1KLR,
    SOFS,
    ApproximateKernelLR,
    BatchConfidenceWeighted,
    DualCDKLR,
    FeatureGeneratingMachine,
    ImportVectorMachine,
    L1Peer,
    PassiveAggressive,
    PrimalCDKLR,
    PrototypeKLR,
    SoftConfidenceWeighted,
    SparDCA,
    SparseBatchConfidenceWeighted,
)
from tests.estimators.samples import toy
from tests.reference.prototype import slopes as finite_differences

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SELECTORS = {"n_features_to_select": 3, "n_group": 1, "n_passes": 2000, "gap_tol": 1e-9, "tol": 0.0}
EXACT = [
    *(L1KLR(solver, lam=2.0, features="linear", tol=1e-9) for solver in ("prox_newton", "cgd", "fista")),
    L1KLR("multiscale_fista", lam=2.0, features="linear", tol=1e-9, fit_intercept=False),
    L1KLR(lam=0.1, lam_relative=True, features="linear", tol=1e-9, two_stage=True),
    L1Peer(lam=2.0, features="linear", tol=1e-9, random_state=0),
    ApproximateKernelLR("fourier", n_components=20, gamma=0.7, random_state=0),
    ImportVectorMachine(lam=1e-2, max_import_vectors=6, gamma=0.7),
    DualCDKLR(lam=1e-2, gamma=0.7, tol=1e-9, random_state=0),
    PrimalCDKLR(lam=1e-2, gamma=0.7, tol=1e-9, random_state=0),
    SparDCA(C=0.1, l1=1.0, tol=1e-9, random_state=0),
    SparDCA(C=0.1, l1=0.2, l1_relative=True, q=1, tol=1e-6, max_iter=5000, random_state=0),
    SparseBatchConfidenceWeighted(C=0.1, **SELECTORS),
    SparseBatchConfidenceWeighted(C=0.1, q=1, **SELECTORS),
    FeatureGeneratingMachine(C=0.1, **SELECTORS),
]
BATCH = [learner for learner in EXACT if isinstance(learner, (DualCDKLR, PrimalCDKLR))]
OTHERS = [
    L1KLR("sgd_c", lam=2.0, random_state=0),
    PrototypeKLR(4, solver="lbfgs", random_state=0),
    PrototypeKLR(4, solver="adam", max_iter=5, random_state=0),
    PrototypeKLR(4, solver="alternating", max_iter=5, random_state=0),
    PrototypeKLR(4, solver="alternating", batch_size=None, max_iter=5, random_state=0),
    PrototypeKLR(4, learn_prototypes=False, learn_width=False, random_state=0),
]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("learner", EXACT, ids=str)
def test_a_whole_weight_is_as_many_rows(learner, layout):
    X, y = toy(n=150, d=8)
    least = 1 if isinstance(learner, ImportVectorMachine) else 0  # a row of weight 0 may still be an import vector
    counts = np.random.RandomState(2).randint(least, 4, len(y))
    weighted = clone(learner).fit(layout(X), y, counts)
    repeated = clone(learner).fit(layout(np.repeat(X, counts, axis=0)), np.repeat(y, counts))
    expected = repeated.decision_function(layout(X))
    np.testing.assert_allclose(weighted.decision_function(layout(X)), expected, rtol=1e-3, atol=1e-4)
    if hasattr(learner, "objective_"):
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    if hasattr(weighted, "duality_gap_"):
        assert -1e-9 <= weighted.duality_gap_ <= max(learner.tol, 1e-4)
    assert np.abs(expected - clone(learner).fit(layout(X), y).decision_function(layout(X))).max() > 1e-2, "they matter"


@pytest.mark.parametrize("learner", EXACT + OTHERS, ids=str)
def test_weights_of_classes_are_those_of_their_rows(learner):
    X, y = toy(n=150, d=8)
    kept = (y < 0) | (np.arange(150) % 3 == 0)
    X, y = X[kept], y[kept]
    for class_weight in ("balanced", {1: 2.5}):
        by_class = clone(learner).set_params(class_weight=class_weight).fit(X, y)
        expected = clone(learner).fit(X, y, compute_sample_weight(class_weight, y)).decision_function(X)
        np.testing.assert_allclose(by_class.decision_function(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("learner", EXACT + OTHERS, ids=str)
def test_weights_of_1_change_nothing(learner):
    X, y = toy(n=100, d=8)
    expected = clone(learner).fit(X, y).decision_function(X)
    np.testing.assert_allclose(
        clone(learner).fit(X, y, np.ones(100)).decision_function(X), expected, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("learner", [ImportVectorMachine(), *BATCH, *OTHERS[1:]], ids=str)
def test_where_the_mean_of_the_losses_counts_weights_scale_out(learner):
    X, y = toy(n=100, d=8)
    learner = clone(learner)
    if isinstance(learner, ImportVectorMachine):
        learner.set_params(lam=1e-2)
    expected = clone(learner).fit(X, y).decision_function(X)
    found = clone(learner).fit(X, y, np.full(100, 8.0)).decision_function(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_slopes_of_prototypes_are_those_of_the_weighted_loss(n_classes, sparse):
    random = np.random.RandomState(0)
    X, y = random.standard_normal((40, 3)), np.arange(40) % n_classes
    model = PrototypeKLR(2, max_iter=1, random_state=0).fit(sp.csr_matrix(X) if sparse else X, y)
    counts = random.randint(0, 4, 40)
    rows = type(model._rows(X, y, None, random)[0])
    weighted, repeated = (
        rows(X, y, None, counts / counts.mean()),
        rows(np.repeat(X, counts, axis=0), np.repeat(y, counts)),
    )
    x = random.standard_normal(model._model.layout.size)
    value, slopes = model._model.slopes_of_all(x, weighted)
    expected_value, expected = model._model.slopes_of_all(x, repeated)
    assert value == pytest.approx(expected_value, rel=1e-12)
    assert value == pytest.approx(model._model.objective(x, weighted), rel=1e-12)
    np.testing.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-12)
    differences = finite_differences(lambda z: model._model.objective(z, weighted), x)
    np.testing.assert_allclose(slopes, differences, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("learner", EXACT + OTHERS, ids=str)
def test_wrong_weights_are_refused(learner):
    X, y = toy(n=50, d=8)
    with pytest.raises(ValueError, match="Negative values"):
        clone(learner).fit(X, y, -np.ones(50))
    with pytest.raises(ValueError, match=r"sample_weight"):
        clone(learner).fit(X, y, np.ones(49))
    for weights in (np.zeros(50), (y > 0).astype(float)):
        if isinstance(learner, (ImportVectorMachine, ApproximateKernelLR, *map(type, BATCH))) and weights.any():
            continue  # they learn one class
        with pytest.raises(ValueError, match=r"above 0|non-zero"):
            clone(learner).fit(X, y, weights)


@pytest.mark.parametrize(
    "learner",
    [L1KLR(lam=1.0), ImportVectorMachine(max_import_vectors=10), PrototypeKLR(random_state=0)],
    ids=str,
)
def test_balanced_weights_find_a_rare_class(learner):
    X, y = make_classification(3000, 10, weights=[0.97], class_sep=0.8, flip_y=0.02, random_state=0)
    train, test = slice(1500), slice(1500, None)
    models = [
        clone(learner),
        clone(learner).set_params(class_weight="balanced"),
        LogisticRegression(class_weight="balanced"),
    ]
    plain, found, linear = (
        balanced_accuracy_score(y[test], model.fit(X[train], y[train]).predict(X[test])) for model in models
    )
    assert found > plain
    assert found > linear - 0.1


STEPS = [
    PassiveAggressive(variant=0),
    PassiveAggressive(variant=1, C=0.3),
    PassiveAggressive(variant=2, C=0.3),
    AROW(r=2.0),
    AROW(r=2.0, covariance="diagonal", n_epochs=2),
    SoftConfidenceWeighted(variant=1, C=0.3),
    SoftConfidenceWeighted(variant=2, C=0.3, covariance="diagonal"),
    SOFS(4, r=2.0),
    BatchConfidenceWeighted(C=0.3),
    BatchConfidenceWeighted(C=0.3, q=2, r=1.5),
]
"""Learners whose steps have weights."""


@pytest.mark.parametrize("d", [8, 300], ids=["narrow", "wide"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("learner", STEPS, ids=str)
def test_one_weight_for_all_rows_is_another_parameter(learner, layout, d):
    X, y = toy(n=400, d=d, empty_rows=False)
    weight = 4.0
    changed = {"C": weight} if hasattr(learner, "C") else {"r": 1 / weight}
    if getattr(learner, "r", None) and hasattr(learner, "C"):
        changed["r"] = 1 / weight
    other = clone(learner).set_params(**{name: factor * getattr(learner, name) for name, factor in changed.items()})
    if learner.get_params().get("variant") == 0:
        assert not np.allclose(
            clone(learner).fit(layout(X), y, np.full(400, 0.5)).coef_, clone(learner).fit(layout(X), y).coef_
        )
        return
    weighted = clone(learner).fit(layout(X), y, np.full(400, weight))
    np.testing.assert_allclose(weighted.coef_, other.fit(layout(X), y).coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", STEPS, ids=str)
def test_a_step_has_the_weight_of_its_row(learner):
    X, y = toy(n=200, d=8, empty_rows=False)
    weights = np.random.RandomState(0).randint(0, 3, 200).astype(float)
    model = clone(learner).fit(X, y, weights)
    kept = weights > 0
    np.testing.assert_allclose(model.coef_, clone(learner).fit(X[kept], y[kept], weights[kept]).coef_)
    if not isinstance(learner, BatchConfidenceWeighted) and learner.n_epochs == 1:
        parts = clone(learner)
        for rows in (slice(0, 90), slice(90, None)):
            parts.partial_fit(X[rows], y[rows], classes=[-1, 1], sample_weight=weights[rows])
        np.testing.assert_allclose(parts.coef_, model.coef_, rtol=1e-12)
        last = np.flatnonzero(kept)[-1]  # whose weight does not matter to those before
        before = clone(learner).fit(X[:last], y[:last], weights[:last])
        one = clone(learner).partial_fit(X[:last], y[:last], sample_weight=weights[:last])
        one.partial_fit(X[last : last + 1], y[last : last + 1], sample_weight=weights[last : last + 1])
        np.testing.assert_allclose(one.coef_, model.coef_, rtol=1e-12)
        assert before.t_ == one.t_ - 1
    by_class = clone(learner).set_params(class_weight={1: 3.0}).fit(X, y)
    expected = clone(learner).fit(X, y, np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.coef_, expected.coef_)
    with pytest.raises(ValueError, match="class_weight='balanced' needs the numbers of all rows"):
        clone(learner).set_params(class_weight="balanced").partial_fit(X, y)


@pytest.mark.parametrize("learner", STEPS, ids=str)
def test_weights_and_many_classes(learner):
    X, _ = toy(n=200, d=8, empty_rows=False)
    y = np.digitize(X[:, 0], [-0.2, 0.2])
    weights = np.random.RandomState(0).randint(1, 4, 200).astype(float)
    model = clone(learner).fit(X, y, weights)
    for k in range(3):
        np.testing.assert_array_equal(model.coef_[k], clone(learner).fit(X, y == k, weights).coef_)
    parts = clone(learner).partial_fit(X, y, sample_weight=weights)
    if getattr(learner, "n_epochs", 1) == 1:
        np.testing.assert_array_equal(parts.coef_, model.coef_)

"""Kernels given as functions or matrices, and messages for unsuitable kernels or rows."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_predict

from klr_bench import (
    ALMA,
    AROW,
    BSGD,
    DUOL,
    L1KLR,
    NORMA,
    OSKL,
    BudgetOSKL,
    DualCDKLR,
    ImportVectorMachine,
    KernelOGD,
    KernelPegasos,
    MarginKLR,
    NonConservativeKLR,
    NystroemKLR,
    PrimalCDKLR,
    Projectron,
    PrototypeKLR,
    fit_many,
)
from klr_bench.estimators.batch.hindsight import BestInHindsight
from klr_bench.estimators.online import strategies
from tests.estimators.samples import CLASSIFIERS, toy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:cache_size")

GAMMA = 0.7
LEARNERS = [
    OSKL(),
    MarginKLR(R=1.0),
    KernelPegasos(),
    ALMA(),
    DUOL(),
    DualCDKLR(),
    DualCDKLR(cache_size=0.03),
    PrimalCDKLR(1e-2),
    ImportVectorMachine(max_import_vectors=5),
    NystroemKLR(n_centers=20),
    NystroemKLR(n_centers=20, cache_size=1e-3),
]
LEARNERS += [
    cls()
    for cls in CLASSIFIERS.values()
    if callable in cls._parameter_constraints.get("kernel", []) and "gamma" in cls._parameter_constraints
    if cls not in {type(learner) for learner in LEARNERS}
]
"""All classes for any kernel and one gamma; those that search for gamma are in test_cross_validation.py."""
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def my_rbf(X, Z):
    assert X.dtype == Z.dtype
    assert sp.issparse(X) == sp.issparse(Z)
    return rbf_kernel(X, Z, gamma=GAMMA)


def rows_of(n_classes):
    X, y = make_classification(180, 4, n_informative=3, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=0)
    return X[:120], y[:120], X[120:]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_functions_and_matrices_give_the_same_as_the_rbf_kernel(learner, n_classes, dtype, monkeypatch):
    monkeypatch.setattr(strategies, "BLOCK", 50)
    X, y, Z = rows_of(n_classes)
    learner = clone(learner).set_params(random_state=0, dtype=dtype, gamma=GAMMA)
    expected = clone(learner).fit(X, y)
    f = expected.decision_function(Z)
    for kernel, data, others in (
        (my_rbf, X, sp.csr_matrix(Z)),
        (my_rbf, sp.csr_matrix(X), Z),
        ("precomputed", my_rbf(X, X), my_rbf(Z, X)),
        ("precomputed", sp.csr_matrix(my_rbf(X, X)), sp.csr_matrix(my_rbf(Z, X))),
    ):
        model = pickle.loads(pickle.dumps(clone(learner).set_params(kernel=kernel).fit(data, y)))
        for values in (model.decision_function(others), model.decision_function(others[:1])):
            np.testing.assert_allclose(values, f[: len(values)], atol=TOLERANCE[dtype] * np.abs(f).max())
        assert model.dual_coef_.shape == expected.dual_coef_.shape
        support = X[model.support_vectors_[:, 0].astype(int)] if kernel == "precomputed" else model.support_vectors_
        assert abs(support - expected.support_vectors_).max() <= 1e-6


def test_the_best_in_hindsight_is_that_of_the_rbf_kernel():
    X, y, Z = rows_of(2)
    learner = BestInHindsight(2.0, gamma=GAMMA, random_state=0)
    f = learner.fit(X, y).decision_function(Z)
    model = learner.set_params(kernel="precomputed").fit(my_rbf(X, X), y)
    np.testing.assert_allclose(model.decision_function(my_rbf(Z, X)), f, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["precomputed", my_rbf, RBF(1.0)], ids=["precomputed", "function", "object"])
def test_learners_share_a_pass(kernel):
    X, y, _ = rows_of(2)
    learners = [OSKL(G=G, kernel=kernel, random_state=0) for G in (1.0, 2.0)]
    K = my_rbf(X, X) if kernel == "precomputed" else X
    for together, alone in zip(
        fit_many(learners, K, y), [clone(learner).fit(K, y) for learner in learners], strict=True
    ):
        np.testing.assert_allclose(together.decision_function(K), alone.decision_function(K), rtol=1e-9)


def test_cross_validation_takes_rows_and_columns_of_a_matrix():
    X, y, _ = rows_of(2)
    by_rows, by_matrix = OSKL(gamma=GAMMA, random_state=0), OSKL(kernel="precomputed", random_state=0)
    expected = cross_val_predict(by_rows, X, y, method="predict_proba")
    np.testing.assert_allclose(cross_val_predict(by_matrix, my_rbf(X, X), y, method="predict_proba"), expected)


def test_partial_fit_goes_on_with_a_function():
    X, y, Z = rows_of(2)
    model = OSKL(kernel=my_rbf, random_state=0).partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    other = OSKL(gamma=GAMMA, random_state=0).partial_fit(X, y)
    np.testing.assert_allclose(model.decision_function(Z), other.decision_function(Z), rtol=1e-10)


@pytest.mark.parametrize("learner", [OSKL(), ALMA()], ids=str)
def test_a_matrix_is_for_fit_alone(learner):
    learner = clone(learner).set_params(kernel="precomputed")
    with pytest.raises(AttributeError) as raised:
        learner.partial_fit(np.eye(4), [0, 1, 0, 1])
    assert "partial_fit needs rows; with kernel='precomputed' only fit learns" in str(raised.value.__cause__)
    with pytest.raises(ValueError, match=r"expected a square matrix of the training rows, got shape \(4, 3\)"):
        learner.fit(np.eye(4)[:, :3], [0, 1, 0, 1])


def test_a_matrix_is_not_pickled():
    K = rbf_kernel(toy()[0])
    for learner in (NonConservativeKLR(), DualCDKLR()):
        model = clone(learner).set_params(kernel="precomputed").fit(K, toy()[1])
        assert len(pickle.dumps(model)) < K.nbytes / 10


@pytest.mark.parametrize("setting", [{"centers": "kmeans++"}, {"centers": np.eye(4)}, {"map_rows": print}], ids=str)
def test_centers_of_a_matrix_are_uniform(setting):
    with pytest.raises(ValueError, match="kernel='precomputed' requires centers='uniform' and map_rows=None"):
        NystroemKLR(kernel="precomputed", **setting).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (PrimalCDKLR(), "c'Kc of some c is -"),
        (NystroemKLR(n_centers=50), "it has an eigenvalue below -"),
        (ImportVectorMachine(1e-3), "the objective is -"),
        (DualCDKLR(coef0=-3), r"k\(x, x\) of a row is -0\.9"),
        (ALMA(coef0=-3), r"k\(x, x\) of a row is -0\.9"),
        (DUOL(coef0=-3), r"k\(x, x\) of a row is -0\.9"),
    ],
    ids=str,
)
def test_solvers_refuse_an_indefinite_kernel(learner, message):
    X, y = toy()
    with pytest.raises(ValueError, match=f"kernel='sigmoid': .* positive semi-definite matrix, but {message}"):
        clone(learner).set_params(kernel="sigmoid", gamma=3.0).fit(X, y)


@pytest.mark.parametrize("learner", [Projectron(20), NORMA(20), BSGD(20, maintenance="projection")], ids=str)
def test_budget_learners_refuse_rows_with_a_negative_square(learner):
    X, y = toy()
    with pytest.raises(
        ValueError, match=r"kernel='poly': .* positive semi-definite matrix, but k\(x, x\) of a row is -"
    ):
        clone(learner).set_params(kernel="poly", degree=3, coef0=-3.0, gamma=0.1).fit(X, y)


def test_nothing_remains_of_a_call_that_finds_an_indefinite_kernel_in_its_later_rows():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    model = NORMA(kernel="poly", degree=3, coef0=-1.0, gamma=0.1)
    rows = X[np.einsum("ij,ij->i", X, X) > 11]
    labels = np.arange(len(rows)) % 2
    model.partial_fit(rows, labels)
    again = np.append(np.resize(np.arange(len(rows)), 5000), 0)
    many, codes = rows[again], labels[again]
    many[-1] = 0.0
    with pytest.raises(ValueError, match=r"k\(x, x\) of a row is -"):
        model.partial_fit(many, codes)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_nothing_remains_of_a_call_in_which_a_kernel_fails_in_later_rows(error):
    def kernel(A, B):
        if A.max() > 5 or B.max() > 5:
            raise error("not for this row")
        return A @ B.T + 1

    X, y = toy(600)
    X = np.clip(X, -1, 1)
    model = KernelOGD(kernel=kernel, eta=0.1).partial_fit(X, y)
    X[-1] = 9.0
    with pytest.raises(ValueError, match="failed: not for this row"):
        model.partial_fit(X, y)
    assert not hasattr(model, "classes_")


def test_a_function_returns_the_values_of_all_pairs():
    X, y = toy(20)
    with pytest.raises(
        ValueError, match=r"kernel: expected .* to return an array of shape \(20, 20\), got shape \(20,\)"
    ):
        DualCDKLR(kernel=lambda X, Z: np.ones(len(X))).fit(X, y)


def test_learners_with_a_budget_accept_fewer_kernels():
    X, y = toy(20)
    with pytest.raises(ValueError, match="The 'kernel' parameter of BudgetOSKL must be a str among"):
        BudgetOSKL(kernel="sigmoid").fit(X, y)


@pytest.mark.parametrize(
    "column",
    [
        [1.0, np.nan, 3.0],
        pd.array([1, None, 3], dtype="Int64"),
        ["red", "blue", "red"],
        pd.Categorical(["red", "blue", "red"]),
        pd.array(["red", None, "red"], dtype="string"),
    ],
    ids=repr,
)
def test_missing_values_and_texts_lead_to_the_class_that_converts_them(column):
    table = pd.DataFrame({"number": [1.0, 2.0, 3.0], "column": column})
    for learner in (NonConservativeKLR(), DualCDKLR(), AROW(), L1KLR(), PrototypeKLR()):
        with pytest.raises(ValueError, match=r"klr_bench\.TablePreparer converts tables"):
            learner.fit(table, [0, 1, 1])


@pytest.mark.parametrize("name", [ALMA, DUOL, KernelOGD, DualCDKLR])
def test_a_function_may_return_a_read_only_matrix(name):
    def read_only(X, Z):
        values = rbf_kernel(X, Z, 0.3)
        values.setflags(write=False)
        return values

    X, y = make_classification(100, 5, random_state=0)
    found, expected = (
        name(kernel=kernel, random_state=0).fit(X, y).decision_function(X)
        for kernel in (read_only, lambda X, Z: rbf_kernel(X, Z, 0.3))
    )
    np.testing.assert_array_equal(found, expected)

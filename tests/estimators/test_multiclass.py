"""More than two classes: every learner for two learns each against the rest, as it would learn it alone."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from klr_bench import (
    AROW,
    BSGD,
    KLR,
    L1KLR,
    OSKL,
    BatchConfidenceWeighted,
    BudgetOSKL,
    DualCDKLR,
    KernelPegasos,
    KernelPerceptron,
    PartitionedKLR,
    PrimalCDKLR,
    PrototypeKLR,
    SparseBatchConfidenceWeighted,
    l1_path,
    lambda_max,
)
from klr_bench.estimators.batch.base import BatchKLR
from klr_bench.estimators.batch.cross_validation import KernelClassifierCV
from klr_bench.estimators.core.classifier import Classifier
from klr_bench.estimators.peers.approximate import ApproximateKernelLR
from klr_bench.protocols import progress, steps, summary, takes_callback
from tests.estimators.samples import CLASSIFIERS, small

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")

NAMES = np.array(["ant", "bee", "cow", "dog"])
SETTINGS = {
    "DualCDKLR": {"max_iter": 3},
    "PrimalCDKLR": {"max_iter": 3},
    "ImportVectorMachine": {"max_import_vectors": 5},
    "L1KLR": {"max_iter": 20},
    "L1Peer": {"max_iter": 50},
    "SparDCA": {"l1": 0.1, "max_iter": 20},
}


def made(cls, **options):
    return small(cls(**SETTINGS.get(cls.__name__, {}) | options), budget=15, random_state=3, n_features_to_select=4)


TOGETHER = (ApproximateKernelLR, KLR, KernelClassifierCV, PartitionedKLR, PrototypeKLR)
"""Classes that learn or choose something for all classes together."""

LEARNERS = [
    made(cls)
    for cls in CLASSIFIERS.values()
    if issubclass(cls, Classifier) and not issubclass(cls, TOGETHER) and not getattr(cls, "_learns_softmax", False)
] + [
    made(OSKL, loss="square", G=50.0, R=5.0),
    made(OSKL, loss="exponential", G=50.0, R=2.0),
    made(KernelPerceptron, average=True, n_epochs=3),
    made(DualCDKLR, cache_size=0.05),
    made(DualCDKLR, class_weight="balanced"),
    made(KernelPegasos, class_weight={"ant": 0.5, "bee": 2.0, "cow": 1.0, "dog": 1.0}),
    made(L1KLR, features="fourier", n_components=20),
    made(L1KLR, features="linear", two_stage=True),
    made(L1KLR, solver="sgd_c"),
]
IDS = [" ".join(str(learner).split()) for learner in LEARNERS]
INCREMENTAL = [learner for learner in LEARNERS if hasattr(learner, "partial_fit")]


def toy(n=160, d=6, *, sparse=False):
    """Return rows of four clouds that overlap, (n, d), and the names of the clouds."""
    random = np.random.RandomState(0)
    codes = random.permutation(n) % 4
    X = 0.7 * random.standard_normal((n, d))
    X[np.arange(n), codes] += 1.0
    if sparse:
        X = sp.csr_matrix(np.hstack([X * (random.uniform(size=X.shape) < 0.5), np.zeros((n, 60))]))
    return X, NAMES[codes]


def alone(model, k):
    """Return an unfitted learner for class k against the rest, with the seed that the model used."""
    seed = getattr(getattr(model, "estimators_", [None] * 4)[k], "random_state", model.get_params().get("random_state"))
    return small(clone(model), class_weight=None, random_state=seed)


def weights_of(model, y):
    """Return the weights that a model gives the rows."""
    weights = model.get_params().get("class_weight")
    return {} if weights is None else {"sample_weight": compute_sample_weight(weights, y)}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("learner", LEARNERS, ids=IDS)
def test_each_class_is_learned_as_it_would_be_alone(learner, sparse):
    X, y = toy(sparse=sparse)
    model = clone(learner).fit(X, y)
    f = model.decision_function(X)
    assert f.shape == (len(y), 4)
    for k, name in enumerate(NAMES):
        expected = alone(model, k).fit(X, y == name, **weights_of(model, y)).decision_function(X)
        np.testing.assert_allclose(f[:, k], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    assert (model.predict(X) == NAMES[f.argmax(axis=1)]).all()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), f)
    if hasattr(model, "predict_proba"):  # the shares of the sigmoids
        np.testing.assert_allclose(model.predict_proba(X), expit(f) / expit(f).sum(axis=1, keepdims=True), rtol=1e-9)
        assert np.isfinite(model.predict_proba(1e3 * X)).all()


@pytest.mark.parametrize("learner", INCREMENTAL, ids=str)
def test_learning_goes_on_in_chunks(learner):
    X, y = toy()
    needed = {"gamma": 0.5, "lam": 0.01, "eta": 0.1}  # which partial_fit cannot know
    learner = clone(learner).set_params(**{key: value for key, value in needed.items() if key in learner.get_params()})
    whole, parts = clone(learner), clone(learner).partial_fit(X[:1], y[:1], classes=NAMES)
    if isinstance(learner, (BatchConfidenceWeighted, SparseBatchConfidenceWeighted)):  # each call is one batch
        whole.partial_fit(X[:1], y[:1], classes=NAMES).partial_fit(X[1:], y[1:])
        chunks = [slice(1, None)]
    else:
        whole.partial_fit(X, y)
        chunks = [slice(1, 70), slice(70, None)]
    for rows in chunks:
        parts = pickle.loads(pickle.dumps(parts)).partial_fit(X[rows], y[rows])
    f = whole.decision_function(X)
    np.testing.assert_allclose(parts.decision_function(X), f, rtol=1e-6, atol=1e-6 * np.abs(f).max())


@pytest.mark.parametrize("going_on", [False, True])
def test_classes_that_have_not_learned_from_the_same_rows_cannot_go_on(going_on):
    """Their rows are told apart by numbers, which would be those of other rows."""
    X, y = toy()
    learner = small(BSGD(15, lam=0.01, random_state=0))
    if going_on:
        many, codes = np.tile(X, (50, 1)), np.tile(y, 50)
        stops = itertools.chain([True], itertools.repeat(False))  # such as a time limit of each learner
        learner.partial_fit(X, y, classes=NAMES).partial_fit(many, codes, callback=lambda *_: next(stops))
    else:
        learner.fit(X, y, callback=lambda *_: True)
    assert len({vars(each).get("t_") for each in learner.estimators_}) > 1
    with pytest.raises(ValueError, match="ended before all classes had learned from the same rows; call fit again"):
        learner.partial_fit(X, y)
    learner.fit(X, y).partial_fit(X, y)


@pytest.mark.parametrize("learner", [AROW(), BudgetOSKL(budget=20, gamma=0.5, random_state=0)])
def test_callbacks_of_partial_fit_count_all_rows(learner):
    X, y = toy()
    X, y = np.tile(X, (5, 1)), np.tile(y, 5)
    seen = []
    model = clone(learner).partial_fit(X, y, callback=lambda _, t: seen.append(t))
    assert seen[-1] == len(y)
    model.partial_fit(X, y, callback=lambda _, t: seen.append(t))
    assert seen == sorted(seen)
    assert seen[-1] == 2 * len(y)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", [name for name, cls in CLASSIFIERS.items() if hasattr(cls, "partial_fit")])
def test_a_first_call_that_is_refused_leaves_nothing_behind(name, n_classes):
    X, y = toy()
    y = y if n_classes == 4 else np.where(y == NAMES[0], *NAMES[:2])
    needed = {"gamma": 0.5, "lam": 0.01, "eta": 0.1, "random_state": 0}
    learner = CLASSIFIERS[name]()
    learner.set_params(**{key: value for key, value in needed.items() if key in learner.get_params()})
    expected = clone(learner).partial_fit(X, y, classes=np.unique(y)).decision_function(X)
    for classes in (NAMES[2:4], ["x", "y", "z"]):
        with pytest.raises(ValueError, match="class"):
            learner.partial_fit(X, y, classes=classes)
    np.testing.assert_array_equal(learner.partial_fit(X, y, classes=np.unique(y)).decision_function(X), expected)


def test_other_libraries_do_not_call_back():
    assert {type(learner).__name__ for learner in LEARNERS if not takes_callback(learner)} == {"L1Peer"}


@pytest.mark.parametrize("learner", filter(takes_callback, LEARNERS), ids=lambda each: " ".join(str(each).split()))
def test_an_experiment_sees_numbers_and_a_rising_t(learner):
    X, y = toy()
    seen = []

    def callback(model, t):
        seen.append((t, model.score(X, y)))
        assert all(np.ndim(value) == 0 and np.isfinite(value) for value in progress(model).values())

    model = clone(learner).fit(X, y, callback=callback)
    times = [t for t, _ in seen]
    assert 0 < times[0] <= max(times) == times[-1]
    assert times == sorted(times)
    assert times[-1] <= steps(model, len(y))[0] or isinstance(learner, BatchKLR)
    assert seen[-1][1] == model.score(X, y)
    assert all(np.ndim(value) == 0 and np.isfinite(value) for value in summary(model, len(y)).values())
    unseen = clone(learner).fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), unseen, rtol=1e-9, atol=1e-12)
    stopped = clone(learner).fit(X, y, callback=lambda *_: True)
    assert stopped.decision_function(X).shape == (len(y), 4)
    assert set(stopped.predict(X)) <= set(NAMES)


@pytest.mark.parametrize("learner", LEARNERS, ids=IDS)
def test_two_classes_and_then_many_and_back(learner):
    X, y = toy()
    if isinstance(learner.get_params().get("class_weight"), dict):
        pytest.skip("its weights name all four classes")
    model = clone(learner)
    for n_classes in (2, 4, 2):
        rows = np.isin(y, NAMES[:n_classes])
        found = model.fit(X[rows], y[rows]).decision_function(X)
        np.testing.assert_array_equal(found, clone(learner).fit(X[rows], y[rows]).decision_function(X))
        assert found.ndim == (1 if n_classes == 2 else 2)


@pytest.mark.parametrize("learner", [learner for learner in LEARNERS if hasattr(learner, "last_classifier")], ids=str)
def test_the_last_classifier_of_an_average(learner):
    X, y = toy()
    last = clone(learner).set_params(average=True).fit(X, y).last_classifier()
    expected = clone(learner).set_params(average=False).fit(X, y)
    np.testing.assert_allclose(last.decision_function(X), expected.decision_function(X), rtol=1e-9, atol=1e-12)
    assert last.n_support_ == expected.n_support_
    if hasattr(last, "estimators_"):  # rows that several classes keep are support vectors once
        assert len(np.unique(last.support_vectors_, axis=0)) == last.n_support_
        assert last.n_support_ < sum(estimator.n_support_ for estimator in last.estimators_)


@pytest.mark.parametrize("cls", [DualCDKLR, PrimalCDKLR])
@pytest.mark.parametrize("cache_size", [200, 0.05])
def test_all_problems_are_solved(cls, cache_size):
    X, y = toy()
    model = cls(tol=1e-6, lam=1e-2, random_state=0, cache_size=cache_size).fit(X, y)
    assert model.duality_gap_.shape == (4,)
    assert model.duality_gap_.max() <= 1e-6
    for k, name in enumerate(NAMES):
        binary = clone(model).fit(X, y == name)
        np.testing.assert_allclose(model.objective_[k], binary.objective_, rtol=2e-6)
    before = model.n_iter_
    assert model.set_params(warm_start=True).fit(X, y).n_iter_ < before
    with pytest.raises(ValueError, match="functions must be 4 as in the last fit, got 3"):
        model.fit(X, np.where(y == "dog", "cow", y))


def test_a_path_is_for_two_classes():
    X, y = toy()
    for function in (lambda_max, l1_path):
        with pytest.raises(ValueError, match="expected two classes, got 4"):
            function(X, y)


def test_the_classes_share_fourier_features_and_go_on_from_the_last_fit():
    X, y = toy()
    model = L1KLR(features="fourier", n_components=30, warm_start=True, tol=1e-8, random_state=None).fit(X, y)
    f, n_iter = model.decision_function(X), model.n_iter_.max()
    assert len({id(learner._map) for learner in model.estimators_}) == 1
    assert model.fit(X, y).n_iter_.max() < n_iter
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-3)

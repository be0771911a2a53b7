"""Declarations of estimators, and how estimators without declarations are treated."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from klr_bench import PrototypeKLR, protocols
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.quality import at_checkpoint, fitted, last, measure
from tests.estimators.one_pass import OSKL, Forgetron, NonConservativeKLR
from tests.estimators.samples import CLASSIFIERS
from tests.runner.learners import OfTwoClasses

RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((120, 2))
Y = np.where(X[:, 0] + 0.5 * RANDOM.standard_normal(120) > 0, 1, -1).astype(np.int8)
PICTURE = {"gamma", "u", "b", "b0"}
"""Numbers of prototypes for pictures, which are no metrics; indices follow, as in u_0_1."""


class Bare:
    """A user's class with the methods of every classifier, and no others."""

    def fit(self, X, y, callback=None):
        self.middle = np.median(X[:, 0])
        for t in range(1, 4):
            if callback is not None and callback(self, t):
                break
        return self

    def predict(self, X):
        return np.where(X[:, 0] > self.middle, 1, -1)


class Declaring(Bare):
    """A class with all possible declarations."""

    watched = ("error_rate",)
    average = True
    progress = staticmethod(lambda: {"objective": 2.5})
    steps = staticmethod(lambda n_samples: (3, 1))
    summary = staticmethod(lambda: {"n_support": 3, "pass_time_s": 0.25})
    selected_features = staticmethod(lambda: np.array([0]))
    pass_key = staticmethod(lambda n_classes: ("declaring", n_classes))

    def last_classifier(self):
        return self


def test_a_class_with_fit_and_predict_alone_is_measured():
    bare = Bare().fit(X, Y)
    predicted = bare.predict(X)
    accuracy = np.mean(predicted == Y)
    expected = {"accuracy": accuracy, "error_rate": 1 - accuracy, "f1": f1_score(Y, predicted)}
    expected["balanced_accuracy"] = balanced_accuracy_score(Y, predicted)
    assert measure(bare, X, Y)[::2] == (pytest.approx(expected), [])
    assert at_checkpoint(bare, X, Y) == {"accuracy": accuracy}
    assert fitted(bare, 120, np.array([0])) == last(bare, X, Y) == {}
    assert protocols.steps(bare, 120) == (120, protocols.FIRST)
    assert protocols.call(bare, "ended_at") is protocols.pass_key(bare, 2) is None
    assert not protocols.takes_callback(LogisticRegression())
    assert protocols.takes_many_classes(bare)
    assert not protocols.takes_many_classes(OfTwoClasses())
    protocols.check_parameters(bare)
    with pytest.raises(ValueError, match="'G' parameter of OSKL"):
        protocols.check_parameters(OSKL(G=-1.0))


def test_what_is_declared_is_used():
    learner, seen = Declaring(), []
    assert protocols.takes_callback(learner)
    learner.fit(X, Y, callback=lambda estimator, t: seen.append(t))
    accuracy = np.mean(learner.predict(X) == Y)
    assert seen == [1, 2, 3]
    assert protocols.steps(learner, 120) == (3, 1)
    assert at_checkpoint(learner, X, Y) == {"error_rate": 1 - accuracy, "objective": 2.5}
    assert fitted(learner, 120, np.array([0, 1])) == {
        **{"n_support": 3, "sparsity": 1 - 3 / 120, "pass_time_s": 0.25},
        **{"n_selected": 1, "relevant_found": 0.5},
    }
    assert last(learner, X, Y) == {"last_accuracy": accuracy, "last_n_support": 3}
    assert protocols.pass_key(learner, 2) == ("declaring", 2)
    learner.average = False
    assert last(learner, X, Y) == {}


def test_attributes_that_scikit_learn_documents():
    logistic, machine = LogisticRegression().fit(X, Y), LinearSVC().fit(X, Y)
    for linear in (logistic, machine):
        assert fitted(linear, 120) == {"n_iter": np.max(linear.n_iter_), "nonzero_fraction": 1.0, "n_selected": 2}
    assert set(fitted(SVC().fit(X, Y), 120)) == {"n_support", "sparsity", "n_iter"}
    assert set(fitted(RidgeClassifier().fit(X, Y), 120)) == {"nonzero_fraction", "n_selected"}, "its n_iter_ is None"
    assert fitted(KNeighborsClassifier().fit(X, Y), 120) == {}


@pytest.mark.parametrize("estimator_class", CLASSIFIERS.values(), ids=lambda estimator_class: estimator_class.__name__)
def test_shipped_classes_declare_names_of_the_catalogue(estimator_class):
    learner, seen = estimator_class(), []

    def callback(estimator, t):
        seen.append((t, protocols.progress(estimator)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(X, Y, **({"callback": callback} if protocols.takes_callback(learner) else {}))
    names = {name for _, progress in seen for name in progress}
    assert {name for name in names if name.split("_")[0] not in PICTURE} <= set(METRICS)
    assert all(np.isfinite(value) for _, progress in seen for value in progress.values())
    steps = [t for t, _ in seen]
    assert steps == [0] * steps.count(0) + sorted({*steps} - {0}), (
        "t rises, after calls with 0 while settings are chosen"
    )
    assert all(METRICS[name].of for name in protocols.watched(learner))
    summary = protocols.summary(learner, 120)
    assert set(summary) <= set(METRICS)
    for name in set(summary) - {"sparsity", "nonzero_fraction", "mistake_rate"}:
        assert summary[name] == getattr(learner, "pass_time_" if name == "pass_time_s" else f"{name}_")
    if "nonzero_fraction" in summary:
        entries = learner.prototypes_ if hasattr(learner, "prototypes_") else learner.coef_
        assert summary["nonzero_fraction"] == np.mean(entries != 0)
    if "sparsity" in summary:
        assert summary["sparsity"] == 1 - learner.n_support_ / 120
    end = protocols.call(learner, "ended_at")
    assert end is None or not seen or end == seen[-1][0]


def test_who_can_share_a_pass():
    class Own(NonConservativeKLR):
        def fit(self, X, y, callback=None):
            return super().fit(X[:5], y[:5])

    key = protocols.pass_key(OSKL(G=2.0), 2)
    assert key == protocols.pass_key(NonConservativeKLR(eta=0.5), 2) is not None
    assert key != protocols.pass_key(OSKL(gamma=3.0), 2)
    assert key != protocols.pass_key(OSKL(n_epochs=2), 2)
    for alone, n_classes in ((OSKL(), 3), (Forgetron(), 2), (Own(), 2), (SVC(), 2), (Bare(), 2)):
        assert protocols.pass_key(alone, n_classes) is None


def test_a_warm_up_is_a_small_fit_once_with_the_same_solver():
    class Noted(PrototypeKLR):
        fits = []  # noqa: RUF012

        def fit(self, X, y, callback=None):
            self.fits.append((self.solver, X.shape))
            return super().fit(X, y, callback=callback)

    for solver in ("adam", "lbfgs", "adam"):
        protocols.warm_up(Noted(7, solver=solver))
    assert Noted.fits == [("adam", (4, 4)), ("lbfgs", (4, 4))]


def test_a_warm_up_that_fails_does_no_harm():
    class Needy(Bare):
        def __init__(self, needed):
            self.needed = needed

    class Failing(Bare):
        fits = 0

        def fit(self, X, y):
            type(self).fits += 1
            raise RuntimeError

    with pytest.raises(TypeError, match="needed"):
        Needy()
    for estimator in (Needy(3), Failing()):
        protocols.warm_up(estimator)
    assert Failing.fits == 1
    with pytest.raises(RuntimeError):
        Failing().fit(X, Y)

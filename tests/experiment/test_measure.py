"""Metrics against scikit-learn's and by hand, and the trace's clock."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from klr_bench import BatchConfidenceWeighted, KernelPegasos, NonConservativeKLR
from klr_bench.experiment.measure.clock import Trace
from klr_bench.experiment.measure.quality import expected_calibration_error, quality, reliability, selection, size

RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((300, 3))
Y = np.where(X[:, 0] + 0.5 * RANDOM.standard_normal(300) > 0, 1, -1).astype(np.int8)


def calibration_error(probability, y):
    """The expected calibration error, row by row."""
    total = 0.0
    for k in range(15):
        inside = [(k / 15 <= p < (k + 1) / 15) or (k == 14 and p == 1) for p in probability]
        if any(inside):
            total += sum(inside) * abs(np.mean(y[inside] == 1) - np.mean(probability[inside]))
    return total / len(y)


@pytest.mark.parametrize("estimator", [NonConservativeKLR(), LogisticRegression()], ids=str)
def test_quality_is_that_of_scikit_learn(estimator):
    fitted = estimator.fit(X[:200], Y[:200])
    probability = fitted.predict_proba(X[200:])[:, 1]
    expected = {
        "accuracy": fitted.score(X[200:], Y[200:]),
        "error_rate": 1 - fitted.score(X[200:], Y[200:]),
        "log_loss": log_loss(Y[200:], probability),
        "brier": brier_score_loss(Y[200:], probability),
        "ece": calibration_error(probability, Y[200:]),
        "auc": roc_auc_score(Y[200:], probability),
    }
    assert quality(fitted, X[200:], Y[200:])[0] == pytest.approx(expected)


def test_bins_by_hand():
    probability = np.array([0.0, 0.06, 0.5, 0.52, 1.0, 0.99])
    bins = reliability(probability, np.array([-1, 1, 1, -1, 1, 1], dtype=np.int8))
    assert [(k, n, positive) for k, n, _, positive in bins] == [(0, 2, 0.5), (7, 2, 0.5), (14, 2, 1.0)]
    assert [predicted for _, _, predicted, _ in bins] == pytest.approx([0.03, 0.51, 0.995])
    assert expected_calibration_error(bins) == pytest.approx((2 * 0.47 + 2 * 0.01 + 2 * 0.005) / 6)
    assert quality(KernelPegasos().fit(X, Y), X, Y)[2] == [], "no probabilities, no bins"


@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.sampled_from([-1, 1])), min_size=1, max_size=50))
def test_every_row_is_in_the_bin_of_its_probability(rows):
    probability, y = (np.array(column) for column in zip(*rows, strict=True))
    bins = reliability(probability, y)
    assert sum(n for _, n, _, _ in bins) == len(rows)
    for k, _, predicted, positive in bins:
        assert k / 15 - 1e-9 <= predicted <= (k + 1) / 15 + 1e-9
        assert 0 <= positive <= 1
    assert 0 <= expected_calibration_error(bins) <= 1


def test_log_loss_is_exact_where_probabilities_are_0_and_1():
    class Sure(NonConservativeKLR):
        def decision_function(self, X):
            return np.full(len(X), -800.0)

    fitted = Sure().fit(X, Y)
    assert quality(fitted, X[:1], np.array([1]))[0]["log_loss"] == 800.0


THREE = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * RANDOM.standard_normal(300), [-0.3, 0.8]).astype(np.int8)


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB(), SVC(), SGDClassifier()], ids=str)
def test_quality_of_three_classes_is_that_of_scikit_learn(estimator):
    fitted = estimator.fit(X[:200], THREE[:200])
    measured, _, bins = quality(fitted, X[200:], THREE[200:])
    accuracy = fitted.score(X[200:], THREE[200:])
    expected = {"accuracy": accuracy, "error_rate": 1 - accuracy}
    if hasattr(fitted, "predict_proba"):
        probability = fitted.predict_proba(X[200:])
        right = np.where(fitted.predict(X[200:]) == THREE[200:], 1, -1)
        expected["log_loss"] = log_loss(THREE[200:], probability)
        expected["brier"] = sum(np.mean((probability[:, k] - (THREE[200:] == k)) ** 2) for k in range(3))
        expected["ece"] = calibration_error(probability.max(axis=1), right)
    assert measured == pytest.approx(expected)
    assert sum(n for _, n, _, _ in bins) == (100 if "ece" in expected else 0)


def test_log_loss_of_three_classes_is_exact_and_an_unseen_class_is_refused():
    fitted = LogisticRegression().fit(X, THREE)
    fitted.coef_[:], fitted.intercept_[:] = 0, [0, 0, 900]
    assert quality(fitted, X[:1], np.array([1]))[0]["log_loss"] == 900.0
    with pytest.raises(ValueError, match=r"classes \[3\]"):
        quality(fitted, X[:2], np.array([1, 3]))


def test_no_probabilities_no_log_loss_one_class_no_auc():
    fitted = KernelPegasos().fit(X, Y)
    assert set(quality(fitted, X, Y)[0]) == {"accuracy", "error_rate", "auc"}
    assert "auc" not in quality(fitted, X[Y > 0], Y[Y > 0])[0]


def test_size_of_kernel_and_linear_classifiers():
    learner = NonConservativeKLR().fit(X, Y)
    assert size(learner, 300) == {"n_support": 300, "sparsity": 0.0, "n_updates": 300}
    machine = SVC().fit(X, Y)
    assert size(machine, 300)["n_support"] == machine.n_support_.sum()
    linear = SGDClassifier(penalty="l1", alpha=0.05, random_state=0).fit(X, Y)
    assert size(linear, 300)["nonzero_fraction"] == np.mean(linear.coef_ != 0)


def test_the_time_of_the_pass_is_part_of_the_fit():
    started = time.perf_counter()
    learner = BatchConfidenceWeighted().fit(X, Y)
    assert 0 < size(learner, 300)["pass_time_s"] < time.perf_counter() - started


def test_selected_features_and_the_relevant_ones_among_them():
    svm = LinearSVC(penalty="l1", dual=False, C=0.003).fit(X, Y)
    chosen = np.flatnonzero(svm.coef_[0])
    assert 0 < len(chosen) < 3
    assert selection(svm, None) == {"n_selected": len(chosen)}
    assert selection(svm, np.array([0, 1, 2])) == {"n_selected": len(chosen), "relevant_found": len(chosen) / 3}
    svm.selected_features_ = np.array([2, 0])  # what an estimator says goes before its weights
    assert selection(svm, np.array([0, 1])) == {"n_selected": 2, "relevant_found": 0.5}
    assert selection(SVC().fit(X, Y), np.array([0])) == {}


def test_the_clock_stands_while_a_checkpoint_is_evaluated():
    def evaluate(estimator):
        time.sleep(0.05)
        return {"accuracy": 0.5, "n_support": 3}

    clock = Trace(1000, 4, evaluate)
    for t in range(100, 1001, 100):
        assert not clock(None, t)
    assert [(t, name) for t, _, name, _ in clock.points] == [
        (t, name) for t in (300, 500, 800, 1000) for name in ("accuracy", "n_support")
    ]
    assert clock.elapsed() < 0.05


def test_checkpoints_may_be_logarithmic():
    clock = Trace(65_536, 9, lambda estimator: {"accuracy": 0.5}, spacing="log")
    for t in range(128, 2 * 65_536 + 1, 128):
        clock(None, t)
    assert [t for t, *_ in clock.points] == [256 * 2**k for k in range(10)]
    few = Trace(100, 5, lambda estimator: {"accuracy": 0.5}, spacing="log")
    for t in range(1, 101):
        few(None, t)
    assert few.points[0][0] == 20
    assert few.points[-1][0] == 100


def test_the_end_of_a_fit_is_a_checkpoint_once():
    clock = Trace(100, 4, lambda estimator: {"accuracy": 0.5})
    clock.end(None, 7)  # nothing was watched
    for t in (25, 50, 60):
        clock(None, t)
    clock.end(None, 60)
    clock.end(None, 60)
    assert [t for t, *_ in clock.points] == [25, 50, 60]


def test_the_time_limit_counts_fitting_alone():
    clock = Trace(10, 10, lambda estimator: time.sleep(0.05) or {}, time_limit_s=0.04)
    assert not clock(None, 1)
    assert not clock(None, 2)
    assert not clock.timed_out
    time.sleep(0.05)
    assert clock(None, 3)
    assert clock.timed_out

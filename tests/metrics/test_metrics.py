"""Tests of metrics against scikit-learn and values computed by hand, and of the clock."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score, log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from klr_bench import KernelPerceptron
from klr_bench.errors import KlrBenchError
from klr_bench.metrics.clock import Clock
from klr_bench.metrics.labels import METRICS, find_metric, metric_files, user_metrics
from klr_bench.metrics.metric import Metric
from klr_bench.metrics.predictions import Predictions, from_decision, reliability
from klr_bench.metrics.quality import at_checkpoint, fitted, measure
from tests.estimators.one_pass import KernelPegasos, NonConservativeKLR

RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((300, 3))
Y = np.where(X[:, 0] + 0.5 * RANDOM.standard_normal(300) > 0, 1, -1).astype(np.int8)


def calibration_error(probability, y):
    """Return the expected calibration error, computed row by row."""
    total = 0.0
    for k in range(15):
        inside = [(k / 15 <= p < (k + 1) / 15) or (k == 14 and p == 1) for p in probability]
        if any(inside):
            total += sum(inside) * abs(np.mean(y[inside] == 1) - np.mean(probability[inside]))
    return total / len(y)


THREE = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * RANDOM.standard_normal(300), [-0.3, 0.8]).astype(np.int8)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        *((NonConservativeKLR(), Y), (LogisticRegression(), Y)),
        *((LogisticRegression(), THREE), (GaussianNB(), THREE), (SVC(), THREE), (SGDClassifier(), THREE)),
    ],
    ids=str,
)
def test_metrics_equal_those_of_scikit_learn(estimator, y):
    classifier, test, y_test = estimator.fit(X[:200], y[:200]), X[200:], y[200:]
    labels, predicted = classifier.classes_, classifier.predict(test)
    two = len(labels) == 2
    expected = {
        "accuracy": np.mean(predicted == y_test),
        "error_rate": np.mean(predicted != y_test),
        "balanced_accuracy": balanced_accuracy_score(y_test, predicted),
        "f1": f1_score(y_test, predicted, average="binary" if two else "macro"),
    }
    scores = (getattr(classifier, "predict_proba", None) or classifier.decision_function)(test)
    ranked = [(y_test == labels[k], scores[:, k]) for k in range(len(labels)) if k or not two]
    expected["auc"] = np.mean([roc_auc_score(*pair) for pair in ranked])
    expected["average_precision"] = np.mean([average_precision_score(*pair) for pair in ranked])
    if hasattr(classifier, "predict_proba"):
        of_bins = (scores[:, 1], y_test) if two else (scores.max(axis=1), np.where(predicted == y_test, 1, -1))
        squares = [np.mean((score - truth) ** 2) for truth, score in ranked]
        expected |= {"log_loss": log_loss(y_test, scores), "brier": sum(squares), "ece": calibration_error(*of_bins)}
    measured, _, bins = measure(classifier, test, y_test)
    assert measured.keys() == expected.keys(), "a new metric stands in `expected`, computed in another way"
    assert measured == pytest.approx(expected)
    assert sum(n for _, n, _, _ in bins) == (100 if "ece" in expected else 0)


def test_bins_by_hand():
    probability = np.array([0.0, 0.06, 0.5, 0.52, 1.0, 0.99])
    bins = reliability(probability, np.array([-1, 1, 1, -1, 1, 1]) > 0)
    assert [(k, n, positive) for k, n, _, positive in bins] == [(0, 2, 0.5), (7, 2, 0.5), (14, 2, 1.0)]
    assert [predicted for _, _, predicted, _ in bins] == pytest.approx([0.03, 0.51, 0.995])
    decision = np.array([-np.inf, logit(0.06), logit(0.5), logit(0.52), np.inf, logit(0.99)])
    predictions = from_decision(np.array([-1, 1, 1, -1, 1, 1]), decision, logistic=True)
    assert METRICS["ece"].of(predictions) == pytest.approx((2 * 0.47 + 2 * 0.01 + 2 * 0.005) / 6)
    assert measure(KernelPegasos().fit(X, Y), X, Y)[2] == [], "no probabilities, no bins"


def test_log_loss_is_exact_for_extreme_decision_values_and_rejects_unknown_classes():
    classifier = LogisticRegression().fit(X, Y)
    classifier.coef_[:], classifier.intercept_[:] = 0, -800
    assert measure(classifier, X[:1], np.array([1]))[0]["log_loss"] == 800.0
    classifier = LogisticRegression().fit(X, THREE)
    classifier.coef_[:], classifier.intercept_[:] = 0, [0, 0, 900]
    assert measure(classifier, X[:1], np.array([1]))[0]["log_loss"] == 900.0
    with pytest.raises(ValueError, match=r"classes \[3\]"):
        measure(classifier, X[:2], np.array([1, 3]))


def test_metrics_of_rare_classes_by_hand():
    y, decision = np.array([1, -1, -1, -1, -1, -1]), np.array([0.5, 0.7, -1.0, -2.0, -3.0, -4.0])
    found = {name: METRICS[name].of(from_decision(y, decision, logistic=True)) for name in ("balanced_accuracy", "f1")}
    assert found == pytest.approx({"balanced_accuracy": (1 + 4 / 5) / 2, "f1": 2 / 3})
    assert METRICS["average_precision"].of(from_decision(y, decision, logistic=True)) == 0.5
    of_three = Predictions(np.array([0, 1, 2, 2]), np.array([0, 1]), lambda n: np.array([0, 1, 0, 1])[:n])
    found = {name: METRICS[name].of(of_three) for name in ("balanced_accuracy", "f1")}
    assert found == pytest.approx({"balanced_accuracy": 2 / 3, "f1": (2 / 3 + 2 / 3) / 3})
    nobody = from_decision(-np.ones(6), -np.ones(6), logistic=True)
    assert METRICS["f1"].of(nobody) == 0, "no positive row, and none predicted"


def test_mistakes_are_counted_before_the_update():
    learner, wrong = KernelPerceptron(shuffle=False), 0
    for n, (row, label) in enumerate(zip(X[:60], Y, strict=False)):
        wrong += n == 0 or label * learner.decision_function(row[None])[0] <= 0.0
        learner.partial_fit(row[None], [label], classes=[-1, 1])
    assert 0 < fitted(learner, 60)["mistake_rate"] == wrong / 60 < 1
    many = KernelPerceptron().fit(X, np.arange(300) % 3)
    assert "mistake_rate" not in fitted(many, 300), "there are three f"
    assert "mistake_rate" not in fitted(SVC().fit(X, Y), 300)


def test_metrics_of_selected_and_relevant_features():
    svm = LinearSVC(penalty="l1", dual=False, C=0.003).fit(X, Y)
    chosen = np.flatnonzero(svm.coef_[0])
    assert 0 < len(chosen) < 3
    assert selection(svm, None) == {"n_selected": len(chosen)}
    assert selection(svm, np.array([0, 1, 2])) == {"n_selected": len(chosen), "relevant_found": len(chosen) / 3}
    svm.selected_features_ = np.array([2, 0])  # the attribute takes precedence over the weights
    assert selection(svm, np.array([0, 1])) == {"n_selected": 2, "relevant_found": 0.5}
    assert selection(SVC().fit(X, Y), np.array([0])) == {}


def selection(classifier, relevant):
    measured = fitted(classifier, 300, relevant)
    return {name: measured[name] for name in ("n_selected", "relevant_found") if name in measured}


def test_a_checkpoint_evaluates_once_and_stores_the_watched_metrics():
    class Counted(NonConservativeKLR):
        asked = 0

        def decision_function(self, X):
            self.asked += len(X) > 100
            return super().decision_function(X)

    learner = Counted().fit(X, Y)
    of_learner = {"n_support": 300, "cumulative_loss": learner.cumulative_loss_}
    assert at_checkpoint(learner, X, Y) == {"accuracy": learner.score(X, Y)} | of_learner
    learner.watched, learner.asked = ("accuracy", "log_loss", "auc"), 0
    found = at_checkpoint(learner, X, Y)
    assert learner.asked == 1
    expected = measure(learner, X, Y)[0]
    assert found == {name: expected[name] for name in ("accuracy", "log_loss", "auc")} | of_learner


OWN = """
from klr_bench.metrics.metric import Metric

def recall(predictions):
    return (predictions.predicted[predictions.y > 0] > 0).mean()

METRIC = Metric("recall", "Recall", unit="percent", better="higher", of=recall)
"""


def own(folder, text, name="recall"):
    (folder / "metric").mkdir(exist_ok=True)
    (folder / "metric" / f"{name}.py").write_text(text)
    return [folder]


def test_a_user_metric_is_one_file(tmp_path: Path):
    folders = own(tmp_path, OWN)
    own(tmp_path, "raise SystemExit('never asked for')", "other")
    assert list(metric_files(folders)) == ["other", "recall"]
    found = user_metrics(["accuracy", "recall"], folders)
    assert list(found) == ["recall"]
    classifier = LogisticRegression().fit(X, Y)
    measured = measure(classifier, X, Y, found.values())[0]
    assert measured["recall"] == np.mean(classifier.predict(X[Y > 0]) == 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({OWN: ""}, "expected METRIC = Metric"),
        ({OWN: "1 / 0"}, "recall.py: running it raised ZeroDivisionError"),
        ({'Metric("recall"': 'Metric("recal"'}, "expected 'recall', the name of the file, got 'recal'"),
        ({"of=recall": "of=3"}, "METRIC.of: expected a function, got 3"),
        ({'"higher"': '"up"'}, "METRIC.better: unknown value 'up'. Known: higher, lower"),
        ({'"percent"': "5"}, "METRIC.unit: expected 'percent', .*, got 5"),
        ({"of=recall": "of=recall, stored=False"}, "METRIC: remove `stored` and `compares`"),
        ({"(predictions.predicted[predictions.y > 0] > 0).mean()": "1 / 0"}, "metric recall: its function raised Zero"),
        ({"(predictions.predicted[predictions.y > 0] > 0).mean()": "'high'"}, "metric recall: expected a finite num"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_invalid_metric_file_is_rejected(tmp_path: Path, changes, message):
    (before, after), *_ = changes.items()
    folders, classifier = own(tmp_path, OWN.replace(before, after)), LogisticRegression().fit(X, Y)
    with pytest.raises(KlrBenchError, match=message):
        measure(classifier, X, Y, [find_metric("recall", folders)])


def test_unknown_metrics_and_names_of_built_in_metrics(tmp_path: Path):
    folders = own(tmp_path, OWN)
    with pytest.raises(KlrBenchError, match=r"unknown metric 'recal'. Did you mean 'recall'"):
        find_metric("recal", folders)
    own(tmp_path, "raise SystemExit", "accuracy")
    assert find_metric("accuracy", folders) is METRICS["accuracy"]


DESCRIPTION = METRICS["accuracy"].description()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (5, "expected keys and values, got 5"),
        ({"name": "a"}, r"m\.title: expected a value, got none"),
        ({"name": "a", "title": "A", "of": "os.system"}, "m: unknown key 'of'"),
        ({"name": "a", "titel": "A"}, "m: unknown key 'titel'. Did you mean 'title'"),
        (DESCRIPTION | {"name": "f_1-score"}, r"m\.name: expected letters, digits and _, got 'f_1-score'"),
        (DESCRIPTION | {"title": "two\nlines"}, r"m\.title: expected a line of text"),
        (DESCRIPTION | {"unit": None}, r"m\.unit: expected 'percent', "),
        (DESCRIPTION | {"usual": 1}, r"m\.usual: expected true or false, got 1"),
    ],
)
def test_a_description_of_a_metric_is_checked(content, message):
    with pytest.raises(KlrBenchError, match=message):
        Metric.from_description(content, "m")


def test_a_metric_has_its_description():
    for metric in METRICS.values():
        read = Metric.from_description(metric.description())
        assert read.description() == metric.description()
        assert read.of is None


def test_the_clock_is_paused_while_a_checkpoint_is_evaluated():
    seconds = 0.0

    def evaluate(estimator):
        nonlocal seconds
        seconds += 50
        return {"accuracy": 0.5, "n_support": 3}

    clock = Clock(1000, 4, evaluate, time_limit_s=10, now=lambda: seconds)
    for t in range(100, 1001, 100):
        seconds += 1
        assert not clock(None, t)
    assert [tuple(checkpoint) for checkpoint in clock.checkpoints] == [
        (t, t / 100, name, value)
        for t in (300, 500, 800, 1000)
        for name, value in (("accuracy", 0.5), ("n_support", 3.0))
    ]
    assert clock.elapsed() == 10
    assert not clock.timed_out
    seconds += 1
    assert clock(None, 1001)
    assert clock.timed_out


@pytest.mark.parametrize(("last", "points", "expected"), [(65_536, 9, [256 * 2**k for k in range(10)]), (100, 5, [20])])
def test_checkpoints_may_be_logarithmic(last, points, expected):
    clock = Clock(last, points, lambda estimator: {"accuracy": 0.5}, spacing="log")
    for t in range(1, 2 * last + 1):
        clock(None, t)
    assert [checkpoint.t for checkpoint in clock.checkpoints][: len(expected)] == expected
    n_checkpoints = len(clock.checkpoints)
    clock.end(None, 2 * last + 1)
    clock.end(None, 2 * last + 1)
    assert len(clock.checkpoints) == n_checkpoints + 1, "the end of a fit is a checkpoint, once"


@pytest.mark.parametrize("points", [0, 10])
def test_the_end_of_a_fit_before_its_first_checkpoint_is_one(points):
    clock = Clock(100, points, lambda estimator: {"accuracy": 0.5})
    clock(None, 1)
    clock.end(None, 1)
    assert [checkpoint.t for checkpoint in clock.checkpoints] == [1] * bool(points)

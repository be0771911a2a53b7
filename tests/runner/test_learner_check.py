"""The check of a learner finds each defect that an experiment would meet, and none in the shipped algorithms."""

import re
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from klr_bench.cli import main
from klr_bench.cli.model import read_algorithm
from klr_bench.config import locations as config_files
from klr_bench.config.models import AlgorithmConfig
from klr_bench.instantiate import TARGET
from klr_bench.runner.learner_check import CHECKS, check_learner
from klr_bench.runner.validation import parameter_warning
from tests.conftest import OPTIONAL

NAMES = config_files.names("algorithm", [config_files.config_dir()])


class Means:
    """Classifier with all optional parts, for any number of classes."""

    def __init__(self, shrinkage=0.0):
        self.shrinkage = shrinkage

    def fit(self, X, y, callback=None):
        self.sums_ = {}
        for t in range(1, len(y) + 1):
            self.partial_fit(X[t - 1 : t], y[t - 1 : t], np.unique(y))
            if callback is not None and callback(self, t):
                break
        return self

    def partial_fit(self, X, y, classes=None):
        X = X.toarray() if hasattr(X, "toarray") else X
        if not hasattr(self, "sums_"):
            self.sums_ = {}
        self.classes_ = np.asarray(classes)
        for row, label in zip(X, y, strict=True):
            total, n = self.sums_.get(int(label), (0, 0))
            self.sums_[int(label)] = (total + row, n + 1)
        return self

    def _similarities(self, X):
        X = X.toarray() if hasattr(X, "toarray") else X
        means = [np.divide(*self.sums_.get(int(label), (np.zeros(X.shape[1]), 1))) for label in self.classes_]
        return -np.array([np.linalg.norm(X - (1 - self.shrinkage) * mean, axis=1) for mean in means]).T

    def decision_function(self, X):
        values = self._similarities(X)
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X):
        return self.classes_[self._similarities(X).argmax(axis=1)]

    def predict_proba(self, X):
        values = np.exp(self._similarities(X))
        return values / values.sum(axis=1, keepdims=True)


class CallsBeforeItLearns(Means):
    def fit(self, X, y, callback=None):
        for _ in range(2 if callback is not None else 0):
            callback(self, 0)
        return super().fit(X, y, callback)


class NoNumbers(Means):
    def decision_function(self, X):
        return np.full(X.shape[0], np.nan)


class Reversed(Means):
    def decision_function(self, X):
        return -super().decision_function(X)


class Column(Means):
    def decision_function(self, X):
        return super().decision_function(X)[:, None]


class TextLabels(Means):
    def predict(self, X):
        return np.array(["a"] * X.shape[0])


class TwoOnly(Means):
    def fit(self, X, y, callback=None):
        if len(np.unique(y)) > 2:
            raise ValueError
        return super().fit(X, y, callback)


class NegatesSparseRows(Means):
    def fit(self, X, y, callback=None):
        return super().fit(-X.toarray() if hasattr(X, "toarray") else X, y, callback)


class Unseeded(Means):
    calls = count()

    def fit(self, X, y, callback=None):
        return super().fit(X if next(self.calls) % 2 else -X, y, callback)  # no two fits in turn are equal


class Remembers(Means):
    def fit(self, X, y, callback=None):
        return self.partial_fit(X, y, np.unique(y))


class Unstoppable(Means):
    def fit(self, X, y, callback=None):
        return super().fit(X, y, callback and (lambda estimator, t: callback(estimator, t) and False))


class Backwards(Means):
    def fit(self, X, y, callback=None):
        return super().fit(X, y, callback and (lambda estimator, t: callback(estimator, -t)))


class FirstChunkOnly(Means):
    def partial_fit(self, X, y, classes=None):
        if len(y) > 1 and len(np.unique(y)) == 1:
            raise ValueError("needs both classes")
        return super().partial_fit(X, y, classes)


class NotPickled(Means):
    def fit(self, X, y):
        self.function_ = lambda: None
        return super().fit(X, y)


class AnyName(Means):
    def __init__(self, **parameters):
        super().__init__(parameters.get("shrinkage", 0.0))


DEFECTS = {
    NoNumbers: ("two classes", "decision_function returned NaN for 40 of 40 values"),
    Reversed: ("two classes", "expected positive values where classes_[1] is predicted"),
    Column: ("two classes", "expected numbers of shape (40,), got float32 of shape (40, 1)"),
    TextLabels: ("two classes", "expected one of [-1, 1]"),
    TwoOnly: ("several classes", "set classifier_tags.multi_class in __sklearn_tags__ to False"),
    NegatesSparseRows: ("sparse rows", "are predicted differently from the same dense rows"),
    Unseeded: ("same result again", "Draw random numbers from a parameter random_state"),
    Remembers: ("same result again", "fit must forget everything"),
    Unstoppable: ("callback", "expected the fit to stop"),
    Backwards: ("callback", "expected calls with increasing t, got [-1, -2"),
    FirstChunkOnly: ("partial fit", "ValueError: needs both classes"),
    NotPickled: ("stored", "NotPickled.fit.<locals>.<lambda>"),
}


def findings(cls: type, **parameters: object) -> dict[str, tuple[str, str]]:
    algorithm = AlgorithmConfig(estimator={TARGET: f"{__name__}.{cls.__name__}", **parameters})
    return {finding.check: (finding.status, finding.message) for finding in check_learner("mine", algorithm)}


def test_a_good_learner_has_no_defects() -> None:
    results = findings(Means)
    assert len(results) == len(CHECKS)
    assert {check for check, _ in DEFECTS.values()} == {*results} - {"parameters"}, "which have a test of their own"
    assert [status for status, _ in results.values()] == ["ok"] * 7 + ["no"]
    assert "klr-bench fit cannot store it" in results["stored"][1], "load_model trusts no class of a user"


def test_a_callback_may_get_0_before_there_is_a_model() -> None:
    assert findings(CallsBeforeItLearns)["callback"] == ("ok", "")


@pytest.mark.parametrize("cls", DEFECTS, ids=lambda cls: cls.__name__)
def test_a_defect_is_found(cls: type) -> None:
    check, message = DEFECTS[cls]
    status, got = findings(cls)[check]
    assert (status, message in got) == ("failed", True), got


def test_parameters_of_any_name_are_named_in_a_warning() -> None:
    status, message = findings(AnyName, shrinkge=0.5)["parameters"]
    assert status == "no"
    assert message.endswith("takes parameters of any name, so these cannot be checked for mistakes: shrinkge.")
    target = {TARGET: f"{__name__}.AnyName"}
    assert parameter_warning("mine", AlgorithmConfig(estimator=target)) is None, "there is nothing to mistake"
    assert parameter_warning("mine", AlgorithmConfig(estimator=target), ["a"]) is not None, "a sweep"
    assert findings(Means, shrinkge=0.5)["parameters"][0] == "failed"


def test_the_command_prints_a_line_per_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "configs" / "algorithm").mkdir(parents=True)
    for name, cls in (("good", "Means"), ("wrong", "Remembers")):
        text = f"# @package algorithms.{name}\nlabel: Mine\nestimator: {{_target_: {__name__}.{cls}}}\n"
        (tmp_path / "configs" / "algorithm" / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "good", "algorithms.good.estimator.shrinkage=0.5"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["ok     parameters", "ok     two classes"]
    assert main(["check", "wrong"]) == 1
    assert "\nfailed same result again: " in capsys.readouterr().out
    for arguments, message in (
        (["god"], "Did you mean 'good'?"),
        ([], "expected one algorithm, got none"),
        (["good", "algorithms.good.estimator.shrink=1"], "unknown key 'algorithms.good.estimator.shrink'"),
    ):
        assert main(["check", *arguments]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_algorithms_have_no_defects(name: str) -> None:
    results = list(check_learner(name, read_algorithm(name, {})))
    lacking = re.compile(f"No module named '({'|'.join(OPTIONAL)})'")
    if any(lacking.search(finding.message) for finding in results):
        pytest.skip("needs klr-bench[peers]")
    assert [finding for finding in results if finding.status == "failed"] == []

"""Tests of parameter selection: candidates, kernel width, scores and the choice."""

from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from klr_bench.cli import main
from klr_bench.datasets.splits import Prepared, fold_rows
from klr_bench.errors import KlrBenchError
from klr_bench.estimators.core.kernels import gamma_of
from klr_bench.metrics.clock import Clock
from klr_bench.metrics.labels import METRICS, SCORES
from klr_bench.metrics.quality import measure
from klr_bench.runner import selection
from klr_bench.runner.bandwidth import distance_percentile, kernel_of, resolve_gamma, resolve_kernel, substitute_gamma
from klr_bench.runner.fit import flat_parameters
from klr_bench.runner.plan import plan_cells
from klr_bench.runner.selection import FAILED, candidates, choose, make, score_fold
from tests.config.composing import composed
from tests.estimators.one_pass import NonConservativeKLR

ONCE = {"n_epochs": 1, "shuffle": False}
NC = {"_target_": "klr_bench.NonConservativeKLR", "eta": 1.0, **ONCE}


def data(n=200):
    random = np.random.RandomState(0)
    X = random.random_sample((n, 3)).astype(np.float32)
    y = np.where(X[:, 0] + 0.2 * random.standard_normal(n) > 0.5, 1, -1).astype(np.int8)
    return Prepared(X, y, X, y)


def test_candidates_are_in_grid_order():
    found = candidates(NC | {"R": 5.0}, {"R": [1, 10], "eta": [0.1, 1]})
    assert [(c["R"], c["eta"]) for c in found] == [(1, 0.1), (1, 1), (10, 0.1), (10, 1)]
    assert candidates(NC, {}) == [NC]


KERNEL = {"kernel": "rbf", "gamma": 3.0}
SHARED = {"kernel": "rbf", "percentile": 20.0, "multiple": 1.0, "gamma": None, "degree": 3.0, "coef0": 1.0}


def test_the_width_is_the_percentile_of_distances():
    X, kernel = data().X_train, {"kernel": "rbf", "percentile": 20}
    sigma = distance_percentile(X, 20, seed=0)
    assert sigma == pytest.approx(np.percentile(pdist(X.astype(float)), 20), rel=1e-6)
    assert resolve_kernel(kernel, X, 0)["gamma"] == pytest.approx(1 / (2 * sigma**2))
    assert resolve_kernel(None, X, 0) == {}
    wide = resolve_kernel(kernel | {"multiple": 3.0}, X, seed=0)
    assert wide == {"kernel": "rbf", "gamma": pytest.approx(1 / (18 * sigma**2))}
    assert kernel_of(NC, SHARED | {"multiple": 3.0}) == {"kernel": "rbf", "percentile": 20.0, "multiple": 3.0}
    with pytest.raises(KlrBenchError, match=r"kernel.percentile=20: .* is 0, because many rows are identical"):
        distance_percentile(np.ones((30, 2), dtype=np.float32), 20, seed=0)


def test_a_percentile_of_distances_does_not_depend_on_where_the_rows_are():
    X = np.random.default_rng(0).uniform(0, 100, (200, 2))
    assert distance_percentile(X + 1.7e9, 20, 0) == pytest.approx(distance_percentile(X, 20, 0), rel=1e-6)


def test_an_estimators_own_kernel_takes_precedence():
    shared = SHARED
    assert kernel_of(NC, shared) == {"kernel": "rbf", "percentile": 20.0}
    assert kernel_of(NC | {"gamma": 2.0}, shared) == {"kernel": "rbf", "gamma": 2.0}
    assert kernel_of(NC, shared | {"percentile": None, "gamma": 3.0}) == {"kernel": "rbf", "gamma": 3.0}
    assert kernel_of(NC | {"kernel": "poly"}, shared) == {"kernel": "poly", "degree": 3, "coef0": 1.0}
    assert kernel_of(NC | {"kernel": "linear"}, shared) == {"kernel": "linear"}
    assert kernel_of({"_target_": "sklearn.linear_model.SGDClassifier"}, shared) is None
    assert kernel_of({"_target_": "klr_bench.DualCDKLRCV"}, shared) == {"kernel": "rbf"}, "it chooses gamma"
    built = make(NC | {"gamma": 2.0}, {"kernel": "rbf", "gamma": 7.0}, seed=5)
    assert (built.gamma, built.random_state) == (2.0, 5)


def test_null_is_a_value_unless_it_stands_for_that_of_the_run():
    forest = {"_target_": "sklearn.ensemble.RandomForestClassifier", "max_features": None, "random_state": None}
    built = make(forest, {}, seed=5)
    assert (built.max_features, built.random_state) == (None, 5)
    assert flat_parameters(forest, {}) == {"max_features": None}
    assert make(NC | {"gamma": None}, {"kernel": "rbf", "gamma": 7.0}, seed=5).gamma == 7.0


@pytest.mark.parametrize("score", SCORES)
def test_any_metric_of_predictions_with_a_direction_is_a_score(score):
    split = data()
    rows, out = fold_rows(200, 4, 2)
    learners = [NC | {"eta": 0.1}, NC | {"eta": 2.0, "gamma": 1.0}, {"_target_": "klr_bench.OSKL", "G": 2.0, **ONCE}]
    found = score_fold(learners, KERNEL, split, 2, folds=4, seed=9, score=score)
    sign = -1 if METRICS[score].better == "lower" else 1
    for learner, value in zip(learners, found, strict=True):
        alone = make(learner, KERNEL, 9).fit(split.X_train[rows], split.y_train[rows])
        assert value == pytest.approx(sign * measure(alone, split.X_train[out], split.y_train[out])[0][score], rel=1e-5)


def test_predictions_without_the_selection_metric():
    found = score_fold([{"_target_": "klr_bench.KernelPegasos"}], KERNEL, data(), 2, folds=4, seed=9, score="log_loss")
    message = "selection.score=log_loss cannot be computed for this algorithm. Use another score."
    assert found == [{FAILED: message}]


@pytest.mark.parametrize("present", [(1, 2), (0, 1), (0, 2)])
def test_training_rows_of_a_fold_may_lack_one_of_three_classes(present):
    split = data(40)
    rows, out = fold_rows(40, 4, 2)
    y = np.where(split.y_train > 0, *present).astype(np.int8)
    y[out[0]] = ({0, 1, 2} - {*present}).pop()
    split = Prepared(split.X_train, y, split.X_train, y)
    learners = [NC | {"eta": 0.1}, NC, {"_target_": "klr_bench.OSKL", **ONCE}]
    found = score_fold(learners, KERNEL, split, 2, folds=4, seed=9)
    for learner, score in zip(learners, found, strict=True):
        alone = make(learner, KERNEL, 9).fit(split.X_train[rows], y[rows])
        assert score == np.mean(alone.predict(split.X_train[out]) == y[out]) > 0.5
    with pytest.raises(
        KlrBenchError, match=r"fold 2: test rows have classes \[\d\], which are not in the training rows"
    ):
        score_fold(learners, KERNEL, split, 2, folds=4, seed=9, score="log_loss")


def test_a_user_metric_is_a_score(tmp_path, monkeypatch):
    (tmp_path / "configs/metric").mkdir(parents=True)
    text = """
from klr_bench.metrics.metric import Metric
of = lambda predictions: (predictions.predicted != predictions.y).sum()
METRIC = Metric("misses", "Misses", better="lower", of=of)
"""
    (tmp_path / "configs/metric/misses.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    learners = [NC, {"_target_": "klr_bench.OSKL"}]
    found = score_fold(learners, KERNEL, data(), 0, folds=2, seed=0, score="misses")
    accuracies = score_fold(learners, KERNEL, data(), 0, folds=2, seed=0)
    assert found == [pytest.approx(100 * (accuracy - 1)) for accuracy in accuracies]


def test_a_user_metric_without_a_direction_is_no_score(tmp_path, monkeypatch, capsys):
    (tmp_path / "configs/metric").mkdir(parents=True)
    text = """
from klr_bench.metrics.metric import Metric
METRIC = Metric("cost", "Cost", of=lambda predictions: 0.0)
"""
    (tmp_path / "configs/metric/cost.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "dataset=moons", "algorithm=[nc]", "selection.score=cost"]) == 2
    assert "selection.score=cost: expected a metric with" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["f1", "cpu", "positive", "run", "repeat"])
@pytest.mark.parametrize("setting", ["metrics=[accuracy,{}]", "selection.score={}"])
def test_a_user_metric_has_a_name_of_its_own(name, setting, tmp_path, monkeypatch, capsys):
    (tmp_path / "configs/metric").mkdir(parents=True)
    (tmp_path / f"configs/metric/{name}.py").write_text("raise ValueError")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "dataset=moons", "algorithm=[nc]", setting.format(name)]) == 2
    assert f"{name} is a metric or column of klr-bench. Rename yours." in capsys.readouterr().err


def test_the_width_of_a_grid_leaves_the_kernel(tmp_path, monkeypatch):
    words = ["dataset=[moons]", "algorithm=[svc]", "kernel.percentile=20", "kernel.gamma=null"]
    with_width, without = (
        {str(cell.kernel) for cell in plan_cells(composed(*words, *more), tmp_path)}
        for more in (["+algorithms.svc.grid.gamma=[0.1,1]"], [])
    )
    assert with_width == {"{'kernel': 'rbf'}"}
    assert "percentile" in without.pop()


def test_a_learner_that_cannot_be_fitted_has_no_score():
    learners = [{"_target_": "klr_bench.OSKL", "loss": "exponential"}, NC]
    scores = score_fold(learners, {"kernel": "rbf", "gamma": 1.0}, data(), 0, folds=2, seed=0)
    assert scores[0] is None
    assert scores[1] > 0.5


def test_the_first_candidate_within_the_tolerance_of_the_best_is_chosen():
    assert choose([[0.5, 0.7], [0.7, 0.5], [0.6, 0.6]]) == 0
    assert choose([[0.9, None], [0.1, 0.1]]) == 1
    assert choose([[None], [None]]) is None
    scores = [[0.90, 0.90], [0.95, 0.93], [0.95, 0.95], [None, 1.0]]
    for tolerance, chosen in ((0.0, 2), (0.009, 2), (0.01, 1), (0.05, 0)):
        assert choose(scores, tolerance) == chosen


rights = st.integers(0, 10**6)


@given(st.lists(st.lists(rights, min_size=3, max_size=3), min_size=1, max_size=8))
def test_no_candidate_is_better_than_the_chosen_one(counts):
    totals = [sum(row) for row in counts]  # sums of integers, so that ties are exact
    assert choose([[right / 10**6 for right in row] for row in counts]) == totals.index(max(totals))


class Counted(Clock):
    """Clock that advances by one second at each reading."""

    def __init__(self, *args, **options):
        super().__init__(*args, now=count().__next__, **options)


@pytest.mark.parametrize("limit", [1, 10**6, None])
def test_a_learner_that_takes_too_long_has_no_score(monkeypatch, limit):
    monkeypatch.setattr(selection, "Clock", Counted)
    alone, shared = [{"_target_": "klr_bench.DualCDKLR"}], [NC | {"eta": 0.1}, NC | {"eta": 1.0}]
    for learners in (alone, shared, alone + shared):
        limits = [limit] * len(learners)
        scores = score_fold(learners, KERNEL, data(2000), 0, folds=2, seed=0, time_limits_s=limits)
        assert [isinstance(score, dict) for score in scores] == [limit == 1] * len(learners)
        assert limit != 1 or "not fitted within time_limit_s=" in scores[0][selection.FAILED]
    assert selection._total([2.0, 3.0]) == 5.0, "a shared pass has the time of all that share it"
    assert selection._total([2.0, None]) is None


def test_a_step_size_of_r_by_root_t_is_that_of_the_final_fit():
    learners = [NC | {"R": 50.0, "eta": eta} for eta in ("R/sqrt(T)", 50.0 / 200**0.5, 50.0 / 40**0.5)]
    found, expected, of_a_part = score_fold(
        learners, KERNEL, data(200), 0, folds=2, seed=0, max_examples=80, score="log_loss"
    )
    assert found == expected != of_a_part


def test_a_selection_that_is_not_nested_scores_on_the_test_rows():
    split, test = data(200), data(90)
    split = Prepared(split.X_train, split.y_train, test.X_test[::-1], test.y_test[::-1])
    learner = NonConservativeKLR(gamma=3.0, random_state=0).fit(split.X_train, split.y_train)
    [score] = score_fold([NC], KERNEL, split, 1, folds=5, seed=0, nested=False)
    assert score == learner.score(split.X_test, split.y_test)


@pytest.mark.parametrize("layout", [np.array, sp.csr_matrix])
def test_a_multiple_of_scale_is_resolved(layout):
    X = data().X_train
    for text, factor in (("4 scale", 4.0), ("1e-3 scale", 1e-3)):
        spec = {"_target_": "sklearn.svm.SVC", "C": 2.0, "gamma": text}
        assert resolve_gamma(spec, layout(X)) == {**spec, "gamma": pytest.approx(factor / (3 * X.var()), rel=1e-5)}
        assert substitute_gamma(spec)["gamma"] == 1.0


@pytest.mark.parametrize("value", ["scale", "4scale", "-1 scale", "0 scale", "1e999 scale", "2 scal", 3.0, None])
def test_any_other_gamma_is_left_to_the_estimator(value):
    spec = {"_target_": "klr_bench.OSKL", "gamma": value}
    assert resolve_gamma(spec, data().X_train) == substitute_gamma(spec) == spec


def test_candidates_and_kernels_may_have_a_multiple_of_scale():
    split = data()
    gamma = 2 * gamma_of("scale", split.X_train)
    for target in ("klr_bench.OSKL", "sklearn.svm.SVC"):
        learners = [{"_target_": target, "gamma": value} for value in ("2 scale", gamma)]
        first, second = score_fold(learners, {"kernel": "rbf"}, split, 0, folds=3, seed=0)
        assert first == second > 0.5
    assert resolve_kernel({"kernel": "rbf", "gamma": "2 scale"}, split.X_train, 0) == {"kernel": "rbf", "gamma": gamma}


def test_a_misspelt_multiple_is_refused_before_anything_runs(tmp_path, capsys):
    arguments = ["run", f"results_dir={tmp_path}", "algorithm=[oskl]", "kernel.percentile=null"]
    assert main([*arguments, "algorithms.oskl.grid.gamma=[1 scale,2 scal]"]) == 2
    assert "'gamma' parameter of OSKL" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())

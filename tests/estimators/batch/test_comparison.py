"""KLR with many rows: it chooses between one model and the leaves of partitions by validation."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit

from klr_bench import KLR, NystroemKLR, load_model, save_model
from klr_bench.estimators.batch import comparison, klr, leaf_models, selection
from klr_bench.estimators.batch.folds import in_order
from klr_bench.estimators.batch.leaf_models import LeafModels

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("short_search", "few_are_many"),
]


@pytest.fixture
def few_are_many(monkeypatch):
    for module in (klr, comparison):
        monkeypatch.setattr(module, "MOST_TRAINING", 200)
    monkeypatch.setattr(comparison, "LEAF_SIZE", 300)
    monkeypatch.setattr(comparison, "CENTERS", 30)
    monkeypatch.setattr(comparison, "FEW_CENTERS", 20)
    monkeypatch.setattr(klr, "CENTERS", 30)


def model(**parameters):
    return KLR(**{"max_rounds": 0, "cv": StratifiedShuffleSplit(1, random_state=0), "random_state": 0, **parameters})


def waves(n, n_classes):
    """Return rows for which a kernel is best that is narrower than those of the search."""
    X = np.random.default_rng(0).uniform(-1, 1, (n, 1))
    return X, np.digitize(np.sin(30 * X[:, 0]), np.linspace(-1, 1, n_classes + 1)[1:-1])


@pytest.mark.parametrize(("layout", "n_classes"), [(np.asarray, 2), (np.asarray, 3), (sp.csr_matrix, 2)])
def test_partitions_are_chosen_if_their_validation_loss_is_lower(layout, n_classes, capsys, tmp_path):
    X, y = waves(1200, n_classes)
    X, y, X_test, y_test = layout(X[:800]), y[:800], layout(X[800:]), y[800:]
    fitted = model(verbose=True).fit(X, y)
    losses = re.search(r"\[KLR\] validation log loss (.*) of one model, (.*) of 2 partitions", capsys.readouterr().out)
    assert float(losses[2]) < float(losses[1])
    assert [sum(leaf.support.shape[0] for leaf in leaves) for leaves in fitted.model_.leaves] == [800, 800]
    single = model(time_limit=1e6).fit(X, y)
    P = fitted.predict_proba(X_test)
    assert log_loss(y_test, P) < log_loss(y_test, single.predict_proba(X_test))
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.predict_proba(X_test[:1]), P[:1])
    save_model(fitted, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict_proba(X_test), P)
    assert fitted.best_params_["gamma"] == fitted.model_.gamma > single.best_params_["gamma"]


@pytest.mark.parametrize(("width", "n_centers"), [(1.0, 20), (2.0, 30)])
def test_one_model_is_chosen_if_its_validation_loss_is_lower(width, n_centers, monkeypatch, capsys):
    monkeypatch.setattr(comparison, "LEAF_SIZE", 20)
    monkeypatch.setattr(leaf_models, "WIDTHS", (width,))  # as if it were the best one in leaves
    X = np.random.default_rng(0).standard_normal((400, 5))
    y = (X.sum(axis=1) > 0).astype(int)
    fitted = model(verbose=True).fit(X, y)
    assert fitted.model_.n_centers == n_centers
    losses = re.search(r"validation log loss (.*) of one model, (.*) of 2 partitions", capsys.readouterr().out)
    assert float(losses[1]) <= float(losses[2])


def test_both_are_fitted_without_the_validation_rows(monkeypatch):
    monkeypatch.setattr(comparison, "MOST_COMPARED", 500)
    X, y = waves(800, 2)
    fits = []
    for cls in (NystroemKLR, LeafModels):
        fit = cls.fit

        def recorded(self, rows, *arguments, fit=fit, **parameters):
            fits.append(set(np.round(rows[:][:, 0], 5)))
            return fit(self, rows, *arguments, **parameters)

        monkeypatch.setattr(cls, "fit", recorded)
    cv = StratifiedShuffleSplit(1, random_state=0)
    fitted = model(cv=cv).fit(X, y)
    ((_, valid),) = cv.split(X, y)
    leaves, single, final = fits
    assert single == leaves < final
    assert len(leaves) == 500
    assert not leaves & set(np.round(fitted._scaling.transform(X[valid], np.float32)[:, 0], 5))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_with_many_rows_each_kernel_has_its_own_rounds(kernel):
    X = np.random.default_rng(0).standard_normal((1200, 4))
    y = ((X**2).sum(axis=1) > 3.3 if kernel == "rbf" else X[:, 0] > 0.3).astype(int)
    cv = StratifiedShuffleSplit(1, test_size=0.5, random_state=0)
    fitted = model(cv=cv, max_rounds=2, max_support=None).fit(X, y)
    rounds, kernels, losses = (fitted.cv_results_[name] for name in ("rounds", "kernel", "mean_log_loss"))
    assert {(0, "rbf"), (0, "laplacian"), (1, "rbf"), (1, "laplacian")} <= {*zip(rounds, kernels, strict=True)}
    best = losses.argmin()
    assert fitted.best_params_["kernel"] == kernels[best] == kernel
    assert fitted.best_params_["rounds"] == rounds[best]


def test_groups_are_kept_together_where_leaves_are_tuned(monkeypatch):
    X, y = waves(1200, 2)
    groups = np.array([f"group {i}" for i in np.random.default_rng(1).integers(60, size=1200)])
    weights, seen, fold = np.where(np.arange(1200) % 7, 1.0, 0.0), [], leaf_models._fold

    def recorded(rows, labels, part):
        train, valid = fold(rows, labels, part)
        assert len(train)
        assert len(valid)
        assert not np.isin(labels.groups[train], labels.groups[valid]).any()
        seen.append(labels.groups)
        return train, valid

    monkeypatch.setattr(leaf_models, "_fold", recorded)
    assert isinstance(model().fit(X, y, weights, groups=groups).model_, LeafModels)
    np.testing.assert_array_equal(in_order(seen[-1]), in_order(groups[weights > 0]))


def test_a_leaf_with_one_group_is_not_tuned():
    X, codes = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 0, 0])
    labels = leaf_models.Labels(X, codes, None, 0, np.array([0, 0, 1, 2, 3, 4]))
    assert [labels.differ(np.array(part)) for part in ([0, 1], [1, 2], [4, 5])] == [False, True, False]


def test_one_model_is_of_the_class_that_is_fitted_to_all_rows(monkeypatch):
    made, _model = [], KLR._model
    monkeypatch.setattr(KLR, "_model", lambda *arguments: made.append(_model(*arguments)) or made[-1])
    X, y = waves(240, 2)  # the 180 rows that train are fewer than MOST_TRAINING
    monkeypatch.setattr(comparison, "LEAF_SIZE", 100)
    model(cv=StratifiedShuffleSplit(1, test_size=60, random_state=0)).fit(X, y)
    assert isinstance(made[0], NystroemKLR)
    assert made[0].n_centers == 20


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("limit", [0.3, 0.5, 0.7, 1.1, 1.9])
def test_a_time_limit_may_end_the_search_with_the_second_kernel(limit, cv, now):
    X, y = waves(1500, 2)
    fitted = model(cv=cv, time_limit=limit, n_jobs=1).fit(X, y)
    assert fitted.score(X, y) > 0.5
    assert now[0] <= limit


def test_a_class_without_training_rows_leaves_partitions_out():
    y = np.r_[np.full(4, 2), np.arange(396) % 2]
    folds = [(np.arange(4, 300), np.r_[np.arange(4), np.arange(300, 400)])]
    search = SimpleNamespace(_few=lambda _: folds, y=y)
    klr = SimpleNamespace(classes_=np.arange(3))
    assert comparison.leaves_or_centers(klr, search, None, y, None, None) == (None, 30)


@pytest.mark.parametrize(
    ("parameters", "callback"),
    [({"max_support": 20}, None), ({"time_limit": 1e6}, None), ({"cv": 2}, None), ({}, lambda _, t: t == 0)],
)
def test_what_limits_the_fit_leaves_partitions_out(parameters, callback, monkeypatch):
    monkeypatch.setattr(klr, "leaves_or_centers", None)  # not called
    X, y = waves(300, 2)
    assert isinstance(model(**parameters).fit(X, y, callback=callback).model_, NystroemKLR)


def test_the_search_has_the_rows_of_its_single_split_in_their_order(monkeypatch):
    monkeypatch.setattr(selection, "MOST_OF_SPLIT", 100)
    X, y = waves(800, 2)
    rows, path = [], selection.Search._path

    def recorded(self, train, *arguments):
        rows.append(train)
        return path(self, train, *arguments)

    monkeypatch.setattr(selection.Search, "_path", recorded)
    monkeypatch.setattr(klr, "leaves_or_centers", lambda *_: (None, 30))
    cv = StratifiedShuffleSplit(1, random_state=0)
    model(cv=cv).fit(X, y)
    ((train, _),) = cv.split(X, y)
    assert {len(part) for part in rows} == {100}
    np.testing.assert_array_equal(rows[0], train[np.isin(train, rows[0])])


def test_each_kernel_has_its_share_of_the_time(now):
    X, y = waves(1500, 2)
    fitted = model(max_rounds=50, time_limit=20, n_jobs=1).fit(X, y)
    assert {*fitted.cv_results_["kernel"]} == {"rbf", "laplacian"}
    assert now[0] <= 10


@pytest.mark.parametrize(("n", "n_centers"), [(1000, 1000), (100_000, 1000), (10_000_000, 100)])
def test_few_centers_are_fitted_to_very_many_rows_in_a_limited_time(n, n_centers):
    kept = SimpleNamespace(shape=SimpleNamespace(kernel="rbf"), lam=1.0)
    single = model()._model(kept, 1.0, n, np.random.RandomState(0), None, 3000, seconds=99.0, left=4.0)
    assert single.n_centers == n_centers

"""KLR: its search compared with slow fits, derivatives with differences, and the final model with a fit by hand."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.metrics import log_loss
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

from klr_bench import KLR, DualCDKLR, NystroemKLR
from klr_bench.estimators.batch import approximation, dual, grid, klr, selection, slopes
from klr_bench.estimators.batch.folds import folds_of
from klr_bench.estimators.batch.scaling import Scaling
from klr_bench.estimators.batch.selection import Search
from klr_bench.estimators.core.kernels import Kernel, gamma_of
from tests.cover import usually
from tests.reference import kernel as reference


def search_of(X, y, shares, cv):
    """Return a search with folds as in `KLR`."""
    signs = np.where(y == np.arange(y.max() + 1)[int(y.max() == 1) :, None], 1.0, -1.0)
    estimator = KLR(cv=cv)
    estimator.classes_ = np.unique(y)
    return Search(X, y, signs, shares, folds_of(estimator, X, y, shares, None, 0))


def rows(n=300, n_classes=2, seed=0):
    """Return rows with 8 features, of which the first two determine the class."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, 8)) * np.logspace(-2, 2, 8)
    score = np.sin(2 * X[:, 0] / 0.01) + X[:, 1] / np.logspace(-2, 2, 8)[1] + 0.3 * random.standard_normal(n)
    return X, np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))


@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_the_scaling_of_rows_that_take_turns_is_that_of_shuffled_rows(step):
    random = np.random.RandomState(0)
    X = random.standard_normal((10_000, 2)) * np.where(np.arange(10_000) % step, 1.0, 5.0)[:, None]
    found, expected = (Scaling.of(rows, None).limits for rows in (X, random.permutation(X)))
    np.testing.assert_allclose(found, expected, rtol=0.1)


def test_few_support_vectors_of_equal_rows_have_finite_values():
    model = KLR(5, random_state=0).fit(np.zeros((20, 2)), [0, 1] * 10)
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 2))), 0.5, atol=1e-6)


@pytest.mark.parametrize("is_low_rank", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_losses_of_the_search_are_those_of_separate_fits(n_classes, is_low_rank, monkeypatch):
    exact = {"GAP": 1e-9, "MAX_EPOCHS": 5000, "WORSE": np.inf, "LAMS": (1e-2, 1e-3), "BEATEN": (1e9, 1e9)}
    solver = {"LEFT": 1e-13, "MOST_LEFT": 1.0 if is_low_rank else -1.0, "largest_rank": lambda n, _: n}
    for name, value in {**exact, **solver}.items():
        monkeypatch.setattr(selection, name, value)
    X, y = rows(120, n_classes)
    X, shares = StandardScaler().fit_transform(X), np.random.RandomState(1).uniform(0.5, 2, len(y))
    search = search_of(X, y, shares, 3)
    results = next(iter(search.rounds(0))).results
    for result in [results[0], results[5], results[-6], results[-1]]:
        decisions, classes, weights = [], [], []
        for train, valid in search.folds:
            gamma = result["width"] * gamma_of("scale", X[train], shares[train])
            model = DualCDKLR(result["lam"], kernel=result["kernel"], gamma=gamma, tol=1e-9)
            model.fit(X[train], y[train], shares[train])
            decisions.append(model.decision_function(X[valid]))
            classes.append(y[valid])
            weights.append(shares[valid])
        f, classes, weights = map(np.concatenate, (decisions, classes, weights))
        if n_classes == 2:
            expected = log_loss(classes, expit(f), sample_weight=weights)
        else:
            expected = min(
                log_loss(classes, softmax(f / t, axis=1), sample_weight=weights) for t in 2 ** np.arange(0, 2.1, 0.25)
            )
        assert result["mean_log_loss"] == pytest.approx(expected, rel=1e-4)


def test_shapes_are_left_out_of_further_folds_if_their_loss_is_larger_by_more_than_a_standard_error():
    X, y = rows(60)
    search = search_of(X, y, np.ones(60), 2)
    labels, noise = np.where(y == 1, 1.0, -1.0), np.random.RandomState(0).standard_normal((3, 60))

    def path(scale, noise):
        return grid.Path([(scale * labels + noise)[:, None]], None, None, None, None, [])

    of_shapes = grid.Grid((1, 2, 3), selection.LAMS, [[*map(path, (2.0, 2.0, 0.5), noise)]], y, np.ones(60))
    np.testing.assert_array_equal(of_shapes.unbeaten(1.0), [0, 1])
    shapes = grid.shapes_of("rbf") + grid.shapes_of("laplacian", (0.1, 1.0))
    counts = dict.fromkeys(shapes, 0)

    def counted(train, valid, weights, shape, lams):
        counts[shape] += 1
        return grid.Path([(min(shape.width, 1.0) * labels)[valid][:, None]], None, None, None, None, [])

    search._path = counted
    search.grid(search.folds, [None, None], shapes, selection.LAMS)
    assert [*counts.values()] == [1, 1, 1, 2, 2, 1, 2]
    search.grid(search.folds, [None, None], shapes, selection.LAMS, last=shapes[0])
    assert [*counts.values()] == [3, 2, 2, 4, 4, 2, 4]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_a_feature_whose_deviation_is_too_small_for_float64_counts_as_constant(layout):
    X, y = rows(60)
    with_tiny = np.column_stack([X, np.where(np.arange(60) == 5, np.nextafter(0, 1), 0.0)])
    expected, model = (KLR(max_rounds=1, random_state=0).fit(layout(Z), y) for Z in (X, with_tiny))
    assert (model.scale_[-1], model.feature_weights_[-1]) == (1, 0)
    np.testing.assert_array_equal(model.decision_function(layout(with_tiny)), expected.decision_function(layout(X)))


def test_probabilities_of_three_classes_are_a_softmax_at_the_temperature(monkeypatch):
    monkeypatch.setattr(selection, "LAMS", (1e-6,))  # too small a penalty, which a temperature above 1 corrects
    X, y = rows(120, 3)
    y[::5] = np.random.RandomState(0).randint(3, size=len(y[::5]))
    model = KLR(max_rounds=0, random_state=0).fit(X, y)
    assert 1 < model.temperature_ <= 4
    f = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X), softmax(f / model.temperature_, axis=1))
    np.testing.assert_array_equal(model.predict(X), f.argmax(axis=1))


def test_all_training_rows_are_used_only_next_to_the_best_point_of_few(monkeypatch):
    X, y = rows(120)
    X = StandardScaler().fit_transform(X)
    monkeypatch.setattr(selection, "COARSE", 30)
    monkeypatch.setattr(selection, "BEATEN", (1e9, 1e9))
    search = search_of(X, y, np.ones(120), 3)
    results = next(iter(search.rounds(0))).results
    search.folds = search._few(30)
    np.testing.assert_array_equal(np.bincount(y[search.folds[0][0]]), [15, 15])
    few = next(iter(search.rounds(0)))
    kernels, widths, lams = ({result[name] for result in results} for name in ("kernel", "width", "lam"))
    i, j = grid.WIDTHS.index(few.shape.width), selection.LAMS.index(few.lam)
    assert kernels == {few.shape.kernel}
    assert widths == set(grid.WIDTHS[max(i - 1, 0) : i + 2])
    assert lams <= set(selection.LAMS[max(j - 1, 0) : j + 2])


def test_rounds_of_a_single_split_use_two_thirds_of_its_training_rows(monkeypatch):
    monkeypatch.setattr(selection, "COARSE", 30)
    X, y = rows(120)
    search, path, sizes = (
        search_of(X, y, np.ones(120), ShuffleSplit(1, train_size=90, random_state=0)),
        Search._path,
        [],
    )

    def recorded(train, *others):
        sizes.append(len(train))
        return path(search, train, *others)

    search._path = recorded
    list(search.rounds(1))
    assert set(sizes) == {30, 60}


@pytest.mark.parametrize("kernel", selection.KERNELS)
@pytest.mark.parametrize("most_left", [-1.0, 1.0])
def test_mean_squared_slopes_are_those_of_differences(most_left, kernel, monkeypatch):
    monkeypatch.setattr(selection, "LEFT", 0.05)
    monkeypatch.setattr(selection, "MOST_LEFT", most_left)
    X, y = rows(60)
    X = StandardScaler().fit_transform(X)
    search = search_of(X, y, np.ones(60), 2)
    train, valid = search.folds[0]
    weights = np.linspace(0.5, 1.5, 8)
    path = search._path(train, valid, weights, grid.Shape(kernel, 0.1), selection.LAMS)
    rows_of_path, step, expected = X[train] * weights, 1e-5, []

    def f(Z):
        return reference.kernel_matrix(Z, path.centers, kernel, path.operands.kernel.gamma) @ path.coefs[1][0]

    assert (len(path.centers) == len(train)) == (most_left < 0)
    for e in np.eye(8) * step:
        expected.append(np.mean(((f(rows_of_path + e) - f(rows_of_path - e)) / (2 * step)) ** 2))
    np.testing.assert_allclose(path.mean_squared_slopes(1), expected, rtol=1e-6)


@pytest.mark.parametrize("n_classes", usually([2, 3], [2]))
def test_learned_weights_find_the_features_and_lower_the_loss(n_classes):
    X, y = rows(600, n_classes)
    learned, equal = (KLR(max_rounds=r, random_state=0).fit(X[:400], y[:400]) for r in (4, 0))
    assert set(np.argsort(learned.feature_weights_)[-2:]) == {0, 1}
    np.testing.assert_array_equal(equal.feature_weights_, 1)
    losses = [log_loss(y[400:], model.predict_proba(X[400:])) for model in (learned, equal)]
    assert losses[0] < 0.9 * losses[1]
    assert learned.best_params_["rounds"] > 0
    kept = learned.cv_results_["rounds"] == learned.best_params_["rounds"]
    assert learned.best_score_ == -learned.cv_results_["mean_log_loss"][kept].min()


def test_the_final_model_is_a_fit_to_the_weighted_features():
    X, y = rows()
    labels = np.array(["no", "yes"])[y]
    model = KLR(random_state=3, n_jobs=1).fit(X, labels)
    Z = StandardScaler().fit(X).transform(X) * model.feature_weights_
    chosen = {name: model.best_params_[name] for name in ("lam", "kernel", "gamma")}
    by_hand = DualCDKLR(**chosen, tol=1e-8).fit(Z, labels)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(Z), atol=2e-2)
    other = KLR(random_state=3, n_jobs=3).fit(X, labels)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))


def test_max_support_limits_the_support_vectors():
    X, y = rows()
    for layout in (np.asarray, sp.csr_matrix):
        model = KLR(20, random_state=0).fit(layout(X), y)
        assert isinstance(model.model_, NystroemKLR)
        assert model.n_support_ == model.model_.support_vectors_.shape[0] == 20
        assert model.score(X, y) > 0.7


@pytest.mark.parametrize("kernel", selection.KERNELS)
def test_slopes_of_wide_sparse_rows_are_those_of_dense_ones(kernel):
    random = np.random.RandomState(0)
    X = sp.random(20, 30, density=0.3, format="csr", random_state=random)
    coefs, shares, kernel = random.standard_normal((2, 8)), random.dirichlet(np.ones(20)), Kernel(kernel, 0.3)
    sparse, dense = (
        slopes.mean_squared_slopes(selection.operands_for(kernel, X), X, X[3:11], coefs, shares)
        for X in (X, X.toarray())
    )
    np.testing.assert_allclose(sparse, dense, rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_moved_support_vectors_are_those_that_predict(n_classes, monkeypatch):
    monkeypatch.setattr(approximation, "N_STEPS", 50)
    X, y = rows(100, n_classes)
    model = KLR(20, max_rounds=0, cv=2, random_state=0).fit(X, y, np.linspace(0.5, 2, 100))
    Z, support = model._scaling.transform(X, np.float64), model.model_.support_vectors_
    assert not (Z[:, None] == support).all(axis=2).any()
    squares = ((Z[:, None] - support) ** 2).sum(axis=2)
    expected = np.exp(-model.best_params_["gamma"] * squares) @ model.model_.dual_coef_.T
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-8, atol=1e-8)


def test_steps_of_support_vectors_end_before_a_deadline_with_the_shortest_ones(monkeypatch):
    now, random = [0.0], np.random.RandomState(0)
    X, coef, moves = random.standard_normal((50, 2)), np.ones((1, 5)), []

    def slow(X, targets, shares, z, a, gamma):
        now[0] += 1.0
        moves.append(z)
        return np.ones_like(z), np.zeros_like(a), 0.0

    monkeypatch.setattr(approximation, "slopes", slow)
    monkeypatch.setattr(approximation, "time", SimpleNamespace(monotonic=lambda: now[0]))
    approximation.approximate(np.zeros((50, 1)), X, None, X[:5], coef, 2.0, random, deadline=20.0)
    lengths = np.abs(np.diff(moves[::2], axis=0)).max(axis=(1, 2))
    assert len(moves) == 20
    assert lengths[-1] < 0.3 * lengths[0]


def test_moved_support_vectors_approximate_probabilities(monkeypatch):
    monkeypatch.setattr(approximation, "N_STEPS", 1000)
    random = np.random.RandomState(0)
    X = random.standard_normal((400, 2))
    K = approximation.kernel_values(X, X, 2.0)[0]
    f = K[:, :40] @ random.uniform(-4, 4, (40, 2))
    coef = np.linalg.lstsq(K[:, :12], f)[0].T
    start = K[:, :12] @ coef.T
    support, coef, gamma = approximation.approximate(f, X, None, X[:12], coef, 2.0, random)
    moved = approximation.kernel_values(X, support, gamma)[0] @ coef.T
    errors = [np.abs(softmax(g, axis=1) - softmax(f, axis=1)).mean() for g in (moved, start)]
    assert errors[0] < 0.3 * errors[1]


@pytest.mark.parametrize("m", [1, 3])
def test_slopes_of_the_approximation_are_those_of_differences(m):
    random = np.random.RandomState(0)
    X, z, a = (random.standard_normal(shape) for shape in ((7, 3), (4, 3), (m, 4)))
    targets, shares = random.dirichlet(np.ones(max(m, 2)), 7)[:, :m], random.uniform(0.5, 2, 7)

    def cross_entropy(x):
        z, a, gamma = x[:12].reshape(4, 3), x[12:-1].reshape(m, 4), np.exp(x[-1])
        total = 0.0
        for i in range(7):
            g = [sum(a[k, j] * np.exp(-gamma * np.sum((X[i] - z[j]) ** 2)) for j in range(4)) for k in range(m)]
            normalizer = np.log(np.sum(np.exp(g)) + (m == 1))
            total += shares[i] * (normalizer - np.sum(targets[i] * g))
        return total

    x, step = np.concatenate([z, a, np.log(0.3)], axis=None), 1e-5
    differences = [(cross_entropy(x + e) - cross_entropy(x - e)) / (2 * step) for e in step * np.eye(len(x))]
    slopes = np.concatenate(approximation.slopes(X, targets, shares, z, a, 0.3), axis=None)
    np.testing.assert_allclose(slopes, differences, rtol=1e-6, atol=1e-9)


def test_a_warm_start_tries_the_neighbors_of_the_last_result_with_its_weights():
    X, y = rows(600)
    model = KLR(max_rounds=2, random_state=0, warm_start=True).fit(X[:400], y[:400])
    cold = KLR(max_rounds=2, random_state=0).fit(X[:400], y[:400])
    np.testing.assert_array_equal(model.decision_function(X), cold.decision_function(X))
    weights, before = model.feature_weights_, model.cv_results_
    best = np.flatnonzero(before["mean_log_loss"] == -model.best_score_)[0]
    model.set_params(max_rounds=0).fit(X, y)
    tried = model.cv_results_
    np.testing.assert_allclose(model.feature_weights_, weights, rtol=1e-12)
    assert {*tried["kernel"]} == {before["kernel"][best]}
    for name, values in (("width", grid.WIDTHS), ("lam", selection.LAMS)):
        assert {*tried[name]} <= {*selection.neighbors(values, before[name][best])}
    learned, equal = KLR(random_state=0).fit(X, y), KLR(max_rounds=0, random_state=0).fit(X, y)
    assert model.best_score_ > (learned.best_score_ + equal.best_score_) / 2


@pytest.mark.parametrize("changed", ["features", "kernel", "constant"])
def test_a_warm_start_takes_nothing_that_does_not_fit(changed):
    X, y = rows(200)
    model = KLR(max_rounds=1, random_state=0, warm_start=True)
    if changed == "features":
        model.fit(X[:, 1:], y)
    elif changed == "kernel":
        model.fit(X, y).set_params(max_support=20).cv_results_["kernel"][:] = "laplacian"
    else:
        model.fit(np.where(np.arange(X.shape[1]) == 0, 1.0, X), y)
        assert model.feature_weights_[0] == 0 < model.fit(X, y).feature_weights_[0]
        return
    cold = KLR(model.max_support, max_rounds=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).decision_function(X), cold.decision_function(X))


def test_a_time_limit_ends_the_search_and_progress_is_printed(capsys):
    X, y = rows()
    model = KLR(time_limit=1e-6, verbose=True, random_state=0).fit(X, y)
    assert model.best_params_["rounds"] == 0
    assert capsys.readouterr().out.count("validation log loss") == 1


@pytest.mark.parametrize(("n", "cv"), [(120, 3), (1500, None)])
def test_a_time_limit_holds_in_the_first_round(n, cv, now):
    X, y = rows(n)
    model = KLR(cv=cv, time_limit=0.3, n_jobs=1, random_state=0).fit(X, y)
    assert now[0] == pytest.approx(0.2)  # after the first two fits
    assert model.best_params_["rounds"] == 0
    assert model.decision_function(X).shape == (n,)


@pytest.mark.parametrize(("deadline", "most"), [(1.0, 30), (2e4, 30), (3e4, 39), (5e4, 60), (2e5, 80)])
def test_fits_begin_only_if_they_are_expected_to_end_before_the_deadline(deadline, most, monkeypatch):
    monkeypatch.setattr(selection, "COARSE", 30)
    monkeypatch.setattr(selection, "ROUND_ROWS", 60)
    X, y = rows(120)
    search, path, now, sizes = search_of(StandardScaler().fit_transform(X), y, np.ones(120), 3), Search._path, [0.0], []

    def slow(train, *others):
        sizes.append(len(train))
        now[0] += len(train) ** 2
        return path(search, train, *others)

    monkeypatch.setattr(selection, "time", SimpleNamespace(monotonic=lambda: now[0]))
    search._path, search.deadline = slow, deadline
    rounds = list(search.rounds(2))
    search.with_all_rows(rounds[-1])
    assert now[0] <= deadline or len(sizes) == 1  # the first fit tells nothing about the time
    assert max(sizes) == most


def test_losses_near_the_deadline_are_those_of_the_folds_that_are_finished(monkeypatch):
    X, y = rows(130)
    parts = np.split(np.arange(130), [40, 60, 70])
    folds = [(np.setdiff1d(np.arange(130), valid), valid) for valid in parts]
    search = Search(StandardScaler().fit_transform(X), y, np.where(y == 1, 1.0, -1.0)[None], np.ones(130), folds)
    path, weights = search._path, [np.ones(8)] * 4
    shapes, lams = grid.shapes_of("rbf", (0.3,)), (1e-2,)
    monkeypatch.setattr(search, "_path_in_time", lambda item: None if len(item[1]) == 20 else path(*item))
    late = search.grid(folds, weights, shapes, lams)
    np.testing.assert_array_equal(late.losses, Search.grid(search, folds[:1], weights[:1], shapes, lams).losses)


def test_a_late_search_takes_the_result_of_few_rows_if_it_is_better(monkeypatch):
    monkeypatch.setattr(selection, "COARSE", 30)
    X, y = rows(120)
    search, labels, sizes = search_of(X, y, np.ones(120), 3), np.where(y == 1, 1.0, -1.0), []

    def path(train, valid, weights, shape, lams):
        sizes.append(len(train))
        scale = 2.0 if len(train) == 30 else 0.1
        return grid.Path([(scale * labels)[valid][:, None]], None, None, None, None, [])

    search._path, search.is_late = path, lambda: max(sizes, default=0) > 30
    assert next(search.rounds(1)).loss == pytest.approx(np.log1p(np.exp(-2.0)))
    assert max(sizes) == 80


def test_a_callback_sees_the_rounds_and_the_final_fit_and_can_end_them():
    X, y = rows(100)
    calls = []
    model = KLR(max_rounds=1, cv=2, random_state=0).fit(X, y, callback=lambda _, t: calls.append(t))
    assert calls[:2] == [0, 0]
    assert calls[2:] == [100 * (i + 1) for i in range(model.model_.n_iter_)]
    np.testing.assert_array_equal(
        model.decision_function(X), KLR(max_rounds=1, cv=2, random_state=0).fit(X, y).decision_function(X)
    )
    stopped = KLR(cv=2, random_state=0).fit(X, y, callback=lambda *_: True)
    assert stopped.best_params_["rounds"] == 0
    assert stopped.model_.n_iter_ == 1
    assert stopped.score(X, y) > 0.5


def test_a_callback_that_ends_the_fit_leaves_the_support_vectors_where_they_are(monkeypatch):
    monkeypatch.setattr(klr, "move_support", None)  # not called
    X, y = rows(100)
    model = KLR(10, max_rounds=0, cv=2, random_state=0).fit(X, y, callback=lambda _, t: t > 0)
    assert model.n_support_ <= 10
    with pytest.raises(TypeError, match="not callable"):
        KLR(10, max_rounds=0, cv=2, random_state=0).fit(X, y, callback=lambda _, t: t < 0)


def test_the_last_round_has_a_limited_number_of_training_rows(monkeypatch):
    monkeypatch.setattr(selection, "ROUND_ROWS", 30)
    monkeypatch.setattr(selection, "MOST_TRAINING", 50)
    X, y = rows(120)
    search, sizes = search_of(StandardScaler().fit_transform(X), y, np.ones(120), 3), []
    path = search._path
    search._path = lambda train, *others: sizes.append(len(train)) or path(train, *others)
    search.with_all_rows(next(search.rounds(0)))
    assert {*sizes} == {30, 50}


@pytest.mark.parametrize("n_classes", usually([2, 3], [2]))
def test_a_fit_to_sparse_rows_is_that_of_dense_ones(n_classes, monkeypatch):
    X, y = rows(200, n_classes)
    X = np.hstack([X + np.arange(8), np.eye(4)[np.arange(200) % 4]]) * (
        np.random.RandomState(0).uniform(size=(200, 12)) < 0.7
    )
    monkeypatch.setattr(dual, "SKIPPED", 0.0)  # otherwise rounding decides whether a step is skipped,
    monkeypatch.setattr(selection, "GAP", 1e-8)  # and after which epoch a fit ends
    dense = KLR(max_rounds=2, random_state=0).fit(X, y)
    monkeypatch.setattr(slopes, "SLOPE_VALUES", 12 * 30)
    monkeypatch.setattr(slopes, "WIDE", 0)
    sparse = KLR(max_rounds=2, random_state=0).fit(sp.csr_matrix(X), y)
    assert sp.issparse(sparse.model_.support_vectors_)
    np.testing.assert_allclose(sparse.scale_, dense.scale_, rtol=1e-12)
    np.testing.assert_allclose(sparse.feature_weights_, dense.feature_weights_, rtol=1e-6)
    assert sparse.best_params_.pop("kernel") == dense.best_params_.pop("kernel")
    assert sparse.best_params_ == pytest.approx(dense.best_params_, rel=1e-6)
    np.testing.assert_allclose(sparse.best_score_, dense.best_score_, rtol=1e-6)
    for layout in (np.asarray, sp.csr_matrix):
        expected = dense.decision_function(layout(X))
        np.testing.assert_allclose(sparse.decision_function(layout(X)), expected, rtol=1e-5, atol=1e-6)


def test_wide_sparse_rows_stay_sparse(monkeypatch):
    monkeypatch.setattr(slopes, "in_layout", None)  # not called, because no row is made dense
    y = np.arange(60) % 2
    noise = sp.random(60, 400_000, density=1e-4, format="csr", random_state=0)
    X = sp.hstack([sp.csr_matrix(y[:, None]), noise], format="csr")
    tracemalloc.start()
    model = KLR(max_rounds=1, cv=2, random_state=0).fit(X, y)
    assert tracemalloc.get_traced_memory()[1] < 100e6  # dense rows take 192 MB
    tracemalloc.stop()
    assert np.argmax(model.feature_weights_) == 0


def test_a_class_with_one_row_is_refused():
    X, y = rows()
    y[0] = 7
    with pytest.raises(ValueError, match=r"KLR needs at least two rows of each class, got one of class 7"):
        KLR().fit(X, y)

"""PartitionedKLR: compared with a slow fit of each leaf, and properties of partitions, orders and predictions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.preprocessing import StandardScaler

from klr_bench import DualCDKLR, PartitionedKLR
from klr_bench.estimators.batch import approximation, leaf_models, partitioned
from klr_bench.estimators.batch import leaf as leaf_module
from klr_bench.estimators.batch import partition as partition_module
from klr_bench.estimators.batch.partition import POWER_STEPS, divided, hashed, shuffled
from klr_bench.estimators.core.kernels import Kernel

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("short_search"),
]
VALUES = {
    "numbers": lambda random, shape: random.standard_normal(shape),
    "ties": lambda random, shape: random.integers(-2, 3, size=shape) * (random.random(shape) < 0.6),
    "a constant": lambda random, shape: np.hstack(
        [random.standard_normal((shape[0], shape[1])), np.ones((shape[0], 1))]
    ),
}
FEW = {"max_rounds": 0, "cv": 2, "random_state": 0}
"""Settings with which a fit is short."""


@st.composite
def samples(draw, most_classes=4):
    """Draw rows X (n, d), exact in float32, and class numbers y (n,) of at least 15 rows each."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, k = draw(st.integers(60, 100)), draw(st.integers(1, 5)), draw(st.integers(2, most_classes))
    X = VALUES[draw(st.sampled_from(sorted(VALUES)))](random, (n, d)).astype(np.float32)
    X[0, :d] += 1  # no drawn feature is constant
    X = X.astype(np.float64)
    score = np.sin(X @ random.standard_normal(X.shape[1])) + 0.3 * random.standard_normal(n)
    return X, np.argsort(np.argsort(score)) * k // n


def small(**parameters):
    return PartitionedKLR(**{"leaf_size": 30, **FEW, **parameters})


def leaf_of(partition, z):
    """Return the number of the leaf of one row z (d,)."""
    node = 0 if len(partition.children) else -1
    while node >= 0:
        value = sum(float(u) * float(v) for u, v in zip(z, partition.directions[node], strict=True))
        node = partition.children[node][0 if value <= partition.thresholds[node] else 1]
    return -1 - node


def slow_probabilities(model, X, y, weights):
    """Return the probabilities at the rows of X of a model fitted to them: each leaf in float64, to a small gap."""
    Z = ((X - model.mean_) / model.scale_ * model.feature_weights_).astype(np.float32)
    k, weights = len(model.classes_), weights / weights.mean()
    total = np.zeros((len(y), k))
    for partition in model.model_.partitions:
        leaves = np.array([leaf_of(partition, z[model._scaling.columns]) for z in Z])
        for leaf in np.unique(leaves):
            part = leaves == leaf
            n, present = weights[part].sum(), np.unique(y[part])
            f = np.full((part.sum(), k), -model.temperature_ * np.log1p(n))
            if len(present) == 1:
                f[:, present] = np.log1p(n) if k == 2 else 0
            else:
                lam = model.best_params_["lam"] * len(y) / len(set(leaves)) / n
                chosen = {name: model.best_params_[name] for name in ("kernel", "gamma")}
                learner = DualCDKLR(lam, **chosen, tol=1e-5, dtype="float64")
                values = learner.fit(Z[part], y[part], weights[part]).decision_function(Z[part])
                f[:, present] = values if len(present) > 2 else np.column_stack([-values, values])
            P = softmax(f / model.temperature_, axis=1) if k > 2 else np.column_stack([expit(-f[:, 1]), expit(f[:, 1])])
            total[part] += P / len(model.model_.partitions)
    return total


@settings(max_examples=2)
@given(sample=samples(3), seed=st.integers(0, 99))
def test_probabilities_are_those_of_a_slow_fit_of_each_leaf(sample, seed):
    X, y = sample
    weights = np.random.default_rng(seed).uniform(0.5, 2, len(y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaf_module, "TOL", 1e-5)
        model = small(n_partitions=3, max_rounds=1, random_state=seed).fit(X, y, weights)
    assert len(model.model_.leaves[0]) >= 2
    inside = np.clip(X, *model.limits_)
    np.testing.assert_allclose(model.predict_proba(X), slow_probabilities(model, inside, y, weights), atol=3e-3)


@pytest.mark.parametrize("sample_rows", [1000, 20])
@settings(max_examples=5)
@given(sample=samples(), leaf_size=st.integers(1, 60), n_steps=st.sampled_from([0, POWER_STEPS]))
def test_a_partition_divides_all_rows(sample_rows, sample, leaf_size, n_steps):
    X, _ = sample
    X = X[np.random.default_rng(0).permutation(len(X))].astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_module, "SAMPLE_ROWS", sample_rows)
        patch.setattr(partition_module, "LEAST_SAMPLE", 5)
        partition, leaves = divided(X, np.arange(len(X)), leaf_size, n_steps, np.random.RandomState(0))
    assert len(leaves) == len(partition.children) + 1
    np.testing.assert_array_equal(np.sort(np.concatenate(leaves)), np.arange(len(X)))
    for layout in (np.asarray, sp.csr_matrix):
        for number, rows in partition.leaves(layout(X)):
            np.testing.assert_array_equal(np.sort(leaves[number]), rows)
    assert [leaf_of(partition, x) for x in X[:10]] == [
        next(i for i, rows in enumerate(leaves) if row in rows) for row in range(10)
    ]
    for rows in leaves:
        assert (np.diff(rows) > 0).all()
        assert len(rows) <= leaf_size or len(np.unique(X[rows], axis=0)) == 1
    _, groups = np.unique(X, axis=0, return_inverse=True)
    for group in range(groups.max() + 1):
        assert sum(np.isin(rows, np.flatnonzero(groups.ravel() == group)).any() for rows in leaves) == 1


def test_the_parts_of_rows_without_ties_are_halves():
    X = np.random.default_rng(0).standard_normal((101, 3)).astype(np.float32)
    _, leaves = divided(X, np.arange(101), 26, 0, np.random.RandomState(0))
    assert sorted(map(len, leaves)) == [25, 25, 25, 26]


def test_a_level_may_have_fewer_nodes_than_the_one_above():
    X = np.concatenate([np.repeat([1.0, 2.0, 4.0], 20), np.linspace(3, 3.1, 20)])[:, None]
    for rows in (X, X[::-1].copy()):
        _, leaves = divided(sp.csr_matrix(rows), np.arange(80), 5, 0, np.random.RandomState(0))
        assert sorted(map(len, leaves)) == [5, 5, 5, 5, 20, 20, 20]


def test_parts_of_a_sample_are_divided_further(monkeypatch):
    monkeypatch.setattr(partition_module, "SAMPLE_ROWS", 1000)
    X = np.random.default_rng(0).standard_normal((20_000, 3)).astype(np.float32)
    partition, leaves = divided(X, np.arange(20_000), 400, 0, np.random.RandomState(0))
    assert len(leaves) == len(partition.children) + 1
    assert 50 <= len(leaves) <= 110  # medians of a sample divide all rows less evenly
    for number, rows in partition.leaves(X):
        np.testing.assert_array_equal(np.sort(leaves[number]), rows)


def test_principal_directions_are_those_of_the_largest_variance():
    X = np.random.default_rng(0).standard_normal((400, 3)) @ np.diag([1.0, 3.0, 1.0]) + 7
    partition, _ = divided(X.astype(np.float32), np.arange(400), 200, POWER_STEPS, np.random.RandomState(0))
    assert abs(partition.directions[0, 1]) > 0.99
    drawn = [divided(X, np.arange(400), 200, 0, np.random.RandomState(seed))[0].directions[0] for seed in range(200)]
    expected = np.random.default_rng(0).standard_normal((10_000, 3)) * [1, 3, 1]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(np.mean(np.square(drawn), axis=0), np.mean(expected**2, axis=0), atol=0.06)


@settings(max_examples=10)
@given(sample=samples(), seed=st.integers(0, 99))
def test_hashes_and_orders_depend_on_content_alone(sample, seed):
    X, y = sample
    hashes = hashed(X, y)
    for rows in (X.astype(np.float32), sp.csr_matrix(X), np.where(X == 0, -0.0, X)):
        np.testing.assert_array_equal(hashed(rows, y), hashes)
    distinct = np.unique(np.column_stack([X, y]), axis=0)
    assert len(np.unique(hashes)) == len(distinct)
    weights, moved = np.arange(len(y)) % 3 + 1.0, np.random.default_rng(seed).permutation(len(y))
    order, other = shuffled(hashes, weights, seed), shuffled(hashes[moved], weights[moved], seed)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(y)))
    rows = np.column_stack([X, y, weights])
    np.testing.assert_array_equal(rows[moved][other], rows[order])


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@settings(max_examples=2)
@given(sample=samples(), seed=st.integers(0, 99))
def test_a_row_is_predicted_alone_as_with_others_and_their_order_changes_nothing(layout, sample, seed):
    X, y = sample
    moved = np.random.default_rng(seed).permutation(len(y))
    model = small().fit(layout(X), y)
    f, P = model.decision_function(layout(X)), model.predict_proba(layout(X))
    for i in range(0, len(y), 7):
        np.testing.assert_array_equal(model.decision_function(layout(X[[i]]))[0], f[i])
        np.testing.assert_array_equal(model.predict_proba(layout(X[i : i + 3])), P[i : i + 3])
    np.testing.assert_array_equal(small().fit(layout(X[moved]), y[moved]).decision_function(layout(X)), f)
    np.testing.assert_array_equal(np.argmax(P, axis=1), model.predict(X))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_the_order_of_weighted_rows_changes_nothing(class_weight):
    random = np.random.default_rng(0)
    X, weights = random.standard_normal((120, 2)), random.uniform(0.5, 2, 120)
    y = (X[:, 0] + 0.3 * random.standard_normal(120) > 0).astype(int)
    f = small(class_weight=class_weight).fit(X, y, weights).decision_function(X)
    for seed in range(4):
        moved = np.random.default_rng(seed).permutation(120)
        other = small(class_weight=class_weight).fit(X[moved], y[moved], weights[moved])
        np.testing.assert_array_equal(other.decision_function(X), f)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_a_row_is_predicted_alone_as_with_others_by_leaves_of_several_classes(layout):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((300, 6)), random.integers(3, size=300)
    X[np.abs(X) < 0.8] = 0
    model = small(leaf_size=150).fit(layout(X), y)
    f = model.decision_function(layout(X))
    for i in range(20):  # without rows of padding, BLAS rounds most of them differently
        np.testing.assert_array_equal(model.decision_function(layout(X[[i]]))[0], f[i])


def test_threads_and_the_order_of_the_fits_change_nothing(monkeypatch):
    X, y = np.random.default_rng(0).standard_normal((150, 3)), np.arange(150) % 3
    f = small(n_jobs=1).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(small(n_jobs=3).fit(X, y).decision_function(X), f)
    monkeypatch.setattr(leaf_module, "parallel_map", lambda fit, jobs: [fit(job) for job in reversed(jobs)][::-1])
    np.testing.assert_array_equal(small().fit(X, y).decision_function(X), f)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_leaf_of_one_class_is_constant(n_classes):
    X = np.repeat(np.arange(n_classes), 40)[:, None] * 100.0 + np.linspace(0, 1, 40 * n_classes)[:, None]
    y = np.repeat(np.arange(n_classes), 40)
    model = small(leaf_size=20, n_partitions=1).fit(X, y, np.full(len(y), 3.0))
    assert {len(leaf.classes) for leaf in model.model_.leaves[0]} == {1}
    odds = np.array([len(rows) for _, rows in model.model_.partitions[0].leaves(model._rows(X))]) + 1
    P = np.unique(np.round(model.predict_proba(X).max(axis=1), 12))
    np.testing.assert_allclose(P, np.unique(odds / (odds + n_classes - 1)), rtol=1e-9)
    assert model.score(X, y) == 1


def test_classes_without_rows_in_a_leaf_have_a_probability_that_does_not_depend_on_the_temperature():
    one, weights, view = np.ones((8, 1)), np.full(8, 3.0), partition_module.WeightedRows(None, None, np.ones(1), "f8")
    for temperature in (1.0, 2.0, 4.0):
        leaf = leaf_module.fit_leaf(
            view, np.zeros(8, dtype=int), weights, 0.1, Kernel("rbf", 1.0), temperature, None, 0, one
        )
        P = softmax(leaf.decision_function(one[:1], 3) / temperature)
        np.testing.assert_allclose(P[0, 1:] / P[0, 0], 1 / (1 + weights.sum()))


def test_copies_stay_together_when_settings_are_adapted_in_leaves():
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 2)).repeat(5, axis=0)
    y = random.integers(2, size=200).repeat(5)
    part = random.permutation(1000)
    labels = leaf_models.Labels(X, y, None, 0)
    train, valid = leaf_models._fold(partition_module.WeightedRows(X, None, np.ones(2), "f8"), labels, part)
    assert sorted([*train, *valid]) == [*range(1000)]
    assert not {*train // 5} & {*valid // 5}
    assert len(valid) == 200
    np.testing.assert_array_equal(train, part[np.isin(part, train)])


def test_more_equal_rows_than_a_leaf_has_are_one_row_with_a_weight():
    random = np.random.default_rng(0)
    X = random.integers(2, size=(800, 2)).astype(float)
    y = (random.random(800) < 0.2 + 0.6 * X[:, 0]).astype(int)
    model = small(leaf_size=100).fit(X, y)
    assert max(len(leaf.coef) for leaf in model.model_.leaves[0]) == 2
    for row in ([0, 0], [0, 1], [1, 0], [1, 1]):
        share = y[(row == X).all(axis=1)].mean()
        assert model.predict_proba([row])[0, 1] == pytest.approx(share, abs=0.07)


@pytest.mark.parametrize(("layout", "n_classes"), [(np.asarray, 3), (sp.csr_matrix, 2)])
def test_max_support_limits_the_support_vectors_of_a_leaf(n_classes, layout, monkeypatch):
    monkeypatch.setattr(approximation, "N_STEPS", 100)
    random = np.random.default_rng(0)
    X = random.standard_normal((240, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5][: n_classes - 1])
    model = small(leaf_size=60, max_support=8).fit(layout(X), y)
    assert {leaf.support.shape[0] for leaf in model.model_.leaves[0] if len(leaf.classes) > 1} == {8}
    assert model.score(layout(X), y) > 0.85


def test_rows_that_fit_into_one_leaf_have_one_model(monkeypatch):
    monkeypatch.setattr(leaf_module, "TOL", 1e-6)
    X, y = np.random.default_rng(0).standard_normal((80, 3)), np.arange(80) % 2
    model = small(leaf_size=80, n_partitions=3).fit(X, y)
    assert list(map(len, model.model_.leaves)) == [1]
    Z = StandardScaler().fit_transform(X) * model.feature_weights_
    alone = DualCDKLR(**{name: model.best_params_[name] for name in ("lam", "kernel", "gamma")}, tol=1e-8).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(Z), atol=1e-3)


def test_settings_come_from_some_rows_and_are_adapted_in_leaves(monkeypatch, capsys):
    monkeypatch.setattr(partitioned, "SEARCH_ROWS", 60)
    X = np.random.default_rng(0).uniform(-1, 1, (1000, 1))
    y = (np.sin(30 * X[:, 0]) > 0).astype(int)
    model = small(leaf_size=500, verbose=True).fit(X, y)
    assert "[PartitionedKLR] 2 leaves: validation log loss" in capsys.readouterr().out
    in_leaves = model.cv_results_["rounds"] == -1
    assert in_leaves.sum() >= 3
    widths, losses = (model.cv_results_[name][in_leaves] for name in ("width", "mean_log_loss"))
    assert widths[losses.argmin()] > 1  # with more rows a narrower kernel is better
    y[:6] = 2  # of which the first rows of the order have none, or only one
    assert set(small(leaf_size=500).fit(X, y).predict(X)) >= {0, 1}


def test_the_smallest_width_within_a_standard_error_is_chosen():
    losses = np.zeros((3, 2, 100))
    noise = np.tile([-1.0, 1.0], 50)
    losses[0] = 1 + noise  # worse by ten standard errors
    losses[1, 0], losses[1, 1] = 0.3 * noise + 0.02, 0.3 * noise + 0.01
    assert leaf_models._chosen(losses, np.ones(100), 2, 0) == (1, 1)
    losses[1] += 0.05
    assert leaf_models._chosen(losses, np.ones(100), 2, 0) == (2, 0)


def test_rows_of_a_leaf_that_are_equal_once_their_features_are_limited_are_merged():
    random = np.random.default_rng(0)
    X = random.standard_cauchy((300, 1))
    y = (X[:, 0] + random.standard_normal(300) > 0).astype(int)
    model = small(leaf_size=300).fit(X, y)
    ((leaf,),) = model.model_.leaves
    rows = np.unique(np.c_[model._rows(X)[:], y], axis=0)
    assert len(rows) < 290
    assert len(leaf.coef) == len(rows)
    np.testing.assert_array_equal(model.predict_proba([[1e6]]), model.predict_proba([[2e6]]))

"""Synthetic and bundled data sets."""

from collections.abc import Callable
from inspect import isfunction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from klr_bench.datasets import bundled, synthetic
from klr_bench.datasets import deformed as module
from klr_bench.datasets.deformed import deformed
from klr_bench.datasets.readers import Arrays
from tests.datasets.conftest import Patch

N_CLASSES = {"gaussian_mixtures": 3, "sparse_binary": 5}
SETS: dict[str, Callable[[int, int], tuple[Any, Any]]] = {
    "moons": lambda n, seed: synthetic.moons(n, 0.1, seed),
    "checkerboard": lambda n, seed: synthetic.checkerboard(n, 4, 0.1, seed),
    "repeated_points": lambda n, seed: synthetic.repeated_points(n, 6, 10.0, seed),
    "sparse_text": lambda n, seed: synthetic.sparse_text(n, 300, 30, 20, 0.3, seed),
    "factors": lambda n, seed: synthetic.factors(n, 20, 3, 0.3, 0.5, seed),
    "dense_factors": lambda n, seed: synthetic.dense_factors(n, 30, 5, 0.5, 0.3, seed),
    "gaussian_mixtures": lambda n, seed: synthetic.gaussian_mixtures(n, 3, 2, 0.8, seed),
    "two_gaussians": lambda n, seed: synthetic.two_gaussians(n, 20, 4.0, 1.0, seed),
    "correlated_blocks": lambda n, seed: blocks(n, seed=seed)[:2],
    "sparse_binary": lambda n, seed: synthetic.sparse_binary(n, 500, 20, 5, 2, 4, 0.6, seed),
}


def functions_of(module: ModuleType) -> set[str]:
    return {name for name, thing in vars(module).items() if isfunction(thing) and thing.__module__ == module.__name__}


def test_every_set_is_here() -> None:
    assert set(SETS) == functions_of(synthetic)
    assert set(BUNDLED) == functions_of(bundled)


def dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("name", SETS)
@given(n=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_a_set_is_the_same_for_the_same_seed(name: str, n: int, seed: int) -> None:
    (X, y), (again, y_again) = SETS[name](n, seed), SETS[name](n, seed)
    np.testing.assert_array_equal(dense(X), dense(again))
    np.testing.assert_array_equal(y, y_again)
    assert X.shape[0] == len(y) == n
    assert set(y.tolist()) <= set(range(N_CLASSES.get(name, 2)))
    assert np.isfinite(dense(X)).all()
    assert n < 20 or not np.array_equal(dense(X), dense(SETS[name](n, seed ^ 1)[0]))


@pytest.mark.parametrize("name", SETS)
def test_classes_are_balanced_and_in_random_order(name: str) -> None:
    y, k = SETS[name](2000, 0)[1], N_CLASSES.get(name, 2)
    assert np.abs(np.bincount(y) / 2000 - 1 / k).max() < 0.05
    assert abs(np.mean(y[1:] == y[:-1]) - 1 / k) < 0.1


def test_moons_without_noise_lie_on_two_half_circles() -> None:
    X, y = synthetic.moons(200, 0.0, 0)
    center = np.where(y[:, None] == 0, [0.0, 0.0], [1.0, 0.5])
    np.testing.assert_allclose(np.linalg.norm(X - center, axis=1), 1.0)
    assert (np.where(y == 0, X[:, 1], 0.5 - X[:, 1]) >= 0).all()


@given(n_points=st.integers(1, 30), seed=st.integers(0, 2**32 - 1))
def test_repeated_points_have_one_label_each_and_are_orthogonal(n_points: int, seed: int) -> None:
    X, y = synthetic.repeated_points(40 * n_points, n_points, 10.0, seed)
    points, place = np.unique(X, return_inverse=True)
    assert len(points) == n_points, "with 40 draws per point, a point is missed in one of 10^16 sets"
    labels = np.array([np.unique(y[place.ravel() == i]).tolist() for i in range(n_points)])
    assert labels.shape == (n_points, 1)
    assert labels.sum() == n_points // 2
    K = np.exp(-8.0 * (points[:, None] - points) ** 2)
    np.testing.assert_allclose(K, np.eye(n_points), atol=1e-300)


def check_learnable(X: Any, y: Any, learner: Any, least: float) -> None:
    assert learner.fit(X[:800], y[:800]).score(X[800:], y[800:]) > least


def test_sparse_sets_have_the_described_entries_and_are_learnable() -> None:
    X, y = synthetic.sparse_text(1000, 5000, 60, 200, 0.3, 0)
    check_learnable(X, y, KNeighborsClassifier(15), 0.8)
    assert 10 < X.nnz / X.shape[0] < 60
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0)
    X, y = synthetic.factors(1500, 400, 10, 0.13, 0.5, 0)
    check_learnable(X, y, LogisticRegression(), 0.75)
    assert X.nnz / 1500 / 400 == pytest.approx(0.13, abs=0.02)
    assert (X.min(), X.max()) == (0, 1)
    X, y = synthetic.sparse_binary(3000, 7000, 20, 5, 10, 20, 0.6, 0)
    check_learnable(X[:1000], y[:1000], KNeighborsClassifier(15), 0.4)  # a fifth is chance
    assert (np.diff(X.indptr) == 20).all()
    assert (X.data == 1).all()
    assert X.has_canonical_format


def images(n: int = 30) -> Arrays:
    X = np.zeros((n, 12, 12), dtype=np.float32)
    X[:, 3:9, 4:7] = 1.0
    X[::3, 6, 4] = 0.0  # the positive class has a hole
    return Arrays(X.reshape(n, -1), np.where(np.arange(n) % 3, -1, 1).astype(np.int8), ("not 8", "8"), 24)


def test_deformed_images_are_balanced_and_reproducible(monkeypatch: Patch) -> None:
    monkeypatch.setattr(module, "BLOCK", 40)
    made = deformed(images(), n_samples=300, seed=1)
    assert (made.X.shape, made.X.dtype, made.classes) == ((300, 144), np.float32, ("not 8", "8"))
    assert (np.sum(made.y == 1), made.n_train_official) == (150, None)
    assert (made.X.data.min(), made.X.data.max()) == (pytest.approx(8 / 255), 1)
    rows = made.X.toarray()
    assert len(np.unique(rows, axis=0)) > 290
    assert np.mean(rows.reshape(-1, 12, 12)[made.y == 1][:, 6, 4]) < 0.5 < np.mean(rows.reshape(-1, 12, 12)[:, 6, 5])
    np.testing.assert_array_equal(deformed(images(), n_samples=300, seed=1).X.toarray(), rows)
    assert (deformed(images(), n_samples=300, seed=2).X.toarray() != rows).any()


def test_deformed_images_are_moved_along_their_gradients(monkeypatch: Patch) -> None:
    for name in ("SHIFT", "THICKNESS"):
        monkeypatch.setattr(module, name, 0.0)
    base = images()
    still = deformed(base, n_samples=60, seed=0)
    np.testing.assert_array_equal(np.unique(still.X.toarray(), axis=0), np.unique(base.X, axis=0))
    monkeypatch.setattr(module, "SHIFT", 1.0)
    inside = base.X[1].reshape(12, 12) * 0
    inside[5:8, 5] = 1  # no slope there
    bent = deformed(base, n_samples=60, seed=0).X.toarray()[still.y == -1]
    np.testing.assert_array_equal(bent[:, (inside > 0).ravel()], 1.0)
    assert np.std(bent, axis=0).max() > 0.1


def test_two_gaussians_have_the_stated_means_and_deviations() -> None:
    X, y = synthetic.two_gaussians(60_000, 20, 2.0, 1.5, 0)
    np.testing.assert_allclose(X[y == 0].mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), 2.0 / np.sqrt(20), atol=0.05)
    np.testing.assert_allclose(np.cov(X[y == 0].T), 2.25 * np.eye(20), atol=0.1)
    np.testing.assert_allclose(np.cov(X[y == 1].T), np.eye(20), atol=0.1)


def blocks(n: int, **changes: Any) -> tuple[Any, Any, Any]:
    defaults = {"n_features": 400, "n_blocks": 6, "block_size": 3, "correlation": 0.7, "presence": 0.5, "length": 20}
    return synthetic.correlated_blocks(n, **(defaults | {"label_noise": 0.0, "seed": 0} | changes))


def test_correlated_blocks_depend_only_on_the_relevant_features() -> None:
    X, y, relevant = blocks(4000)
    assert (X.shape, len(np.unique(relevant))) == ((4000, 400), 18)
    others = np.setdiff1d(np.arange(400), relevant)
    zipf = 1 / np.arange(1, 383)
    distinct = np.sum(1 - np.exp(-20 * zipf / zipf.sum()))  # each of them is drawn a Poisson number of times
    assert X[:, others].nnz / 4000 == pytest.approx(distinct, rel=0.02)
    assert 0.45 < y.mean() < 0.55
    full = LogisticRegression(C=100, max_iter=1000).fit(X[:3000][:, relevant], y[:3000])
    assert full.score(X[3000:][:, relevant], y[3000:]) > 0.95
    assert LogisticRegression().fit(X[:3000][:, others], y[:3000]).score(X[3000:][:, others], y[3000:]) < 0.57


def test_correlated_blocks_have_the_stated_correlations() -> None:
    X, _, relevant = blocks(20_000, presence=1.0)
    R = np.corrcoef(X[:, relevant].toarray().T)
    np.fill_diagonal(R, 0.0)
    strong = np.abs(R - 0.7) < 0.03
    assert (strong.sum(axis=1) == 2).all(), "with the two others of its block"
    assert np.abs(R[~strong]).max() < 0.03


BUNDLED: dict[str, tuple[tuple[int, int], list[Any], dict[Any, int]]] = {
    "digits": ((1797, 64), ["even", "odd", "even", "odd", "even"], {"even": 891, "odd": 906}),
    "ten_digits": ((1797, 64), [*range(10), 0, 1], {0: 178, 1: 182}),
    "breast_cancer": ((569, 30), ["malignant"], {"malignant": 212, "benign": 357}),
    "wine": ((178, 13), [0], {0: 59, 1: 71, 2: 48}),
    "iris": ((150, 4), ["setosa"], {"setosa": 50, "versicolor": 50, "virginica": 50}),
}


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets(name: str) -> None:
    shape, first, counts = BUNDLED[name]
    X, y = getattr(bundled, name)()
    assert X.shape == shape
    assert y[: len(first)].tolist() == first
    assert {label: (y == label).sum() for label in counts} == counts


def test_dense_factors_have_norm_one_and_are_linearly_separable() -> None:
    X, y = synthetic.dense_factors(6000, 40, 5, 0.5, 0.0, 0)
    assert X.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-5)
    w = np.linalg.lstsq(X, 2 * y - 1, rcond=None)[0]
    assert np.mean((X @ w > 0) == y) > 0.97
    plain = X.T @ (2 * y - 1)
    assert np.mean((X @ plain > 0) == y) < 0.9

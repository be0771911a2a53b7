"""Archetypal analysis: the projection to the simplex, corners that are found, and an objective that never rises."""

import numpy as np
import pytest
from scipy.optimize import minimize

from klr_bench.estimators.prototype.archetypes import archetypes, furthest_sum, on_simplex

TRIANGLE = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])
SQUARE = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])


def inside(corners, n=500, seed=0):
    return np.random.RandomState(seed).dirichlet(np.full(len(corners), 0.5), n) @ corners


def projection(p):
    """Return the nearest point of the simplex by bisection of the threshold."""
    low, high = min(p) - 1, max(p)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(value - middle, 0) for value in p) > 1 else (low, middle)
    return [max(value - high, 0) for value in p]


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_projection_to_the_simplex_equals_the_reference(d, scale):
    P = scale * np.random.RandomState(0).standard_normal((20, d)).round(1)  # with ties
    projected = on_simplex(P)
    np.testing.assert_allclose(projected, [projection(p) for p in P], atol=1e-12 * max(1, scale))
    np.testing.assert_allclose(on_simplex(projected), projected, atol=1e-12)


@pytest.mark.parametrize("corners", [TRIANGLE, SQUARE], ids=["triangle", "square"])
@pytest.mark.parametrize("seed", range(3))
def test_archetypes_are_near_the_corners(corners, seed):
    X = inside(corners)
    Z, objectives = archetypes(X, len(corners), np.random.RandomState(seed))
    distances = np.linalg.norm(Z[:, None] - corners, axis=2)
    assert sorted(distances.argmin(axis=1)) == [*range(len(corners))]
    assert distances.min(axis=1).max() < 0.3
    assert objectives[-1] < 2e-3 * np.square(X - X.mean(axis=0)).sum()


@pytest.mark.parametrize("J", [1, 2, 5, 20])
def test_no_round_raises_the_objective_which_is_that_of_the_archetypes(J):
    X = np.random.RandomState(1).standard_normal((60, 4)).astype(np.float32)
    Z, objectives = archetypes(X, J, np.random.RandomState(0), tol=0.0)
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    assert objectives[-1] < objectives[0]
    best = sum(distance_to_mixtures(x, Z) for x in X.astype(np.float64))
    assert best <= objectives[-1] * (1 + 1e-9) + 1e-6
    assert objectives[-1] <= 1.2 * best
    if J == 1:
        np.testing.assert_allclose(Z[0], X.mean(axis=0), atol=1e-2)


def distance_to_mixtures(x, Z):
    """Return the squared distance of a row to the convex hull of the archetypes."""
    J = len(Z)
    options = {"method": "SLSQP", "bounds": [(0, 1)] * J, "options": {"ftol": 1e-12, "maxiter": 300}}
    sum_to_one = {"type": "eq", "fun": lambda a: a.sum() - 1}
    return minimize(lambda a: np.square(x - a @ Z).sum(), np.full(J, 1 / J), constraints=sum_to_one, **options).fun


def test_furthest_sum_chooses_the_corners():
    X = np.vstack([inside(SQUARE), SQUARE])
    assert sorted(furthest_sum(X, 4, np.random.RandomState(0))) == [500, 501, 502, 503]


def test_equal_rows_have_equal_archetypes():
    Z, _ = archetypes(np.full((6, 3), 2.0), 6, np.random.RandomState(0))
    np.testing.assert_array_equal(Z, 2.0)

"""The model of learned prototypes: slopes against finite differences, in all kernels."""

import numpy as np
import pytest
import scipy.sparse as sp

from klr_bench.estimators.prototype.kernels import PrototypeKernel
from klr_bench.estimators.prototype.losses import LOSSES
from klr_bench.estimators.prototype.model import PARTS, Layout, Model, Rows
from klr_bench.estimators.prototype.solvers import Adam, by_gradient
from tests.reference import prototype as reference

KERNELS = {
    "rbf": {"name": "rbf"},
    "lazy": {"name": "rbf", "lazy": True},
    "poly": {"name": "poly", "degree": 3, "coef0": 0.5},
    "square": {"name": "poly", "degree": 2, "coef0": 0.0},
    "linear": {"name": "linear"},
}


def toy(seed, n=13, d=4, n_classes=3, J=2):
    """Rows with zeros, classes, and a layout with a point x, all at random."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < 0.6)
    y = random.randint(0, n_classes, n)
    layout = Layout(1 if n_classes == 2 else n_classes, J, d)
    return X, y, layout, 0.7 * random.standard_normal(layout.size)


def model_of(name, layout, *, loss="logit", **penalties):
    options = dict(KERNELS[name])
    return Model(layout, PrototypeKernel(**options), loss_name=loss, **penalties)


def by_reference(name, layout, X, y, **penalties):
    """The objective as a function of the vector x, term by term."""

    def value(x):
        b0, B, U, theta = layout.views(x)
        if layout.M == 1:
            b0, B = np.array([0.0, b0[0]]), np.column_stack([np.zeros(layout.J), B])
        return reference.objective(X, y, b0, B.T, U.T, theta[0], **penalties, **KERNELS[name])

    return value


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n_classes", "J"), [(2, 2), (3, 1), (4, 3)])
@pytest.mark.parametrize(("name", "sparse"), [(k, s) for k in KERNELS for s in (False, True) if s or k != "lazy"])
def test_slopes_are_those_of_finite_differences(name, sparse, n_classes, J, loss):
    X, y, layout, x = toy(3, n_classes=n_classes, J=J)
    model = model_of(name, layout, l2=0.3, loss=loss)
    rows = Rows(sp.csr_matrix(X) if sparse else X, y)
    value = by_reference(name, layout, X, y, l2=0.3, loss=loss)
    total, slopes = model.slopes_of_all(x, rows)
    assert total == pytest.approx(value(x), rel=1e-12)
    assert model.objective(x, rows) == pytest.approx(total, rel=1e-12)
    expected = reference.slopes(value, x)
    np.testing.assert_allclose(slopes, expected, rtol=1e-6, atol=1e-8)
    assert name == "linear" or abs(expected[-1]) > 1e-3
    for part in PARTS:  # a part alone is the same
        _, alone = model.slopes_of_all(x, rows, (part,))
        np.testing.assert_allclose(alone[layout.slices[part]], slopes[layout.slices[part]], rtol=1e-12)
        assert np.count_nonzero(alone) <= layout.slices[part].stop - layout.slices[part].start


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_first_intercepts_are_the_best_constant_scores(loss, n_classes):
    y = np.repeat(np.arange(n_classes), [5, 3, 4][:n_classes])
    constant = loss.constant(np.bincount(y) / len(y))
    F = np.tile(constant, (len(y), 1))
    assert F.shape[1] == (1 if n_classes == 2 else 3)
    np.testing.assert_allclose(loss.slopes(F, y).mean(axis=0), 0, atol=1e-12)
    assert np.mean(loss.values(F, y)) < np.mean(loss.values(0 * F, y))


@pytest.mark.parametrize("name", KERNELS)
def test_float32_is_near_float64(name):
    X, y, layout, x = toy(5, n=300)
    rows = [Rows(sp.csr_matrix(X, dtype=dtype), y) for dtype in (np.float32, np.float64)]
    (f, slopes), (f64, slopes64) = (model_of(name, layout).slopes_of_all(x, part) for part in rows)
    assert f == pytest.approx(f64, rel=1e-5)
    np.testing.assert_allclose(slopes, slopes64, rtol=0, atol=1e-4 * np.abs(slopes64).max())


def test_adam_by_hand():
    layout = Layout(1, 1, 1)
    x, unit = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 2.0, 0.1])
    state, mean, square, expected = Adam(model_of("rbf", layout), x, unit), 0.0, 0.0, x.copy()
    for t in (1, 2, 3):
        slope = np.array([0.5, -t, t**2, 0.0])
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        step = unit * 0.1 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        expected -= np.where(slope != 0, step, 0)
        state.step(x, {part: slope[place].copy() for part, place in layout.slices.items()}, 0.1)
    np.testing.assert_allclose(x, expected, rtol=1e-12)


@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_plain_passes_equal_the_reference(name, l1):
    """Two rounds in batches of 5 of 13 rows, with slopes by finite differences; what has no slope is not shrunk."""
    X, y, layout, x = toy(5)
    unit, rate = np.random.RandomState(0).uniform(0.5, 2.0, layout.size), 0.05
    options = {"rate": rate, "unit": unit, "batch_size": 5, "max_iter": 2, "random": np.random.RandomState(7)}
    rows = Rows(X, y)
    found = list(by_gradient(model_of(name, layout, l1=l1), x, rows, rows, PARTS, **options))
    random, expected = np.random.RandomState(7), x.copy()
    for t in range(2):
        before = by_reference(name, layout, X, y, l1=l1)(expected)
        for part in PARTS:
            order, place = random.permutation(13), layout.slices[part]
            for start in (0, 5, 10):
                batch = order[start : start + 5]
                slopes = reference.slopes(by_reference(name, layout, X[batch], y[batch]), expected)
                length = (rate / (1 + t + start / 13) if part == "b" else rate) * unit[place] ** 2
                moved = expected[place] - length * slopes[place]
                shrunk = np.sign(moved) * np.maximum(np.abs(moved) - length * l1 * (slopes[place] != 0), 0)
                expected[place] = shrunk if part == "u" else moved
        np.testing.assert_allclose(found[t][0], expected, rtol=1e-6, atol=1e-8)
        assert found[t][1] == (by_reference(name, layout, X, y, l1=l1)(expected) > before)

"""Every public classifier says the same of the same rows, however they are laid out, and wherever it was kept."""

from __future__ import annotations

import itertools
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import klr_bench

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TOLERANCE = {"float64": 1e-12, "float32": 5e-6}
"""Of a difference, as a share of the largest decision value."""


def untidy(X):
    """Return X (n, d) as a CSR matrix that names each entry twice, as halves, last features first, zeros too."""
    n, d = X.shape
    indices = np.tile(np.arange(2 * d)[::-1] % d, n)
    return sp.csr_matrix((np.hstack([X / 2, X / 2])[:, ::-1].ravel(), indices, 2 * d * np.arange(n + 1)), shape=X.shape)


FITTED = {"dense": np.ascontiguousarray, "fortran": np.asfortranarray, "csr": sp.csr_matrix}
ASKED = FITTED | {"coo": sp.coo_matrix, "csc": sp.csc_matrix, "untidy": untidy}
SHAPES = {"narrow": (5, 0.3), "wide": (100, 0.96), "bits": (40, 0.5), "mixed": (45, 0.5)}
"""Features, and the share of zeros.  CSR rows of the second are never made dense by the kernel machines; all features
of the third have two values, as have all but five of the fourth."""
EVERY = [name for name in klr_bench.__all__ if hasattr(getattr(klr_bench, name), "fit")]
VARIANTS = [
    ("ApproximateKernelLR", {"features": "fourier"}),
    ("ConfidenceWeighted", {"covariance": "diagonal"}),
    ("KernelOGD", {"kernel": "linear"}),
    ("KernelPegasos", {"kernel": "poly", "degree": 2}),
    ("L1KLR", {"features": "fourier"}),
    ("L1KLR", {"features": "linear"}),
    ("L1Peer", {"solver": "celer"}),
    ("PrototypeKLR", {"solver": "adam"}),
    ("PrototypeKLR", {"solver": "alternating"}),
    ("PrototypeKLR", {"kernel": "poly", "degree": 2, "solver": "adam"}),
    ("PrototypeKLR", {"kernel": "linear", "solver": "adam"}),
    ("PrototypeKLR", {"l1": 1e-3, "solver": "adam"}),
    ("PrototypeKLR", {"lazy": True}),
    ("PrototypeKLR", {"lazy": True, "solver": "adam"}),
]
CASES = [
    (name, options, layout, shape)
    for name, options in [*((name, {}) for name in EVERY), *VARIANTS]
    for layout, shape in [
        ("dense", "narrow"),
        ("fortran", "narrow"),
        ("csr", "narrow"),
        ("dense", "wide"),
        ("csr", "wide"),
        ("dense", "bits"),
        ("csr", "bits"),
        ("dense", "mixed"),
        ("csr", "mixed"),
    ]
    if layout == "csr" or not options.get("lazy")
]
DEFAULT = [("dense", "narrow"), ("csr", "mixed")]
"""Layouts and shapes of the usual run of the tests."""


def marked(values, *, usual):
    """Return a case, marked as exhaustive where it does not belong to the usual run."""
    words = [word for value in values for word in (value.values() if isinstance(value, dict) else [value])]
    return pytest.param(*values, id="-".join(map(str, words)), marks=[] if usual else [pytest.mark.exhaustive])


def rows(shape, n=60):
    """Return rows (n, d), far from 0 but for a share that is 0, exact in float32, and the signs of two classes."""
    d, share = SHAPES[shape]
    random = np.random.RandomState(0)
    y = np.where(np.arange(n) % 2, 1, -1)
    X = random.standard_normal((n, d)) + 0.7 * y[:, None] + 3
    if shape in ("bits", "mixed"):
        X[:, :40] = random.uniform(size=(n, 40)) < np.where(y > 0, 0.6, 0.4)[:, None]
    else:
        X[random.uniform(size=X.shape) < share] = 0
    return X.astype(np.float32), y


def made(name, options):
    if options.get("solver") == "celer":
        pytest.importorskip("celer")
    model = getattr(klr_bench, name)(**options)
    small = {"random_state": 0, "n_components": 20, "max_iter": 50}
    return model.set_params(**{key: value for key, value in small.items() if key in model.get_params()})


def decision(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def assert_near(found, expected, *precisions):
    scale = np.abs(expected).max()
    assert scale > 0
    atol = scale * max(TOLERANCE[precision] for precision in precisions)
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("name", "options", "layout", "shape", "precision"),
    [
        marked((*case, precision), usual=case[2:] in DEFAULT and precision == "float64")
        for case in CASES
        for precision in TOLERANCE
    ],
)
def test_the_layout_at_prediction_changes_nothing(name, options, layout, shape, precision, tmp_path):
    X, y = rows(shape)
    model = made(name, options).fit(FITTED[layout](X.astype(precision)), y)
    expected = decision(model, FITTED[layout](X.astype(precision)))
    joblib.dump(model, tmp_path / "model")
    pickled, mapped = pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model", mmap_mode="r")
    for asked in TOLERANCE:
        for lay in ASKED.values():
            assert_near(decision(model, lay(X.astype(asked))), expected, precision, asked)
        for copy, lay in itertools.product([pickled, mapped], [np.asarray, sp.csr_matrix]):
            assert_near(decision(copy, lay(X.astype(asked))), expected, precision, asked)


@pytest.mark.parametrize("shape", [marked((shape,), usual=shape == "narrow") for shape in SHAPES])
@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("layouts", [("dense", "csr"), ("csr", "fortran")], ids="-".join)
@pytest.mark.parametrize("name", [name for name in EVERY if hasattr(getattr(klr_bench, name), "partial_fit")])
def test_the_layout_of_later_rows_changes_nothing(name, layouts, precision, shape):
    X, y = rows(shape)
    X, half = X.astype(precision), len(X) // 2
    expected, mixed = made(name, {}), made(name, {})
    for layout, part in zip(layouts, (slice(half), slice(half, None)), strict=True):
        expected.partial_fit(X[part], y[part])
        mixed.partial_fit(ASKED[layout](X[part]), y[part])
    assert_near(decision(mixed, X), decision(expected, X), precision)

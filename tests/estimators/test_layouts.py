"""Every public classifier: layouts change nothing, and sparse rows with a million features take little memory."""

import itertools
import pickle
import tracemalloc

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import klr_bench
from tests.estimators.samples import CLASSIFIERS, FEW, skip_if_not_installed, small

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:lam=:UserWarning"),
    pytest.mark.usefixtures("short_search"),
]

TOLERANCE = {"float64": 1e-12, "float32": 5e-6}
"""Of a difference, as a share of the largest decision value."""


def untidy(X):
    """Return X (n, d) as a CSR matrix that names each entry twice, as halves, last features first, zeros too."""
    n, d = X.shape
    indices = np.tile(np.arange(2 * d)[::-1] % d, n)
    return sp.csr_matrix((np.hstack([X / 2, X / 2])[:, ::-1].ravel(), indices, 2 * d * np.arange(n + 1)), shape=X.shape)


def with_64_bits(X):
    """Return X (n, d) as a CSR matrix with 64-bit indices, as of more entries than 32 bits can count."""
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


FITTED = {"dense": np.ascontiguousarray, "fortran": np.asfortranarray, "csr": sp.csr_matrix}
ASKED = FITTED | {"coo": sp.coo_matrix, "csc": sp.csc_matrix, "untidy": untidy, "64 bits": with_64_bits}
SHAPES = {"narrow": (5, 0.3), "wide": (100, 0.96), "bits": (40, 0.5), "mixed": (45, 0.5)}
"""Features, and the share of zeros.  CSR rows of the second are never made dense by the kernel machines; all features
of the third have two values, as have all but five of the fourth."""
EVERY = [*CLASSIFIERS]
VARIANTS = [
    ("ApproximateKernelLR", {"features": "fourier"}),
    ("ConfidenceWeighted", {"covariance": "diagonal"}),
    ("KernelOGD", {"kernel": "linear"}),
    ("KernelPegasos", {"kernel": "poly", "degree": 2}),
    *(("L1KLR", {"features": features}) for features in ("fourier", "linear")),
    ("L1Peer", {"solver": "celer"}),
    *(("PrototypeKLR", {"solver": solver}) for solver in ("adam", "alternating")),
    *(("PrototypeKLR", {"kernel": kernel, "degree": 2, "solver": "adam"}) for kernel in ("poly", "linear")),
    ("PrototypeKLR", {"l1": 1e-3, "solver": "adam"}),
    ("PrototypeKLR", {"init": "archetypes", "loss": "squared_hinge"}),
    *(("PrototypeKLR", {"lazy": True, "solver": solver}) for solver in ("auto", "adam")),
]
CASES = [
    (name, options, layout, shape)
    for name, options in [*((name, {}) for name in EVERY), *VARIANTS]
    for layout, shape in [("fortran", "narrow"), *itertools.product(("dense", "csr"), SHAPES)]
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
    skip_if_not_installed(options.get("solver"))
    return small(CLASSIFIERS[name](**options), random_state=0, n_components=20, max_iter=50)


def decision(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def assert_near(found, expected, *precisions):
    scale = np.abs(expected).max()
    assert scale > 0
    np.testing.assert_allclose(found, expected, rtol=0, atol=scale * max(TOLERANCE[name] for name in precisions))


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
    klr_bench.save_model(model, tmp_path / "model.skops")
    stored = klr_bench.load_model(tmp_path / "model.skops")
    for asked in TOLERANCE:
        for lay in ASKED.values():
            assert_near(decision(model, lay(X.astype(asked))), expected, precision, asked)
        for copy, lay in itertools.product([pickled, mapped, stored], [np.asarray, sp.csr_matrix]):
            assert_near(decision(copy, lay(X.astype(asked))), expected, precision, asked)


@pytest.mark.parametrize("layout", [untidy, with_64_bits])
@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in EVERY), ("PrototypeKLR", {"lazy": True})])
def test_duplicate_entries_and_64_bit_indices_at_the_fit_change_nothing(name, options, layout):
    X, y = rows("narrow")
    tidy, other = (
        decision(made(name, options).fit(layout(X.astype("float64")), y), sp.csr_matrix(X))
        for layout in (sp.csr_matrix, layout)
    )
    assert_near(other, tidy, "float64")


@pytest.mark.parametrize("name", EVERY)
def test_features_that_32_bits_cannot_count_are_refused(name):
    X, y = wide(20, D)
    X = sp.csr_matrix((X.data, X.indices.astype(np.int64) + 2**31, X.indptr), shape=(20, D + 2**31))
    with pytest.raises(ValueError, match=rf"at most 2\^31 - 1 features, got {D + 2**31:,}"):
        made(name, {}).fit(X, y)


@pytest.mark.parametrize("shape", [marked((shape,), usual=shape == "narrow") for shape in SHAPES])
@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("layouts", [("dense", "csr"), ("csr", "fortran")], ids="-".join)
@pytest.mark.parametrize("name", [name for name in EVERY if hasattr(CLASSIFIERS[name], "partial_fit")])
def test_the_layout_of_later_rows_changes_nothing(name, layouts, precision, shape):
    X, y = rows(shape)
    X, half = X.astype(precision), len(X) // 2
    expected, mixed = made(name, {}), made(name, {})
    for layout, part in zip(layouts, (slice(half), slice(half, None)), strict=True):
        expected.partial_fit(X[part], y[part])
        mixed.partial_fit(ASKED[layout](X[part]), y[part])
    assert_near(decision(mixed, X), decision(expected, X), precision)


KERNELS_OF = [
    (name, {"kernel": kernel} if kernel else {})
    for name in EVERY
    if hasattr(CLASSIFIERS[name], "partial_fit")
    for kernel in (("rbf", "linear", "poly") if "kernel" in CLASSIFIERS[name]().get_params() else (None,))
]


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize(("name", "options"), [marked(case, usual=True) for case in KERNELS_OF])
def test_read_only_rows_are_learned_in_their_order_like_others(name, options, precision):
    X, y = rows("narrow")
    X = X.astype(precision)
    expected, found = made(name, options).partial_fit(X, y), made(name, options)
    X.flags.writeable = y.flags.writeable = False
    np.testing.assert_array_equal(decision(found.partial_fit(X, y), X), decision(expected, X))
    found.partial_fit(X[:1], y[:1])


D = 1_000_000
MB = 8
"""What a fit, or predictions, may take: 2,400 kB of rows, and models of some hundred rows."""
MB_WITH_COEF = 40
"""The same for a learner with coefficients, variances or counts per feature."""

FULL = ["AROW", "BatchConfidenceWeighted", "ConfidenceWeighted", "NAROW", "SoftConfidenceWeighted"]
"""Classifiers with a full covariance, which refuse so many features."""
SPARSE = ["FeatureGeneratingMachine", "PassiveAggressive", "SOFS", "SparDCA", "SparseBatchConfidenceWeighted"]
PER_FEATURE = [*SPARSE, *FULL]
SPARSE_VARIANTS = [
    ("ApproximateKernelLR", {"solver": "sgd"}),
    ("BSGD", {"maintenance": "projection"}),
    ("KernelOGD", {"kernel": "linear"}),
    ("KernelPegasos", {"kernel": "poly", "degree": 2}),
    ("L1KLR", {"features": "fourier", "n_components": 50}),
    *(("L1KLR", {"features": "linear", "solver": solver}) for solver in ("prox_newton", "sgd_c")),
    ("L1Peer", {"features": "linear"}),
    ("OSKL", {"gamma": "median"}),
    *(("PrototypeKLR", options) for options in ({"solver": "adam"}, {"lazy": True}, {"init": "kmeans"})),
    *((name, {"covariance": "diagonal"}) for name in FULL if name != "BatchConfidenceWeighted"),
]
WIDE = [
    (name, {}) for name in EVERY if name not in (*FULL, "SecondOrderPerceptron", "KLR", "PartitionedKLR")
] + SPARSE_VARIANTS
IDS = ["-".join([name, *map(str, options.values())]) for name, options in WIDE]


def wide(n, d):
    """Return CSR rows (n, d) with 20 entries, half of them in 40 features that many rows have, and labels (n,)."""
    random = np.random.RandomState(0)
    common = np.array([random.permutation(40)[:10] for _ in range(n)]) * (d // 40)
    indices = np.hstack([common, random.randint(d, size=(n, 10))])
    y = np.where(np.arange(n) % 2, 1, -1)
    values = random.standard_normal(indices.shape) + 0.5 * y[:, None]
    X = sp.csr_matrix((values.ravel(), indices.ravel(), 20 * np.arange(n + 1)), shape=(n, d))
    X.sum_duplicates()
    return X, y


def few_steps(name, options):
    return small(CLASSIFIERS[name](**options), random_state=0, max_iter=5, n_components=50, **FEW)


def learn_and_predict(model, X, y):
    model.fit(X, y)
    model.predict(X)
    if hasattr(model, "decision_function"):
        model.decision_function(X)
    if hasattr(model, "partial_fit"):
        model.partial_fit(X, y)


def peak_mb(name, options, X, y):
    """Return the most memory that learning from rows and predicting them takes."""
    learn_and_predict(few_steps(name, options), wide(30, 60)[0], y[:30])  # imports and compiled code take memory, too
    tracemalloc.start()
    try:
        learn_and_predict(few_steps(name, options), X, y)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("name", "options"), WIDE, ids=IDS)
def test_memory_grows_with_the_entries(name, options):
    allowed, (X, y) = MB_WITH_COEF if name in PER_FEATURE or options.get("features") == "linear" else MB, wide(200, D)
    assert peak_mb(name, options, X, y) <= allowed
    if name in ("OSKL", "BudgetOSKL", "DualCDKLR"):
        assert peak_mb(name, options, X, np.arange(200) % 3) <= allowed


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ApproximateKernelLR", {"features": "fourier"}, "n_components=500 .* 4,000 MB.* features='nystroem'"),
        ("BSGD", {"maintenance": "merging"}, ".* 3,872 MB.* maintenance='removal'"),
        *((name, {}, ".* 1,000,000 features .*memory_limit=4000") for name in [*FULL, "SecondOrderPerceptron"]),
    ],
)
def test_what_needs_dense_arrays_of_many_features_is_refused(name, options, message):
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        CLASSIFIERS[name](**options).fit(*wide(20, D))

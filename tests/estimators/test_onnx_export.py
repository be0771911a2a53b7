"""ONNX models predict what the classifiers predict."""

import numpy as np
import onnxruntime
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils._param_validation import InvalidParameterError

from klr_bench import BSGD, KLR, OSKL, PartitionedKLR, to_onnx
from klr_bench.estimators import onnx_export
from klr_bench.estimators.batch import comparison, klr, partitioned
from klr_bench.estimators.batch.leaf_models import LeafModels
from klr_bench.estimators.core.kernels import OF_DISTANCES
from tests.estimators.samples import CLASSIFIERS, small

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RANDOM = np.random.RandomState(0)
X = (RANDOM.standard_normal((90, 3)) * [1, 10, 0.1] + [0, 1000, 5]).astype(np.float32)
CUTS = {2: [0.0], 3: [-0.5, 0.5]}
NAMES = {
    "text": np.array(["low", "middle", "high"]),
    "integer": np.array([7, -1, 3]),
    "float": np.array([1.0, 5.0, 2.0]),
}
MESSAGE = "to_onnx: expected KLR, PartitionedKLR, or a classifier with support vectors and kernel='rbf' or 'laplacian'"


def is_expansion(model):
    """Return True if a fitted model is a sum of kernel functions, or has such a model or such leaves."""
    return hasattr(model, "model_") or (hasattr(model, "support_vectors_") and hasattr(model, "dual_coef_"))


def predicted(model, rows):
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].name == "X"
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


@pytest.mark.parametrize("n_classes", CUTS)
@pytest.mark.parametrize("kernel", OF_DISTANCES)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_predictions_of_kernel_expansions_agree_and_others_are_refused(name, kernel, n_classes, monkeypatch):
    for module in (klr, partitioned):
        monkeypatch.setattr(module, "KERNELS", (kernel,))
    y = NAMES["text"][np.digitize((X[:, 0] + RANDOM.standard_normal(90) / 2), CUTS[n_classes])]
    parameters = {"kernel": kernel, "gamma": 0.01, "max_iter": 50, "fit_intercept": True, "leaf_size": 20}
    model = small(CLASSIFIERS[name](), random_state=0, **parameters)
    try:
        model.fit(X[:60], y[:60])
    except InvalidParameterError:
        pytest.skip(f"{name} has no {kernel} kernel")
    if not is_expansion(model):
        with pytest.raises(ValueError, match=MESSAGE):
            to_onnx(model)
        return
    found = predicted(model, X)
    np.testing.assert_array_equal(found["label"], model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=1e-5)
    else:
        decision = model.decision_function(X).reshape(90, -1)
        np.testing.assert_allclose(found["decision"], decision, rtol=0, atol=1e-5 * np.abs(decision).max())


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_a_value_far_from_the_median_counts_as_the_limit(layout):
    rows, y = np.random.RandomState(1).standard_normal((201, 2)), np.arange(201) % 2
    rows[0] = 1e9
    model = KLR(max_rounds=0, random_state=0).fit(layout(rows), y)
    for column, limits in zip(rows.T, model.limits_.T, strict=True):
        median, distances = np.median(column), np.abs(column - np.median(column))
        deviation = np.quantile(distances[distances > 0], 0.5, method="inverted_cdf")
        np.testing.assert_allclose(limits, [median - 10 * deviation, median + 10 * deviation])
    clipped = KLR(max_rounds=0, random_state=0).fit(layout(np.clip(rows, *model.limits_)), y)
    np.testing.assert_allclose(model.decision_function(layout(rows)), clipped.decision_function(layout(rows)))


def test_constant_features_and_outliers_have_no_effect():
    y = np.digitize(X[:, 0] + RANDOM.standard_normal(90) / 2, CUTS[2])
    rows = np.insert(X, 1, 0.1, axis=1)
    rows[80] = 1e9
    model = KLR(random_state=0, max_rounds=1).fit(rows[:60], y[:60])
    assert model.feature_weights_[1] == 0
    np.testing.assert_allclose(predicted(model, rows)["probabilities"], model.predict_proba(rows), rtol=0, atol=1e-5)


def test_labels_far_from_all_rows_agree():
    model = CLASSIFIERS["DualCDKLR"](gamma=1.0).fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    rows = np.array([[-15.0], [20.0]], dtype=np.float32)
    assert predicted(model, rows)["label"].tolist() == model.predict(rows).tolist() == [0, 1]


@pytest.mark.parametrize("name", ["OSKL", "DualCDKLR", "NystroemKLR"])
def test_predictions_with_feature_weights_agree(name):
    model = CLASSIFIERS[name](feature_weights=[0.3, 0.1, 2.0], random_state=0)
    y = np.digitize(X[:, 0] + RANDOM.standard_normal(90) / 2, CUTS[3])
    model = small(model, n_centers=20).fit(X, y)
    np.testing.assert_allclose(predicted(model, X)["probabilities"], model.predict_proba(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_labels_keep_their_type_and_sparse_support_vectors_are_converted(layout, kind):
    y = NAMES[kind][np.digitize(X[:, 0], CUTS[3])]
    model = OSKL(random_state=0).fit(layout(X), y)
    found = predicted(model, X)["label"]
    assert found.tolist() == model.predict(layout(X)).tolist()


def test_float64_is_kept_far_from_the_origin():
    rows = X[:, :1] + np.float32(4e3)
    model = KLR(random_state=0, max_rounds=0, cv=2).fit(rows, X[:, 0] > 0)
    np.testing.assert_allclose(predicted(model, rows)["probabilities"], model.predict_proba(rows), rtol=0, atol=1e-5)


@pytest.mark.parametrize("model", [LogisticRegression(), OSKL(kernel="poly"), OSKL(kernel="linear")])
def test_other_models_are_refused(model):
    with pytest.raises(ValueError, match=MESSAGE):
        to_onnx(model.fit(X, X[:, 0] > 0))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_leaves_of_few_classes_and_empty_leaves_agree(layout, n_classes):
    groups = np.repeat(np.arange(6), 15)
    rows = np.column_stack([groups * 10.0 + X[:, 0] / 10, X[:, 1], np.ones(90)]).astype(np.float32)
    y = np.where(groups % 2, groups % n_classes, RANDOM.randint(n_classes, size=90) * (groups > 1))
    model = PartitionedKLR(8, n_partitions=3, max_rounds=0, random_state=0).fit(layout(rows), y)
    n_present = {len(leaf.classes) for leaves in model.model_.leaves for leaf in leaves}
    assert n_present == set(range(1, n_classes + 1))
    for part in (rows, rows[:1], rows[20:20]):
        expected = model.predict_proba(layout(part)) if len(part) else np.empty((0, n_classes))
        np.testing.assert_allclose(predicted(model, part)["probabilities"], expected, rtol=0, atol=1e-5)


def test_the_partitions_that_klr_chose_agree(monkeypatch):
    for module in (klr, comparison):
        monkeypatch.setattr(module, "MOST_TRAINING", 200)
    monkeypatch.setattr(comparison, "LEAF_SIZE", 100)
    rows = np.random.default_rng(0).uniform(-1, 1, (800, 1)).astype(np.float32)
    cv = StratifiedShuffleSplit(1, random_state=0)
    model = KLR(max_rounds=0, cv=cv, random_state=0).fit(rows, np.digitize(np.sin(30 * rows[:, 0]), [-0.3, 0.3]))
    assert isinstance(model.model_, LeafModels)
    np.testing.assert_allclose(predicted(model, rows)["probabilities"], model.predict_proba(rows), rtol=0, atol=1e-5)


def test_a_model_of_some_classes_is_refused():
    X, y = np.random.RandomState(0).rand(600, 3), np.arange(600) % 3
    model = BSGD(20, loss="logit", lam=0.01, random_state=0).fit(X, y, callback=lambda *_: True)
    with pytest.raises(ValueError, match="a model of all 3 classes, got some of them"):
        to_onnx(model)


def test_a_model_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(onnx_export, "MOST_MB", 0.002)
    with pytest.raises(ValueError, match=r"to_onnx: expected a model of at most 0 MB, the limit of ONNX.* max_support"):
        to_onnx(OSKL(random_state=0).fit(X, X[:, 0] > 0))

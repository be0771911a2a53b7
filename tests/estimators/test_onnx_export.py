"""ONNX models predict what the classifiers predict."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from klr_bench import KLR, OSKL, to_onnx
from tests.estimators.samples import CLASSIFIERS, small

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RANDOM = np.random.RandomState(0)
X = (RANDOM.standard_normal((90, 3)) * [1, 10, 0.1] + [0, 1000, 5]).astype(np.float32)
CUTS = {2: [0.0], 3: [-0.5, 0.5]}
NAMES = {
    "text": np.array(["low", "middle", "high"]),
    "integer": np.array([7, -1, 3]),
    "float": np.array([1.0, 5.0, 2.0]),
}
MODELS = [
    name
    for name, cls in CLASSIFIERS.items()
    if hasattr(cls, "support_vectors_")
    or name in ("DualCDKLR", "PrimalCDKLR", "NystroemKLR", "ImportVectorMachine", "KLR")
]
REFUSED = ["NOGD", "PrototypeKLR", "FOGD", "L1KLR", "ApproximateKernelLR"]


def predicted(model, rows):
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].name == "X"
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


@pytest.mark.parametrize("n_classes", CUTS)
@pytest.mark.parametrize("name", [name for name in MODELS if name not in REFUSED])
def test_predictions_agree(name, n_classes):
    y = NAMES["text"][np.digitize((X[:, 0] + RANDOM.standard_normal(90) / 2), CUTS[n_classes])]
    model = small(CLASSIFIERS[name](), random_state=0, max_iter=50, fit_intercept=True)
    if name != "KLR":
        model.set_params(gamma=0.01)
    model.fit(X[:60], y[:60])
    found = predicted(model, X)
    np.testing.assert_array_equal(found["label"], model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=1e-5)
    else:
        decision = model.decision_function(X).reshape(90, -1)
        np.testing.assert_allclose(found["decision"], decision, rtol=0, atol=1e-5 * np.abs(decision).max())


def test_constant_features_and_outliers_have_no_effect():
    y = np.digitize(X[:, 0] + RANDOM.standard_normal(90) / 2, CUTS[2])
    rows = np.insert(X, 1, 0.1, axis=1)
    rows[80] = 1e9
    model = KLR(random_state=0, max_rounds=1).fit(rows[:60], y[:60])
    assert model.feature_weights_[1] == 0
    np.testing.assert_allclose(predicted(model, rows)["probabilities"], model.predict_proba(rows), rtol=0, atol=1e-5)


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


def test_other_models_are_refused():
    y = X[:, 0] > 0
    refused = [LogisticRegression(), OSKL(kernel="poly"), OSKL(kernel="linear")]
    for model in [*refused, *(small(CLASSIFIERS[name](), max_iter=20) for name in REFUSED)]:
        with pytest.raises(
            ValueError,
            match="to_onnx: expected KLR with one model, or a classifier with support vectors and kernel='rbf'",
        ):
            to_onnx(model.fit(X, y))

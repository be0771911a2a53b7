"""Convert fitted kernel classifiers to ONNX: `to_onnx`."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.batch.klr import KLR

OPSET, IR_VERSION = 17, 8
"""Versions of the format, which ONNX Runtime has read since 1.12."""


def to_onnx(model):
    r"""Convert a fitted classifier with an RBF kernel to an ONNX model.

    .. math:: f(x) = \sum_i a_i \exp(-\gamma \lVert x - z_i \rVert^2)

    The input `X` is a float32 array of shape (n_samples, n_features).  The outputs are `label` (n_samples,), of the
    type of `classes_`, and `probabilities` (n_samples, n_classes), or `decision` for a classifier without
    probabilities.  Distances are computed in float64.

    Parameters
    ----------
    model : estimator
        Fitted `KLR`, or another kernel classifier of klr-bench with `support_vectors_`, `dual_coef_` and kernel="rbf".

    Returns
    -------
    onnx_model : onnx.ModelProto
        The model; `onnx_model.SerializeToString()` is the content of a file.

    Raises
    ------
    ValueError
        If the model is of another class, has another kernel, or is a KLR with partitions.
    ImportError
        If onnx is not installed.

    Examples
    --------
    >>> from klr_bench import OSKL, to_onnx
    >>> onnx_model = to_onnx(OSKL(random_state=0).fit([[0.0], [1.0], [2.0]], ["low", "low", "high"]))  # doctest: +SKIP
    >>> [output.name for output in onnx_model.graph.output]  # doctest: +SKIP
    ['label', 'probabilities']
    """
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError as error:
        message = "to_onnx needs the library onnx; run `pip install klr-bench[onnx]`"
        raise ImportError(message) from error
    check_is_fitted(model)
    is_klr = isinstance(model, KLR)
    expansion = model.model_ if is_klr else model
    kernel = _kernel(expansion)
    if kernel is None or kernel.name != "rbf":
        expected = "KLR with one model, or a classifier with support vectors and kernel='rbf'"
        message = f"to_onnx: expected {expected}, got {model}."
        raise ValueError(message)
    nodes, constants = [], []

    def constant(name, value):
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(kind, *inputs, name="", **attributes):
        name = name or f"{kind.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    rows = node("Cast", "X", to=TensorProto.DOUBLE)
    if is_klr:
        lowest, highest = model.limits_
        rows = node("Min", node("Max", rows, constant("lowest", lowest)), constant("highest", highest))
        rows = node("Sub", rows, constant("mean", model.mean_.astype(np.float64)))
    if hasattr(model, "feature_weights_"):  # the weights of KLR are for standardized features
        weights = model.feature_weights_ / getattr(model, "scale_", 1.0)
        rows = node("Mul", rows, constant("weights", weights.astype(np.float64)))
    Z = expansion.support_vectors_
    Z = (Z.toarray() if sp.issparse(Z) else np.asarray(Z)).astype(np.float64)
    if is_klr and Z.shape[1] < model.n_features_in_:  # those of KLR lack the features that are constant
        Z, some = np.zeros((len(Z), model.n_features_in_)), Z
        Z[:, model._scaling.columns] = some
    center = Z.mean(axis=0)  # centered rows keep more digits of the squared distances
    Z -= center
    rows = node("Sub", rows, constant("center", center))
    squares = node("Add", node("ReduceSumSquare", rows, axes=[1]), constant("squares", (Z**2).sum(axis=1)))
    products = node("MatMul", rows, constant("twice", 2.0 * Z.T))
    distances = node("Max", node("Sub", squares, products), constant("zero", np.float64(0.0)))
    values = node("Exp", node("Mul", distances, constant("minus_gamma", np.float64(-kernel.gamma))))
    f = node("MatMul", values, constant("coef", np.atleast_2d(expansion.dual_coef_).T.astype(np.float64)))
    if np.any(intercept := getattr(expansion, "intercept_", 0.0)):
        f = node("Add", f, constant("intercept", np.atleast_1d(intercept)))
    f = node("Cast", f, to=TensorProto.FLOAT)
    many = len(model.classes_) > 2
    scores = f if many else node("Concat", node("Neg", f), f, axis=1)
    classes = model.classes_
    labels = constant("classes", classes.astype(object) if classes.dtype.kind == "U" else classes)  # for onnx 1.15
    node("Gather", labels, node("ArgMax", scores, axis=1, keepdims=0), name="label")
    if not hasattr(model, "predict_proba"):
        node("Identity", f, name="decision")
    elif not many:
        node("Sigmoid", scores, name="probabilities")
    elif is_klr or getattr(expansion, "_is_softmax", bool)():
        temperature = constant("temperature", np.float32(getattr(model, "temperature_", 1.0)))
        node("Softmax", node("Div", scores, temperature), axis=1, name="probabilities")
    else:
        logs = node("Neg", node("Softplus", node("Neg", scores)))
        node("Softmax", logs, axis=1, name="probabilities")
    kind = next(initializer.data_type for initializer in constants if initializer.name == labels)
    second, width = nodes[-1].output[0], len(model.classes_) if many or nodes[-1].output[0] == "probabilities" else 1
    graph = helper.make_graph(
        nodes,
        type(model).__name__,
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, model.n_features_in_])],
        [
            helper.make_tensor_value_info("label", kind, [None]),
            helper.make_tensor_value_info(second, TensorProto.FLOAT, [None, width]),
        ],
        constants,
    )
    converted = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="klr-bench")
    converted.ir_version = IR_VERSION
    checker.check_model(converted)
    return converted


def _kernel(expansion):
    """Return the kernel of a fitted classifier with support vectors, otherwise None."""
    learner = (getattr(expansion, "estimators_", None) or [expansion])[0]  # all learners have the same kernel
    operands = getattr(learner, "_operands", None) or getattr(getattr(learner, "_state", None), "operands", None)
    return getattr(operands, "kernel", None) if hasattr(expansion, "dual_coef_") else None

"""Convert fitted kernel classifiers, and pipelines with them, to ONNX: `to_onnx`."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.batch.klr import KLR
from klr_bench.estimators.core.kernels import OF_DISTANCES

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""Versions of the format, which ONNX Runtime has read since 1.12."""


def to_onnx(model):
    r"""Convert a fitted classifier with an rbf or a laplacian kernel to an ONNX model.

    .. math:: f(x) = \sum_i a_i \exp(-\gamma \lVert x - z_i \rVert^2)
        \quad \text{or} \quad \sum_i a_i \exp(-\gamma \lVert x - z_i \rVert_1)

    The input `X` is a float32 array of shape (n_samples, n_features).  The model of a pipeline of `TablePreparer` and a
    classifier has an input of shape (n_samples, 1) for each column that is not left out: a string for a text, a column
    of truth values or an ordered category, where "" is a missing value; float64 for a number, without its unit, where
    NaN is missing; and float64 for each part of a date, such as ``since_year``.  The outputs are `label` (n_samples,),
    of the type of `classes_`, and `probabilities` (n_samples, n_classes), or `decision` for a classifier without
    probabilities.  Distances are computed in float64.

    Parameters
    ----------
    model : estimator
        Fitted `KLR`, or another kernel classifier of klr-bench with `support_vectors_`, `dual_coef_` and
        kernel="rbf" or "laplacian", or a pipeline of `TablePreparer` and such a classifier.  The laplacian kernel takes
        memory for n_samples x n_support x n_features numbers.

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
    *before, classifier = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if len(before) > 1 or not all(hasattr(step, "_onnx_features") for step in before):
        message = f"to_onnx: expected a classifier, alone or after a TablePreparer in a pipeline, got {model}."
        raise ValueError(message)
    check_is_fitted(classifier)
    graph = Graph(helper, numpy_helper, TensorProto)
    if before:
        rows, columns = before[0]._onnx_features(graph)
        inputs = [(name, TensorProto.STRING if is_text else TensorProto.DOUBLE, 1) for name, is_text in columns]
    else:
        rows = graph.node("Cast", "X", to=TensorProto.DOUBLE)
        inputs = [("X", TensorProto.FLOAT, classifier.n_features_in_)]
    kind, width = _add_classifier(graph, classifier, rows)
    second = graph.nodes[-1].output[0]
    converted = helper.make_model(
        helper.make_graph(
            graph.nodes,
            type(classifier).__name__,
            [helper.make_tensor_value_info(name, of, [None, size]) for name, of, size in inputs],
            [
                helper.make_tensor_value_info("label", kind, [None]),
                helper.make_tensor_value_info(second, TensorProto.FLOAT, [None, width]),
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        producer_name="klr-bench",
    )
    converted.ir_version = IR_VERSION
    checker.check_model(converted)
    return converted


class Graph:
    """Nodes and constants of an ONNX graph, to which methods add."""

    def __init__(self, helper, numpy_helper, types):
        self._helper, self._numpy_helper = helper, numpy_helper
        self.float, self.double, self.int64 = types.FLOAT, types.DOUBLE, types.INT64
        self.nodes, self.constants = [], []

    def constant(self, value):
        """Add an array, and return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self._numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind, *inputs, name="", **attributes):
        """Add an operation, and return the name of its output."""
        name = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(kind, inputs, [name], **attributes))
        return name


def _add_classifier(graph, model, rows):
    """Add the nodes of a classifier of float64 rows.

    Return the type of its labels, and the number of columns of its other output.
    """
    constant, node = graph.constant, graph.node
    is_klr = isinstance(model, KLR)
    expansion = model.model_ if is_klr else model
    kernel = _kernel(expansion)
    if kernel is None or kernel.name not in OF_DISTANCES:
        expected = "KLR with one model, or a classifier with support vectors and kernel='rbf' or 'laplacian'"
        message = f"to_onnx: expected {expected}, got {model}."
        raise ValueError(message)
    if is_klr:
        lowest, highest = model.limits_
        rows = node("Min", node("Max", rows, constant(lowest)), constant(highest))
        rows = node("Sub", rows, constant(model.mean_.astype(np.float64)))
    if hasattr(model, "feature_weights_"):  # the weights of KLR are for standardized features
        weights = model.feature_weights_ / getattr(model, "scale_", 1.0)
        rows = node("Mul", rows, constant(weights.astype(np.float64)))
    Z = expansion.support_vectors_
    Z = (Z.toarray() if sp.issparse(Z) else np.asarray(Z)).astype(np.float64)
    if is_klr and Z.shape[1] < model.n_features_in_:  # those of KLR lack the features that are constant
        Z, some = np.zeros((len(Z), model.n_features_in_)), Z
        Z[:, model._scaling.columns] = some
    center = Z.mean(axis=0)  # centered rows keep more digits of the squared distances
    Z -= center
    rows = node("Sub", rows, constant(center))
    if kernel.name == "rbf":
        squares = node("Add", node("ReduceSumSquare", rows, axes=[1]), constant((Z**2).sum(axis=1)))
        products = node("MatMul", rows, constant(2.0 * Z.T))
        distances = node("Max", node("Sub", squares, products), constant(np.float64(0.0)))
    else:
        columns = node("Unsqueeze", rows, constant(np.array([1])))
        distances = node("ReduceL1", node("Sub", columns, constant(Z)), axes=[2], keepdims=0)
    values = node("Exp", node("Mul", distances, constant(np.float64(-kernel.gamma))))
    f = node("MatMul", values, constant(np.atleast_2d(expansion.dual_coef_).T.astype(np.float64)))
    if np.any(intercept := getattr(expansion, "intercept_", 0.0)):
        f = node("Add", f, constant(np.atleast_1d(intercept)))
    f = node("Cast", f, to=graph.float)
    many = len(model.classes_) > 2
    scores = f if many else node("Concat", node("Neg", f), f, axis=1)
    classes = model.classes_
    labels = constant(classes.astype(object) if classes.dtype.kind == "U" else classes)  # for onnx 1.15
    node("Gather", labels, node("ArgMax", scores, axis=1, keepdims=0), name="label")
    if not hasattr(model, "predict_proba"):
        node("Identity", f, name="decision")
    elif not many:
        node("Sigmoid", scores, name="probabilities")
    elif is_klr or getattr(expansion, "_is_softmax", bool)():
        temperature = constant(np.float32(getattr(model, "temperature_", 1.0)))
        node("Softmax", node("Div", scores, temperature), axis=1, name="probabilities")
    else:
        logs = node("Neg", node("Softplus", node("Neg", scores)))
        node("Softmax", logs, axis=1, name="probabilities")
    kind = next(initializer.data_type for initializer in graph.constants if initializer.name == labels)
    has_columns = many or hasattr(model, "predict_proba")
    return kind, len(model.classes_) if has_columns else 1


def _kernel(expansion):
    """Return the kernel of a fitted classifier with support vectors, otherwise None."""
    learner = (getattr(expansion, "estimators_", None) or [expansion])[0]  # all learners have the same kernel
    operands = getattr(learner, "_operands", None) or getattr(getattr(learner, "_state", None), "operands", None)
    return getattr(operands, "kernel", None) if hasattr(expansion, "dual_coef_") else None

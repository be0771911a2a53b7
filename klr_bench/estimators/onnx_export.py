"""Convert fitted kernel classifiers, and pipelines with them, to ONNX: `to_onnx`."""

from __future__ import annotations

from collections import Counter

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.batch.klr import KLR
from klr_bench.estimators.batch.leaf_models import LeafModels
from klr_bench.estimators.batch.partitioned import PartitionedKLR
from klr_bench.estimators.core.kernels import OF_DISTANCES

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""Versions of the format, which ONNX Runtime has read since 1.12."""
OUTPUTS = "label", "probabilities", "decision"
"""Names of the outputs of a graph."""
MOST_MB = 2000.0
"""Largest size of the numbers of a model; ONNX limits a file to 2 GiB."""


def to_onnx(model):
    r"""Convert a fitted classifier with an rbf or a laplacian kernel to an ONNX model.

    .. math:: f(x) = \sum_i a_i \exp(-\gamma \lVert x - z_i \rVert^2)
        \quad \text{or} \quad \sum_i a_i \exp(-\gamma \lVert x - z_i \rVert_1)

    The probabilities of `PartitionedKLR`, and of a `KLR` with partitions, are averages over such models of the leaves.

    The input `X` is a float32 array of shape (n_samples, n_features).  The model of a pipeline of `TablePreparer` and a
    classifier has an input of shape (n_samples, 1) for each column that is not left out: a string for a text, a column
    of truth values or an ordered category, where "" is a missing value; float64 for a number, without its unit, where
    NaN is missing; and float64 for each part of a date, such as ``since_year``.  The outputs are `label` (n_samples,),
    of the type of `classes_`, and `probabilities` (n_samples, n_classes), or `decision` for a classifier without
    probabilities.  Distances are computed in float64.

    Parameters
    ----------
    model : estimator
        Fitted `KLR`, `PartitionedKLR`, or another kernel classifier of klr-bench with `support_vectors_`, `dual_coef_`
        and kernel="rbf" or "laplacian", or a pipeline of `TablePreparer` and such a classifier.  The laplacian kernel
        takes memory for n_samples x n_support x n_features numbers.

    Returns
    -------
    onnx_model : onnx.ModelProto
        The model; `onnx_model.SerializeToString()` is the content of a file.

    Raises
    ------
    ValueError
        If the model is of another class, has another kernel, or takes more than 2,000 MB.
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
    names = Counter(name for name, *_ in inputs)
    if clashes := [name for name, n in names.items() if n > 1 or name in OUTPUTS]:
        expected = f"expected different names of columns, other than {', '.join(OUTPUTS)}"
        message = f"to_onnx: {expected}, got {clashes[0]!r}. Rename the column."
        raise ValueError(message)
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
        self.nodes, self.constants, self._mb = [], [], 0.0

    def constant(self, value):
        """Add an array, and return its name."""
        name, value = f"constant_{len(self.constants)}", np.asarray(value)
        self._mb += value.nbytes / 1e6
        if self._mb > MOST_MB:
            limit = f"to_onnx: expected a model of at most {MOST_MB:,.0f} MB, the limit of ONNX, got a larger one"
            message = f"{limit}; fit it with fewer support vectors, such as max_support=200."
            raise ValueError(message)
        self.constants.append(self._numpy_helper.from_array(value, name))
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
    is_klr = isinstance(model, (KLR, PartitionedKLR))
    expansion = model.model_ if is_klr else model
    has_leaves = isinstance(expansion, LeafModels)
    kernel = expansion.kernel if has_leaves else _kernel(expansion)
    if kernel is None or kernel.name not in OF_DISTANCES:
        expected = "KLR, PartitionedKLR, or a classifier with support vectors and kernel='rbf' or 'laplacian'"
        message = f"to_onnx: expected {expected}, got {model}."
        raise ValueError(message)
    if is_klr:
        rows = _scaled(graph, model, rows)
    elif hasattr(model, "feature_weights_"):
        rows = node("Mul", rows, constant(model.feature_weights_.astype(np.float64)))
    if has_leaves:
        f = _average(graph, expansion, rows)
    else:
        coef = np.atleast_2d(expansion.dual_coef_)
        if len(coef) != len(model.classes_) > 2:
            message = f"to_onnx: expected a model of all {len(model.classes_)} classes, got some of them."
            raise ValueError(message)
        f = _expansion(graph, kernel, expansion.support_vectors_, coef, rows)
        if np.any(intercept := getattr(expansion, "intercept_", 0.0)):
            f = node("Add", f, constant(np.atleast_1d(intercept)))
    temperature = None  # of a softmax
    if has_leaves:
        temperature = 1.0
    elif is_klr or getattr(expansion, "_is_softmax", bool)():
        temperature = getattr(model, "temperature_", 1.0)
    return _add_outputs(graph, model, f, temperature)


def _add_outputs(graph, model, f, temperature):
    """Add the label, from float64, and the other output; return as `_add_classifier`."""
    constant, node, classes = graph.constant, graph.node, model.classes_
    many = len(classes) > 2
    scores = f if many else node("Concat", node("Neg", f), f, axis=1)
    labels = constant(classes.astype(object) if classes.dtype.kind == "U" else classes)  # for onnx 1.15
    node("Gather", labels, node("ArgMax", scores, axis=1, keepdims=0), name="label")
    scores = node("Cast", scores, to=graph.float)
    if not hasattr(model, "predict_proba"):
        node("Cast", f, to=graph.float, name="decision")
    elif not many:
        node("Sigmoid", scores, name="probabilities")
    else:
        logs = node("Neg", node("Softplus", node("Neg", scores))) if temperature is None else scores
        node("Softmax", node("Div", logs, constant(np.float32(temperature or 1.0))), axis=1, name="probabilities")
    kind = next(initializer.data_type for initializer in graph.constants if initializer.name == labels)
    has_columns = many or hasattr(model, "predict_proba")
    return kind, len(classes) if has_columns else 1


def _scaled(graph, model, rows):
    """Add the nodes that scale and weight float64 rows as `KLR` does, in its precision."""
    constant, node, scaling = graph.constant, graph.node, model._scaling
    columns = scaling.columns
    lowest, highest = (constant(limits[columns]) for limits in scaling.limits)
    rows = node("Gather", rows, constant(columns), axis=1)
    rows = node("Min", node("Max", rows, lowest), highest)
    rows = node("Div", node("Sub", rows, constant(scaling.origin[columns])), constant(scaling.deviation[columns]))
    weights = model.feature_weights_[columns].astype(model._dtype)
    real = graph.float if model._dtype == np.float32 else graph.double
    rows = node("Mul", node("Cast", rows, to=real), constant(weights))
    return node("Cast", rows, to=graph.double)


def _expansion(graph, kernel, support, coef, rows):
    """Add the nodes of kernel expansions with coefficients (k, n_support) at float64 rows."""
    constant, node = graph.constant, graph.node
    Z = (support.toarray() if sp.issparse(support) else np.asarray(support)).astype(np.float64)
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
    return node("MatMul", values, constant(coef.T.astype(np.float64)))


def _average(graph, models, rows):
    """Add the nodes of `LeafModels`: logarithms of odds, or of multiples of probabilities."""
    constant, node, logs = graph.constant, graph.node, []
    for partition, leaves in zip(models.partitions, models.leaves, strict=True):
        f = _of_leaves(graph, leaves, models, _routed(graph, partition, rows), rows)
        logs.append(node("Unsqueeze", node("LogSoftmax", f, axis=1), constant(np.array([0]))))
    total = node("ReduceLogSumExp", node("Concat", *logs, axis=0), axes=[0], keepdims=0)
    return total if models.n_classes > 2 else node("MatMul", total, constant(np.array([[-1.0], [1.0]])))


def _routed(graph, partition, rows):
    """Add the nodes that find the number of the leaf of each row."""
    constant, node = graph.constant, graph.node
    n_nodes, d = partition.directions.shape
    ends = np.arange(n_nodes, 2 * n_nodes + 1)  # leaf k is the node n_nodes + k, whose children are itself
    following = np.where(partition.children < 0, n_nodes - 1 - partition.children, partition.children)
    following = np.concatenate([following.ravel(), np.repeat(ends, 2)])
    children = constant(following)
    directions = constant(np.vstack([partition.directions, np.zeros((len(ends), d))]))
    thresholds = constant(np.append(partition.thresholds, np.zeros(len(ends))))
    nodes = node("Cast", node("MatMul", rows, constant(np.zeros(d))), to=graph.int64)
    reached = np.array([0])
    while (reached < n_nodes).any():
        terms = node("Mul", rows, node("Gather", directions, nodes))
        values = node("ReduceSum", terms, constant(np.array([1])), keepdims=0)
        is_second = node("Cast", node("Greater", values, node("Gather", thresholds, nodes)), to=graph.int64)
        nodes = node("Gather", children, node("Add", node("Mul", nodes, constant(np.int64(2))), is_second))
        reached = np.unique(following[np.concatenate([2 * reached, 2 * reached + 1])])
    return node("Sub", nodes, constant(np.int64(n_nodes)))


def _of_leaves(graph, leaves, models, numbers, rows):
    """Add the nodes of scores (n, n_classes) of rows in the leaves with the given numbers.

    The softmax of the scores are the probabilities.
    """
    constant, node, k, T = graph.constant, graph.node, models.n_classes, models.temperature
    offsets = np.array([np.where(np.isin(np.arange(k), leaf.classes), 0.0, -leaf.margin) for leaf in leaves]) / T
    f = node("Gather", constant(offsets), numbers)
    for number, leaf in enumerate(leaves):
        if len(leaf.classes) == 1:
            continue
        coef = np.zeros((k, leaf.support.shape[0]))
        of_two = np.array([-leaf.coef, leaf.coef]) / (2 if k == 2 else 1) if leaf.coef.ndim == 1 else leaf.coef
        coef[leaf.classes] = of_two / T
        places = node("Transpose", node("NonZero", node("Equal", numbers, constant(np.int64(number)))))
        values = _expansion(graph, leaf.operands.kernel, leaf.support, coef, node("GatherND", rows, places))
        f = node("ScatterND", f, places, node("Add", values, constant(offsets[number])))
    return f


def _kernel(expansion):
    """Return the kernel of a fitted classifier with support vectors, otherwise None."""
    learner = (getattr(expansion, "estimators_", None) or [expansion])[0]  # all learners have the same kernel
    state = getattr(learner, "_state", None)
    holders = learner, state, getattr(state, "features", None)
    names = "_operands", "operands", "operands"
    operands = next(filter(None, map(getattr, holders, names, [None] * 3)), None)
    return getattr(operands, "kernel", None) if hasattr(expansion, "dual_coef_") else None

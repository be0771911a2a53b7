"""Decide whether a model file may be loaded: by its types, sizes and indices.

skops creates an object without calling its class, and then sets its attributes; so no code of a class that holds only
data runs when a file is loaded.  Trusted are the estimators of klr-bench and scikit-learn, the classes of which fitted
estimators consist (`CLASSES`), and functions that only compute.  The loaders must fit, because others call what they
load, and so do the types of keys.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from copy import copy
from io import BytesIO
from itertools import chain
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp
import sklearn.metrics
from numpy.lib import format
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting

from klr_bench.estimators.batch.partition import Partition
from klr_bench.estimators.core.rows import GrowingCSR
from klr_bench.estimators.kernel_values.bits import TwoValued

MODULES = re.compile(
    r"klr_bench\.(estimators|datasets)(\.\w+)+|sklearn(?!\S*\.(tests|externals|datasets|conftest|_testing))(\.\w+)+"
)
"""Names of the modules whose classes may be trusted; importing them changes nothing."""
CLASSES = {
    f"{module}.{name}"
    for module, names in {
        "klr_bench.datasets.column": "Column",
        "klr_bench.datasets.preprocessing": "Scaling",
        "klr_bench.estimators.batch.leaf": "Leaf",
        "klr_bench.estimators.batch.leaf_models": "LeafModels",
        "klr_bench.estimators.batch.partition": "Partition",
        "klr_bench.estimators.batch.scaling": "Scaling",
        "klr_bench.estimators.budget.bsgd_projection": "ProjectingState",
        "klr_bench.estimators.budget.duol": "DoubleState",
        "klr_bench.estimators.budget.merging": "MergingState",
        "klr_bench.estimators.budget.oskl": "FixedState",
        "klr_bench.estimators.budget.projectron_state": "ProjectronState",
        "klr_bench.estimators.core.kernels": "Kernel",
        "klr_bench.estimators.core.rows": "Growing GrowingCSR",
        "klr_bench.estimators.features.base": "Descent",
        "klr_bench.estimators.features.fogd": "FourierState",
        "klr_bench.estimators.features.nogd": "NystroemState",
        "klr_bench.estimators.kernel_values.bits": "PackedRows TwoValued",
        "klr_bench.estimators.kernel_values.features": "DrawnRows FourierFeatures KernelFeatures LinearFeatures",
        "klr_bench.estimators.kernel_values.operand_base": "Pairwise Precomputed",
        "klr_bench.estimators.kernel_values.operands": "Dense Indexed Packed",
        "klr_bench.estimators.linear.bcw": "WhitenedState",
        "klr_bench.estimators.linear.engine": "Blocked Diagonal Full",
        "klr_bench.estimators.linear.sofs": "SelectingState",
        "klr_bench.estimators.online.engine": "OnlineState Terms",
        "klr_bench.estimators.online.softmax": "SoftmaxState",
        "klr_bench.estimators.online.strategies": "StrategyState",
        "klr_bench.estimators.prototype.kernels": "PrototypeKernel",
        "klr_bench.estimators.prototype.model": "Layout Model",
        "sklearn.calibration": "_CalibratedClassifier",
        "sklearn.compose._column_transformer": "make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",  # `check_indices` checks its nodes
        "sklearn.gaussian_process.kernels": "ConstantKernel DotProduct Exponentiation Matern Product RBF "
        "RationalQuadratic Sum WhiteKernel",
        "sklearn.metrics._scorer": "_CurveScorer _PassthroughScorer _Scorer",
        "sklearn.model_selection._split": "GroupKFold KFold LeaveOneGroupOut LeaveOneOut PredefinedSplit RepeatedKFold "
        "RepeatedStratifiedKFold ShuffleSplit StratifiedGroupKFold StratifiedKFold StratifiedShuffleSplit "
        "TimeSeriesSplit",
        "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
        "sklearn.utils._bunch": "Bunch",
        "sklearn.utils._metadata_requests": "MetadataRequest MethodMetadataRequest",
    }.items()
    for name in names.split()
}
"""Trusted classes that are not estimators."""
CONTAINERS = {"DictNode": dict, "ListNode": list, "SetNode": set, "TupleNode": tuple}
"""Types that loaders call with their items, or of which they create subclasses."""
LOADERS = {
    *("DTypeNode", "FunctionNode", "JsonNode", "LossNode", "MaskedArrayNode", "NdArrayNode", "ObjectNode"),
    *("PartialNode", "RandomGeneratorNode", "RandomStateNode", "SliceNode", "SparseMatrixNode", "TypeNode"),
    *CONTAINERS,
}
"""Loaders of skops that fitted models need."""
NAMES = {
    "FunctionNode": {  # of NystroemKLR and PartitionedKLR; they call only what a loader may create
        "klr_bench.runner.executors._dask_rows.dask_rows",
        "klr_bench.runner.executors._dask_leaves.dask_leaves",
    },
    "PartialNode": {"functools.partial"},
    "DTypeNode": {"numpy.dtype"},
}
"""What else a loader may create."""
KEYS = {f"builtins.{kind.__name__}" for kind in (str, int, float, bool)} | {
    f"numpy.{kind.__name__}"
    for kind in np.sctypeDict.values()
    if issubclass(kind, np.bool_ | np.integer | np.floating | np.str_)
}
"""Types of keys; skops calls them with strings."""


def untrusted(names: Iterable[str], schema: Any) -> list[str]:
    """Return the types that are not trusted.

    `names` are those that skops does not trust, and `schema` is the content of schema.json in the file.
    """
    loaders: dict[str, set[str]] = {}
    for node in nodes(schema):
        loaders.setdefault(_name(node), set()).add(str(node["__loader__"]))
    refused = {name for name in names if not all(_is_trusted(name, loader) for loader in loaders.get(name, [""]))}
    return sorted(refused | {name for name, used in loaders.items() if not used <= LOADERS})


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the descriptions of all objects in the schema of a model file."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
            if "__loader__" in value:
                yield value
        elif isinstance(value, list):
            waiting += value


POOL_SIZE = 4
"""Default pool size of SeedSequence in NumPy."""
BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
"""Bit generators of NumPy.  skops calls the attribute of numpy.random that a file names."""


def check_nodes(schema: Any) -> None:
    """Raise ValueError if skops would call what a model file contains.

    Types of numbers and texts may be called.
    """
    for node in nodes(schema):
        loader, fault = node["__loader__"], ""
        if loader == "DictNode":
            kinds = node["key_types"]
            is_list = _name(kinds) == "builtins.list" and kinds["__loader__"] == "ListNode"
            if not (
                is_list and all(kind["__loader__"] == "TypeNode" and _name(kind) in KEYS for kind in kinds["content"])
            ):
                fault = "keys other than texts, numbers and truth values"
            elif len(kinds["content"]) != len(node["content"]):
                fault = "different keys that are written alike, such as 1 and '1'"
        elif loader == "PartialNode" and node["content"]["func"]["__loader__"] != "FunctionNode":
            fault = "a partial call of something other than a function"
        elif loader == "RandomGeneratorNode":
            name = node["content"]["bit_generator"]["content"]["bit_generator"]["content"]
            pool_size = node["content"]["seed_seq"]["content"]["pool_size"]["content"]  # in NumPy, takes its square
            if json.loads(name) not in BIT_GENERATORS or json.loads(pool_size) != POOL_SIZE:
                fault = "an unknown generator of random numbers"
        elif loader == "RandomStateNode":
            if json.loads(node["content"]["content"]["bit_generator"]["content"]) != "MT19937":
                fault = "a RandomState with another generator than MT19937"
        elif loader == "FunctionNode" and "content" in node:
            fault = "a function with two names"
        elif loader in ("NdArrayNode", "TypeNode") and _name(node) in ("numpy.void", "numpy.bytes_"):
            fault = f"the type {_name(node)}"  # called with a number, it takes as many bytes
        elif (loader == "MaskedArrayNode" and not all(_is_array(part) for part in node["content"].values())) or (
            loader == "NdArrayNode" and node["type"] == "json" and not _is_vector(node) and _has_files(node["content"])
        ):
            fault = "an array that copies its items"
        if fault:
            message = f"it contains {fault}"
            raise ValueError(message)


def _is_array(node: Any) -> bool:
    return bool(node["__loader__"] == "NdArrayNode")


def _is_vector(node: Any) -> bool:
    return node["shape"]["__loader__"] == "TupleNode" and len(node["shape"]["content"]) == 1


def _has_files(items: Any) -> bool:
    """Return True if items of an array, or of lists in it, are arrays in files."""
    waiting = [*items]
    while waiting:
        item = waiting.pop()
        if "file" in item or item["__loader__"] == "MaskedArrayNode":
            return True
        if item["__loader__"] in ("ListNode", "TupleNode", "NdArrayNode"):
            waiting += item["content"]
    return False


def _name(node: Any) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _is_trusted(name: str, loader: str) -> bool:
    if loader == "SparseMatrixNode":  # reads arrays, whatever the name
        return name.startswith("scipy.sparse.")
    if name in NAMES.get(loader, ()):
        return True
    found = _find(name)
    if isinstance(found, type):
        return _holds_data(name, found) if loader == "ObjectNode" else _is_container(name, found, loader)
    return loader == "FunctionNode" and _only_computes(name, found)


def _find(name: str) -> Any:
    """Return what a dotted name stands for, or None if it is not defined in one of the MODULES."""
    module, _, attribute = name.rpartition(".")
    if not MODULES.fullmatch(module):
        return None
    with suppress(Exception):
        found = getattr(importlib.import_module(module), attribute)
        return found if found.__module__ == module else None
    return None


def _holds_data(name: str, cls: type) -> bool:
    """Return True if a class is trusted.

    None of its code outside klr-bench runs when attributes are restored.
    """
    if name in CLASSES:
        return True
    create, restore = (getattr(cls, method, None) for method in ("__new__", "__setstate__"))
    is_plain = restore is BaseEstimator.__setstate__ or cls.__module__.startswith("klr_bench.")
    return issubclass(cls, BaseEstimator) and is_plain and create is object.__new__ and not hasattr(cls, "__del__")


def _is_container(name: str, cls: type, loader: str) -> bool:
    return name in CLASSES and loader in CONTAINERS and issubclass(cls, CONTAINERS[loader])


def _only_computes(name: str, function: Any) -> bool:
    """Return True for the public functions of sklearn.metrics: kernels, distances and scores."""
    module, _, attribute = name.rpartition(".")
    is_public = module == "sklearn.metrics.pairwise" or attribute in sklearn.metrics.__all__
    return module.startswith("sklearn.metrics.") and callable(function) and is_public and attribute[0] != "_"


class InflatedError(Exception):
    """Raised if the arrays of a model file need far more memory than the file."""


def check_references(schema: Any) -> None:
    """Raise ValueError if the schema refers to an object without describing it alike.

    skops describes an object again wherever it occurs, but loads only the first description.  References in place of
    descriptions could multiply the work of loading it exponentially, and other descriptions would not be checked.
    """
    hashes: dict[Any, int] = {}

    def hashed(value: Any) -> int:
        if isinstance(value, list):
            return hash(tuple(map(hashed, value)))
        if not isinstance(value, dict):
            return hash(value)
        parts = {key: hashed(part) for key, part in value.items() if key not in ("__id__", "file")}
        n = hash(tuple(parts.items()))
        if "__id__" in value and hashes.setdefault(value["__id__"], n) != n:
            message = "an object is described in two ways"
            raise ValueError(message)
        return n

    hashed(schema)


def check_members(archive: ZipFile, most: int) -> None:
    """Raise InflatedError if the members of an archive exceed `most` bytes.

    Raises ValueError if a member is larger than the archive says, or if its compression is none of those that unpack
    in pieces.
    """
    _check_total(sum(member.file_size for member in archive.infolist()), most)
    for member in archive.infolist():
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            message = f"{member.filename} has an unknown compression"
            raise ValueError(message)
        longer = copy(member)
        longer.file_size += 1
        with archive.open(longer) as content:
            if sum(map(len, iter(lambda: content.read(1 << 16), b""))) > member.file_size:
                message = f"{member.filename} is larger than the archive says"
                raise ValueError(message)


def check_sizes(archive: ZipFile, schema: Any, most: int) -> None:
    """Raise InflatedError if the arrays in the schema of a model file exceed `most` bytes.

    An array has the size that its header declares, and counts once for each object that refers to it.  Raises
    ValueError for a number that is an array, because its type would be called with the array.
    """
    total, counted = 0, set[tuple[str, ...]]()
    for node in nodes(schema):
        name, object_id, loader = (str(node.get(key, "")) for key in ("file", "__id__", "__loader__"))
        if object_id and (name, object_id, loader) in counted:
            continue
        counted.add((name, object_id, loader))
        if name and loader == "SparseMatrixNode":
            with archive.open(name) as member, ZipFile(member) as arrays:
                check_members(arrays, most)
                total += sum(_shape_and_size(arrays, part.filename)[1] for part in arrays.infolist())
        elif name:
            shape, size = _shape_and_size(archive, name)
            total += size
            if shape and loader == "NdArrayNode" and _name(node) != "numpy.ndarray":
                message = "it contains a number with several values"
                raise ValueError(message)
        _check_total(total, most)


def _check_total(size: int, most: int) -> None:
    if size > most:
        message = f"its arrays have more than {most:,} bytes"
        raise InflatedError(message)


def _shape_and_size(archive: ZipFile, name: str) -> tuple[tuple[int, ...], int]:
    """Return the shape of a stored array, and its size in bytes.

    The size is that of the member or, if it is larger, the one that the header of the array declares.
    """
    shape: tuple[int, ...] = ()
    declared = 0
    with archive.open(name) as member, suppress(ValueError):
        start = BytesIO(member.read(LONGEST_HEADER))
        read_header = {1: format.read_array_header_1_0, 2: format.read_array_header_2_0}[format.read_magic(start)[0]]
        shape, _, dtype = read_header(start)
        declared = math.prod(shape) * dtype.itemsize
    return shape, max(archive.getinfo(name).file_size, declared)


LONGEST_HEADER = 20_000
"""Number of bytes read to find the header of an array; NumPy accepts at most 10,000."""


def check_indices(model: Any) -> None:
    """Raise ValueError if a part of a model has indices that are out of bounds."""
    for part in _parts(model):
        matrix = part.rows if isinstance(part, GrowingCSR) else part
        if sp.issparse(matrix):
            if matrix.format not in ("csr", "csc"):
                message = f"expected a CSR or CSC matrix, got the format {matrix.format}"
                raise ValueError(message)
            if (np.diff(matrix.indptr) < 0).any():  # which SciPy does not check if the last one is 0
                message = "the rows of a sparse matrix have no order"
                raise ValueError(message)
            matrix.check_format(full_check=True)
        elif isinstance(part, BaseHistGradientBoosting):
            for predictor in chain.from_iterable(part._predictors):
                _check_tree(predictor, part.n_features_in_, part._bin_mapper.is_categorical_)
        elif isinstance(part, Partition):
            _check_partition(part)
        elif isinstance(part, TwoValued):
            columns = np.sort(np.concatenate([part.columns, part.rest]))
            if (
                columns.tolist() != list(range(len(columns)))
                or not part.columns.shape == part.base.shape == part.other.shape
            ):
                message = "two-valued features do not exist"
                raise ValueError(message)


def _check_partition(partition: Partition) -> None:
    children, n = partition.children, len(partition.children)
    below = children.astype(np.int64)
    is_valid = (
        children.shape == (n, 2)
        and children.dtype == np.int64
        and (len(partition.directions), partition.directions.ndim, partition.thresholds.shape) == (n, 2, (n,))
        and ((below > np.arange(n)[:, None]) & (below < n) | (below < 0) & (below >= -1 - n)).all()
    )
    if not is_valid:
        message = "a partition has nodes or leaves that do not exist"
        raise ValueError(message)


def _check_tree(predictor: Any, n_features: int, is_categorical: Any) -> None:
    tree, bits = predictor.nodes, predictor.raw_left_cat_bitsets
    inner = np.flatnonzero(tree["is_leaf"] == 0)
    below = np.concatenate([tree[side][inner].astype(np.int64) for side in ("left", "right")])
    features, places = tree["feature_idx"][inner], tree["bitset_idx"][inner][tree["is_categorical"][inner] > 0]
    is_valid = (
        len(tree) > 0
        and ((below > np.tile(inner, 2)) & (below < len(tree))).all()
        and ((features >= 0) & (features < n_features)).all()
        and (places < len(bits)).all()
        and (len(is_categorical), bits.shape[1:]) == (n_features, (8,))
    )
    if not is_valid:
        message = "a tree has nodes or features that do not exist"
        raise ValueError(message)


def _parts(model: Any) -> Iterator[Any]:
    """Yield all objects of a model."""
    waiting, seen = [model], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            if isinstance(part, dict):
                waiting += part.values()
            elif isinstance(part, list | tuple | set):
                waiting += part
            elif isinstance(part, np.ndarray) and part.dtype.hasobject:
                waiting += part.ravel().tolist()
            elif hasattr(part, "__dict__") and not isinstance(part, type):
                waiting += vars(part).values()

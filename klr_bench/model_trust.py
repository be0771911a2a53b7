"""Decide whether a model file may be loaded: by its types, sizes and indices.

skops creates an object without calling its class, and then sets its attributes; so no code of a class that holds only
data runs when a file is loaded.  Trusted are such classes of klr-bench and scikit-learn, and functions that only
compute.  They are found by the names in the file; the loaders there must fit, because others call what they load.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any
from zipfile import ZipFile

import numpy as np
import scipy.sparse as sp
import sklearn.metrics
from numpy.lib import format
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

MODULES = re.compile(
    r"klr_bench\.(estimators|datasets)(\.\w+)+|sklearn(?!\S*\.(tests|externals|datasets|conftest|_testing))(\.\w+)+"
)
"""Names of the modules whose classes may be trusted; importing them changes nothing."""
CONTAINERS = {"DictNode": dict, "ListNode": list, "SetNode": set, "TupleNode": tuple}
"""Types that loaders call with their items, or of which they create subclasses."""
NAMES = {
    "FunctionNode": {  # of NystroemKLR and PartitionedKLR; they call only what a loader may create
        "klr_bench.runner.executors._dask_rows.dask_rows",
        "klr_bench.runner.executors._dask_leaves.dask_leaves",
    },
    "PartialNode": {"functools.partial"},
    "DTypeNode": {"numpy.dtype"},
}
"""What else a loader may create."""


def untrusted(names: Iterable[str], schema: Any) -> list[str]:
    """Return those types that are not trusted, among those that skops does not trust.

    `schema` is the content of schema.json in the file.
    """
    loaders: dict[str, set[str]] = {}
    for node in nodes(schema):
        loaders.setdefault(f"{node.get('__module__')}.{node.get('__class__')}", set()).add(str(node["__loader__"]))
    return sorted(name for name in names if not all(_is_trusted(name, loader) for loader in loaders.get(name, [""])))


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


def _is_trusted(name: str, loader: str) -> bool:
    if loader == "SparseMatrixNode":  # reads arrays, whatever the name
        return name.startswith("scipy.sparse.")
    if name in NAMES.get(loader, ()):
        return True
    found = _find(name)
    if isinstance(found, type):
        return _holds_data(found) if loader in ("ObjectNode", "TypeNode") else _is_container(found, loader)
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


def _holds_data(cls: type) -> bool:
    """Return True if no code of a class outside klr-bench runs when its attributes are restored."""
    if cls is TreePredictor:
        return True  # `check_indices` checks its nodes
    create, restore = (getattr(cls, name, None) for name in ("__new__", "__setstate__"))
    is_plain = restore in (None, BaseEstimator.__setstate__) or cls.__module__.startswith("klr_bench.")
    return is_plain and create is object.__new__ and not hasattr(cls, "__del__")


def _is_container(cls: type, loader: str) -> bool:
    return loader in CONTAINERS and issubclass(cls, CONTAINERS[loader])


def _only_computes(name: str, function: Any) -> bool:
    """Return True for the public functions of sklearn.metrics: kernels, distances and scores."""
    module, _, attribute = name.rpartition(".")
    is_public = module == "sklearn.metrics.pairwise" or attribute in sklearn.metrics.__all__
    return module.startswith("sklearn.metrics.") and callable(function) and is_public and attribute[0] != "_"


class InflatedError(Exception):
    """Raised if the arrays of a model file need far more memory than the file."""


def check_references(schema: Any) -> None:
    """Raise ValueError if the schema refers to an object without describing it again in full.

    skops describes an object again wherever it occurs; references in place of descriptions could multiply the work of
    loading it exponentially.
    """
    counts: dict[Any, int] = {}

    def count(value: Any) -> int:
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        n = sum(map(count, children)) + isinstance(value, dict)
        if isinstance(value, dict) and "__id__" in value and counts.setdefault(value["__id__"], n) != n:
            message = "an object is described in two ways"
            raise ValueError(message)
        return n

    count(schema)


def check_sizes(archive: ZipFile, schema: Any, most: int) -> None:
    """Raise InflatedError if the arrays in the schema of a model file exceed `most` bytes.

    An array has the size that its header declares, and counts once for each object that refers to it.
    """
    total, counted = 0, set[tuple[str, ...]]()
    for node in nodes(schema):
        name, object_id, loader = (str(node.get(key, "")) for key in ("file", "__id__", "__loader__"))
        if object_id and (name, object_id, loader) in counted:
            continue
        counted.add((name, object_id, loader))
        if name and loader == "SparseMatrixNode":
            with archive.open(name) as member, ZipFile(member) as arrays:
                total += sum(_size(arrays, part.filename) for part in arrays.infolist())
        elif name:
            total += _size(archive, name)
        if total > most:
            message = f"its arrays have more than {most:,} bytes"
            raise InflatedError(message)


def _size(archive: ZipFile, name: str) -> int:
    """Return the size of a member or, if it is larger, that of the array in it."""
    declared = 0
    with archive.open(name) as member, suppress(ValueError):
        read_header = {1: format.read_array_header_1_0, 2: format.read_array_header_2_0}[format.read_magic(member)[0]]
        shape, _, dtype = read_header(member)
        declared = math.prod(shape) * dtype.itemsize
    return max(archive.getinfo(name).file_size, declared)


def check_indices(model: Any) -> None:
    """Raise ValueError if trees or sparse matrices have indices out of bounds."""
    for part in _parts(model):
        if isinstance(part, sp.csr_matrix | sp.csc_matrix | sp.csr_array | sp.csc_array):
            part.check_format(full_check=True)
        elif isinstance(part, BaseHistGradientBoosting):
            for predictor in chain.from_iterable(part._predictors):
                _check_tree(predictor, part.n_features_in_, part._bin_mapper.is_categorical_)


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

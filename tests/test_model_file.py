"""Model files: every classifier, with every kernel and in every wrapper, can be stored; hostile files are refused."""

import inspect
import io
import json
import re
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.experimental.enable_halving_search_cv  # noqa: F401
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import chi2_kernel, cosine_similarity, rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import all_estimators

from klr_bench import (
    OSKL,
    DualCDKLR,
    NystroemKLR,
    PartitionedKLR,
    PassiveAggressive,
    TablePreparer,
    dask_leaves,
    dask_rows,
    load_model,
    model_file,
    save_model,
)
from klr_bench.errors import KlrBenchError
from klr_bench.model_file import ABOUT, SCHEMA, SMALLEST_JSON, check_storable
from tests.estimators.samples import CLASSIFIERS, small

pytestmark = pytest.mark.filterwarnings("ignore")
RANDOM = np.random.default_rng(0)
Y = np.arange(40) % 2
X = np.abs(RANDOM.standard_normal((40, 3))) + Y[:, None]
TABLE = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.array(["u", "v", "w", "x"])[RANDOM.integers(0, 4, 40)])


def kernels_of(name: str) -> list[Any]:
    """Return the kernels that a classifier accepts, functions of scikit-learn where it takes functions."""
    constraints = CLASSIFIERS[name]._parameter_constraints.get("kernel", [])
    names = [kernel for constraint in constraints for kernel in sorted(getattr(constraint, "options", ()))]
    functions = [chi2_kernel, cosine_similarity, partial(rbf_kernel, gamma=0.3)] if callable in constraints else []
    return [*names, *functions] or [None]


def method_of(model: Any) -> Any:
    """Return the most informative prediction method of a model."""
    names = ("decision_function", "predict_proba", "predict", "transform")
    return next(getattr(model, name) for name in names if hasattr(model, name))


def check_stored(model: Any, rows: Any, path: Path) -> Any:
    """Store and load a fitted model, and check that it predicts the same; return it."""
    save_model(model, path)
    loaded = load_model(path)
    np.testing.assert_allclose(method_of(loaded)(rows), method_of(model)(rows), rtol=1e-12)
    assert repr(loaded) == repr(model)
    return loaded


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_kernel_can_be_stored(name: str, tmp_path: Path) -> None:
    kernels, stored = kernels_of(name), []
    for kernel in kernels:
        model = CLASSIFIERS[name](**({"kernel": kernel} if kernel else {}))
        rows = rbf_kernel(X) if kernel == "precomputed" else X
        small(model, random_state=0, n_components=20, max_iter=20, max_rounds=0)
        with suppress(*[ValueError] * (kernel == "sigmoid")):  # some solvers refuse it
            check_stored(model.fit(rows, Y), rows, tmp_path / "model.skops")
            stored.append(kernel)
    assert [kernel for kernel in kernels if kernel not in stored] in ([], ["sigmoid"])
    check_storable(model)


WRAPPERS = {
    name: cls
    for name, cls in all_estimators()
    if {"estimator", "estimators", "steps"} & set(inspect.signature(cls).parameters) and "Regressor" not in name
}
"""The estimators of scikit-learn that wrap classifiers, by name."""
TWO_OUTPUTS = np.column_stack([Y, 1 - Y])
MEMBERS: list[tuple[Callable[[], Any], Any, Any]] = [
    (lambda: make_pipeline(TablePreparer(), OSKL(random_state=0)), TABLE, Y),
    (lambda: make_pipeline(TablePreparer(), OSKL(random_state=0)), TABLE[["a", "b", "c"]], TWO_OUTPUTS),
    (lambda: OSKL(random_state=0), X, Y),
    (lambda: PassiveAggressive(), X, Y),  # with coef_
]
"""Classifiers to wrap, with rows and labels; a wrapper gets the first that suits it."""


def wrapped(cls: type, member: Callable[[], Any], rows: Any, y: Any) -> Any:
    """Return a fitted wrapper of a classifier."""
    gamma = "oskl__gamma" if isinstance(member(), Pipeline) else "gamma"
    values = {
        "estimator": member(),
        "final_estimator": OSKL(random_state=0),
        "estimators": [("one", member()), ("other", member())],
        "steps": [("one", TablePreparer()), ("other", OSKL(random_state=0))],
        "param_grid": {gamma: [0.1, 1.0]},
        "param_distributions": {gamma: [0.1, 1.0, 2.0]},
        "n_iter": 2,
        "n_estimators": 3,
        "random_state": 0,
        "scoring": "f1" if "Search" in cls.__name__ else None,
    }
    parameters = inspect.signature(cls).parameters
    if cls is FrozenEstimator:
        values["estimator"].fit(rows, y)
    return cls(**{name: value for name, value in values.items() if name in parameters and value is not None}).fit(
        rows, y
    )


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_classifier_in_every_wrapper_can_be_stored(name: str, tmp_path: Path) -> None:
    reasons = []
    for member, rows, y in MEMBERS:
        try:
            model = wrapped(WRAPPERS[name], member, rows, y)
            method_of(model)(rows)
        except (ValueError, TypeError, AttributeError) as error:
            reasons.append(error)
        else:
            assert type(check_stored(model, rows, tmp_path / "model.skops")) is WRAPPERS[name]
            return
    raise AssertionError(reasons)


def test_a_model_fitted_on_dask_workers_can_be_stored(tmp_path: Path) -> None:
    from distributed import Client

    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None):
        rows = NystroemKLR(10, gamma=2.0, random_state=0, map_rows=dask_rows).fit(X, Y)
        leaves = PartitionedKLR(30, max_rounds=0, cv=2, random_state=0, map_leaves=dask_leaves).fit(X, Y)
    assert check_stored(rows, X, tmp_path / "rows.skops").map_rows is dask_rows
    assert check_stored(leaves, X, tmp_path / "leaves.skops").map_leaves is dask_leaves


def own_kernel(X: Any, Z: Any = None) -> Any:
    return X if Z is None else X @ Z.T


class OwnClassifier(LogisticRegression):
    pass


@pytest.mark.parametrize(
    ("model", "types"),
    [
        (DualCDKLR(kernel=own_kernel), f"the type {__name__}.own_kernel"),
        (DualCDKLR(kernel=lambda X, Z: X @ Z.T), f"the type {__name__}.<lambda>"),
        (make_pipeline(FunctionTransformer(own_kernel), OwnClassifier()), f"the types {__name__}.OwnClassifier, "),
        (RandomForestClassifier(), "the type sklearn.tree._tree.Tree"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_the_fit(model: Any, types: str, tmp_path: Path) -> None:
    with pytest.raises(KlrBenchError, match=f"cannot be stored: load_model would refuse {re.escape(types)}"):
        check_storable(model)
    with pytest.raises(KlrBenchError, match="cannot be stored"):
        save_model(model if isinstance(model, DualCDKLR) else model.fit(X, Y), tmp_path / "model.skops")


def test_a_model_that_is_too_large_to_load_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "LARGEST_MODEL", 1000)
    with pytest.raises(KlrBenchError, match="load_model would refuse arrays of more than 1,000 bytes"):
        model_file.dump(PassiveAggressive().fit(np.eye(40), np.arange(40) % 2))


def test_a_model_of_zeros_can_be_stored(tmp_path: Path) -> None:
    rows = sp.random(20, 1_000_000, 1e-6, format="csr", random_state=0)
    model = PassiveAggressive().fit(rows, np.arange(20) % 2)
    check_stored(model, rows, tmp_path / "model.skops")
    assert (tmp_path / "model.skops").stat().st_size < 500_000


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "model.skops"
    save_model(make_pipeline(TablePreparer(), OSKL(random_state=0)).fit(TABLE, Y), path)
    return path


def changed(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Change the members of a model file, and return its path."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def array_of(members: dict[str, bytes]) -> str:
    """Return the name of an array in a model file."""
    return next(name for name in members if name.endswith(".npy"))


def with_lists(name: str, piece: bytes, size: int) -> Callable[[dict[str, bytes]], None]:
    """Return a function that adds many lists to a JSON member, so that it has a size."""

    def change(members: dict[str, bytes]) -> None:
        members[name] = members[name].rstrip()[:-1] + b',"x":[' + piece * (size // len(piece)) + b"0]}"

    return change


def with_zeros(members: dict[str, bytes]) -> None:
    content = io.BytesIO()
    np.save(content, np.zeros(20_000_000))
    members[array_of(members)] = content.getvalue()


def with_long_header(members: dict[str, bytes]) -> None:
    content = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**10,)}
    np.lib.format.write_array_header_1_0(content, header)
    members[array_of(members)] = content.getvalue()


def with_zeros_in_a_sparse_matrix(members: dict[str, bytes]) -> None:
    content = io.BytesIO()
    sp.save_npz(content, sp.csr_matrix((np.zeros(20_000_000), np.zeros(20_000_000, int), [0, 20_000_000]), (1, 1)))
    members["zeros.npz"] = content.getvalue()
    node = {"__class__": "csr_matrix", "__module__": "scipy.sparse._csr", "__loader__": "SparseMatrixNode"}
    add_node(members, node | {"type": "scipy", "file": "zeros.npz"})


def with_many_references(members: dict[str, bytes]) -> None:
    node = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy"}
    content = io.BytesIO()
    np.save(content, RANDOM.standard_normal(10_000))
    members["again.npy"] = content.getvalue()
    add_node(members, *[node | {"file": "again.npy"}] * 1000)


def with_a_header_of_blanks(members: dict[str, bytes]) -> None:
    n = 60_000_000
    members[array_of(members)] = b"\x93NUMPY\x02\x00" + n.to_bytes(4, "little") + b" " * n


def array_node(members: dict[str, bytes], array: Any, kind: str = "ndarray") -> dict[str, Any]:
    """Add an array to the members, and return the description of an object of a type of NumPy with this content."""
    name, content = f"{len(members)}.npy", io.BytesIO()
    np.save(content, array)
    members[name] = content.getvalue()
    node = {"__class__": kind, "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy"}
    return node | {"file": name, "__id__": len(members)}


def with_copies_in_an_array(members: dict[str, bytes]) -> None:
    content = [array_node(members, np.zeros(100_000, np.uint8))] * 1000
    shape = node_of("tuple", "TupleNode", [json_node(1000), json_node(100_000)])
    add_node(members, node_of("ndarray", "NdArrayNode", content, "numpy", type="json", shape=shape))


def with_copies_in_a_masked_array(members: dict[str, bytes]) -> None:
    content = {"data": node_of("list", "ListNode", [array_node(members, np.zeros(100_000, np.uint8))] * 1000)}
    content["mask"] = array_node(members, np.False_, "bool")
    add_node(members, node_of("MaskedArray", "MaskedArrayNode", content, "numpy.ma"))


def with_an_array_as_a_number(members: dict[str, bytes]) -> None:
    add_node(members, array_node(members, np.zeros(1_000_000, np.uint8), "clongdouble"))


def with_many_bytes(members: dict[str, bytes]) -> None:
    add_node(members, array_node(members, np.array(10**9), "bytes_"))


def with_a_large_pool(members: dict[str, bytes]) -> None:
    seeds = {"entropy": 1, "spawn_key": [], "pool_size": 10**9, "n_children_spawned": 0}
    state = np.random.default_rng(0).bit_generator.state
    content = {
        "bit_generator": dict_node({"bit_generator": json_node("PCG64"), "state": json_node(state["state"])}),
        "seed_seq": dict_node({name: json_node(value) for name, value in seeds.items()}),
    }
    add_node(members, node_of("Generator", "RandomGeneratorNode", content, "numpy.random._generator"))


def add_node(members: dict[str, bytes], *nodes: Any) -> None:
    """Add objects to the attributes of the model."""
    schema = json.loads(members[SCHEMA])
    schema["content"]["content"] |= {f"x{number}": node for number, node in enumerate(nodes)}
    key_types = schema["content"]["key_types"]["content"]
    key_types += [key_types[0]] * len(nodes)
    members[SCHEMA] = json.dumps(schema).encode()


BOMBS = {
    **{
        f"{kind} in {name}": (with_lists(name, piece, size), message)
        for name in (SCHEMA, ABOUT)
        for kind, piece, size, message in (
            ("large lists", b'["23456789012345678901"],', SMALLEST_JSON, f"at most {SMALLEST_JSON:,} bytes"),
            ("empty lists", b"[],", SMALLEST_JSON // 4, "at most one list per 20 bytes"),
        )
    },
    "zeros": (with_zeros, "its arrays have more than"),
    "a long header": (with_long_header, "its arrays have more than"),
    "zeros in a sparse matrix": (with_zeros_in_a_sparse_matrix, "its arrays have more than"),
    "many references": (with_many_references, "its arrays have more than"),
    "a header of blanks": (with_a_header_of_blanks, "the model cannot be loaded|its arrays have more than"),
    "copies in an array": (with_copies_in_an_array, "an array that copies its items"),
    "copies in a masked array": (with_copies_in_a_masked_array, "an array that copies its items"),
    "an array as a number": (with_an_array_as_a_number, "a number with several values"),
    "many bytes": (with_many_bytes, r"the type numpy\.bytes_"),
    "a large pool": (with_a_large_pool, "an unknown generator of random numbers"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(stored: Path, bomb: str) -> None:
    change, message = BOMBS[bomb]
    changed(stored, change)
    tracemalloc.start()
    with pytest.raises(KlrBenchError, match=message):
        load_model(stored)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * stored.stat().st_size + 30e6


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("is_array", [False, True])
def test_a_member_that_is_larger_than_it_says_is_refused(stored: Path, method: int, *, is_array: bool) -> None:
    with zipfile.ZipFile(stored) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = array_of(members) if is_array else ABOUT
    start, large = members[name], members[name] + b" " * 100_000_000
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
        for other in members:
            archive.writestr(other, large if other == name else members[other], method if other == name else None)
    content = stored.read_bytes()
    for number, claimed in ((len(large), len(start)), (zlib.crc32(large), zlib.crc32(start))):
        content = content.replace(number.to_bytes(4, "little"), claimed.to_bytes(4, "little"))
    del large
    stored.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(KlrBenchError, match=r"an unknown compression|is larger than the archive says|Bad CRC-32"):
        load_model(stored)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6


def test_a_reference_in_place_of_a_description_is_refused(stored: Path) -> None:
    """Each list contains the one before twice, so that skops would inspect the first 2^40 times."""

    def change(members: dict[str, bytes]) -> None:
        node: Any = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "1"}
        for number in range(40):
            content = [node, {"__id__": number, "__loader__": "ListNode"}]
            node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "__id__": number + 1}
            node["content"] = content
        add_node(members, node)

    changed(stored, change)
    with pytest.raises(KlrBenchError, match="an object is described in two ways"):
        load_model(stored)


HOSTILE = [
    ("os", "system", "FunctionNode", "os.system"),
    ("builtins", "eval", "FunctionNode", "builtins.eval"),
    ("klr_bench.estimators.core.jit", "compile_all", "FunctionNode", "compile_all"),
    ("klr_bench.estimators.core.jit", "ByDtype", "ObjectNode", "ByDtype"),
    ("klr_bench.estimators.core.jit", "FunctionArgument", "ObjectNode", "FunctionArgument"),
    ("klr_bench.estimators.online.engine", "OnlineState", "TypeNode", "OnlineState"),
    ("klr_bench.datasets.stream_cache", "StreamCache", "ObjectNode", "StreamCache"),
    ("sklearn.utils.parallel", "_FuncWrapper", "ObjectNode", "_FuncWrapper"),
    ("sklearn.utils.deprecation", "deprecated", "ObjectNode", "deprecated"),
    ("builtins", "bytes", "BytesNode", "builtins.bytes"),
    ("klr_bench", "save_model", "FunctionNode", "klr_bench.save_model"),
    ("klr_bench.model_file", "save_model", "FunctionNode", "save_model"),
    ("klr_bench.datasets.stream_cache", "StreamCache", "ConstructorFromReduceNode", "StreamCache"),
    ("sklearn.utils._testing", "TempMemmap", "ObjectNode", "TempMemmap"),
    ("sklearn.tree._tree", "Tree", "ObjectNode", "Tree"),
    ("sklearn.neighbors._kd_tree", "KDTree64", "ObjectNode", "KDTree64"),
    ("sklearn.metrics._scorer", "_Scorer", "ListNode", "_Scorer"),
    ("scipy.stats._continuous_distns", "norm_gen", "ObjectNode", "norm_gen"),
    ("klr_bench.__main__", "main", "FunctionNode", "main"),
]


@pytest.mark.parametrize(
    ("module", "name", "loader", "message"), HOSTILE, ids=[f"{entry[1]}-{entry[2]}" for entry in HOSTILE]
)
def test_no_other_type_is_loaded(stored: Path, module: str, name: str, loader: str, message: str) -> None:
    empty = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": []}
    content: Any = [] if loader == "ListNode" else empty
    node = {"__class__": name, "__module__": module, "__loader__": loader, "content": content, "file": ABOUT}
    if loader == "FunctionNode":
        del node["content"]
    changed(stored, lambda members: add_node(members, node))
    with pytest.raises(KlrBenchError, match=rf"contains the types? .*{message}.*, which klr-bench does not load"):
        load_model(stored)


@pytest.mark.parametrize(
    ("field", "value"), [("left", 10**6), ("right", 0), ("feature_idx", 5), ("feature_idx", -1), ("is_leaf", 0)]
)
def test_a_tree_with_wrong_indices_is_refused(tmp_path: Path, field: str, value: int) -> None:
    model = HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=2).fit(X, Y)
    check_stored(model, X, tmp_path / "model.skops")
    nodes = model._predictors[0][0].nodes
    place = np.flatnonzero(nodes["is_leaf"] == (field == "is_leaf"))[-1]
    nodes[field][place] = value
    save_model(model, tmp_path / "model.skops")
    with pytest.raises(KlrBenchError, match="a tree has nodes or features that do not exist"):
        load_model(tmp_path / "model.skops")


def test_a_sparse_matrix_with_wrong_indices_is_refused(tmp_path: Path) -> None:
    model = OSKL(random_state=0).fit(sp.csr_matrix(X), Y)
    model.extra = sp.csr_matrix(X)
    model.extra.indices[3] = 10**6
    save_model(model, tmp_path / "model.skops")
    with pytest.raises(KlrBenchError, match="the model cannot be loaded"):
        load_model(tmp_path / "model.skops")


def json_node(value: Any) -> dict[str, Any]:
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value)}


def node_of(kind: str, loader: str, content: Any, module: str = "builtins", **more: Any) -> dict[str, Any]:
    return {"__class__": kind, "__module__": module, "__loader__": loader, "content": content, **more}


def dict_node(entries: dict[str, Any], *kinds: Any) -> dict[str, Any]:
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
    key_types = node_of("list", "ListNode", [*kinds] or [text] * len(entries))
    return node_of("dict", "DictNode", entries, key_types=key_types)


def function_node(name: str) -> dict[str, Any]:
    return {"__class__": name, "__module__": "sklearn.metrics.pairwise", "__loader__": "FunctionNode"}


def evaluated(payload: str) -> dict[str, Any]:
    """Return a kernel whose signature numba would evaluate."""
    of_all = [function_node("paired_euclidean_distances"), node_of("list", "ListNode", [json_node(payload)])]
    attributes = {
        "_places": node_of("list", "ListNode", []),
        "variants": dict_node({}),
        "_of_all": node_of("tuple", "TupleNode", [*of_all, dict_node({})]),
    }
    return node_of("ByDtype", "ObjectNode", dict_node(attributes), "klr_bench.estimators.core.jit")


def parts_of(node: Any, name: str) -> list[dict[str, Any]]:
    """Return the descriptions of all objects of a class or function."""
    if isinstance(node, list):
        return [part for value in node for part in parts_of(value, name)]
    if not isinstance(node, dict):
        return []
    return [node] * (node.get("__class__") == name) + parts_of([*node.values()], name)


@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "partial"])
def test_a_kernel_that_would_run_code_is_refused_before_anything_is_called(tmp_path: Path, *, wrapped: bool) -> None:
    path, mark = tmp_path / "model.skops", tmp_path / "executed"
    save_model(DualCDKLR(kernel=cosine_similarity, random_state=0).fit(X, Y), path)
    kernel = evaluated(f"__import__('pathlib').Path({str(mark)!r}).write_text('x')")
    if wrapped:
        empty = node_of("tuple", "TupleNode", [])
        content = {"func": kernel, "args": empty, "kwds": dict_node({}), "namespace": json_node(None)}
        kernel = node_of("partial", "PartialNode", content, "functools")

    def change(members: dict[str, bytes]) -> None:
        schema = json.loads(members[SCHEMA])
        for node in parts_of(schema, "cosine_similarity"):
            node.clear()
            node.update(kernel)
        members[SCHEMA] = json.dumps(schema).encode()

    with pytest.raises(KlrBenchError, match=r"ByDtype, which klr-bench does not load|other than a function"):
        load_model(changed(path, change)).predict(X)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (dict_node({"x": json_node(1)}, function_node("cosine_similarity")), "keys other than texts"),
        (
            dict_node({"x": json_node(1)}, node_of("OSKL", "TypeNode", 0, "klr_bench.estimators.online.oskl")),
            "keys other",
        ),
        (dict_node({"x": json_node(1)}, node_of("map", "TypeNode", 0)), "keys other than texts"),
        (
            dict_node({"x": json_node(1), "y": json_node(1)}, node_of("str", "TypeNode", 0)),
            "keys that are written alike",
        ),
        (node_of("cosine_similarity", "FunctionNode", {}, "sklearn.metrics.pairwise"), "a function with two names"),
        (node_of("void", "NdArrayNode", [], "numpy", type="json", shape=json_node([0])), "numpy.void"),
    ],
)
def test_nothing_else_that_skops_calls_is_loaded(stored: Path, node: dict[str, Any], message: str) -> None:
    changed(stored, lambda members: add_node(members, node))
    with pytest.raises(KlrBenchError, match=message):
        load_model(stored)


def test_another_description_of_the_same_object_is_refused(stored: Path) -> None:
    first = function_node("cosine_similarity") | {"__id__": 1}
    second = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode", "__id__": 1}
    changed(stored, lambda members: add_node(members, first, dict_node({"x": json_node(1)}, second)))
    with pytest.raises(KlrBenchError, match="an object is described in two ways"):
        load_model(stored)


@pytest.mark.parametrize("kind", [bool, np.bool_])
def test_weights_of_truth_values_are_kept(kind: type, tmp_path: Path) -> None:
    weights = {kind(False): 3.0, kind(True): 1.0}
    model = DualCDKLR(class_weight=weights).fit(X, Y == 1)
    loaded = check_stored(model, X, tmp_path / "model.skops")
    assert loaded.class_weight == weights
    assert list(map(type, loaded.class_weight)) == [kind, kind]
    assert check_stored(loaded, X, tmp_path / "model.skops").class_weight == weights


def test_keys_that_are_written_alike_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KlrBenchError, match="keys that are written alike, such as 1 and '1'"):
        save_model(DualCDKLR(class_weight={1: 2.0, "1": 3.0}), tmp_path / "model.skops")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_model_that_joblib_has_mapped_can_be_stored(name: str, tmp_path: Path) -> None:
    model = small(CLASSIFIERS[name](), random_state=0, n_components=20, max_iter=20, max_rounds=0).fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    check_stored(joblib.load(tmp_path / "model.joblib", mmap_mode="r"), X, tmp_path / "model.skops")


def test_libraries_of_a_later_version_are_not_named(stored: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        about = json.loads(members[ABOUT])
        about["versions"] |= {"scipy\x1b[31m" + "x" * 1000: "1.20", "numpy": "9.0"}
        members[ABOUT] = json.dumps(about).encode()

    with pytest.warns(UserWarning, match="it was written with numpy 9.0; this is") as caught:
        load_model(changed(stored, change))
    assert all("scipy" not in str(warning.message) for warning in caught)


ROWS = RANDOM.standard_normal((300, 3))


@pytest.mark.parametrize("value", [0, 1, 10**12, -(10**6)])
@pytest.mark.parametrize("place", [0, -1])
def test_a_partition_with_wrong_nodes_is_refused(value: int, place: int, tmp_path: Path) -> None:
    model = PartitionedKLR(60, max_rounds=0, cv=2, random_state=0).fit(ROWS, ROWS[:, 0] > 0)
    for partition in model.model_.partitions:
        partition.children[place, 0] = value if (place, value) != (0, 1) else 0
    save_model(model, tmp_path / "model.skops")
    with pytest.raises(KlrBenchError, match="a partition has nodes or leaves that do not exist"):
        load_model(tmp_path / "model.skops")


@pytest.mark.parametrize(
    ("part", "value"),
    [*(("_indices", value) for value in (2**30, 9000, -1)), *(("_indptr", value) for value in (0, -(10**6), 10**12))],
)
def test_support_vectors_with_wrong_indices_are_refused(part: str, value: int, tmp_path: Path) -> None:
    rows = sp.random(60, 9000, 0.01, format="csr", random_state=0)
    model = OSKL(random_state=0).fit(rows, np.arange(60) % 2)
    getattr(model._state.support, part).rows[-1] = value
    save_model(model, tmp_path / "model.skops")
    with pytest.raises(KlrBenchError, match="the model cannot be loaded"):
        load_model(tmp_path / "model.skops")


def test_a_sparse_matrix_of_another_format_is_refused(tmp_path: Path) -> None:
    model = OSKL(random_state=0).fit(X, Y)
    for layout in ("bsr", "coo", "dia"):
        model.extra = sp.csr_matrix(X).asformat(layout)
        save_model(model, tmp_path / "model.skops")
        with pytest.raises(KlrBenchError, match=f"expected a CSR or CSC matrix, got the format {layout}"):
            load_model(tmp_path / "model.skops")


def edits(array: np.ndarray) -> list[np.ndarray]:
    """Return an array with other shapes, and with other numbers."""
    edited = [array[:0], array[:1], array[:-1], array[None], np.concatenate([array, array])] if array.ndim else []
    edited += [array[:, :-1], array[:, :0], np.hstack([array, array]), array.T.copy()] if array.ndim == 2 else []
    numbers = {"i": [-1, 0, 10**6, 2**62], "f": [np.nan, 1e300, -1e300]}.get(array.dtype.kind, [])
    with np.errstate(all="ignore"):
        return edited + [np.full_like(array, np.array(number).astype(array.dtype)) for number in numbers]


CHILD = """
import resource, sys
import numpy as np
import scipy.sparse as sp
from klr_bench import load_model
from klr_bench.errors import KlrBenchError
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
rows = sp.load_npz(sys.argv[1])
rows = rows if sys.argv[2] == "csr" else rows.toarray()
for path in sys.argv[3:]:
    try:
        np.seterr(all="ignore")
        load_model(path).predict(rows)
        print("predicted")
    except (KlrBenchError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError):
        print("refused")
"""
OFTEN = {
    "OSKL": "csr", "DUOL": "bits", "FOGD": "dense", "NOGD": "csr", "PartitionedKLR": "dense", "PrototypeKLR": "bits",
}  # fmt: skip
"""Classifiers with states of their own, and the rows with which every run of the tests damages their files."""


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        pytest.param(name, layout, marks=[] if OFTEN.get(name) == layout else [pytest.mark.exhaustive])
        for name in sorted(CLASSIFIERS)
        for layout in ("dense", "bits", *(["csr"] if name in OFTEN else []))
    ],
)
def test_a_damaged_array_neither_crashes_nor_hangs_a_prediction(name: str, layout: str, tmp_path: Path) -> None:
    rows = {
        "dense": sp.csr_matrix(X.astype(np.float32)),
        "bits": sp.csr_matrix((np.abs(ROWS[:40] @ ROWS[:70].T) > 1) * 1.0),
    }
    rows["csr"] = sp.random(40, 9000, 0.01, format="csr", random_state=0)
    data, kind = rows[layout], "csr" if layout == "csr" else "dense"
    model = small(CLASSIFIERS[name](), random_state=0, n_components=20, max_iter=20, max_rounds=0)
    save_model(model.fit(data if kind == "csr" else data.toarray(), Y), tmp_path / "model.skops")
    with zipfile.ZipFile(tmp_path / "model.skops") as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    changes: list[dict[str, bytes]] = [{}]
    for member in members:
        for edited in edits(np.load(io.BytesIO(members[member]))) if member.endswith(".npy") else []:
            content = io.BytesIO()
            np.save(content, edited)
            changes.append({member: content.getvalue()})
    paths = [tmp_path / f"{number}.skops" for number in range(len(changes))]
    for path, changed in zip(paths, changes, strict=True):
        with zipfile.ZipFile(path, "w") as archive:
            for member, value in (members | changed).items():
                archive.writestr(member, value)
    sp.save_npz(tmp_path / "rows.npz", data)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "rows.npz"), kind, *map(str, paths)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    whole, *damaged = done.stdout.split()
    assert (whole, len(damaged)) == ("predicted", len(changes) - 1)
    assert "refused" in damaged


def test_a_generator_that_cannot_be_loaded_is_not_saved(tmp_path):
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) % 2
    model = OSKL(random_state=np.random.RandomState(np.random.PCG64(3))).fit(X, y)
    with pytest.raises(KlrBenchError, match=r"cannot be stored .*RandomState with another generator than MT19937"):
        save_model(model, tmp_path / "model.skops")

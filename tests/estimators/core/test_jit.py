"""Compilation: only when needed, once for all processes, and for the declared types."""

import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numba import float32, float64

from klr_bench.estimators.core import jit
from klr_bench.estimators.core.jit import compile_all, compiled
from tests.conftest import ROOT
from tests.estimators.samples import CLASSIFIERS, small, toy

FIT = """
import json, sys
import numpy as np
from numba import config
before = config.CACHE_DIR
from klr_bench import KernelPerceptron
from klr_bench.estimators.core.jit import cache_folder
from klr_bench.estimators.online import engine
assert config.CACHE_DIR == before
imported = len(list(cache_folder().rglob("*.nbc")))
X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype="float32")
model = KernelPerceptron(shuffle=False).fit(X, [0, 1, 0, 1])
dispatchers = list(engine._recursion.variants.values())
hits = sum(sum(dispatcher.stats.cache_hits.values()) for dispatcher in dispatchers)
signatures = [str(signature) for dispatcher in dispatchers for signature in dispatcher.signatures]
print(json.dumps([str(cache_folder()), imported, hits, signatures, model.decision_function(X).tolist()]))
"""


def signatures(function):
    """Return the signatures for which a function has been compiled."""
    compiled_apart = function.variants.values() if hasattr(function, "variants") else [function]
    whole = [vars(function)["whole"]] if "whole" in vars(function) else []
    return [signature for variant in (*compiled_apart, *whole) for signature in variant.signatures]


def in_new_process(folder):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, check=True)
    folder, *numbers = json.loads(done.stdout)
    return Path(folder), *numbers, done.stderr


@pytest.mark.exhaustive
def test_a_fit_compiles_what_it_needs_once_for_all_processes(tmp_path):
    folder, imported, hits, compiled_for, values, log = in_new_process(tmp_path)
    assert (folder.parent, imported, hits, len(compiled_for)) == (tmp_path, 0, 0, 1)
    assert "float32" in compiled_for[0]
    assert {path.name.split(".")[0] for path in folder.rglob("*.nbc")} <= {
        "engine",
        "losses",
        "perceptron",
        "kernels",
        "operands",
        "tiles",
        "vectors",
    }
    assert log.count("is compiling the code for this fit") == 1
    files = sorted(folder.rglob("*"))
    again = in_new_process(tmp_path)
    assert (again[0], *again[2:3], *again[4:]) == (folder, 1, values, "")
    assert sorted(folder.rglob("*")) == files


@pytest.mark.parametrize("home", ["is a file", "is missing"])
def test_a_cache_that_cannot_be_written_is_replaced(home, tmp_path, monkeypatch):
    def no_home(_):
        message = "could not determine the home directory"
        raise RuntimeError(message)

    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "below"
    monkeypatch.setattr(jit.platformdirs, "user_cache_dir", no_home if home == "is missing" else lambda _: str(folder))
    monkeypatch.setattr(jit, "refused", [])
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    assert jit.cache_folder.__wrapped__().parent.name.startswith("klr-bench-numba-")
    assert jit.refused == (["The home folder"] if home == "is missing" else [str(folder / "numba")])


def test_types_are_the_declared_ones():
    @compiled(float64(float64))
    def half(x):
        return 0.5 * x

    @compiled([float64(float64[::1], float64), float32(float32[::1], float64)])
    def scaled_sum(values, factor):
        return values.sum() * half(factor)

    assert scaled_sum(np.ones(3), 4) == 6.0
    (signature,) = signatures(scaled_sum)
    assert str(signature) == "(Array(float64, 1, 'C', False, aligned=True), float64)"
    assert signatures(half) == [(float64,)]  # though it was called with a whole number first
    assert scaled_sum(np.ones(3, dtype=np.float32), 4.0) == 6.0
    with pytest.raises(TypeError, match="No matching definition"):
        scaled_sum(np.ones((3, 2)), 4.0)
    assert len(signatures(scaled_sum)) == 2


@pytest.mark.exhaustive
def test_all_can_be_compiled_ahead():
    @compiled([float64(float64[::1]), float32(float32[::1])])
    def first(values):
        return values[0]

    for _ in range(2):
        compile_all()
        assert len(signatures(first)) == 2


def test_several_threads_may_need_a_function_for_the_first_time():
    @compiled([float64(float64), float32(float32)])
    def halved(x):
        return x / 2

    meeting, values = threading.Barrier(6, timeout=60), []

    def call(i):
        meeting.wait()
        values.append(halved((float if i % 2 else np.float32)(i)))

    together = [threading.Thread(target=call, args=(i,)) for i in range(6)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert sorted(values) == [0, 0.5, 1, 1.5, 2, 2.5]


SHORT = {
    "random_state": 0, "budget": 5, "n_components": 20, "max_iter": 3, "n_epochs": 2, "max_rounds": 1,
    "gammas": [0.5], "lams": [0.01], "etas": [1.0], "Gs": [1.0], "Rs": [10.0],
}  # fmt: skip
"""Parameters of short fits."""


def decision_values():
    """Return the decision values of each public classifier, fitted to a few rows of three kinds."""
    X, y = toy(9, 3, empty_rows=False)
    bits = (np.random.RandomState(0).random_sample((9, 70)) < 0.5).astype(np.float32)
    rows = [(X, np.argsort(np.argsort(X[:, 0])) % 3), (sp.csr_matrix(X.astype(np.float32)), y), (bits, y)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: [small(cls(), **SHORT).fit(X, y).decision_function(X).tolist() for X, y in rows]
            for name, cls in CLASSIFIERS.items()
        }


def without_compiling(*arguments):
    """Run Python with NUMBA_DISABLE_JIT=1 and return what it prints."""
    run = subprocess.run(
        [sys.executable, *arguments], env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, cwd=ROOT, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_all_classifiers_learn_the_same_without_compilation():
    """Python runs the functions as they are written; only the precision of intermediate results differs."""
    code = f"import json\nfrom {__name__} import decision_values\nprint(json.dumps(decision_values()))"
    interpreted = json.loads(without_compiling("-c", code))
    for name, values in decision_values().items():
        for expected, actual, tolerance in zip(values, interpreted[name], (1e-9, 1e-4, 1e-4), strict=True):
            scale = np.abs(expected).max()
            np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "file", ["estimators/kernel_values/test_operands.py", "estimators/test_kernels.py", "datasets/test_readers.py"]
)
def test_kernel_values_and_files_are_right_without_compilation(file):
    without_compiling("-m", "pytest", "-k", "not cosine", f"tests/{file}")  # its bound needs fused multiply-adds

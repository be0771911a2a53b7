"""Building from specs, keys from content and from source code, and the compiler's cache."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.experiment.targets import build, content_hash, locate, module_hash, source_hash

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)
)


def test_build_calls_the_target():
    assert build({"_target_": "klr_bench.OSKL", "G": 2.0}, R=7.0).get_params()["R"] == 7.0


@pytest.mark.parametrize("target", ["klr_bench.Oskl", "no_such_module.Thing", "OSKL", "klr_bench.__version__"])
def test_locate_refuses(target):
    with pytest.raises(KlrBenchError, match=f"_target_: '{target}'"):
        locate(target)


def test_nearest_name():
    assert nearest("magc", ["magic", "adult"]) == " Did you mean 'magic'?"
    assert nearest("zzz", ["magic", "adult"]) == " Known: adult, magic."


@given(st.dictionaries(st.text(), JSON))
def test_content_hash_ignores_the_order_of_keys_only(content):
    assert content_hash(dict(reversed(content.items()))) == content_hash(content)
    assert content_hash({"outer": content}) != content_hash({"outer": content, "new key": None})


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's, and a function that writes new source into it and returns its hash."""
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "mine.py"

    def rewrite(source):
        path.write_text(source)
        source_hash.cache_clear()
        importlib.invalidate_caches()
        return source_hash("mine.Learner")

    yield rewrite
    sys.modules.pop("mine", None)


def test_source_hash_sees_code_and_not_comments(module):
    first = module("class Learner:\n    rate = 1\n")
    assert module("# a comment\nclass Learner:\n\n    rate = 1\n") == first
    assert module("class Learner:\n    rate = 2\n") != first


def test_source_hash_follows_imports_within_the_package():
    collected: dict[str, str] = {}
    from klr_bench.experiment import targets as module

    module._collect_sources("klr_bench.estimators.online.oskl", collected)
    assert {
        "klr_bench.estimators.online.oskl",
        "klr_bench.estimators.online.engine",
        "klr_bench.estimators.core.losses",
        "klr_bench.estimators.core.kernels",
    } <= set(collected)
    assert "klr_bench.estimators.online.nc" not in collected
    assert source_hash("klr_bench.OSKL") != source_hash("klr_bench.NonConservativeKLR")
    assert module_hash("klr_bench.experiment.splits") != module_hash("klr_bench.experiment.selection")


def test_source_hash_of_a_library_is_its_version():
    import sklearn

    assert source_hash("sklearn.svm.SVC") == f"scikit-learn=={sklearn.__version__}"


FIT = """
import numpy as np
from numba import config
before = config.CACHE_DIR
from klr_bench import OSKL
from klr_bench.estimators.core.jit import cache_folder, is_cold
from klr_bench.estimators.online import engine
assert config.CACHE_DIR == before
OSKL().fit(np.eye(4), [0, 1, 0, 1])
hits = sum(engine._recursion.stats.cache_hits.values())
print(cache_folder(), hits)
"""


def fit_in_new_process(environment, **options):
    done = subprocess.run(
        [sys.executable, "-c", FIT],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        **options,
    )
    folder, hits = done.stdout.split()
    return Path(folder), int(hits)


def test_compiled_code_is_shared_between_processes(tmp_path):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    folder, hits = fit_in_new_process(environment)
    assert (folder.parent, hits) == (tmp_path, 0)
    files = sorted(folder.rglob("*"))
    assert fit_in_new_process(environment) == (folder, 2)
    assert sorted(folder.rglob("*")) == files


def test_a_cache_that_cannot_be_written_is_replaced(tmp_path):
    (tmp_path / "file").write_text("")
    unwritable = str(tmp_path / "file" / "below")
    environment = {"NUMBA_CACHE_DIR": unwritable, "XDG_CACHE_HOME": unwritable, "HOME": unwritable}
    folder, _ = fit_in_new_process(environment)
    assert folder.parent.name.startswith("klr-bench-numba-")
    assert not folder.exists()

"""Tests of content and source-code hashes."""

import sys
from pathlib import Path
from pkgutil import iter_modules

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import klr_bench
from klr_bench.datasets import dataset
from klr_bench.errors import KlrBenchError
from klr_bench.estimators import peers
from klr_bench.results import keys
from klr_bench.results.keys import content_hash, file_hash, module_hash, source_hash
from klr_bench.runner import plan

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)
)


@settings(max_examples=50)
@given(st.dictionaries(st.text(), JSON))
def test_content_hash_ignores_the_order_of_keys_only(content):
    assert content_hash(dict(reversed(content.items()))) == content_hash(content)
    assert content_hash({"outer": content}) != content_hash({"outer": content, "new key": None})


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a user module; importing the module fails the test."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, source):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{source}\nassert False, 'imported'\n")
        for cached in (keys.source_hash, keys.file_hash, keys._module, keys._library):
            cached.cache_clear()
        return path

    return write


LEARNER = "from mine.parts import steps\nclass Learner:\n    rate = 1\n"


def test_source_hash_ignores_comments_and_docstrings(write):
    write("mine.py", LEARNER)
    first = source_hash("mine.Learner")
    write("mine.py", '"""Words."""\n# a comment\n' + LEARNER.replace("rate", '"""More words."""\n\n    rate'))
    assert source_hash("mine.Learner") == first
    write("mine.py", LEARNER.replace("1", "2"))
    assert source_hash("mine.Learner") != first


IMPORTS = ("import beside", "import beside as other", "from beside import *", "import beside.part")
NESTED = ("def fit():\n    import beside", "try:\n    import beside\nexcept ImportError:\n    pass")
RELATIVE = ("from . import beside", "from .beside import x", "from .. import other", "from ..other import y")


def test_the_text_of_code_is_that_of_python_3_11(write):
    tree = keys.ast.parse("def f():\n    return g()")
    call = "Call(func=Name(id='g', ctx=Load()), args=[], keywords=[])"
    assert keys._code(tree).endswith(f"body=[Return(value={call})], decorator_list=[])], type_ignores=[])")


@pytest.mark.parametrize("statement", [*IMPORTS, *NESTED, *RELATIVE])
def test_source_hash_follows_imports_of_user_modules(write, statement):
    package = "top/inner/" if statement in RELATIVE else ""
    for name in ("top/__init__.py", "top/inner/__init__.py", f"{package}beside/part.py"):
        write(name, "")
    hashes = set()
    for version in (1, 2):
        write(f"{package}beside/__init__.py", f"x = {version}")
        write("top/other.py", f"y = {version}")
        write(f"{package}mine.py", f"{statement}\nclass Learner: pass")
        hashes.add(source_hash(f"{package}mine.Learner".replace("/", ".")))
    assert len(hashes) == 2
    assert "top" not in sys.modules


@pytest.mark.parametrize(
    ("statement", "name", "same"),
    [
        ("from klr_bench import OSKL", "OSKL", False),
        ("import klr_bench\nbase = klr_bench.OSKL", "OSKL", False),
        ("from klr_bench import *\nbase = ImportVectorMachine", "ImportVectorMachine", False),
        ("class Learner:\n    def fit(self):\n        return self.stream", "stream", True),
    ],
)
def test_source_hash_follows_the_public_names_of_klr_bench(write, monkeypatch, statement, name, same):
    write("mine.py", statement)
    first = source_hash("mine.Learner")
    monkeypatch.setitem(keys.PUBLIC, name, keys.PUBLIC["NonConservativeKLR"])
    write("mine.py", statement)
    assert (source_hash("mine.Learner") == first) == same


def test_modules_that_import_each_other_and_folders_without_init(write):
    write("left.py", "import right")
    write("right.py", "import left")
    write("space/deep/mine.py", "import left")
    assert source_hash("left.Learner") == source_hash("left.other")
    first = source_hash("space.deep.mine.Learner")
    write("right.py", "import left\nx = 1")
    assert source_hash("space.deep.mine.Learner") != first


def test_the_hash_of_a_file_follows_its_imports_too(write):
    write("beside.py", "x = 1")
    path = write("metric.py", "from beside import x")
    first = file_hash(path)
    write("beside.py", "x = 2")
    assert file_hash(path) != first


def test_a_missing_or_invalid_module_is_an_error(write):
    with pytest.raises(KlrBenchError, match=r"module of 'no_such_module\.Thing' not found"):
        source_hash("no_such_module.Thing")
    write("broken.py", "def (")
    with pytest.raises(KlrBenchError, match=r"broken\.py: invalid Python"):
        source_hash("broken.Learner")


def test_hashes_of_installed_code():
    import sklearn

    assert source_hash("klr_bench.OSKL") == source_hash("klr_bench.estimators.online.oskl.OSKL")
    assert source_hash("klr_bench.OSKL") != source_hash("klr_bench.NonConservativeKLR")
    assert module_hash("klr_bench.datasets.splits") != module_hash("klr_bench.runner.selection")
    assert source_hash("sklearn.svm.SVC") == f"scikit-learn=={sklearn.__version__}"


def test_an_algorithm_depends_on_its_engine_but_not_on_other_algorithms(monkeypatch):
    collected = []
    monkeypatch.setattr(keys, "content_hash", lambda content: collected.extend(content) or "")
    keys.source_hash.__wrapped__("klr_bench.OSKL")
    modules = ("online.oskl", "online.engine", "core.losses", "core.kernels")
    assert {f"klr_bench.estimators.{name}" for name in modules} <= {*collected}
    assert "klr_bench.estimators.online.nc" not in collected


NO_RESULT = {
    "klr_bench.config.locations": "it finds files",
    "klr_bench.config.models": "keys contain the values of a configuration",
    "klr_bench.config.splitting": "keys contain the settings of the split",
    "klr_bench.datasets.cache": "it stores files",
    "klr_bench.datasets.column_notes": "it describes columns",
    "klr_bench.datasets.stream_cache": "it stores parsed rows, with checksums",
    "klr_bench.errors": "it makes messages",
    "klr_bench.estimators.core.jit": "it compiles",
    "klr_bench.files": "it opens files",
    "klr_bench.metrics.labels": "it names metrics",
    "klr_bench.metrics.metric": "it describes metrics",
    "klr_bench.parsing": "it checks settings",
    "klr_bench.results.record": "it stores numbers",
    "klr_bench.runner.checkpoint": "it stores states of learners, with checksums",
    "klr_bench.runner.machine": "it describes the machine",
    "klr_bench.runner.plan": "it makes the keys",
}
"""Modules that hashed modules import, with the reasons why no result depends on their code."""
HASHED = {
    *dataset.READING_MODULES,
    *plan.SPLITTING_MODULES,
    *plan.SELECTION_MODULES,
    *plan.MEASUREMENT_MODULES,
    *plan.STREAMING_MODULES,
}


def test_what_a_hashed_module_imports_is_hashed_or_changes_no_result() -> None:
    ours = [module for module in HASHED if not module.startswith("klr_bench.estimators.")]  # others: with the class
    imported = {name for module in ours for name in keys._module(module).imports if name.startswith("klr_bench.")}
    modules = {name for name in imported if (found := keys._module(name)) and found.code}
    packages = {name for name in modules if (Path(klr_bench.__file__).parents[1] / name.replace(".", "/")).is_dir()}
    assert modules - packages - HASHED == {*NO_RESULT}


@pytest.mark.parametrize("module", sorted(each.name for each in iter_modules(peers.__path__)))
def test_the_versions_of_wrapped_libraries_are_part_of_a_hash(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    def hashed(version: str) -> tuple[str, str]:
        monkeypatch.setattr(keys, "version", lambda name: version)
        for cached in (keys.source_hash, keys._library):
            cached.cache_clear()
        return source_hash(f"{peers.__name__}.{module}"), source_hash("klr_bench.OSKL")

    first, second = hashed("1.0"), hashed("2.0")
    assert first[0] != second[0]
    assert first[1] == second[1]


def test_the_version_of_a_library_that_a_user_imports_is_part_of_a_hash(write, monkeypatch):
    write("mine.py", "import sklearn.svm\nclass Learner: pass")
    first = source_hash("mine.Learner")
    monkeypatch.setattr(keys, "version", lambda name: "another")
    write("mine.py", "import sklearn.svm\nclass Learner: pass")
    assert source_hash("mine.Learner") != first

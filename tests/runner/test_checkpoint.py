"""Checkpoints: a restored estimator continues where it stopped, and a forged file executes no code."""

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
import yaml

from klr_bench import AROW, BudgetOSKL, protocols
from klr_bench.config.locations import config_dir
from klr_bench.instantiate import TARGET, build, classifier_class
from klr_bench.runner import checkpoint
from klr_bench.runner.checkpoint import CheckpointError
from tests.attack.promise import Hostile

ROWS = np.random.RandomState(0).rand(400, 70).astype(np.float32)
KINDS = {"dense": ROWS, "sparse": sp.csr_matrix(ROWS * (ROWS > 0.7)), "bits": (ROWS > 0.5).astype(np.float32)}


def specs() -> dict[str, dict[str, Any]]:
    """Return all estimators of klr-bench that can learn from streams."""
    found = {}
    for path in sorted((config_dir() / "algorithm").glob("*.yaml")):
        spec = yaml.safe_load(path.read_text())["estimator"]
        if spec[TARGET].startswith("klr_bench") and protocols.declares(classifier_class(spec[TARGET]), "partial_fit"):
            found[path.stem] = {name: value for name, value in spec.items() if "${" not in str(value)}
    return found


def made(spec: dict[str, Any]) -> Any:
    learner = build(spec)
    return learner.set_params(random_state=3) if "random_state" in learner.get_params() else learner


def contents(learner: Any) -> dict[str, Any]:
    """Return the parameters and the fitted attributes of a learner, without times."""
    fitted = {name: value for name, value in vars(learner).items() if name.endswith("_") and "time" not in name}
    return learner.get_params() | fitted


def same(first: Any, second: Any) -> bool:
    """Return True if two learners, or two of their attributes, are bitwise equal."""
    if hasattr(first, "get_params"):
        return type(first) is type(second) and same(contents(first), contents(second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(value, second[name]) for name, value in first.items())
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    if sp.issparse(first):
        return (first != second).nnz == 0
    return np.array_equal(first, second)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", specs())
def test_a_restored_learner_continues_like_the_saved_one(name: str, n_classes: int, kind: str, tmp_path: Path) -> None:
    spec, X = specs()[name], KINDS[kind]
    y = np.argmax(ROWS[:, :n_classes], axis=1)
    whole, half, fresh = made(spec), made(spec), made(spec)
    parts = [(X[rows], y[rows]) for rows in map(slice, range(0, 400, 100), range(100, 401, 100))]
    for learner, (rows, labels) in itertools.product((whole, half), parts[:2]):
        learner.partial_fit(rows, labels, classes=range(n_classes))
    checkpoint.save(tmp_path / "a.state", "key", half, {"n_rows": 200})
    assert checkpoint.restore(tmp_path / "a.state", "key", fresh) == {"n_rows": 200}
    for learner, (rows, labels) in itertools.product((whole, fresh), parts[2:]):
        learner.partial_fit(rows, labels)
    np.testing.assert_array_equal(fresh.decision_function(X), whole.decision_function(X))
    assert {"classes_", "n_features_in_"} <= contents(whole).keys()
    assert same(fresh, whole)


def fresh() -> BudgetOSKL:
    return BudgetOSKL(20, gamma=1.0, random_state=0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a checkpoint."""
    learner = fresh().partial_fit(ROWS[:, :2], ROWS[:, 0] > 0.5, classes=[False, True])
    checkpoint.save(tmp_path / "a.state", "key", learner, {"n_rows": 400})
    return tmp_path / "a.state"


def test_every_flipped_bit_is_detected(path: Path) -> None:
    content = path.read_bytes()
    for bit in np.random.default_rng(0).integers(8 * len(content), size=100).tolist():
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        learner = fresh()
        with pytest.raises(CheckpointError, match="damaged"):
            checkpoint.restore(path, "key", learner)
        assert not hasattr(learner, "classes_")


def test_a_missing_checkpoint_and_one_of_another_cell(path: Path) -> None:
    assert checkpoint.restore(path.with_name("none"), "key", fresh()) is None
    with pytest.raises(CheckpointError, match="belongs to another cell"):
        checkpoint.restore(path, "other", fresh())
    with pytest.raises(CheckpointError, match="belongs to another estimator"):
        checkpoint.restore(path, "key", AROW())


def test_a_forged_checkpoint_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    path, mark = tmp_path / "a.state", tmp_path / "mark"
    head = b'{"key": "key", "sums": {}}\n'
    foreign = skops.io.dumps(AROW(r=Hostile(mark)))
    for content in (head + foreign, head + pickle.dumps(Hostile(mark)), head, b"[]\n", b"{}", b"[" * 100_000, b""):
        path.write_bytes(checkpoint._digest(content) + b"\n" + content)
        with pytest.raises(CheckpointError, match="cannot be read"):
            checkpoint.restore(path, "key", AROW())
    assert not mark.exists()

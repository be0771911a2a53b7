"""A gamma that is a multiple of the training rows' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from klr_bench.cli import main
from klr_bench.datasets.splits import Prepared
from klr_bench.estimators.core.kernels import gamma_of
from klr_bench.runner.bandwidth import resolve_gamma, resolve_kernel, with_any_gamma
from klr_bench.runner.selection import score_fold

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(scale=3.0, size=(200, 4)).astype(np.float32)
Y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1).astype(np.int8)


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "csr"])
@pytest.mark.parametrize(("text", "factor"), [("4 scale", 4.0), ("0.25 scale", 0.25), ("1e-3 scale", 1e-3)])
def test_a_multiple_becomes_a_number(rows, text, factor):
    spec = {"_target_": "sklearn.svm.SVC", "C": 2.0, "gamma": text}
    assert resolve_gamma(spec, rows) == {**spec, "gamma": pytest.approx(factor / (4 * X.var()), rel=1e-5)}
    assert with_any_gamma(spec)["gamma"] == 1.0


@pytest.mark.parametrize("value", ["scale", "4scale", "-1 scale", "0 scale", "1e999 scale", "2 scal", 3.0, None])
def test_anything_else_is_left_to_the_estimator(value):
    spec = {"_target_": "klr_bench.OSKL", "gamma": value}
    assert resolve_gamma(spec, X) == with_any_gamma(spec) == spec


def test_candidates_and_kernels_of_all_classes_have_it():
    data = Prepared(X[:150], Y[:150], X[150:], Y[150:])
    gamma = 2 * gamma_of("scale", X[:150])
    for target in ("klr_bench.OSKL", "sklearn.svm.SVC"):
        learners = [{"_target_": target, "gamma": value} for value in ("2 scale", gamma)]
        first, second = score_fold(learners, {"kernel": "rbf"}, data, 0, folds=3, seed=0)
        assert first == second
    assert resolve_kernel({"kernel": "rbf", "gamma": "2 scale"}, X[:150], 0) == {"kernel": "rbf", "gamma": gamma}


def test_a_misspelt_one_is_refused_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", f"results_dir={tmp_path}", "algorithm=[oskl]", "kernel.percentile=null"]
    assert main([*arguments, "algorithms.oskl.grid.gamma=[1 scale,2 scal]"]) == 2
    assert "'gamma' parameter of OSKL" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())

"""scikit-learn's checks of every public class, each class once.

Settings that pass the same validation but run another solver are checked only where the outcome depends on the solver.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
import yaml
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import klr_bench
from klr_bench import (
    L1KLR,
    OSKL,
    ApproximateKernelLR,
    BatchConfidenceWeighted,
    BudgetOSKL,
    DualCDKLR,
    Forgetron,
    ImportVectorMachine,
    KernelOGD,
    L1Peer,
    NonConservativeKLR,
    PrototypeKLR,
)
from klr_bench.config.locations import config_dir
from klr_bench.estimators.core import binary
from klr_bench.estimators.core.bits import TwoValued
from klr_bench.estimators.linear.base import LinearClassifier
from klr_bench.instantiate import build
from tests.estimators.samples import toy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CLASSES = {name: thing for name in klr_bench.__all__ if isinstance(thing := getattr(klr_bench, name), type)}
ALGORITHMS = {
    path.stem: spec
    for path in sorted((config_dir() / "algorithm").glob("*.yaml"))
    if (spec := yaml.safe_load(path.read_text())["estimator"])["_target_"].startswith("klr_bench.")
    and path.stem != "gradient_boosting"  # scikit-learn's own, for sparse rows too
}
SETTINGS = [
    *(L1KLR(solver=solver, tol=1e-2) for solver in ("cgd", "fista", "multiscale_fista", "sgd_c")),
    L1KLR(solver="sgd_c", features="linear"),
    L1KLR(features="fourier", n_components=20, random_state=0),
    *(
        L1Peer(solver, features="fourier", n_components=20, lam=0.1, lam_relative=True, random_state=0)
        for solver in ("saga", "skglm", "celer")
    ),
    ApproximateKernelLR(features="fourier", solver="sgd"),
    PrototypeKLR(3, solver="alternating", max_iter=20),
    PrototypeKLR(3, solver="adam", max_iter=20),
    PrototypeKLR(learn_prototypes=False, learn_width=False),
    BatchConfidenceWeighted(q=2),
    BudgetOSKL(G=10.0, eta=0.05, loss="exponential"),
    BudgetOSKL(G=10.0, loss="square"),
]
OF_SOLVERS = {
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_estimator_sparse_array",
    "check_estimators_dtypes",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_non_transformer_estimators_n_iter",
    "check_readonly_memmap_input",
}
"""Names of scikit-learn's checks whose outcome depends on how the coefficients are found."""


def skip_if_not_installed(solver):
    if solver in ("skglm", "celer") and find_spec(solver) is None:
        pytest.skip(f"{solver} is not installed: pip install klr-bench[peers]")


def expected_to_fail(estimator):
    """Return the checks that an estimator cannot pass, with the reason."""
    if "class_weight" not in estimator.get_params():
        return {}
    failing = {}
    if isinstance(estimator, LinearClassifier):
        failing["check_class_weight_classifiers"] = "without an intercept it cannot say one class everywhere"
    steps = "online, a step of weight 2 is not two steps; in batch, the minimum is found up to tol"
    return failing | {
        "check_sample_weight_equivalence_on_dense_data": steps,
        "check_sample_weight_equivalence_on_sparse_data": steps,
    }


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
def test_conventions_of_scikit_learn(cls):
    expected = expected_to_fail(cls())
    results = check_estimator(cls(), expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(results) > 40
    failures = [(one["check_name"], one["exception"]) for one in results if one["status"] == "failed"]
    assert not failures


def run_checks_of_solvers(estimator):
    """Run the checks of OF_SOLVERS on copies of an estimator."""
    for copy, check in estimator_checks_generator(estimator):
        if check.func.__name__ in OF_SOLVERS:
            check(copy)


@pytest.mark.exhaustive
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: " ".join(str(setting).split()))
def test_other_solvers_keep_the_conventions(setting):
    skip_if_not_installed(getattr(setting, "solver", None))
    run_checks_of_solvers(setting)


def as_bits(X):
    """Return rows (n, 33 d) of 0 and 1, in the layout of X (n, d), that say which of 33 values its elements exceed."""
    dense = X.toarray() if sp.issparse(X) else X
    if np.isin(dense, [0, 1]).all():
        return X
    bits = (dense[:, :, None] > np.linspace(-4, 4, 33)).reshape(len(dense), -1).astype(X.dtype)
    return sp.csr_matrix(bits) if sp.issparse(X) else bits


@pytest.mark.exhaustive
@pytest.mark.parametrize("cls", [OSKL, NonConservativeKLR, KernelOGD, Forgetron, DualCDKLR, ImportVectorMachine])
def test_learners_of_bits_keep_the_conventions(cls, monkeypatch):
    monkeypatch.setattr(binary, "without_duplicates", as_bits)
    packed, pack = [], TwoValued.pack
    monkeypatch.setattr(TwoValued, "pack", lambda features, X: (packed.append(X.shape), pack(features, X))[1])
    run_checks_of_solvers(cls())
    assert len(packed) > 30


def test_scikit_learn_has_all_checks_of_solvers():
    assert {check.func.__name__ for _, check in estimator_checks_generator(L1KLR())} >= OF_SOLVERS


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_configured_learns(algorithm):
    spec = ALGORITHMS[algorithm]
    skip_if_not_installed(spec.get("solver"))
    X, y = toy(n=100)
    model = build(spec)
    if spec.get("solver") == "skglm":  # compiles for seconds; fitted in peers/test_l1.py
        model._validate_params()
        return
    predicted = model.fit(X, y).predict(X)
    assert set(np.unique(predicted)) <= {-1, 1}


def test_every_class_is_configured():
    configured = {spec["_target_"].rpartition(".")[2] for spec in ALGORITHMS.values()}
    missing = CLASSES.keys() - configured
    assert not missing, f"configs/algorithm/ has no YAML file whose _target_ is {' or '.join(sorted(missing))}"
    unknown = configured - CLASSES.keys() - {"BestInHindsight"}  # which knows the rows that others are still to see
    assert not unknown, f"klr_bench/__init__.pyi has no {' and no '.join(sorted(unknown))}"

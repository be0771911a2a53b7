"""scikit-learn's checks of every public class, and of the settings that run another solver."""

import re
import traceback

import numpy as np
import pytest
import yaml
from sklearn.utils.estimator_checks import check_estimator

import klr_bench
from klr_bench import PartitionedKLR
from klr_bench.config.locations import config_dir
from klr_bench.estimators.linear.base import LinearClassifier
from klr_bench.estimators.peers.approximate import ApproximateKernelLR
from klr_bench.estimators.peers.l1 import L1Peer
from klr_bench.instantiate import build
from tests.estimators.samples import CLASSIFIERS, FEW, skip_if_not_installed, small

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("short_search"),
]

WITH_ALL_KERNELS = [
    cls
    for cls in CLASSIFIERS.values()
    if callable in cls._parameter_constraints.get("kernel", []) and "cv" not in cls._parameter_constraints
]
"""Without cross-validation, because some classes of the square matrices of the checks have one row."""
ALGORITHMS = {
    path.stem: spec
    for path in sorted((config_dir() / "algorithm").glob("*.yaml"))
    if (target := (spec := yaml.safe_load(path.read_text())["estimator"])["_target_"]).startswith("klr_bench.")
    and not target.startswith(("klr_bench.estimators.peers.tables", "klr_bench.estimators.peers.boosting"))
}
"""Settings of the shipped algorithms, without the classifiers of other libraries."""
SETTINGS = [
    *(klr_bench.L1KLR(solver=solver, tol=1e-2) for solver in ("cgd", "fista", "multiscale_fista", "sgd_c")),
    klr_bench.L1KLR(solver="sgd_c", features="linear"),
    klr_bench.L1KLR(features="fourier", n_components=20, random_state=0),
    *(
        L1Peer(solver, features="fourier", n_components=20, lam=0.1, lam_relative=True, random_state=0)
        for solver in ("saga", "skglm", "celer")
    ),
    ApproximateKernelLR(features="fourier", solver="sgd"),
    klr_bench.PrototypeKLR(3, solver="alternating", max_iter=20),
    klr_bench.PrototypeKLR(3, solver="adam", max_iter=20),
    klr_bench.PrototypeKLR(learn_prototypes=False, learn_width=False),
    klr_bench.PrototypeKLR(3, init="archetypes", loss="squared_hinge"),
    klr_bench.BatchConfidenceWeighted(q=2),
    klr_bench.BudgetOSKL(G=10.0, eta=0.02, loss="exponential"),
    klr_bench.BudgetOSKL(G=10.0, loss="square"),
    *(klr_bench.KLR(), klr_bench.DualCDKLRCV(), klr_bench.OSKLCV()),  # with all settings that they try
    klr_bench.DualCDKLR(feature_weights="auto", random_state=0),
    klr_bench.NystroemKLR(feature_weights="auto", random_state=0),
]


NO_WEIGHTS = "the library takes no weights", "does not support sample weights"
"""A reason why checks fail, and a pattern of their exceptions."""


def expected_to_fail(estimator):
    """Return the checks that an estimator may fail, with the reason and a pattern of the exception."""
    failing, is_precomputed = {}, estimator.get_params().get("kernel") == "precomputed"
    rows = "the check passes rows in place of kernel values", "ValueError: .*expected a square matrix of the training"
    if is_precomputed:
        indefinite = (
            "the matrix is not positive semi-definite",
            "LearningFailed: .*needs a positive semi-definite matrix",
        )
        failing = {
            "check_decision_proba_consistency": rows,
            "check_positive_only_tag_during_fit": indefinite,
            "check_estimators_dtypes": indefinite,
        }
    if "class_weight" not in estimator.get_params():
        return failing
    if is_precomputed:
        narrow = "k(x, z) is 0 for nearly all test rows, and there is no intercept"
        failing["check_class_weight_classifiers"] = narrow, "^AssertionError$"
    if isinstance(estimator, (LinearClassifier, L1Peer)):
        through_0 = "without an intercept it cannot say one class everywhere"
        failing["check_class_weight_classifiers"] = through_0, "^AssertionError$"
    steps = "online, a step of weight 2 is not two steps; in batch, the minimum is found up to tol"
    unequal = steps, "AssertionError: .*with `sample_weight` is not equivalent to fitting with removed or repeated"
    if isinstance(estimator, PartitionedKLR):
        unequal = (
            "the check passes splits as cv",
            "InvalidParameterError: The 'cv' parameter of PartitionedKLR must be an",
        )
    if estimator.get_params().get("feature_weights") == "auto":
        of_search = "a row of weight 2 is one row, and the search for the weights of features needs two of each class"
        unequal = of_search, "ValueError: .*KLR needs at least two rows of each class"
    for layout in ("dense", "sparse"):
        failing[f"check_sample_weight_equivalence_on_{layout}_data"] = rows if is_precomputed else unequal
    if not takes_no_weights(estimator):
        return failing
    silent = {"check_non_transformer_estimators_n_iter": ("celer does not report its iterations", "n_iter_` attribute")}
    return dict.fromkeys(failing, NO_WEIGHTS) | (silent if estimator.solver == "celer" else {})


def takes_no_weights(estimator):
    return isinstance(estimator, L1Peer) and estimator.solver in ("skglm", "celer")


def assert_conventions(estimator):
    expected = expected_to_fail(estimator)
    reasons = {name: reason for name, (reason, _) in expected.items()}
    results = check_estimator(estimator, expected_failed_checks=reasons, on_skip=None, on_fail=None)
    assert len(results) > 40
    others = NO_WEIGHTS if takes_no_weights(estimator) else None
    for result in results:
        if (error := result["exception"]) and result["status"] != "skipped":
            text = "".join(traceback.format_exception_only(error.__cause__ or error)).strip()
            failure = expected.get(result["check_name"], others)
            assert failure, (result["check_name"], text)
            assert re.search(failure[1], text, re.DOTALL), (result["check_name"], text)


@pytest.mark.parametrize("cls", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_conventions_of_scikit_learn(cls):
    assert_conventions(small(cls(), **FEW))


@pytest.mark.parametrize("cls", WITH_ALL_KERNELS, ids=lambda cls: cls.__name__)
def test_conventions_with_a_precomputed_kernel(cls):
    assert_conventions(small(cls(kernel="precomputed"), **FEW))


@pytest.mark.exhaustive
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: " ".join(str(setting).split()))
def test_other_solvers_keep_the_conventions(setting):
    skip_if_not_installed(getattr(setting, "solver", None))
    assert_conventions(setting)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_configured_learns(algorithm):
    spec = ALGORITHMS[algorithm]
    skip_if_not_installed(spec.get("solver"))
    model, random = build(spec), np.random.RandomState(0)
    if spec.get("solver") == "skglm":  # compiles for seconds; fitted in peers/test_approximate.py
        model._validate_params()
        return
    y = random.permutation(np.repeat([-1, 1], 50))
    X = y[:, None] + 0.4 * random.standard_normal((100, 4))
    assert model.fit(X, y).score(X, y) > 0.9, "the classes are separable by far, and equally large"


def test_every_class_is_configured():
    configured = {spec["_target_"].rpartition(".")[2] for spec in ALGORITHMS.values()}
    missing = CLASSIFIERS.keys() - configured
    assert not missing, f"configs/algorithm/ has no YAML file whose _target_ is {' or '.join(sorted(missing))}"
    unknown = configured - CLASSIFIERS.keys() - {"BestInHindsight"}  # which knows the rows that others are still to see
    assert not unknown, f"klr_bench/__init__.pyi has no {' and no '.join(sorted(unknown))}"

"""Try a learner on a few rows in all the ways in which experiments use estimators.

A check yields a sentence for each optional part that the estimator does not have.  It raises an exception if an
experiment would fail, or would measure something wrong.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from klr_bench import model_file, protocols
from klr_bench.config.models import AlgorithmConfig, KernelConfig
from klr_bench.datasets.splits import Prepared, frozen
from klr_bench.errors import KlrBenchError, exception_message, fail
from klr_bench.metrics.quality import at_checkpoint, fitted, measure
from klr_bench.runner.bandwidth import resolve_gamma, resolve_kernel, shared_kernel
from klr_bench.runner.plan import check_candidates
from klr_bench.runner.selection import candidates, make
from klr_bench.runner.validation import parameter_warning

N_TRAIN, N_TEST = 80, 40
MOST_DIFFERENT = 0.1
"""Maximum fraction of rows that may be predicted differently from sparse and from dense rows, because of rounding."""


@dataclass(frozen=True)
class Learner:
    """Algorithm to check, with its name."""

    name: str
    algorithm: AlgorithmConfig

    @cached_property
    def candidates(self) -> list[dict[str, Any]]:
        """Estimators of the grid, the first of which is checked."""
        return candidates(self.algorithm.estimator, self.algorithm.grid)

    def new(self, X: Any) -> Any:
        """Return an unfitted estimator as a run makes it for the training rows X (n, d)."""
        kernel = resolve_kernel(shared_kernel(self.algorithm, self.candidates[0], (), KernelConfig()), X, 0)
        return make(resolve_gamma(self.candidates[0], X), kernel, 0)

    def fit(self, data: Prepared) -> Any:
        """Return an estimator that is fitted to the training rows."""
        estimator = self.new(data.X_train)
        estimator.fit(data.X_train, data.y_train)
        return estimator


class Finding(NamedTuple):
    """Result of a check: "ok", "no" if an optional part is missing, or "failed"; and the reason."""

    check: str
    status: str
    message: str


def check_learner(name: str, algorithm: AlgorithmConfig) -> Iterator[Finding]:
    """Yield the result of each check of a learner; its exceptions are failed checks."""
    for check in CHECKS:
        label = check.__name__.lstrip("_").replace("_", " ")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                missing = list(check(Learner(name, algorithm)))
        except (Exception, SystemExit) as error:
            yield Finding(label, "failed", exception_message(error))
        else:
            yield Finding(label, "no" if missing else "ok", "; ".join(missing))


def few_rows(n_classes: int = 2, *, sparse: bool = False) -> Prepared:
    """Return read-only rows of overlapping classes, of the kind that a fit gets in a run."""
    y = np.arange(N_TRAIN + N_TEST) % n_classes
    X = np.random.default_rng(0).standard_normal((len(y), 6)) + 2 * np.eye(6)[y]
    X = np.maximum(X, 0).astype(np.float32)
    y = (2 * y - 1 if n_classes == 2 else y).astype(np.int8)
    X_train, X_test = (sp.csr_matrix(part) if sparse else part for part in (X[:N_TRAIN], X[N_TRAIN:]))
    return Prepared(frozen(X_train), frozen(y[:N_TRAIN]), frozen(X_test), frozen(y[N_TRAIN:]))


def _parameters(learner: Learner) -> Iterator[str]:
    check_candidates(learner.name, learner.candidates, construct=True)
    if warning := parameter_warning(learner.name, learner.algorithm):
        yield warning


def _two_classes(learner: Learner) -> Iterator[str]:
    yield from _measured(learner, few_rows())


def _several_classes(learner: Learner) -> Iterator[str]:
    data = few_rows(3)
    if not protocols.takes_many_classes(learner.new(data.X_train)):
        yield "its tags restrict it to two classes"
        return
    try:
        missing = list(_measured(learner, data))
    except Exception as error:
        advice = "If it learns two classes only, set classifier_tags.multi_class in __sklearn_tags__ to False."
        fail(f"{exception_message(error)} {advice}")
    yield from missing


def _measured(learner: Learner, data: Prepared) -> Iterator[str]:
    """Compute the metrics of a fit; yield the missing parts that some metrics need."""
    estimator, X, y = learner.fit(data), data.X_test, data.y_test
    measure(estimator, X, y)
    fitted(estimator, N_TRAIN)
    labels = np.unique(y)
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        yield "without classes_, decision values and probabilities of several classes are not used"
    elif np.asarray(classes).tolist() != labels.tolist():
        fail(f"classes_: expected {labels.tolist()}, got {classes!r:.100}.")
    if not protocols.declares(estimator, "predict_proba"):
        yield "without predict_proba, the log loss and the calibration are not measured"
    if not protocols.declares(estimator, "decision_function"):
        return
    values = np.asarray(estimator.decision_function(X))
    shape = (len(y),) if len(labels) == 2 else (len(y), len(labels))
    if values.shape != shape or values.dtype.kind not in "fiu":
        fail(f"decision_function: expected numbers of shape {shape}, got {values.dtype} of shape {values.shape}.")
    if len(labels) == 2 and np.mean((values > 0) == (estimator.predict(X) > 0)) < 0.5:
        fail("decision_function: expected positive values where classes_[1] is predicted, got negative ones.")


def _sparse_rows(learner: Learner) -> Iterator[str]:
    dense, sparse = few_rows(), few_rows(sparse=True)
    expected = learner.fit(dense).predict(dense.X_test)
    try:
        predicted = learner.fit(sparse).predict(sparse.X_test)
    except Exception as error:
        yield f"sparse rows are refused: {exception_message(error)}"
        return
    if np.mean(predicted != expected) > MOST_DIFFERENT:
        fail(f"{np.mean(predicted != expected):.0%} of the rows are predicted differently from the same dense rows.")


def _same_result_again(learner: Learner) -> Iterator[str]:
    data = few_rows()
    first, second = learner.fit(data), learner.fit(data)
    if (first.predict(data.X_test) != second.predict(data.X_test)).any():
        fail("two fits to the same rows differ. Draw random numbers from a parameter random_state, which a run sets.")
    other = replace(data, y_train=-data.y_train)
    second.fit(other.X_train, other.y_train)
    if (learner.fit(other).predict(data.X_test) != second.predict(data.X_test)).any():
        fail("a second fit of the same object depends on the first one; fit must forget everything.")
    yield from ()


def _callback(learner: Learner) -> Iterator[str]:
    data = few_rows()
    estimator, stopped = learner.new(data.X_train), learner.new(data.X_train)
    if not protocols.takes_callback(estimator):
        yield "fit has no parameter callback, so there are no checkpoints, and a time limit starts a process per fit"
        return
    steps: list[int] = []

    def record(estimator: Any, t: int) -> bool:
        if t != 0:  # at 0 there may be no model
            steps.append(t)
            at_checkpoint(estimator, data.X_test, data.y_test)
        return False

    estimator.fit(data.X_train, data.y_train, callback=record)
    if not steps:
        yield "fit has a parameter callback, but did not call it for these few rows"
    if sorted(set(steps)) != steps:
        fail(f"callback: expected calls with increasing t, got {steps!r:.100}.")
    first = len(steps)
    stopped.fit(data.X_train, data.y_train, callback=lambda estimator, t: not record(estimator, t))
    if len(steps) - first >= max(first, 2):
        fail("callback: expected the fit to stop when the callback returns True, but it continued.")
    measure(stopped, data.X_test, data.y_test)


def _partial_fit(learner: Learner) -> Iterator[str]:
    data = few_rows()
    estimator = learner.new(data.X_train)
    if not protocols.declares(estimator, "partial_fit"):
        yield "without partial_fit, it cannot learn from a stream"
        return
    order = np.argsort(data.y_train, kind="stable")  # the first chunk has one class
    for chunk in np.split(order, [10, 50]):
        estimator.partial_fit(data.X_train[chunk], data.y_train[chunk], classes=np.array([-1, 1]))
    measure(estimator, data.X_test, data.y_test)


def _stored(learner: Learner) -> Iterator[str]:
    data = few_rows()
    estimator = learner.fit(data)
    if not protocols.takes_callback(estimator):
        pickle.loads(pickle.dumps(estimator))  # a fit with a time limit returns it from another process
    try:
        loaded, _ = model_file.loads(model_file.dump(estimator, compress=False), Path("model.skops"))
    except KlrBenchError as error:
        yield f"klr-bench fit cannot store it: {error}"
        return
    if (loaded.predict(data.X_test) != estimator.predict(data.X_test)).any():
        fail("the stored and loaded model predicts differently.")


CHECKS: list[Callable[[Learner], Iterator[str]]] = [
    *(_parameters, _two_classes, _several_classes, _sparse_rows, _same_result_again),
    *(_callback, _partial_fit, _stored),
]

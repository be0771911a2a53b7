"""Import of classes and functions by dotted name, and creation of configured objects."""

from __future__ import annotations

import importlib
import inspect
import math
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from klr_bench.errors import exception_text, fail

Parameters = Mapping[str, Any]
"""Parameters of an estimator or function, keyed by name."""
EstimatorSpec = dict[str, Any]
"""Dotted name of an estimator's class under `TARGET`, and its parameters."""
TARGET = "_target_"
"""Key of a spec for the dotted name, as in Hydra."""


def import_from_here() -> None:
    """Let the user's estimators be modules in the current folder."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def locate(target: str) -> Callable[..., Any]:
    """Import and return the class or function with the given dotted name."""
    expected = f"{TARGET}: expected the dotted name of a class or function, got {target!r}"
    module, _, name = str(target).rpartition(".")
    try:
        function = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:
        fail(f"{expected}, which cannot be imported ({exception_text(error)}).")
    if not callable(function):
        fail(f"{expected}, a {type(function).__name__}.")
    return function  # type: ignore[no-any-return]


def classifier_class(target: str) -> type:
    """Import and return the classifier class with the given dotted name.

    Raises KlrBenchError for anything without `fit` and `predict`, and for regressors.
    """
    cls = locate(target)
    if not isinstance(cls, type):
        fail(f"{TARGET}: expected a class with a method fit, got {target!r}, which is a {type(cls).__name__}.")
    missing = [method for method in ("fit", "predict") if not callable(getattr(cls, method, None))]
    if missing:
        fail(f"{TARGET}: expected a classifier, got {target!r}, which has no method {missing[0]}.")
    scikit_learn = sys.modules.get("sklearn.base")  # without scikit-learn, no class is a regressor
    if scikit_learn and issubclass(cls, scikit_learn.RegressorMixin):
        fail(f"{TARGET}: expected a classifier, got {target!r}, a regressor.")
    return cls


@dataclass(frozen=True)
class Parameter:
    """Constructor parameter, with the constraints that a scikit-learn class declares for it."""

    any_name: bool = False
    """True for ``**parameters``."""
    constraints: tuple[Any, ...] = ()

    def expected(self, value: Any) -> str | None:
        """Return a description of the valid values, such as "a number", or None if `value` is valid."""
        from sklearn.utils._param_validation import Interval, make_constraint

        if isinstance(value, bool):
            names = {constraint for constraint in self.constraints if isinstance(constraint, str)}
            is_number = any(isinstance(constraint, Interval) for constraint in self.constraints)
            return "a number" if is_number and not names & {"boolean", "verbose"} else None
        if isinstance(value, float) and math.isinf(value):
            is_declared = any(make_constraint(constraint).is_satisfied_by(value) for constraint in self.constraints)
            return None if is_declared else "a finite number"
        return None


def parameters(target: str) -> dict[str, Parameter]:
    """Return the constructor parameters of the classifier named `target`, by name."""
    cls = classifier_class(target)
    declared = _constraints(cls)
    accepted = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        constraints = declared.get(name)
        any_name = parameter.kind is inspect.Parameter.VAR_KEYWORD
        accepted[name] = Parameter(any_name, tuple(constraints) if isinstance(constraints, list) else ())
    return accepted


def takes_nested(cls: Any) -> bool:
    """Return True if a class accepts nested parameters, such as svc__C of a pipeline."""
    return isinstance(cls, type) and callable(getattr(cls, "set_params", None))


def is_nested(name: str, accepted: Collection[str]) -> bool:
    """Return True if a name has the form of a nested parameter, such as svc__C.

    A name in `accepted`, the constructor's parameters, is not nested.
    """
    return "__" in name.strip("_") and name not in accepted


def _constraints(cls: type) -> Parameters:
    constraints = getattr(cls, "_parameter_constraints", None)
    return constraints if isinstance(constraints, dict) else {}


def check_parameters(spec: Parameters) -> None:
    """Check the parameters in `spec` without creating the classifier.

    Raises KlrBenchError if there is no such classifier, and TypeError and ValueError as a call and a fit would.
    """
    cls = classifier_class(spec[TARGET])
    direct, _ = _split(cls, spec)
    inspect.signature(cls).bind(**direct)
    constraints = _constraints(cls)
    if constraints:
        from sklearn.utils._param_validation import validate_parameter_constraints

        validate_parameter_constraints(constraints, direct, caller_name=cls.__name__)


def build(spec: Parameters, **overrides: Any) -> Any:
    """Call the class or function named in `spec` with the given parameters.

    `overrides` replace parameters of `spec`.  Parameters of parts of an estimator, such as svc__C of a pipeline, are
    set afterwards.
    """
    function = locate(spec[TARGET])
    direct, nested = _split(function, {**spec, **overrides})
    built = function(**direct)
    return built.set_params(**nested) if nested else built


def _split(function: Any, spec: Parameters) -> tuple[Parameters, Parameters]:
    """Split parameters into those of the constructor and nested ones such as svc__C."""
    direct = {name: value for name, value in spec.items() if name != TARGET}
    if not takes_nested(function) or not any(is_nested(name, ()) for name in direct):
        return direct, {}
    accepted = inspect.signature(function).parameters
    nested = {name: direct.pop(name) for name in list(direct) if is_nested(name, accepted)}
    return direct, nested

"""From a spec, the dotted name of a class or function and its parameters, to an object."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from klr_bench.errors import KlrBenchError

TARGET = "_target_"
"""The key of a spec that holds the dotted name, as Hydra spells it."""


def locate(target: str) -> Callable[..., Any]:
    """Import the class or function that a dotted name stands for; nothing is called."""
    module, _, name = str(target).rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        expected = f"{TARGET}: expected the dotted name of a class or function"
        message = f"{expected}, got {target!r}, which cannot be imported ({error})."
        raise KlrBenchError(message) from error
    if not callable(found):
        message = (
            f"{TARGET}: expected the dotted name of a class or function, got {target!r}, a {type(found).__name__}."
        )
        raise KlrBenchError(message)
    return found  # type: ignore[no-any-return]


def classifier_class(target: str) -> type:
    """Import the class of an estimator; refuse what is no class with `fit` and `predict`, and regressors.

    The class is looked at and not called.
    """
    found = locate(target)
    if not isinstance(found, type):
        message = f"{TARGET}: expected a class with a method fit, got {target!r}, which is a {type(found).__name__}."
        raise KlrBenchError(message)
    for method in ("fit", "predict"):
        if not callable(getattr(found, method, None)):
            message = f"{TARGET}: expected a classifier, got {target!r}, a class without a method {method}."
            raise KlrBenchError(message)
    from sklearn.base import RegressorMixin

    if issubclass(found, RegressorMixin):
        message = f"{TARGET}: expected a classifier, got {target!r}, a regressor."
        raise KlrBenchError(message)
    return found


def parameters(target: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of an estimator's constructor, by name."""
    try:
        return dict(inspect.signature(classifier_class(target)).parameters)
    except (ValueError, TypeError) as error:
        message = f"{TARGET}: the parameters of {target!r} cannot be found out ({error})."
        raise KlrBenchError(message) from error


def check_parameters(spec: Mapping[str, Any]) -> None:
    """Refuse parameters that an estimator's signature, or its declared constraints, do not allow; nothing is called.

    Raises TypeError and ValueError as a call and a fit would.
    """
    found = classifier_class(spec[TARGET])
    given = {name: value for name, value in spec.items() if name != TARGET}
    inspect.signature(found).bind(**given)
    constraints = getattr(found, "_parameter_constraints", None)
    if isinstance(constraints, dict):
        from sklearn.utils._param_validation import validate_parameter_constraints

        validate_parameter_constraints(constraints, given, caller_name=found.__name__)


def build(spec: Mapping[str, Any], **overrides: Any) -> Any:
    """Call the target of `spec` with its other entries as keyword arguments, `overrides` last."""
    arguments = {name: value for name, value in spec.items() if name != TARGET}
    return locate(spec[TARGET])(**(arguments | overrides))

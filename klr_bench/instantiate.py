"""From a spec, the dotted name of a class or function and its parameters, to an object."""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from klr_bench.errors import fail, raised

Parameters = Mapping[str, Any]
"""The parameters of an estimator or a function by name."""
EstimatorSpec = dict[str, Any]
"""The name of an estimator's class under `TARGET`, and its parameters."""
TARGET = "_target_"
"""The key of a spec that holds the dotted name, as Hydra spells it."""


def locate(target: str) -> Callable[..., Any]:
    """Import the class or function that a dotted name stands for; nothing is called."""
    module, _, name = str(target).rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:
        expected = f"{TARGET}: expected the dotted name of a class or function"
        fail(f"{expected}, got {target!r}, which cannot be imported ({raised(error)}).")
    if not callable(found):
        fail(f"{TARGET}: expected the dotted name of a class or function, got {target!r}, a {type(found).__name__}.")
    return found  # type: ignore[no-any-return]


def classifier_class(target: str) -> type:
    """Import the class of an estimator; refuse what is no class with `fit` and `predict`, and regressors.

    The class is looked at and not called.
    """
    found = locate(target)
    if not isinstance(found, type):
        fail(f"{TARGET}: expected a class with a method fit, got {target!r}, which is a {type(found).__name__}.")
    missing = [method for method in ("fit", "predict") if not callable(getattr(found, method, None))]
    if missing:
        fail(f"{TARGET}: expected a classifier, got {target!r}, a class without a method {missing[0]}.")
    scikit_learn = sys.modules.get("sklearn.base")  # where it was not imported, nothing descends from its classes
    if scikit_learn and any(base is scikit_learn.RegressorMixin for base in found.__mro__):
        fail(f"{TARGET}: expected a classifier, got {target!r}, a regressor.")
    return found


@dataclass(frozen=True)
class Parameter:
    """A parameter of an estimator's constructor, and what the class declares of its values."""

    any_name: bool = False  # it stands for parameters of any name: **parameters
    number: bool = False  # an interval is declared
    boolean: bool = False  # true and false are declared
    infinite: tuple[float, ...] = ()  # which of inf and -inf are declared


def parameters(target: str) -> dict[str, Parameter]:
    """Return the parameters of an estimator's constructor, by name; the class is looked at and not called."""
    found = classifier_class(target)
    declared = declared_constraints(found)
    return {
        name: _parameter(declared.get(name), any_name=parameter.kind is inspect.Parameter.VAR_KEYWORD)
        for name, parameter in _signature(found, target).parameters.items()
    }


def takes_nested(target: str) -> bool:
    """Return True if an estimator may have parts with parameters, such as svc__C of a pipeline: if it has set_params.

    The class is looked at and not called.
    """
    return _sets_parameters(classifier_class(target))


def _sets_parameters(found: Any) -> bool:
    return isinstance(found, type) and callable(getattr(found, "set_params", None))


def is_nested(name: str, known: Collection[str]) -> bool:
    """Return True for the name of a parameter of a part, unless it is a `known` parameter of the constructor."""
    return "__" in name.strip("_") and name not in known


def _parameter(declared: Any, *, any_name: bool) -> Parameter:
    """Return what a list of scikit-learn's constraints says of a parameter."""
    constraints = declared if isinstance(declared, list) else []
    if not constraints:
        return Parameter(any_name)
    from sklearn.utils._param_validation import Interval

    return Parameter(
        any_name,
        number=any(isinstance(one, Interval) for one in constraints),
        boolean=any(one in ("boolean", "verbose") for one in constraints if isinstance(one, str)),
        infinite=tuple(number for number in (math.inf, -math.inf) if any(_allows(one, number) for one in constraints)),
    )


def _allows(constraint: Any, value: float) -> bool:
    from sklearn.utils._param_validation import make_constraint

    try:
        return bool(make_constraint(constraint).is_satisfied_by(value))
    except (ValueError, TypeError):  # no constraint of scikit-learn's
        return False


def _signature(found: type, target: str) -> inspect.Signature:
    try:
        return inspect.signature(found)
    except (ValueError, TypeError) as error:  # a class of compiled code
        fail(f"{TARGET}: the parameters of {target!r} cannot be found out ({raised(error)}).")


def check_parameters(spec: Parameters) -> None:
    """Refuse parameters that an estimator's signature, or its declared constraints, do not allow; nothing is called.

    Raises TypeError and ValueError as a call and a fit would.
    """
    found = classifier_class(spec[TARGET])
    inner = _inner(found, spec)
    given = {name: value for name, value in spec.items() if name != TARGET and name not in inner}
    _signature(found, spec[TARGET]).bind(**given)
    constraints = declared_constraints(found)
    if constraints:
        from sklearn.utils._param_validation import validate_parameter_constraints

        validate_parameter_constraints(constraints, given, caller_name=found.__name__)


def declared_constraints(found: type) -> Parameters:
    """Return what a class of scikit-learn's making declares of its parameters; nothing where it is no such class."""
    constraints = getattr(found, "_parameter_constraints", None)
    return constraints if isinstance(constraints, dict) else {}


def build(spec: Parameters, **overrides: Any) -> Any:
    """Call the target of `spec` with its other entries as keyword arguments, `overrides` last.

    Parameters of parts of an estimator, such as svc__C of a pipeline, are set afterwards.
    """
    arguments = {name: value for name, value in spec.items() if name != TARGET} | overrides
    found = locate(spec[TARGET])
    inner = _inner(found, arguments)
    built = found(**{name: value for name, value in arguments.items() if name not in inner})
    return built.set_params(**inner) if inner else built


def _inner(found: Any, arguments: Parameters) -> Parameters:
    """Return those of the arguments that are parameters of an estimator's parts."""
    named = {name: value for name, value in arguments.items() if is_nested(name, ())}
    if not named or not _sets_parameters(found):
        return {}
    known = _signature(found, found.__name__).parameters
    return {name: value for name, value in named.items() if name not in known}

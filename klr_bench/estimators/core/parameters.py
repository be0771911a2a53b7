"""Declaration of estimator parameters as annotated attributes with constraints.

    @estimator
    class KernelOGD(OnlineKernelClassifier):
        eta: float = parameter(POSITIVE, default=0.5)

declares a parameter `eta` with its constraint and its default.  Parameters behind ``_: KW_ONLY`` are keyword-only.
Type checkers know the constructor that `estimator` adds, because they find `default` and `init` by these names.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Literal, TypeVar, dataclass_transform

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions


class Number(Interval):
    """Constraint that accepts numbers in an interval, but not booleans."""

    def is_satisfied_by(self, value):
        """Return True if a value is a number in the interval."""
        return not isinstance(value, bool) and super().is_satisfied_by(value)


POSITIVE = Number(Real, 0, None, closed="neither")
"""Constraint: a positive number."""
NOT_NEGATIVE = Number(Real, 0, None, closed="left")
SHARE = Number(Real, 0, 1, closed="right")
"""Constraint: a number in (0, 1]."""
AT_LEAST_ONE = Number(Real, 1, None, closed="left")
COUNT = Number(Integral, 1, 2**31 - 1, closed="both")
"""Constraint: a positive integer up to the largest one that compiled libraries accept."""
COMPONENTS = Number(Integral, 1, 1_000_000, closed="both")
"""Constraint: a number of random features."""
PASSES = Number(Real, 0, 2**31 - 1, closed="right")
"""Constraint: a number of passes, which need not be an integer."""
NUMBER = Number(Real, None, None, closed="neither")
"""Constraint: any finite number."""
SEED = [Number(Integral, 0, 2**32 - 1, closed="both"), np.random.RandomState, None]
"""Constraints of `random_state`."""
VERBOSE = ["boolean", Number(Integral, 0, 2**31 - 1, closed="both")]
"""Constraints of `verbose`."""
CLASS_WEIGHT = [dict, StrOptions({"balanced"}), None]
"""Constraints of `class_weight`."""
JOBS = [Number(Integral, None, -1, closed="right"), COUNT, None]
"""Constraints of `n_jobs`, the number of threads."""


Value = TypeVar("Value")
Class = TypeVar("Class", bound=type)


def parameter(*constraints: object, default: Value) -> Value:
    """Declare a parameter of an estimator with its constraints and default."""
    return field(default=default, metadata={"constraints": list(constraints)})


def fixed(value: Value, *, init: Literal[False] = False) -> Value:
    """Give a parameter of the base class a fixed value that users cannot change."""
    return field(default=value, init=init)


@dataclass_transform(eq_default=False, field_specifiers=(parameter, fixed))
def estimator(cls: Class) -> Class:
    """Decorate an estimator class: add a constructor, constraints and a complete docstring.

    The constructor stores the declared parameters, unless the class has one.  The docstring gets the entries of base
    classes for parameters and attributes that it does not describe itself.
    """
    cls = dataclass(eq=False, repr=False, init="__init__" not in vars(cls))(cls)
    declared = [declaration for declaration in fields(cls) if declaration.init]
    cls._parameter_constraints = {declaration.name: declaration.metadata["constraints"] for declaration in declared}
    parameters, attributes = {}, {}
    for base in reversed(cls.__mro__):
        parameters |= _entries(base, "Parameters")
        attributes |= _entries(base, "Attributes")
    names = dict.fromkeys([*inspect.signature(cls).parameters, *_entries(cls, "Parameters")])
    ordered = [parameters[name] for name in names if name in parameters]
    text, *others = _sections(cls).items()
    sections = [text, ("Parameters", "\n".join(ordered)), ("Attributes", "\n".join(attributes.values()))]
    sections += [section for section in others if section[0] not in dict(sections)]
    cls.__doc__ = "\n\n".join(f"{name}\n{'-' * len(name)}\n{body}" if name else body for name, body in sections)
    return cls


def _sections(cls):
    text, *parts = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(cls.__doc__ or ""), flags=re.MULTILINE)
    return {"": text.rstrip()} | {name: body.rstrip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _entries(cls, section):
    entries = re.split(r"^(?=\w)", _sections(cls).get(section, ""), flags=re.MULTILINE)
    return {entry.split(" ")[0]: entry.rstrip() for entry in entries if entry}

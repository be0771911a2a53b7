"""Declaration of estimator parameters as annotated attributes with constraints.

    @estimator
    class KernelOGD(OnlineClassifier):
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

POSITIVE = Interval(Real, 0, None, closed="neither")
"""Constraint: a positive number."""
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="right")
"""Constraint: a number in (0, 1]."""
AT_LEAST_ONE = Interval(Real, 1, None, closed="left")
COUNT = Interval(Integral, 1, 2**31 - 1, closed="both")
"""Constraint: a positive integer up to the largest one that compiled libraries accept."""
COMPONENTS = Interval(Integral, 1, 1_000_000, closed="both")
"""Constraint: a number of random features."""
PASSES = Interval(Real, 0, 2**31 - 1, closed="right")
"""Constraint: a number of passes, which need not be an integer."""
NUMBER = Interval(Real, None, None, closed="neither")
"""Constraint: any finite number."""
SEED = [Interval(Integral, 0, 2**32 - 1, closed="both"), np.random.RandomState, None]
"""Constraints of `random_state`."""
VERBOSE = ["boolean", Interval(Integral, 0, 2**31 - 1, closed="both")]
"""Constraints of `verbose`."""
CLASS_WEIGHT = [dict, StrOptions({"balanced"}), None]
"""Constraints of `class_weight`."""
JOBS = [Interval(Integral, None, -1, closed="right"), COUNT, None]
"""Constraints of `n_jobs`, the number of threads."""
PRECOMPUTED = "precomputed"
"""Value of `kernel` with which kernel values take the place of the rows."""


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

    The constructor stores the declared parameters, unless the class has one.  The docstring gets the entries that it
    lacks, for parameters and attributes, from the class `_described_by`, the base classes, and `Shared`.  A docstring
    with the attribute `classes_` lists all attributes of the class.
    """
    cls = dataclass(eq=False, repr=False, init="__init__" not in vars(cls))(cls)
    declared = [declaration for declaration in fields(cls) if declaration.init]
    cls._parameter_constraints = {declaration.name: declaration.metadata["constraints"] for declaration in declared}
    names = dict.fromkeys([*inspect.signature(cls).parameters, *_entries(cls, "Parameters")])
    parameters, attributes = _entries(Shared, "Parameters"), {}
    for base in (*reversed(cls.__mro__[1:]), vars(cls).get("_described_by", object), cls):
        parameters |= _entries(base, "Parameters")
        described = _entries(base, "Attributes")
        attributes = described if "classes_" in described else attributes | described
    attributes |= {name: text for name, text in _entries(Shared, "Attributes").items() if name.rstrip("_") in names}
    ordered = [parameters[name] for name in names if name in parameters]
    text, *others = _sections(cls).items()
    sections = [text, ("Parameters", "\n".join(ordered)), ("Attributes", "\n".join(attributes.values()))]
    sections += [section for section in others if section[0] not in dict(sections)]
    cls.__doc__ = "\n\n".join(f"{name}\n{'-' * len(name)}\n{body}" if name else body for name, body in sections)
    return cls


class CompiledKernels:
    """Description of the kernel, for classes that accept only kernels with compiled code.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear", "laplacian"}, default="rbf"
        exp(-gamma ||x - z||^2), (gamma x'z + coef0)^degree, x'z or exp(-gamma sum_j |x_j - z_j|).  The papers use the
        rbf kernel, and (x'z + 1)^2 for the texts of RCV1, which is kernel="poly", gamma=1, degree=2, coef0=1.
    """


class Shared:
    """Descriptions of parameters that many classes have, and of their fitted attributes.

    Parameters
    ----------
    gamma : float, {"scale", "auto", "median"} or None, default="scale"
        gamma > 0 of the rbf, poly, laplacian and sigmoid kernels.  "scale" is 1 / (n_features X.var()), "auto" or None
        is 1 / n_features, "median" is 1 / (2 m^2) with the median distance m of rows; computed from the rows of `fit`
        or of the first `partial_fit`, which count as often as their weights say, unlike in scikit-learn's SVC.  Try
        0.1, 0.3, 1 and 3 times the value of "scale", the grid of configs/experiment/own_file.yaml.  The papers use
        1 / (2 s^2) with a percentile s of the distances between training rows: the 20th in Zhang et al., ICML 2013, the
        5th in Zhang et al., AAAI 2012.
    degree : float, default=3
        Degree > 0 of the poly kernel.
    coef0 : float, default=1.0
        Constant of the poly and sigmoid kernels; at 0 or above the poly kernel is positive definite for an integer
        `degree`.
    random_state : int, RandomState instance or None, default=None
        Seed of all random draws; an integer makes results reproducible.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the kernel values; None keeps float32 rows as they are and converts all others to float64.  float32
        takes half the time or less.  Coefficients are always float64.
    feature_weights : array of shape (n_features,), "auto" or None, default=None
        Weights >= 0 by which the columns of X are multiplied in the fit and in predictions; None leaves X as it is.
        ``support_vectors_`` are weighted, and gamma="scale", "auto" and "median" are computed from the weighted
        features whose weight is not 0, "scale" after their means are subtracted, unlike without weights; not all
        weights may be 0. "auto" is for `fit`, which then learns them as `KLR` does: with the rbf kernel, from dense
        rows, in more time than the fit itself takes. They include the division by the standard deviations, but outliers
        are not limited.

    Attributes
    ----------
    feature_weights_ : ndarray of shape (n_features,)
        Weights of the columns of X; only there if `feature_weights` is not None.
    """


def _sections(cls):
    text, *parts = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(cls.__doc__ or ""), flags=re.MULTILINE)
    return {"": text.rstrip()} | {name: body.rstrip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _entries(cls, section):
    entries = re.split(r"^(?=\w)", _sections(cls).get(section, ""), flags=re.MULTILINE)
    return {entry.split(" ")[0]: entry.rstrip() for entry in entries if entry}

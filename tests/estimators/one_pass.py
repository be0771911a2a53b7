"""Learners with the defaults of the papers: one pass over the rows in their order, and gamma = 1 / n_features.

Each class of klr-bench can be imported from here; its own defaults are several passes in random orders.
"""

from inspect import signature
from types import FunctionType
from typing import Any

import klr_bench

ONCE = {"n_epochs": 1, "shuffle": False, "gamma": None}
OTHERS = {
    "AuxiliaryKLR": {"eta": 1.0, "aux_gamma": 2.0},
    "NonConservativeKLR": {"eta": 1.0},
    "FOGD": {"eta": 0.5},
    "NOGD": {"eta": 0.5},
}
"""Further settings of the papers, by class."""


def _once(cls: Any, **settings: Any) -> Any:
    """Return a subclass whose constructor has other defaults."""
    init = cls.__init__
    other = FunctionType(init.__code__, init.__globals__, "__init__", None, init.__closure__)
    for name, parameter in signature(init).parameters.items():
        default = {**ONCE, **settings}.get(name, parameter.default)
        if name in (init.__kwdefaults__ or {}):
            other.__kwdefaults__ = {**(other.__kwdefaults__ or {}), name: default}
        elif parameter.default is not parameter.empty:
            other.__defaults__ = (*(other.__defaults__ or ()), default)
    return type(cls.__name__, (cls,), {"__init__": other, "__module__": __name__, "__doc__": cls.__doc__})


def __getattr__(name: str) -> Any:
    """Return the class of klr-bench with this name and the defaults of the papers; the same one at each call."""
    if name not in klr_bench.__all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return globals().setdefault(name, _once(getattr(klr_bench, name), **OTHERS.get(name, {})))

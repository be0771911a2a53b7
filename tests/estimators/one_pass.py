"""The learners of the papers, which go through the rows once, in their order, with gamma = 1 / n_features.

In user code a fit makes several passes in orders that it draws.
"""

from __future__ import annotations

from inspect import signature
from types import FunctionType
from typing import Any

import klr_bench

ONCE = {"n_epochs": 1, "shuffle": False, "gamma": None}


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


ALMA = _once(klr_bench.ALMA)
AuxiliaryKLR = _once(klr_bench.AuxiliaryKLR, eta=1.0, aux_gamma=2.0)
BOGD = _once(klr_bench.BOGD)
BOGDPlusPlus = _once(klr_bench.BOGDPlusPlus)
BSGD = _once(klr_bench.BSGD)
BudgetOSKL = _once(klr_bench.BudgetOSKL)
FOGD = _once(klr_bench.FOGD)
DUOL = _once(klr_bench.DUOL)
Forgetron = _once(klr_bench.Forgetron)
KernelOGD = _once(klr_bench.KernelOGD)
KernelPegasos = _once(klr_bench.KernelPegasos)
KernelPerceptron = _once(klr_bench.KernelPerceptron)
MarginKLR = _once(klr_bench.MarginKLR)
NOGD = _once(klr_bench.NOGD)
NORMA = _once(klr_bench.NORMA)
NonConservativeKLR = _once(klr_bench.NonConservativeKLR, eta=1.0)
OSKL = _once(klr_bench.OSKL)
Projectron = _once(klr_bench.Projectron)
ProjectronPlusPlus = _once(klr_bench.ProjectronPlusPlus)
RandomizedBudgetPerceptron = _once(klr_bench.RandomizedBudgetPerceptron)

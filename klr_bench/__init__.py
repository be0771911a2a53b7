"""Sparse kernel logistic regression: the solvers, for scikit-learn code.

Classes are imported when they are first used, so that the command line starts quickly.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "ApproximateKernelLR": "klr_bench.peers",
    "AROW": "klr_bench.confidence.arow",
    "AuxiliaryKLR": "klr_bench.online.auxiliary",
    "BatchConfidenceWeighted": "klr_bench.confidence.bcw",
    "BOGD": "klr_bench.online.budget.bogd",
    "BOGDPlusPlus": "klr_bench.online.budget.bogd",
    "ConfidenceWeighted": "klr_bench.confidence.cw",
    "DualCDKLR": "klr_bench.batch.dual",
    "FeatureGeneratingMachine": "klr_bench.confidence.sbcw",
    "Forgetron": "klr_bench.online.budget.forgetron",
    "ImportVectorMachine": "klr_bench.batch.ivm",
    "KernelOGD": "klr_bench.online.ogd",
    "KernelPegasos": "klr_bench.online.pegasos",
    "KernelPerceptron": "klr_bench.online.perceptron",
    "L1KLR": "klr_bench.l1.estimator",
    "L1Peer": "klr_bench.l1.peers",
    "MarginKLR": "klr_bench.online.margin",
    "NAROW": "klr_bench.confidence.arow",
    "NonConservativeKLR": "klr_bench.online.nc",
    "OSKL": "klr_bench.online.oskl",
    "PassiveAggressive": "klr_bench.confidence.pa",
    "PrimalCDKLR": "klr_bench.batch.primal",
    "Projectron": "klr_bench.online.budget.projectron",
    "ProjectronPlusPlus": "klr_bench.online.budget.projectron",
    "PrototypeKLR": "klr_bench.prototype.estimator",
    "RandomizedBudgetPerceptron": "klr_bench.online.budget.rbp",
    "SecondOrderPerceptron": "klr_bench.confidence.sop",
    "SOFS": "klr_bench.confidence.sofs",
    "SoftConfidenceWeighted": "klr_bench.confidence.cw",
    "SparDCA": "klr_bench.confidence.spardca",
    "SparseBatchConfidenceWeighted": "klr_bench.confidence.sbcw",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        message = f"module 'klr_bench' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

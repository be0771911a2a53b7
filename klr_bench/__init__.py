"""Sparse kernel logistic regression: the solvers, for scikit-learn code.

Classes are imported when they are first used, so that the command line starts quickly.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "ALMA": "klr_bench.estimators.budget.alma",
    "ApproximateKernelLR": "klr_bench.estimators.peers.approximate",
    "AROW": "klr_bench.estimators.linear.arow",
    "AuxiliaryKLR": "klr_bench.estimators.online.auxiliary",
    "BatchConfidenceWeighted": "klr_bench.estimators.linear.bcw",
    "BOGD": "klr_bench.estimators.budget.bogd",
    "BOGDPlusPlus": "klr_bench.estimators.budget.bogd",
    "BSGD": "klr_bench.estimators.budget.bsgd",
    "BudgetOSKL": "klr_bench.estimators.budget.oskl",
    "ConfidenceWeighted": "klr_bench.estimators.linear.cw",
    "DualCDKLR": "klr_bench.estimators.batch.dual",
    "DUOL": "klr_bench.estimators.budget.duol",
    "fit_many": "klr_bench.estimators.online.many",
    "FeatureGeneratingMachine": "klr_bench.estimators.linear.sbcw",
    "FOGD": "klr_bench.estimators.features.fogd",
    "Forgetron": "klr_bench.estimators.budget.forgetron",
    "ImportVectorMachine": "klr_bench.estimators.batch.ivm",
    "KernelOGD": "klr_bench.estimators.online.ogd",
    "KernelPegasos": "klr_bench.estimators.online.pegasos",
    "KernelPerceptron": "klr_bench.estimators.online.perceptron",
    "L1KLR": "klr_bench.estimators.l1.estimator",
    "l1_path": "klr_bench.estimators.l1.path",
    "lambda_max": "klr_bench.estimators.l1.path",
    "load_results": "klr_bench.report.load",
    "L1Peer": "klr_bench.estimators.peers.l1",
    "MarginKLR": "klr_bench.estimators.online.margin",
    "NAROW": "klr_bench.estimators.linear.arow",
    "NOGD": "klr_bench.estimators.features.nogd",
    "NORMA": "klr_bench.estimators.budget.norma",
    "NonConservativeKLR": "klr_bench.estimators.online.nc",
    "OSKL": "klr_bench.estimators.online.oskl",
    "PassiveAggressive": "klr_bench.estimators.linear.pa",
    "PrimalCDKLR": "klr_bench.estimators.batch.primal",
    "Projectron": "klr_bench.estimators.budget.projectron",
    "ProjectronPlusPlus": "klr_bench.estimators.budget.projectron",
    "PrototypeKLR": "klr_bench.estimators.prototype.estimator",
    "RandomizedBudgetPerceptron": "klr_bench.estimators.budget.rbp",
    "SecondOrderPerceptron": "klr_bench.estimators.linear.sop",
    "SOFS": "klr_bench.estimators.linear.sofs",
    "SoftConfidenceWeighted": "klr_bench.estimators.linear.cw",
    "SparDCA": "klr_bench.estimators.linear.spardca",
    "SparseBatchConfidenceWeighted": "klr_bench.estimators.linear.sbcw",
    "stream": "klr_bench.experiment.data.streams.stream",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        message = f"module 'klr_bench' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

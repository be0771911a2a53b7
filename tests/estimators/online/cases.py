"""The online learners in two classes, each with its rule as the reference has it and the radius of its ball."""

from __future__ import annotations

import numpy as np

from tests.estimators.one_pass import (
    OSKL,
    AuxiliaryKLR,
    KernelOGD,
    KernelPegasos,
    KernelPerceptron,
    MarginKLR,
    NonConservativeKLR,
)
from tests.reference import kernel as reference

CASES = {
    "nc": (NonConservativeKLR(eta=0.5), reference.nc(0.5), 1e3),
    "nc small ball": (NonConservativeKLR(eta=1.0, R=1.0), reference.nc(1.0), 1.0),
    "margin": (MarginKLR(eta=1.2, R=5.0), reference.margin(1.2), 5.0),
    "margin small ball": (MarginKLR(eta=1.0, R=1.0), reference.margin(1.0), 1.0),
    "auxiliary log_gamma": (AuxiliaryKLR(R=5.0), reference.auxiliary(1.0, "log_gamma", 2.0, 1.0), 5.0),
    "auxiliary log_one_plus_gamma": (
        AuxiliaryKLR(eta=0.3, h="log_one_plus_gamma", aux_gamma=5.0),
        reference.auxiliary(0.3, "log_one_plus_gamma", 5.0, 1.0),
        1e3,
    ),
    "auxiliary hard_cutoff": (
        AuxiliaryKLR(h="hard_cutoff", aux_delta=0.5, R=2.0),
        reference.auxiliary(1.0, "hard_cutoff", 2.0, 0.5),
        2.0,
    ),
    "oskl logit": (OSKL(G=2.0), reference.oskl(2.0, 0.45, "logit", 0.1), 1e3),
    "oskl small ball": (OSKL(G=1.0, R=1.0), reference.oskl(1.0, 0.9, "logit", 0.1), 1.0),
    "oskl exponential": (
        OSKL(G=20.0, loss="exponential", R=2.0, eta=0.02),
        reference.oskl(20.0, 0.02, "exponential", 0.1),
        2.0,
    ),
    "oskl square": (
        OSKL(G=30.0, loss="square", delta=0.5, R=2.0),
        reference.oskl(30.0, 0.9 / (4.0 * 30.0), "square", 0.5),
        2.0,
    ),
    "pegasos": (KernelPegasos(lam=1e-2, average=True), reference.pegasos(1e-2), 10.0),
    "pegasos tiny lambda": (KernelPegasos(lam=1e-7), reference.pegasos(1e-7), 1e-7**-0.5),
    "pegasos tiny lambda, average": (
        KernelPegasos(lam=1e-7, average=True),
        reference.pegasos(1e-7),
        1e-7**-0.5,
    ),
    "pegasos without projection": (KernelPegasos(lam=1e-3, project=False), reference.pegasos(1e-3), np.inf),
    "perceptron": (KernelPerceptron(), reference.perceptron(), np.inf),
    "ogd hinge": (KernelOGD(eta=0.45), reference.ogd(0.45, "hinge"), np.inf),  # whose sums are never 1
    "ogd logit": (KernelOGD(loss="logit", average=True), reference.ogd(0.5, "logit"), np.inf),
    "ogd squared hinge": (KernelOGD(loss="squared_hinge", eta=0.23), reference.ogd(0.23, "squared_hinge"), np.inf),
    "ogd smooth hinge": (KernelOGD(loss="smooth_hinge", average=True), reference.ogd(0.5, "smooth_hinge"), np.inf),
    "ogd square": (KernelOGD(loss="square", eta=0.05), reference.ogd(0.05, "square"), np.inf),
}

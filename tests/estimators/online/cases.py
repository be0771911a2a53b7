"""Online learners for two and four classes, with nontrivial parameters, and their references."""

import inspect

import numpy as np

from tests.estimators import one_pass
from tests.reference import kernel as reference
from tests.reference import multiclass

CASES = {
    "nc": one_pass.NonConservativeKLR(eta=0.5),
    "nc small ball": one_pass.NonConservativeKLR(eta=1.0, R=1.0),
    "margin": one_pass.MarginKLR(eta=1.2, R=5.0),
    "margin small ball": one_pass.MarginKLR(eta=1.0, R=1.0),
    "auxiliary log_gamma": one_pass.AuxiliaryKLR(R=5.0),
    "auxiliary log_one_plus_gamma": one_pass.AuxiliaryKLR(eta=0.3, h="log_one_plus_gamma", aux_gamma=5.0),
    "auxiliary hard_cutoff": one_pass.AuxiliaryKLR(h="hard_cutoff", aux_delta=0.5, R=2.0),
    "oskl logit": one_pass.OSKL(G=2.0),
    "oskl small ball": one_pass.OSKL(G=1.0, R=1.0),
    "oskl exponential": one_pass.OSKL(G=20.0, loss="exponential", R=2.0, eta=0.02),
    "oskl square": one_pass.OSKL(G=30.0, loss="square", delta=0.5, R=2.0),
    "pegasos": one_pass.KernelPegasos(lam=1e-2, average=True),
    "pegasos tiny lambda": one_pass.KernelPegasos(lam=1e-7),
    "pegasos tiny lambda, average": one_pass.KernelPegasos(lam=1e-7, average=True),
    "pegasos without projection": one_pass.KernelPegasos(lam=1e-3, project=False),
    "perceptron": one_pass.KernelPerceptron(),
    "ogd hinge": one_pass.KernelOGD(eta=0.45),  # no sum of steps is exactly 1
    "ogd logit": one_pass.KernelOGD(loss="logit", average=True),
    "ogd squared hinge": one_pass.KernelOGD(loss="squared_hinge", eta=0.23),
    "ogd smooth hinge": one_pass.KernelOGD(loss="smooth_hinge", average=True),
    "ogd square": one_pass.KernelOGD(loss="square", eta=0.05),
}
SOFTMAX = {
    "softmax nc": one_pass.NonConservativeKLR(eta=0.5),
    "softmax nc small ball": one_pass.NonConservativeKLR(R=1.0),
    "softmax margin": one_pass.MarginKLR(eta=1.2, R=5.0),
    "softmax auxiliary log_gamma": one_pass.AuxiliaryKLR(R=5.0),
    "softmax auxiliary log_one_plus_gamma": one_pass.AuxiliaryKLR(eta=0.3, h="log_one_plus_gamma", aux_gamma=5.0),
    "softmax auxiliary hard_cutoff": one_pass.AuxiliaryKLR(h="hard_cutoff", aux_delta=-0.5, R=2.0),
    "softmax oskl": one_pass.OSKL(G=2.0),
    "softmax oskl small ball": one_pass.OSKL(R=1.0),
    "softmax oskl long steps": one_pass.OSKL(eta=9.0, R=20.0),
}
STEPS = {
    "NonConservativeKLR": "nc",
    "MarginKLR": "margin",
    "AuxiliaryKLR": "auxiliary",
    "OSKL": "oskl",
    "KernelPegasos": "pegasos",
    "KernelPerceptron": "perceptron",
    "KernelOGD": "ogd",
}
"""Name of the reference function per class; its arguments are parameters of the learner."""


def step_of(learner, *, many=False):
    """Return the reference step of a learner and the radius of its ball."""
    parameters = learner.get_params()
    function = getattr(multiclass if many else reference, STEPS[type(learner).__name__])
    step = function(**{name: parameters[name] for name in inspect.signature(function).parameters})
    return step, learner.lam**-0.5 if parameters.get("project") else parameters.get("R", np.inf)


def toy(n=300, n_classes=4, d=4, seed=1):
    """Return rows of overlapping classes with some zero features, and their labels."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < 0.7)
    values = np.sin(2 * X) @ random.standard_normal((d, n_classes)) + 0.3 * random.standard_normal((n, n_classes))
    return X / np.sqrt(d), np.argmax(values, axis=1)

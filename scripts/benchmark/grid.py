"""Time of one shared pass for the 88 learners of the grid of zhang2013icml."""

from __future__ import annotations

from itertools import product

from sklearn.base import clone
from timing import ONE_PASS, best, paper_data

from klr_bench import OSKL, AuxiliaryKLR, KernelPegasos, MarginKLR, NonConservativeKLR
from klr_bench.estimators.online.many import SharedFit

RADII = [10.0**p for p in range(6)]
ETAS = [0.01, 0.1, 1.0]


def learners(gamma):
    shared = {"gamma": gamma, "random_state": 0, **ONE_PASS}
    methods = (NonConservativeKLR, MarginKLR, AuxiliaryKLR)
    return [
        *(method(eta=eta, R=R, **shared) for method, R, eta in product(methods, RADII, ETAS)),
        *(KernelPegasos(lam=10.0**-p, **shared) for p in range(1, 11)),
        *(OSKL(G=G, R=R, **shared) for R, G in product(RADII, (1, 2, 4, 10))),
    ]


def measure(output):
    for name, target, target_alone in (("magic", 5.0, 8.0), ("adult", 3.0, 15.0)):
        X, y, gamma = paper_data(name)
        all_learners = learners(gamma)
        single = best(lambda X=X, y=y, gamma=gamma: NonConservativeKLR(eta=1.0, gamma=gamma, **ONE_PASS).fit(X, y), 3)
        shared = best(lambda X=X, y=y, many=all_learners: SharedFit(many, X, y), 2)
        alone = sum(best(lambda X=X, y=y, model=clone(learner): model.fit(X, y), 2) for learner in all_learners)
        yield {
            "dataset": name,
            "n_learners": len(all_learners),
            "one_nc_s": single,
            "shared_s": shared,
            "alone_s": alone,
            "shared_over_one": shared / single,
            "at_most": target,
            "alone_over_shared": alone / shared,
            "at_least": target_alone,
        }

"""Time of fits with binary features stored as bits, compared with matrix products."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from grid import learners
from timing import ONE_PASS, best, paper_data

from klr_bench import DualCDKLR, Forgetron, NonConservativeKLR
from klr_bench.estimators.kernel_values import operands
from klr_bench.estimators.online.many import SharedFit


@contextmanager
def without_bits():
    """Disable the storage of features as bits by an infinite cost."""
    cost = operands.packed_ns
    operands.packed_ns = lambda features: np.inf
    try:
        yield
    finally:
        operands.packed_ns = cost


def measure(output):
    for name, what, run in cases():
        with_bits = run()
        with without_bits():
            products = run()
        yield {
            "dataset": name,
            "what": what,
            "bits_s": with_bits,
            "products_s": products,
            "ratio": products / with_bits,
            "at_least": {
                ("adult", "NC"): 4.0, ("mushrooms", "NC"): 3.0, ("covtype", "NC"): 1.5, ("adult", "88 learners"): 2.0,
                ("adult", "DualCDKLR"): 2.0, ("adult", "prediction"): 4.0,
            }.get((name, what), ""),
        }  # fmt: skip


def cases():
    """Yield tuples (data set, task, function that returns seconds)."""
    for name, n in (("adult", None), ("mushrooms", None), ("covtype", 50_000)):
        X, y, gamma = (part[:n] if np.ndim(part) else part for part in paper_data(name))
        nc = NonConservativeKLR(eta=1.0, gamma=gamma, **ONE_PASS)
        yield name, "NC", lambda X=X, y=y, nc=nc: best(lambda: nc.fit(X, y), 3)
    X, y, gamma = paper_data("adult")
    many = learners(gamma)
    yield "adult", "88 learners", lambda: best(lambda: SharedFit(many, X, y), 2)
    dual = DualCDKLR(lam=1e-4, gamma=gamma, random_state=0)
    yield "adult", "DualCDKLR", lambda: best(lambda: dual.fit(X, y), 2)
    half = len(y) // 2

    def prediction():
        nc = NonConservativeKLR(eta=1.0, gamma=gamma, **ONE_PASS).fit(X[:half], y[:half])
        return best(lambda: nc.predict(X[half:]), 3)

    yield "adult", "prediction", prediction
    forgetron = Forgetron(budget=1000, gamma=gamma, **ONE_PASS)
    yield "adult", "Forgetron, budget 1,000", lambda: best(lambda: forgetron.fit(X, y), 3)

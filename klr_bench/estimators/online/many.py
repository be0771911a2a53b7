"""Fit many online learners in one pass, so that each kernel value is computed only once."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np
from sklearn.utils import column_or_1d

from klr_bench.estimators.core.checks import distinct_labels, refuse_not_finite
from klr_bench.estimators.core.kernels import kernel_of, rows_of
from klr_bench.estimators.core.threads import single_threaded_blas
from klr_bench.estimators.online import engine
from klr_bench.estimators.online.passes import run_passes
from klr_bench.protocols import declares


def shared_rows(updates):
    """Return the index of each learner's initial function, (n_learners,).

    Learners that differ only in their radius share one.
    """
    rows = {}
    return [rows.setdefault((update.rule, *update.parameters, update.draws), len(rows)) for update in updates]


def _streams(learners):
    """Yield the index of each learner's random stream; learners with equal seeds share one."""
    numbers = {}
    for i, learner in enumerate(learners):
        seed = learner.random_state
        yield numbers.setdefault(seed if isinstance(seed, Integral) else f"of {i}", len(numbers))


def fit_many(learners, X, y, sample_weight=None):
    """Fit several online learners in one pass; each kernel value is computed only once.

    The learners may be of any of the classes `OSKL`, `NonConservativeKLR`, `MarginKLR`, `AuxiliaryKLR`,
    `KernelPegasos`, `KernelOGD` and `KernelPerceptron`, mixed, but must share kernel, dtype, n_epochs and class_weight.
    A grid of dozens of learners takes the time of a few passes.  Each gets the result of its own `fit`, up to rounding.
    If y has more than two classes, if learners that shuffle do not have the same integer as `random_state`, or if one
    has `feature_weights` or ``n_epochs=None``, they are fitted one by one.

    Parameters
    ----------
    learners : sequence of estimators
        The learners, which are fitted in place: different objects, such as one for each point of a grid.
    X : array or CSR matrix of shape (n_samples, n_features)
        Training rows.
    y : array of shape (n_samples,)
        Their classes.
    sample_weight : array of shape (n_samples,), default=None
        Weights >= 0 of the rows.

    Returns
    -------
    list of estimators
        The learners, in the given order.

    Raises
    ------
    ValueError
        If they are not different online learners with one kernel, dtype, n_epochs and class_weight.

    Examples
    --------
    >>> from klr_bench import OSKL, fit_many
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> models = fit_many([OSKL(G=G, gamma=2.0, random_state=0) for G in (1.0, 2.0, 4.0)], X, y)
    >>> [model.score(X, y) > 0.9 for model in models]
    [True, True, True]
    >>> models[0].n_support_ > models[1].n_support_ > models[2].n_support_
    True
    """
    _check(learners)
    alone = len({order_key(learner) for learner in learners}) > 1 or any(
        learner.pass_key(2) is None for learner in learners
    )
    if alone or len(distinct_labels(column_or_1d(y))) > 2:
        return [learner.fit(X, y, sample_weight) for learner in learners]
    fitted = SharedFit(learners, X, y, sample_weight=sample_weight)
    for i, learner in enumerate(learners):
        if fitted.state.refused[i]:
            learner._refuse(fitted.state.refused[i], fitted.state.functions["last"][fitted.state.row[i]])
        learner._state = fitted.state.alone(i)
        learner._n_again = max(learner._state.t - learner._n_first, 0)
        learner._publish()
        refuse_not_finite(learner)
    return list(learners)


def order_key(learner):
    """Return a key that is equal for learners that visit the rows in the same order."""
    if not learner.shuffle:
        return "as they come"
    return learner.random_state if isinstance(learner.random_state, Integral) else id(learner)


def _check(learners):
    if not isinstance(learners, Sequence) or not learners:
        message = f"learners: expected a list of at least one online learner, got {learners!r:.80}."
        raise ValueError(message)
    for learner in learners:
        if isinstance(learner, type) or not declares(learner, "pass_key"):
            message = f"learners: expected online learners that can share a pass, got {learner!r:.80}."
            raise ValueError(message)
    if len({id(learner) for learner in learners}) < len(learners):
        message = "learners: the list contains the same object twice; use sklearn.base.clone to copy it."
        raise ValueError(message)


class SharedFit:
    """Fit of several online learners in one pass over data with two classes.

    A learner whose rule refuses an example is left out from there on, and `refused` marks it.  After each block of rows
    `callback(self, t)` is called with the number of examples seen; the pass ends where it returns True.
    """

    def __init__(self, learners, X, y, callback=None, sample_weight=None):
        first = learners[0]
        for learner in learners:
            learner._forget()
        X, y, weights = first._first_rows(X, y, sample_weight)
        if len(first.classes_) > 2:
            message = f"a shared pass requires two classes, got {len(first.classes_)}; fit the learners one by one."
            raise ValueError(message)
        self._places = np.arange(len(y)) if weights is None else np.flatnonzero(weights)
        first._n_first = len(self._places)
        for learner in learners[1:]:
            learner.n_features_in_, learner.classes_ = first.n_features_in_, first.classes_
            learner._n_first = first._n_first
            if "feature_names_in_" in vars(first):
                learner.feature_names_in_ = first.feature_names_in_
        shared = [
            (kernel_of(learner, X, weights), learner.dtype, learner._passes(first._n_first), repr(learner.class_weight))
            for learner in learners
        ]
        if shared.count(shared[0]) < len(shared):
            message = "learners must have the same kernel, dtype, n_epochs and class_weight."
            raise ValueError(message)
        self.learners = list(learners)
        self._streams = list(_streams(learners))
        self._drawing = [learners[self._streams.index(stream)] for stream in range(max(self._streams) + 1)]
        updates = [
            learner._update()._replace(draws=stream) for learner, stream in zip(learners, self._streams, strict=True)
        ]
        rows, n_passes = rows_of(first, X), first._passes(first._n_first)
        self.state = engine.OnlineState(kernel_of(first, X, weights), rows, shared_rows(updates))
        self.state.use(updates)
        orders = (self._common_order() for _ in range(n_passes))
        report = None if callback is None else lambda t: callback(self, t)
        with single_threaded_blas(first.n_jobs):
            run_passes(
                self.state, rows, first._signs(y), self, self._factors(weights), lambda: None, report, orders,
                merging=n_passes > 1, enough=lambda: False,
            )  # fmt: skip
        for learner, stream in zip(learners, self._streams, strict=True):
            learner._random.set_state(self._drawing[stream]._random.get_state())

    def _common_order(self):
        """Return the order of the rows for a pass.

        As in `random_sample`, one learner of each random stream draws what all would draw if they were fitted alone.
        """
        order, *_ = [learner._order(self._places) for learner in self._drawing]
        return order

    def random_sample(self, n):
        """Return uniform random numbers of shape (n_learners, n)."""
        return np.array([learner._random.random_sample(n) for learner in self._drawing])[self._streams]

    def _factors(self, weights):
        """Return the factors of draws and steps of all learners, (n_learners, n), or None."""
        if weights is None:
            return None, None
        of_draws, of_steps = zip(*(learner._weight_factors(weights) for learner in self.learners), strict=True)
        ones = np.ones(len(weights))
        return tuple(
            np.array([ones if factors is None else factors for factors in values]) for values in (of_draws, of_steps)
        )

    @property
    def refused(self):
        """Boolean array with one entry per learner: True if the learner failed."""
        return self.state.refused > 0

    @property
    def logistic(self):
        """Boolean array, True for learners whose sigmoid(f(x)) is a class probability."""
        return np.array([learner._is_logistic() for learner in self.learners])

    def decision_function(self, X):
        """Return the decision values f(x) of all learners for the rows x of X.

        The result is float64, of shape (n_samples, n_learners).
        """
        dtype = self.state.support.dtype
        X = self.learners[0]._validate(X, dtype=dtype)
        same = [(row, learner.average) for row, learner in zip(self.state.row, self.learners, strict=True)]
        distinct = {key: i for i, key in enumerate(same)}
        weights = [self.state.coefficients([row], average=average)[0] for row, average in distinct]
        with single_threaded_blas(self.learners[0].n_jobs):
            f = self.state.decide(np.array(weights, dtype=dtype), X)
        return f[[list(distinct).index(key) for key in same]].T

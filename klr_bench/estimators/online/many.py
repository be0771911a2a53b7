"""Many online learners in one pass over the data: each kernel value is computed once, for all of them."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from klr_bench.estimators.online import engine


def _streams(learners):
    """Return a number for each learner's random draws: the same for the same seed."""
    numbers = {}
    for i, learner in enumerate(learners):
        seed = learner.random_state
        yield numbers.setdefault(seed if isinstance(seed, Integral) else f"of {i}", len(numbers))


def fit_many(learners, X, y):
    """Fit learners of any classes of `klr_bench.estimators.online` that share kernel, precision and number of epochs.

    Each becomes what its own `fit` would make of it, up to rounding.  Where y has more than two classes, they are
    fitted one by one.

    Parameters
    ----------
    learners : sequence of estimators
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)

    Returns
    -------
    list of the learners

    Raises
    ------
    ValueError
        Where the learners do not share the kernel, or one of them refuses its parameters or an example.
    """
    if len(np.unique(y)) > 2:
        return [learner.fit(X, y) for learner in learners]
    fitted = SharedFit(learners, X, y)
    for i, learner in enumerate(learners):
        if fitted.state.refused[i]:
            learner._refuse(fitted.state.refused[i], fitted.state.scalars[fitted.state.row[i], 3])
        learner._state = fitted.state.alone(i)
        learner._publish()
    return list(learners)


class SharedFit:
    """The result of a shared pass over two classes, before it is cut into learners: for predictions of all at once.

    A learner whose rule refuses an example is left out from there on, and `refused` marks it.
    """

    def __init__(self, learners, X, y):
        for learner in learners:
            learner._start()
        first = learners[0]
        X, y = first._validate(X, y, dtype=first._dtypes(), reset=True)
        first._set_classes(y)
        if len(first.classes_) > 2:
            message = f"learners share a pass over two classes only; got {len(first.classes_)}: fit them one by one."
            raise ValueError(message)
        first._n_first = len(y)
        for learner in learners[1:]:
            learner.n_features_in_, learner.classes_ = first.n_features_in_, first.classes_
            learner._n_first = len(y)
            if "feature_names_in_" in vars(first):
                learner.feature_names_in_ = first.feature_names_in_
        shared = {(learner._kernel(), learner.dtype, learner.n_epochs) for learner in learners}
        if len(shared) > 1:
            message = f"the learners must share kernel, dtype and n_epochs; got {len(shared)} different combinations."
            raise ValueError(message)
        self.learners = list(learners)
        updates = [learner._update(stream) for learner, stream in zip(learners, _streams(learners), strict=True)]
        self.state = engine.OnlineState(first._kernel(), X, engine.shared_rows(updates))
        groups = engine.grouped(updates)
        signs = first._signs(y)
        for _ in range(first.n_epochs):
            for start in range(0, len(signs), engine.BLOCK):
                block = slice(start, start + engine.BLOCK)
                draws = np.array([learner._random.random_sample(len(signs[block])) for learner in learners])
                self.state.learn_block(groups, X[block], signs[block], draws)

    @property
    def refused(self):
        """A mask of the learners that have no result, (n_learners,)."""
        return self.state.refused > 0

    @property
    def logistic(self):
        """A mask of the learners whose sigmoid of f is a probability, (n_learners,)."""
        return np.array([learner._is_logistic() for learner in self.learners])

    def decision_function(self, X):
        """Return f(x) of all learners for the rows of X, as float64 (n_samples, n_learners)."""
        support = self.state.support.rows
        X = self.learners[0]._validate(X, dtype=support.dtype)
        same = [(row, learner.average) for row, learner in zip(self.state.row, self.learners, strict=True)]
        distinct = {key: i for i, key in enumerate(same)}
        weights = [self.state.coefficients(i, average=average) for (_, average), i in distinct.items()]
        f = self.state.decide(np.array(weights, dtype=support.dtype), X)
        return f[[list(distinct).index(key) for key in same]].T

    def predict(self, X):
        """Return the classes that all learners predict for the rows of X, (n_samples, n_learners)."""
        return self.learners[0].classes_[(self.decision_function(X) > 0).astype(int)]

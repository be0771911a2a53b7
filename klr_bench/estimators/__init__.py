"""Classifiers with scikit-learn's interface, usable without the experiment runner."""

from klr_bench.protocols import WEIGHT_LEARNERS


def learned_weights(X, y, weights, random_state):
    """Return the feature weights (d,) that `KLR` learns for the rbf kernel.

    They are divided by the standard deviations.  The rows are X (n, d) with classes y (n,) and weights (n,) or None.
    """
    from klr_bench.estimators.batch.klr import KLR  # takes a second, and few fits need it

    learner = KLR(random_state=random_state)
    try:
        learner._choose(X, y, weights, ("rbf",))
    except ValueError as error:
        message = f"feature_weights='auto' are learned by KLR: {error}"
        raise ValueError(message) from error
    return learner.feature_weights_ / learner.scale_


WEIGHT_LEARNERS.append(learned_weights)

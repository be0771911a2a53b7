"""States of learners that process examples in blocks: what their compiled loops count."""

BLOCK = 128
"""Examples per block."""
T, MISTAKES, REFUSED = range(3)
"""Places in `counts`: examples seen; mistakes; the example at which f(x) was not finite, or 0."""
SCALE, SUM, LAST = range(3)
"""Places in `scalars`: the scale of the coefficients, the sum of the scales, the last f(x)."""


class BlockState:
    """A state whose `counts` begin with T, MISTAKES and REFUSED, and its `scalars` with SCALE, SUM and LAST.

    A subclass with the method `learn` of this class has `_learn_block(X, y, *parameters)`.
    """

    block = BLOCK
    """Examples per block."""

    def learn(self, X, y, *parameters):
        """Learn from rows X (n, d) with labels y (n,), -1.0 or +1.0."""
        for start in range(0, len(y), self.block):
            if self.refused:
                break
            self._learn_block(X[start : start + self.block], y[start : start + self.block], *parameters)

    @property
    def t(self):
        """Examples seen."""
        return int(self.counts[T])

    @property
    def n_mistakes(self):
        """Number of examples with y f(x) <= 0 at their own step."""
        return int(self.counts[MISTAKES])

    @property
    def refused(self):
        """The example at which f(x) was not finite, or 0."""
        return int(self.counts[REFUSED])

    @property
    def last_value(self):
        """The last f(x)."""
        return self.scalars[LAST]

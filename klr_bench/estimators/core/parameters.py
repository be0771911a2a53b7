"""What a parameter may be: constraints of scikit-learn that count neither True nor huge whole numbers as numbers."""

from __future__ import annotations

import math
import sys
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, Options

LARGEST = {Integral: 2**32 - 1, Real: sys.float_info.max}
"""The largest seed of numpy, which no count exceeds, and the largest finite float64."""


class Number(Interval):
    """An interval of numbers that compiled code can hold; True and False are no numbers."""

    def is_satisfied_by(self, value):
        """Say whether a value is a number in the interval."""
        if isinstance(value, bool) or not isinstance(value, (Integral, float, np.floating)):
            return False
        return super().is_satisfied_by(value) and (abs(value) <= LARGEST[self.type] or abs(value) == math.inf)


class Choice(Options):
    """Some whole numbers; True is not 1."""

    def is_satisfied_by(self, value):
        """Say whether a value is one of the numbers."""
        return not isinstance(value, bool) and super().is_satisfied_by(value)


POSITIVE = Number(Real, 0, None, closed="neither")
"""Constraint of a positive number."""
NOT_NEGATIVE = Number(Real, 0, None, closed="left")
COUNT = Number(Integral, 1, 2**31 - 1, closed="both")
"""Constraint of a positive whole number, at most the largest that compiled libraries take."""
NUMBER = Number(Real, None, None, closed="neither")
"""Constraint of any number but infinity and NaN."""
SEED = [Number(Integral, 0, LARGEST[Integral], closed="both"), np.random.RandomState, None]
"""Constraints of `random_state`."""

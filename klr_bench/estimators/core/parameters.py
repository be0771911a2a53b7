"""What a parameter may be: constraints of scikit-learn that count neither True nor huge whole numbers as numbers."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

WHOLE = 2**62 - 1
"""The largest whole number of which numpy can hold twice as much."""


class Number(Interval):
    """An interval of numbers that numpy can hold; True and False are no numbers."""

    def is_satisfied_by(self, value):
        """Say whether a value is a number in the interval."""
        if isinstance(value, Integral):
            return not isinstance(value, bool) and abs(value) <= WHOLE and super().is_satisfied_by(value)
        return isinstance(value, (float, np.float32, np.float16)) and super().is_satisfied_by(value)


class Choice(Options):
    """Some whole numbers; True is not 1."""

    def is_satisfied_by(self, value):
        """Say whether a value is one of the numbers."""
        return not isinstance(value, bool) and super().is_satisfied_by(value)


POSITIVE = Number(Real, 0, None, closed="neither")
"""Constraint of a positive number."""
NOT_NEGATIVE = Number(Real, 0, None, closed="left")
SHARE = Number(Real, 0, 1, closed="right")
"""Constraint of a number above 0 and at most 1."""
AT_LEAST_ONE = Number(Real, 1, None, closed="left")
COUNT = Number(Integral, 1, 2**31 - 1, closed="both")
"""Constraint of a positive whole number, at most the largest that compiled libraries take."""
PASSES = Number(Real, 0, 2**31 - 1, closed="right")
"""Constraint of a number of passes that need not be whole."""
NUMBER = Number(Real, None, None, closed="neither")
"""Constraint of any number but infinity and NaN."""
SEED = [Number(Integral, 0, 2**32 - 1, closed="both"), np.random.RandomState, None]
"""Constraints of `random_state`."""
VERBOSE = ["boolean", Number(Integral, 0, 2**31 - 1, closed="both")]
"""Constraints of `verbose`."""
CLASS_WEIGHT = [dict, StrOptions({"balanced"}), None]
"""Constraints of `class_weight`."""
JOBS = [Number(Integral, None, -1, closed="right"), COUNT, None]
"""Constraints of `n_jobs`, a number of threads."""

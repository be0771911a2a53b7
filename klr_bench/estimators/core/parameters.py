"""What a parameter may be: constraints of scikit-learn for which True and False are not numbers."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions


class Number(Interval):
    """An interval of numbers; True and False are not numbers."""

    def is_satisfied_by(self, value):
        """Return True if a value is a number in the interval."""
        return not isinstance(value, bool) and super().is_satisfied_by(value)


POSITIVE = Number(Real, 0, None, closed="neither")
"""Constraint of a positive number."""
NOT_NEGATIVE = Number(Real, 0, None, closed="left")
SHARE = Number(Real, 0, 1, closed="right")
"""Constraint of a number above 0 and at most 1."""
AT_LEAST_ONE = Number(Real, 1, None, closed="left")
COUNT = Number(Integral, 1, 2**31 - 1, closed="both")
"""Constraint of a positive whole number, at most the largest that compiled libraries take."""
COMPONENTS = Number(Integral, 1, 1_000_000, closed="both")
"""Constraint of a number of random features."""
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

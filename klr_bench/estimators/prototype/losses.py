"""Losses of `PrototypeKLR`: functions of the scores F (m, M) and the class codes y (m,).

    logit           -log P(y_i|x_i)                             M >= 2, or M = 1 with two classes, where the first has 0
    squared_hinge   sum_c max(0, 1 - s_ic f_c(x_i))^2           s_ic = 1 if c = y_i, else -1

With M = 1 the column of F is for the second class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax


class Loss(NamedTuple):
    """Functions that return the values of a loss, its derivatives and its best constant scores.

    The best constant scores (M,) are a function of the shares of the classes.
    """

    values: Callable
    slopes: Callable
    constant: Callable


def _log_loss(F, y):
    if F.shape[1] == 1:
        return np.logaddexp(0.0, np.where(y == 1, -F[:, 0], F[:, 0]))
    return logsumexp(F, axis=1) - F[np.arange(len(y)), y]


def _log_slopes(F, y):
    """Return the predicted class probabilities minus the one-hot classes."""
    if F.shape[1] == 1:
        sign = np.where(y == 1, 1.0, -1.0)
        return (-sign * np.exp(-np.logaddexp(0.0, sign * F[:, 0])))[:, None]
    P = softmax(F, axis=1)
    P[np.arange(len(y)), y] -= 1
    return P


def _log_constant(shares):
    logs = np.log(shares)
    return logs[1:] - logs[:1] if len(shares) == 2 else logs - logs.mean()


def _signs(F, y):
    classes = np.array([1]) if F.shape[1] == 1 else np.arange(F.shape[1])
    return np.where(y[:, None] == classes, 1.0, -1.0)


def _hinge_loss(F, y):
    return np.square(np.maximum(1 - _signs(F, y) * F, 0)).sum(axis=1)


def _hinge_slopes(F, y):
    signs = _signs(F, y)
    return -2 * signs * np.maximum(1 - signs * F, 0)


def _hinge_constant(shares):
    return 2 * (shares[1:] if len(shares) == 2 else shares) - 1


LOSSES = {
    "logit": Loss(_log_loss, _log_slopes, _log_constant),
    "squared_hinge": Loss(_hinge_loss, _hinge_slopes, _hinge_constant),
}

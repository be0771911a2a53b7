"""From checkpoints to curves beside what the papers prove of them; the bounds are those of `online.bounds`.

A learner is known by the name of its file in configs/algorithm.  It is compared with the best function in hindsight of
the same data set and repeat (`configs/algorithm/hindsight.yaml`): of several with the one whose h is the learner's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from klr_bench.estimators.online import bounds
from klr_bench.experiment.records import FINISHED
from klr_bench.experiment.targets import Parameters
from klr_bench.experiment.variants import Variant, as_number
from klr_bench.report.figures.core.lines import drawable

if TYPE_CHECKING:
    import pandas as pd

Fit = Mapping[Any, Any]
"""A row of the records."""

COMPARATOR = "hindsight"
DELTA = 0.05
"""delta of OSKL's bounds, which hold with probability 1 - 2 delta."""
TRACED = ["key", "t", "cumulative_loss", "cumulative_h", "norm", "n_support"]


@dataclass(frozen=True)
class Bounds:
    """The bounds of one fit.

    Parameters
    ----------
    of_loss : function of T, of the comparator's loss and sum of h on the first T examples, and of its norm
    of_support : function of T and of the learner's own cumulative loss; None where nothing is known
    """

    of_loss: Callable[[Any, Any, Any, Any], Any]
    of_support: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True)
class Bounded:
    """The curves of one line of the table, and from which T on its bounds say something.

    Parameters
    ----------
    curve : a row per checkpoint, means over the repeats, NaN where there is no such number: t, own (cumulative loss),
        loss, h and norm (of the comparator on the first t examples), regret = own - loss, regret_bound, regret_of_zero
        (that of f = 0), n_support, support_bound
    regret_from : the first T with a bound of the loss below T log(2), the loss of f = 0, if losses grow with T as on
        the average example; None where there is none
    support_from : the first T with a bound of the support vectors below T; None where there is none
    """

    curve: pd.DataFrame
    regret_from: int | None
    support_from: int | None

    def has(self, column: str) -> bool:
        """Say whether there is a finite number in a column."""
        return bool(np.isfinite(self.curve[column]).any())


def bounds_of(algorithm: str, params: Parameters, n_train: float) -> Bounds | None:
    """Return the bounds of a fit with these parameters, None where the theorems do not hold for it.

    They need k(x, x) <= 1, one pass in the order of the rows, a constant step, and the logistic loss.
    """
    once = params.get("n_epochs") == 1 and params.get("shuffle") is False
    if not once or params.get("kernel", "rbf") != "rbf" or params.get("loss", "logit") != "logit":
        return None
    R, G, eta = (as_number(params.get(name)) for name in ("R", "G", "eta"))
    if params.get("eta") == "R/sqrt(T)" and R is not None:
        eta = R / math.sqrt(n_train)
    if algorithm == "oskl" and G is not None and eta is None:
        eta = 0.9 / G
    if eta is None or not eta > 0:
        return None
    if algorithm == "nc":
        return Bounds(lambda T, loss, h, norm: bounds.nc_loss_bound(T, loss, norm, eta))
    if algorithm == "margin" and eta < 2:
        return Bounds(
            lambda T, loss, h, norm: bounds.margin_loss_bound(loss, norm, eta),
            lambda T, own: bounds.margin_support_bound(T, own, eta),
        )
    if algorithm == "auxiliary" and params.get("h") in bounds.AUXILIARY:
        shape = str(params["h"]), as_number(params.get("aux_gamma")) or 1.0, as_number(params.get("aux_delta")) or 0.0
        return Bounds(
            lambda T, loss, h, norm: bounds.auxiliary_loss_bound(T, h, norm, eta),
            lambda T, own: bounds.auxiliary_support_bound(own, *shape),
        )
    if algorithm == "oskl" and R is not None and G is not None and eta * G < 1:
        return Bounds(
            lambda T, loss, h, norm: bounds.oskl_loss_bound(T, loss, R, eta, G, DELTA),
            lambda T, own: bounds.oskl_support_bound(T, own, G, DELTA),
        )
    return None


def bounded(traces: pd.DataFrame, records: pd.DataFrame) -> dict[tuple[str, str, Variant], Bounded]:
    """Return the curves of each data set, algorithm and variant that has checkpoints of its cumulative loss."""
    traces = traces[traces["value"].map(drawable).notna()]
    wide = traces.pivot_table(index=["key", "t"], columns="metric", values="value").reset_index()
    wide = wide.reindex(columns=TRACED).dropna(subset=["cumulative_loss"])
    checkpoints = {str(key): group.drop(columns="key") for key, group in wide.groupby("key")}
    finished = records[records["status"].isin(FINISHED) & records["key"].isin(checkpoints)].to_dict("records")
    compared = [fit for fit in finished if fit["algorithm"] == COMPARATOR]
    curves: dict[tuple[str, str, Variant], list[Fit]] = {}
    for fit in finished:
        if fit["algorithm"] != COMPARATOR:
            curves.setdefault((fit["dataset"], fit["algorithm"], fit["variant"]), []).append(fit)
    return {place: _bounded(fits, compared, checkpoints) for place, fits in curves.items()}


def _bounded(fits: Sequence[Fit], compared: Sequence[Fit], checkpoints: Mapping[str, pd.DataFrame]) -> Bounded:
    """Return the means over the repeats; the k-th checkpoints of all of them are taken together."""
    import pandas as pd

    bounds_of_each = [bounds_of(fit["algorithm"], fit["params"], fit["n_train"]) for fit in fits]
    curves = [
        _curve(fit, _comparator(fit, compared), checkpoints, its) for fit, its in zip(fits, bounds_of_each, strict=True)
    ]
    together = pd.concat(curves)
    curve = together.groupby(together.index).mean()
    regret_from, support_from = (None, None) if bounds_of_each[0] is None else _from(curve.iloc[-1], bounds_of_each[0])
    return Bounded(curve, regret_from, support_from)


def _comparator(fit: Fit, compared: Sequence[Fit]) -> Fit | None:
    """Return what a fit is compared with, None where there is nothing; for Auxiliary one with the same h."""
    same = [other for other in compared if all(other[name] == fit[name] for name in ("dataset", "repeat"))]
    if fit["algorithm"] == "auxiliary":
        same.sort(key=lambda other: _shape(other) != _shape(fit))
    return same[0] if same else None


def _shape(fit: Fit) -> list[Any]:
    """Return the parameters that say which function h is, without the one that it does not depend on."""
    params = fit["params"]
    return [params.get("h"), params.get("aux_delta" if params.get("h") == "hard_cutoff" else "aux_gamma")]


def _curve(fit: Fit, other: Fit | None, checkpoints: Mapping[str, pd.DataFrame], its: Bounds | None) -> pd.DataFrame:
    """Return the curve of one fit, with the columns of `Bounded`, numbered from 0."""
    own = checkpoints[fit["key"]].rename(columns={"cumulative_loss": "own"})[["t", "own", "n_support"]]
    theirs = (
        checkpoints[other["key"]]
        if other
        else own.assign(cumulative_loss=math.nan, cumulative_h=math.nan, norm=math.nan)
    )
    if other and fit["algorithm"] == "auxiliary" and _shape(other) != _shape(fit):
        theirs = theirs.assign(cumulative_h=math.nan)
    theirs = theirs.rename(columns={"cumulative_loss": "loss", "cumulative_h": "h"})[["t", "loss", "h", "norm"]]
    curve = own.merge(theirs, on="t", how="left")
    T, loss = curve["t"], curve["loss"]
    return curve.assign(
        regret=curve["own"] - loss,
        regret_bound=its.of_loss(T, loss, curve["h"], curve["norm"]) - loss if its else math.nan,
        regret_of_zero=T * bounds.LOG_2 - loss,
        support_bound=its.of_support(T, curve["own"]) if its and its.of_support else math.nan,
    )


def _from(last: pd.Series[float], its: Bounds) -> tuple[int | None, int | None]:
    """Return from which T on the bounds of the loss and of the support vectors say something.

    `last` is the last checkpoint, whose mean losses per example are taken for those of any T.
    """
    loss, h, own = (last[name] / last["t"] for name in ("loss", "h", "own"))
    of_support = its.of_support
    return (
        bounds.first_below(lambda T: its.of_loss(T, loss * T, h * T, last["norm"]), lambda T: T * bounds.LOG_2),
        bounds.first_below(lambda T: of_support(T, own * T), lambda T: T) if of_support else None,
    )

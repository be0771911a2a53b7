"""Curves of cumulative loss and number of support vectors, with published bounds.

The bounds are those of Zhang et al. (2012, 2013).  The best function in hindsight on the same data set and repeat is
`configs/algorithm/hindsight.yaml`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from klr_bench.estimators.online import bounds
from klr_bench.instantiate import Parameters
from klr_bench.results.record import FINISHED
from klr_bench.results.variants import Variant, to_number

COMPARATOR = "hindsight"
DELTA = 0.05
"""delta of OSKL's bounds, which hold with probability 1 - 2 delta."""
TRACED = {"cumulative_loss": "loss", "cumulative_h": "h", "norm": "norm", "n_support": "n_support"}
Fit = Mapping[Any, Any]
"""A row of the records."""


class Bounds(NamedTuple):
    """Regret and sparsity bounds of one fit.

    `of_support` is None if there is no bound on the number of support vectors.
    """

    of_loss: Callable[[Any, Any, Any, Any], Any]
    """Function of T, the comparator's loss and sum of h on the first T examples, and its norm."""
    of_support: Callable[[Any, Any], Any] | None = None
    """Function of T and the method's cumulative loss."""


class Bounded(NamedTuple):
    """Mean curve of a method, and after how many examples each bound becomes nontrivial.

    A bound is nontrivial if it is below the trivial value; for any T the losses are those of the average
    example.  The curve has one row per checkpoint, means over the repeats, NaN if missing: t, own (cumulative loss),
    loss, h and norm (of the comparator on the first t examples), regret = own - loss, regret_bound, regret_of_zero
    (that of f = 0), n_support, support_bound.
    """

    curve: pd.DataFrame
    starts: dict[str, int | None]


def bounds_of(algorithm: str, params: Parameters, n_train: float) -> Bounds | None:
    """Return the bounds of a fit, or None if the theorems do not apply to its parameters.

    They need k(x, x) <= 1, one pass in the order of the rows, a constant step, and the logistic loss.
    """
    once = params.get("n_epochs") == 1 and params.get("shuffle") is False
    if not once or params.get("kernel", "rbf") != "rbf" or params.get("loss", "logit") != "logit":
        return None
    R, G, eta = (to_number(params.get(name)) for name in ("R", "G", "eta"))
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
            lambda T, own_loss: bounds.margin_support_bound(T, own_loss, eta),
        )
    if algorithm == "auxiliary" and params.get("h") in bounds.AUXILIARY:
        shape = str(params["h"]), to_number(params.get("aux_gamma")) or 1.0, to_number(params.get("aux_delta")) or 0.0
        return Bounds(
            lambda T, loss, h, norm: bounds.auxiliary_loss_bound(T, h, norm, eta),
            lambda T, own_loss: bounds.auxiliary_support_bound(own_loss, *shape),
        )
    if algorithm == "oskl" and R is not None and G is not None and eta * G < 1:
        return Bounds(
            lambda T, loss, h, norm: bounds.oskl_loss_bound(T, loss, R, eta, G, DELTA),
            lambda T, own_loss: bounds.oskl_support_bound(T, own_loss, G, DELTA),
        )
    return None


def bounded(traces: pd.DataFrame, records: pd.DataFrame) -> dict[tuple[str, str, Variant], Bounded]:
    """Return the mean curves of methods, by data set, algorithm and variant."""
    checkpoints = _checkpoints(traces)
    finished = records[records["status"].isin(FINISHED) & records["key"].isin(checkpoints)].to_dict("records")
    compared = [fit for fit in finished if fit["algorithm"] == COMPARATOR]
    curves: dict[tuple[str, str, Variant], list[Fit]] = {}
    for fit in finished:
        if fit["algorithm"] != COMPARATOR:
            curves.setdefault((fit["dataset"], fit["algorithm"], fit["variant"]), []).append(fit)
    return {place: _bounded(fits, compared, checkpoints) for place, fits in curves.items()}


def _bounded(fits: Sequence[Fit], compared: Sequence[Fit], checkpoints: Mapping[Any, pd.DataFrame]) -> Bounded:
    """Average the curves over the repeats, checkpoint by checkpoint."""
    its = [bounds_of(fit["algorithm"], fit["params"], fit["n_train"]) for fit in fits]
    curves = [_curve(fit, of, compared, checkpoints) for fit, of in zip(fits, its, strict=True)]
    together = pd.concat(curves)
    curve = together.groupby(together.index).mean().replace(np.inf, np.nan)
    last = curve.iloc[-1]
    loss, h, own_loss = (last[name] / last["t"] for name in ("loss", "h", "own"))
    starts: dict[str, int | None] = {"regret_bound": None, "support_bound": None}
    if its[0] is not None:
        of_loss, of_support = its[0]
        starts["regret_bound"] = bounds.first_below(
            lambda T: of_loss(T, loss * T, h * T, last["norm"]), lambda T: T * bounds.LOG_2
        )
        if of_support is not None:
            starts["support_bound"] = bounds.first_below(lambda T: of_support(T, own_loss * T), lambda T: T)
    return Bounded(curve, starts)


def run_of(key: str) -> str:
    """Return the name of the run in a key, or "" if the results are not those of a sweep."""
    return key.rpartition("/")[0]


def _curve(
    fit: Fit, its: Bounds | None, compared: Sequence[Fit], checkpoints: Mapping[Any, pd.DataFrame]
) -> pd.DataFrame:
    """Return the curve of one fit, compared with the best classifier in hindsight."""
    of_fit = checkpoints[fit["key"]]
    others = [
        candidate
        for candidate in compared
        if (candidate["dataset"], candidate["repeat"]) == (fit["dataset"], fit["repeat"])
        and run_of(candidate["key"]) == run_of(fit["key"])
    ]
    same_h = [candidate for candidate in others if fit["algorithm"] != "auxiliary" or _shape(candidate) == _shape(fit)]
    theirs = checkpoints[(same_h or others)[0]["key"]] if others else of_fit.head(0)
    theirs = theirs if same_h else theirs.assign(h=math.nan)
    curve = of_fit[["t", "loss", "n_support"]].rename(columns={"loss": "own"})
    curve = curve.merge(theirs[["t", "loss", "h", "norm"]], on="t", how="left")
    T, loss = curve["t"], curve["loss"]
    return curve.assign(
        regret=curve["own"] - loss,
        regret_bound=its.of_loss(T, loss, curve["h"], curve["norm"]) - loss if its else math.nan,
        regret_of_zero=T * bounds.LOG_2 - loss,
        support_bound=its.of_support(T, curve["own"]) if its and its.of_support else math.nan,
    )


def _shape(fit: Fit) -> list[Any]:
    """Return the parameters of the loss bound h of an Auxiliary learner."""
    params = fit["params"]
    return [params.get("h"), params.get("aux_delta" if params.get("h") == "hard_cutoff" else "aux_gamma")]


def _checkpoints(traces: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    valid = traces[traces["metric"].isin(TRACED) & np.isfinite(traces["value"])]
    wide = valid.pivot_table(index=["key", "t", "elapsed_s"], columns="metric", values="value").reset_index()
    wide = wide.reindex(columns=["key", "t", "elapsed_s", *TRACED]).rename(columns=TRACED).dropna(subset=["loss"])
    return dict(iter(wide.groupby("key")))


def bound_ratios(traces: pd.DataFrame, records: pd.DataFrame) -> pd.DataFrame:
    """Return the largest ratios of each fit's loss and support vectors to their bounds.

    The index has the keys of the fits with a bound; the columns are loss_over_bound and support_over_bound, NaN if
    there is no bound.
    """
    fits, rows = records[records["status"] == "ok"].to_dict("records"), {}
    compared = [fit for fit in fits if fit["algorithm"] == COMPARATOR]
    checkpoints = _checkpoints(traces) if compared else {}
    compared = [fit for fit in compared if fit["key"] in checkpoints]
    for fit in fits:
        its = bounds_of(fit["algorithm"], fit["params"], fit["n_train"])
        if its is not None and fit["key"] in checkpoints:
            curve = _curve(fit, its, compared, checkpoints)
            ratios = curve["own"] / (curve["regret_bound"] + curve["loss"]), curve["n_support"] / curve["support_bound"]
            rows[fit["key"]] = [ratio.max() for ratio in ratios]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["loss_over_bound", "support_over_bound"])

"""Regret and support vectors against the examples seen, with the bounds of Zhang et al. (2012, 2013).

Regret is the cumulative loss of the learner (each example before it is learned from) minus that of the best function in
hindsight on the same data set and repeat (`configs/algorithm/hindsight.yaml`).  A dotted line of a learner's colour is
its bound (`online.bounds`), the grey line what needs no theorem: the regret of f = 0, and every example a support
vector.  A regret below 0 has no place on the logarithmic axis and is not shown.  The legend of a panel says from how
many examples on a bound is below the grey line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from klr_bench.estimators.online import bounds
from klr_bench.instantiate import Parameters
from klr_bench.report.figures.core.drawing import Panel, handle, plain, scale_axis, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import EXAMPLES, SUPPORT, Axis, curve_of, drawable, looks_of
from klr_bench.report.labels import line_label
from klr_bench.results.store import FINISHED
from klr_bench.results.variants import Variant, as_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from klr_bench.report.figures.core.plot import Look

COMPARATOR = "hindsight"
DELTA = 0.05
"""delta of OSKL's bounds, which hold with probability 1 - 2 delta."""
TRACED = ["key", "t", "cumulative_loss", "cumulative_h", "norm", "n_support"]
GREY = "#888888"
SMALL = 6.5
"""Points, of the letters of a panel's legend."""
TITLE = f"Bound below the grey line from\n(OSKL's: with probability {1 - 2 * DELTA:g})"
ROOM, SPAN = 0.45, 1e4
"""Part of the height of a panel for its legend, and the largest ratio of two values above it."""
Fit = Mapping[Any, Any]
"""A row of the records."""


class Side(NamedTuple):
    """What a panel shows: an axis, and the columns of a `Bounded`."""

    axis: Axis
    measured: str
    bound: str
    trivial: str
    """The column that needs no theorem."""
    starts: str
    """The attribute that says from where on the bound is below it."""


SIDES = (
    Side(Axis("regret", "Regret (log loss)", counted=True), "regret", "regret_bound", "regret_of_zero", "regret_from"),
    Side(SUPPORT, "n_support", "support_bound", "t", "support_from"),
)


def _draw(inputs: Inputs) -> Drawing | None:
    curves = bounded(inputs.traces, inputs.records)
    blocks = [block for block in inputs.table.blocks if any(block.dataset == place[0] for place in curves)]
    lines = [line for block in blocks for line in block.lines if line.algorithm != COMPARATOR]
    looks = looks_of({curve_of(line): line_label(line) for line in lines})
    panels = []
    for side in SIDES:
        for block in blocks:
            shown = {
                look: curves[block.dataset, *column]
                for column, look in looks.items()
                if (block.dataset, *column) in curves
            }
            if any((one.curve[side.measured] > 0).any() for one in shown.values()):
                draw = partial(_draw_panel, shown=shown, side=side)
                panels.append(Panel(block.label, draw, y=side.axis.label))
    handles = [handle(look, look.dashes) for look in looks.values()]
    handles.append(Line2D([], [], color=GREY, linestyle=":", label="bound"))
    handles.append(Line2D([], [], color=GREY, linewidth=0.8, label="f = 0; every example"))
    return side_by_side(panels, handles, EXAMPLES.label, "")


def _draw_panel(axes: Axes, shown: Mapping[Look, Bounded], side: Side) -> None:
    starts = []
    for look, one in shown.items():
        t, measured, bound = (one.curve[name] for name in ("t", side.measured, side.bound))
        (line,) = axes.plot(t, measured.where(measured > 0), color=look.colour, linestyle=look.dashes, linewidth=1.2)
        line.set(marker=look.marker, markersize=3)
        if one.has(side.bound):
            (line,) = axes.plot(t, bound.where(np.isfinite), color=look.colour, linestyle=":", linewidth=1.4)
            line.set(marker=look.marker, markersize=3, mfc="none", markevery=[-1])
            starts.append(handle(look, ":"))
            label = plain(f"{look.label}: {_start(getattr(one, side.starts))}")
            starts[-1].set(label=label, markersize=3, mfc="none")
    longest = max((one.curve for one in shown.values()), key=len)
    trivial = longest[side.trivial]
    axes.plot(longest["t"], trivial.where(trivial > 0), color=GREY, linewidth=0.8, zorder=1)
    axes.set_yscale("log")
    if starts:
        low, high = axes.dataLim.intervaly
        axes.set_ylim(high * (max(low, high / SPAN) / high) ** (1 / (1 - ROOM)), 2 * high)
        legend = axes.legend(handles=starts, loc="lower right", fontsize=SMALL, handlelength=2, title=TITLE)
        legend.get_title().set_fontsize(SMALL)
    scale_axis(axes.xaxis, EXAMPLES)
    scale_axis(axes.yaxis, side.axis)


def _start(examples: int | None) -> str:
    """Return in words from where on a bound says something."""
    if examples is None:
        return "no T"
    return "every T" if examples == 1 else f"T = {examples:,}"


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
    curve : one row per checkpoint with means over the repeats, NaN if missing: t, own (cumulative loss), loss, h and
        norm (of the comparator on the first t examples), regret = own - loss, regret_bound, regret_of_zero (that of
        f = 0), n_support, support_bound
    regret_from : the first T with a bound of the loss below T log(2), the loss of f = 0, if losses grow with T as on
        the average example; or None
    support_from : the first T with a bound of the support vectors below T, or None
    """

    curve: pd.DataFrame
    regret_from: int | None
    support_from: int | None

    def has(self, column: str) -> bool:
        """Return True if there is a finite number in a column."""
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
    """Return the fit to compare with, or None; for Auxiliary preferably one with the same h."""
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


FIGURE = Figure(
    needs=Needs(traces=("cumulative_loss", "n_support")),
    draw=_draw,
    title="Regret and support vectors against the examples seen, beside what Zhang et al. (2012, 2013) prove of them",
)

"""Performance profiles (Dolan and More, 2002): the share of problems solved within a factor of the fastest solver.

A problem is a data set and a repeat, and a value of the parameter whose values are columns of the table, where there is
one.  It is solved at the first checkpoint with a duality gap, over the objective, of at most the gap of the panel;
where no checkpoint has a gap, with an objective that is above the smallest of all solvers by at most that share of it.
A solver that never gets there has no time.  Problems whose fits did not all run on one machine that nobody else used
are left out, and so are those that some solver was not run on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from klr_bench.errors import KlrBenchError
from klr_bench.report.figures.core.drawing import Panel, handle, scale_axis, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import Axis, Curve, curve_of, looks_of
from klr_bench.report.labels import column_label
from klr_bench.report.measured import conditions_of
from klr_bench.report.statistics.across import profile, ratios
from klr_bench.report.statistics.paired import Array
from klr_bench.results.store import FINISHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

GAPS = (1e-1, 1e-2, 1e-3)
LEAST_SOLVERS = 2
FACTOR = Axis("factor", "Time / time of the fastest", counted=True)
N_FACTORS, N_MARKERS = 400, 6


@dataclass(frozen=True)
class Profiles:
    """By gap, the time of each solver over that of the fastest of each problem, (problems, solvers)."""

    solvers: list[Curve]
    ratios: dict[float, Array]


def _draw(inputs: Inputs) -> Drawing | None:
    found = profiles_of(inputs)
    labels = {
        curve_of(line, *_along(inputs)): column_label(line.algorithm_label, curve_of(line, *_along(inputs))[1])
        for block in inputs.table.blocks
        for line in block.lines
    }
    looks = looks_of({solver: labels[solver] for solver in found.solvers}, dashed=True)
    largest = max(float(values[np.isfinite(values)].max(initial=2.0)) for values in found.ratios.values())
    factors = np.geomspace(1.0, 1.1 * largest, N_FACTORS)

    def draw(axes: Axes, values: Array) -> None:
        shares = profile(values, factors)
        for number, look in enumerate(looks.values()):
            (line,) = axes.step(factors, 100 * shares[:, number], where="post", color=look.colour)
            first = number * N_FACTORS // N_MARKERS // len(looks)  # no marker hides another
            line.set(linestyle=look.dashes, marker=look.marker, markersize=4, markevery=(first, N_FACTORS // N_MARKERS))
        axes.set(xlim=(factors[0], factors[-1]), ylim=(-3, 103))
        scale_axis(axes.xaxis, FACTOR)

    panels = [
        Panel(f"gap {gap:g}: {len(values)} problem{'' if len(values) == 1 else 's'}", partial(draw, values=values))
        for gap, values in found.ratios.items()
        if len(values)
    ]
    handles = [handle(look, look.dashes) for look in looks.values()]
    return side_by_side(panels, handles, FACTOR.label, "Problems solved (%)")


def profiles_of(inputs: Inputs) -> Profiles:
    """Return the ratios that the curves count; KlrBenchError with fewer than two solvers."""
    checkpoints = _checkpoints(inputs)
    solvers = list(dict.fromkeys(checkpoints["solver"]))
    if len(solvers) < LEAST_SOLVERS:
        message = f"{len(solvers)} of the lines with checkpoints can be timed; two are needed."
        raise KlrBenchError(message)
    return Profiles(solvers, {gap: ratios(_times(checkpoints, solvers, gap)) for gap in GAPS})


def _along(inputs: Inputs) -> tuple[str, ...]:
    return (inputs.table.columns,) if inputs.table.columns else ()


def _checkpoints(inputs: Inputs) -> pd.DataFrame:
    """Return problem, solver, elapsed_s and gap of the checkpoints whose times can be compared.

    Without a duality gap it is F / F* - 1 of the objective F, where F* is the smallest of all solvers of a problem.
    """
    along = _along(inputs)
    metric = "duality_gap" if "duality_gap" in set(inputs.traces["metric"]) else "objective"
    traces = inputs.traces[inputs.traces["metric"] == metric].rename(columns={"value": "gap"})
    records = inputs.records[inputs.records["status"].isin(FINISHED) & inputs.records["key"].isin(traces["key"])]
    problems: dict[Any, list[dict[Any, Any]]] = {}
    for row in records.to_dict("records"):
        place = row["dataset"], row["repeat"], *(str(row["variant"].get(name)) for name in along)
        problems.setdefault(place, []).append(row)
    fits = []
    for number, rows in enumerate(problems.values()):
        conditions = conditions_of(rows)
        if conditions.alike(conditions):
            fits += [(row["key"], number, (row["algorithm"], row["variant"].without(*along))) for row in rows]
    checkpoints = pd.DataFrame(fits, columns=["key", "problem", "solver"]).merge(traces, on="key")
    if metric == "objective":
        checkpoints["gap"] = checkpoints["gap"] / checkpoints.groupby("problem")["gap"].transform("min") - 1
    return checkpoints


def _times(checkpoints: pd.DataFrame, solvers: list[Curve], gap: float) -> Array:
    """Return seconds until the gap, (problems, solvers): infinite if it is not reached, NaN without a fit."""
    rows: dict[Any, int] = {problem: row for row, problem in enumerate(checkpoints["problem"].unique())}
    columns: dict[Any, int] = {solver: column for column, solver in enumerate(solvers)}
    times = np.full((len(rows), len(columns)), np.nan)
    for (problem, solver), fit in checkpoints.groupby(["problem", "solver"], sort=False):
        reached = fit.loc[fit["gap"] <= gap, "elapsed_s"].to_numpy(float)
        times[rows[problem], columns[solver]] = reached.min(initial=np.inf)
    return times


FIGURE = Figure(
    needs=Needs(traces=("objective",)),
    draw=_draw,
    title="Performance profiles (Dolan and More, 2002)",
)

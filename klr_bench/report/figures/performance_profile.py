"""Performance profiles of solvers (Dolan and More, 2002).

A profile is the share of problems that a solver solves within a factor of the fastest solver's time.

A problem is a data set, a repeat and a lambda; if the columns of the table are the values of another parameter, each
value is a separate problem.  It is solved at the first checkpoint whose duality gap, divided by the objective, is at
most the gap of the panel; without a duality gap, at the first whose objective is at most that share above the smallest
of all solvers.  Problems are omitted unless all of their fits ran on one idle machine, with every solver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from klr_bench.errors import fail
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import Axis, Curve, Facet, Look, Plot, Series, connected, curve_of, looks_of
from klr_bench.report.labels import pluralize
from klr_bench.report.measured import conditions_of
from klr_bench.report.statistics.across import profile, ratios
from klr_bench.report.statistics.paired import Array
from klr_bench.results.record import FINISHED

T = TypeVar("T")
GAPS = (1e-1, 1e-2, 1e-3)
FACTOR = Axis("factor", "Time / time of the fastest", logarithmic=True)
SOLVED = Axis("solved", "Problems solved (%)")


def _plot(inputs: Inputs) -> Plot | None:
    solvers, all_ratios = profiles_of(inputs)
    lines = [line for block in inputs.table.blocks for line in block.lines]
    looks = looks_of(
        [line for line in lines if curve_of(line, *_along(inputs)) in solvers],
        lambda line: curve_of(line, *_along(inputs)),
        dashed=True,
    )
    facets = [
        Facet(f"gap {gap:g}: {pluralize(len(all_ratios[gap]), 'problem')}", SOLVED, series)
        for gap, series in profiles(solvers, looks, all_ratios).items()
        if len(all_ratios[gap])
    ]
    return Plot(FACTOR, facets) if facets else None


def profiles(
    curves: Sequence[Curve], looks: Mapping[Curve, Look], by_panel: Mapping[T, Array]
) -> dict[T, list[Series]]:
    """Return one step function per curve, keyed by panel; the panels end at the same factor.

    The ratios have the shape (n_problems, n_curves), and are infinite for problems that were not solved.
    """
    largest = 1.1 * max(values[np.isfinite(values)].max(initial=2.0) for values in by_panel.values())
    panels: dict[T, list[Series]] = {}
    for panel, values in by_panel.items():
        for curve, column in zip(curves, values.T, strict=True):
            steps = np.unique([1.0, *column[np.isfinite(column)], largest])
            shares = 100 * profile(column[:, None], steps)[:, 0]
            series = connected(curve, looks[curve], np.repeat(steps, 2)[1:], np.repeat(shares, 2)[:-1])
            panels.setdefault(panel, []).append(series)
    return panels


def profiles_of(inputs: Inputs) -> tuple[list[Curve], dict[float, Array]]:
    """Return the solvers and, for each optimality gap, their times relative to the fastest.

    The times have the shape (problems, solvers).

    A time is infinite if the gap is not reached.  Raises KlrBenchError with fewer than two solvers.
    """
    checkpoints = _checkpoints(inputs)
    solvers = list(dict.fromkeys(checkpoints["solver"]))
    if len(solvers) < 2:
        fail(f"expected at least two methods whose times at checkpoints are comparable, got {len(solvers)}.")
    places = [checkpoints["problem"], checkpoints["solver"].map(solvers.index)]
    seconds = {gap: checkpoints["elapsed_s"].where(checkpoints["gap"] <= gap, np.inf) for gap in GAPS}
    return solvers, {gap: ratios(times.groupby(places).min().unstack()) for gap, times in seconds.items()}


def _along(inputs: Inputs) -> list[str]:
    return [*filter(None, dict.fromkeys(["lam", inputs.table.columns]))]


def _checkpoints(inputs: Inputs) -> pd.DataFrame:
    """Return the checkpoints with comparable times: problem, solver, elapsed_s and gap.

    Unless all have a duality gap it is F / F* - 1 of the objective F, where F* is the smallest of all solvers of a
    problem.
    """
    keys = {name: {*inputs.traces.loc[inputs.traces["metric"] == name, "key"]} for name in ("duality_gap", "objective")}
    metric = "duality_gap" if keys["duality_gap"] and keys["duality_gap"] >= keys["objective"] else "objective"
    traces = inputs.traces[inputs.traces["metric"] == metric].rename(columns={"value": "gap"})
    records = inputs.records[inputs.records["status"].isin(FINISHED) & inputs.records["key"].isin(traces["key"])]
    problems: dict[Any, list[dict[Any, Any]]] = {}
    for row in records.to_dict("records"):
        parameters = row["params"] | dict(row["variant"])
        place = row["dataset"], row["repeat"], *(str(parameters.get(name)) for name in _along(inputs))
        problems.setdefault(place, []).append(row)
    fits = []
    for number, rows in enumerate(problems.values()):
        conditions = conditions_of(rows)
        if conditions.alike(conditions):
            fits += [(row["key"], number, (row["algorithm"], row["variant"].without(*_along(inputs)))) for row in rows]
    checkpoints = pd.DataFrame(fits, columns=["key", "problem", "solver"]).merge(traces, on="key")
    if metric == "objective":
        checkpoints["gap"] = checkpoints["gap"] / checkpoints.groupby("problem")["gap"].transform("min") - 1
    return checkpoints


FIGURE = Figure(needs=Needs(traces=("objective",)), plot=_plot, title="Performance profiles (Dolan and More, 2002)")

"""Which algorithms have what a figure needs, and a sentence for those that have not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klr_bench.experiment.records import FINISHED
from klr_bench.report.figures.core.figure import Inputs, Needs
from klr_bench.report.figures.core.lines import Block, Line, mean, measured

if TYPE_CHECKING:
    import pandas as pd

Place = tuple[Block, Line]


@dataclass(frozen=True)
class Requirement:
    """One thing that is needed: in words, who has it, and what to do where nobody has."""

    words: str
    met: Callable[[Place], bool]
    advice: str = ""


def lacking(inputs: Inputs, needs: Needs) -> tuple[bool, list[str]]:
    """Return whether some algorithm has all that is needed, and who has not, as the ends of sentences."""
    places = [(block, line) for block in inputs.table.blocks for line in block.lines]
    required = _requirements(inputs, needs, places)
    ready = {_who(place) for place in places if all(one.met(place) for one in required)}
    if not ready:
        absent = [one for one in required if not any(map(one.met, places))] or required
        words = " and ".join(one.words for one in absent)
        ending = f"; none of {_listed([_who(place) for place in places])} has {'any' if len(absent) == 1 else 'all'}"
        advice = " ".join(dict.fromkeys(one.advice for one in absent if one.advice))
        return False, [f"needs {words}{ending}. {advice}".strip()]
    others: dict[str, list[tuple[str, str]]] = {}
    for place in places:
        if _who(place) not in ready and measured(place[1]):
            words = " and ".join(one.words for one in required if not one.met(place))
            others.setdefault(words, []).append(_who(place))
    return True, [f"drawn without {_listed(who)}, for want of {words}." for words, who in others.items()]


def _requirements(inputs: Inputs, needs: Needs, places: Sequence[Place]) -> list[Requirement]:
    records = inputs.records[inputs.records["status"].isin(FINISHED)]
    keys: dict[object, set[str]] = {}
    for row in records.to_dict("records"):
        keys.setdefault((row["dataset"], row["algorithm"], row["variant"]), set()).add(row["key"])

    def in_frame(frame: pd.DataFrame) -> Callable[[Place], bool]:
        present = set(frame["key"])
        return lambda place: bool(present & keys.get((place[0].dataset, place[1].algorithm, place[1].variant), set()))

    found = [Requirement(f"{name} in records.csv", _has_metric(name)) for name in needs.metrics]
    if needs.parameter:
        found.append(
            Requirement(f"a sweep of {needs.parameter}", _sweeps(needs.parameter), _sweep_advice(needs, places))
        )
    traces = inputs.traces
    for name in needs.traces:
        met = in_frame(traces[traces["metric"] == name])
        found.append(Requirement(f"checkpoints of {name} in traces.csv", met, _trace_advice(traces)))
    if needs.bins:
        advice = "Only learners of two classes that have predict_proba leave some."
        found.append(Requirement("bins of probabilities in reliability.csv", in_frame(inputs.reliability), advice))
    if needs.rows:
        advice = "Run the experiment again with trace.rows=true; the data must have two columns."
        found.append(Requirement("training rows in rows.csv", in_frame(inputs.rows), advice))
    return found


def _has_metric(name: str) -> Callable[[Place], bool]:
    return lambda place: mean(place[1], name) is not None


def _sweeps(parameter: str) -> Callable[[Place], bool]:
    return lambda place: parameter in place[1].variant


def _sweep_advice(needs: Needs, places: Sequence[Place]) -> str:
    algorithm = places[0][1].algorithm if places else "NAME"
    return f"Run with some values of it, as in sweep.{algorithm}.{needs.parameter}=[...]."


def _trace_advice(traces: pd.DataFrame) -> str:
    """Say how to get checkpoints, or, where there are some, what they hold instead."""
    if traces.empty:
        return "Run with trace.points=15 (or another number of checkpoints); fits without them are then done anew."
    return f"The checkpoints hold {', '.join(sorted(set(traces['metric'])))}."


def _who(place: Place) -> tuple[str, str]:
    return place[1].algorithm, place[0].dataset


def _listed(who: Sequence[tuple[str, str]]) -> str:
    """Return algorithms and data sets in words: "nc, oskl on magic, adult; ogd on adult"."""
    on: dict[str, list[str]] = {}
    for algorithm, dataset in dict.fromkeys(who):
        on.setdefault(dataset, []).append(algorithm)
    same: dict[tuple[str, ...], list[str]] = {}
    for dataset, algorithms in on.items():
        same.setdefault(tuple(algorithms), []).append(dataset)
    return "; ".join(f"{', '.join(algorithms)} on {', '.join(datasets)}" for algorithms, datasets in same.items())

"""Under what conditions times were measured, and which can be compared: of one machine that nobody else uses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

TIMES = frozenset({"fit_time_s", "pass_time_s", "predict_time_s", "setup_time_s", "settled_s"})
BUSY = 0.1
"""Share of a machine's processor time, used by others, above which times measured on it are those of a busy machine."""


class Machine(NamedTuple):
    """A machine as records name it; both are "" where a record does not."""

    host: str
    cpu: str


UNKNOWN = Machine("", "")


@dataclass(frozen=True)
class Conditions:
    """The machines of some fits, and the largest share of one that others used when a fit began, if it is known."""

    machines: frozenset[Machine] = frozenset()
    load: float | None = None

    @property
    def busy(self) -> bool:
        """Whether some fit shared its machine with others."""
        return self.load is not None and self.load > BUSY

    def alike(self, other: Conditions) -> bool:
        """Say whether times of the two can be compared: all of one machine, on which nobody else was at work."""
        return len(self.machines | other.machines) == 1 and not self.busy and not other.busy


def conditions_of(rows: Iterable[Mapping[Hashable, Any]]) -> Conditions:
    """Return the conditions of some records; those of a frame without the columns are unknown."""
    rows = list(rows)
    loads = [load for row in rows if not math.isnan(load := row.get("load", math.nan))]
    return Conditions(frozenset(_machine(row) for row in rows), max(loads, default=None))


def usual_machine(rows: Iterable[Mapping[Hashable, Any]]) -> Machine:
    """Return the machine of most records, of several the first by name."""
    counted = Counter(_machine(row) for row in rows)
    return min(counted, key=lambda machine: (-counted[machine], machine), default=UNKNOWN)


def _machine(row: Mapping[Hashable, Any]) -> Machine:
    return Machine(str(row.get("host", "")), str(row.get("cpu", "")))

"""Display names of variants and looks in figures, from algorithm and experiment files.

They are not part of a run's configuration, so that no key of a result depends on them; reports read the files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from pydantic import Field

from klr_bench.config import locations
from klr_bench.errors import fail
from klr_bench.parsing import Model, OpenModel, Words, parse

KEYS = ("labels", "look")


class LookConfig(Model):
    """Color and marker of an algorithm in all figures."""

    color: Literal["black", "blue", "sky", "green", "orange", "red", "pink"]
    marker: Literal[
        "circle", "square", "triangle-up", "diamond", "triangle-down", "cross",
        "x", "triangle-left", "triangle-right", "pentagon", "hexagon", "star",
    ]  # fmt: skip


class Presentation(OpenModel):
    """Display names of an algorithm and its variants, and the color and marker of its curves.

    `labels` has texts of variants by ``parameter=value``, or by ``parameter`` with ``{}`` for the value.
    """

    label: Words = ""
    labels: dict[Words, Words] = Field(default_factory=dict)
    look: LookConfig | None = None


def presentation(label: str, algorithm: str, experiment: str) -> Presentation:
    """Return how an algorithm is displayed; an experiment's file overrides the algorithm's."""
    changes = _content("experiment", experiment).get("algorithms") or {}
    first, second = (
        parse(Presentation, entry) for entry in (_content("algorithm", algorithm), changes.get(algorithm) or {})
    )
    return Presentation(label=label, labels=first.labels | second.labels, look=second.look or first.look)


def _content(group: str, name: str) -> Mapping[str, Any]:
    paths = locations.paths(group, locations.folders())
    return locations.read(paths[name]) if name in paths else {}


def without_presentation(entry: Any, where: str, overrides: Collection[str] = ()) -> Any:
    """Return the keys of an algorithm that affect a run, and check the others.

    `where` is the dotted prefix of the keys.  Raises KlrBenchError for invalid values, and for a key in `overrides`.
    """
    if not isinstance(entry, Mapping):
        return entry
    for key in KEYS:
        if any(f"{override}.".startswith(f"{where}{key}.") for override in overrides):
            fail(f"{where}{key}: affects only reports; write it in the YAML file of the algorithm or experiment.")
    parse(Presentation, {key: entry[key] for key in KEYS if key in entry}, where)
    return {key: value for key, value in entry.items() if key not in KEYS}

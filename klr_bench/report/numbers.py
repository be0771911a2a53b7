"""What a paper.yaml says of sets of printed numbers: how they stand on the page, why they are off or cannot be had."""

from __future__ import annotations

from typing import Annotated, Protocol

from pydantic import Field

from klr_bench.experiment.config.models import Parameter
from klr_bench.experiment.config.parsing import FileName, Model, Text, Words, some
from klr_bench.experiment.targets import Parameters
from klr_bench.report.claims import Sentence

PARTS = ("dataset", "algorithm", "label", "params", "metric")
"""What a row or a column of a printed table may be of; beside them a parameter, such as lam."""


class Line(Protocol):
    """A printed number, as far as a set of numbers asks."""

    @property
    def params(self) -> Parameters:
        """Its parameters."""


class Layout(Model):
    """How a table is printed: a block, a row and a column stand for the values of these parts.

    A part is one of PARTS or a parameter.  Numbers that differ in nothing but their metric share a cell.
    """

    blocks: list[Words] = Field(default_factory=lambda: ["dataset"])
    rows: Annotated[list[Words], some("the parts of a row")] = Field(default_factory=lambda: ["metric"])
    columns: Annotated[list[Words], some("the parts of a column")] = Field(default_factory=lambda: ["label"])


Names = Annotated[list[Text], some("the names")]


class Numbers(Model):
    """A set of printed numbers: those that have one of the listed values everywhere where there is a list."""

    table: Names | None = None
    dataset: Names | None = None
    algorithm: Names | None = None
    metric: Names | None = None
    params: dict[str, Annotated[list[Parameter], some("the values")]] = Field(default_factory=dict)

    def holds(self, line: Line) -> bool:
        """Return True if a printed number is one of the set."""
        named = [(names, getattr(line, part)) for part, names in self if part != "params"]
        return all(names is None or value in names for names, value in named) and all(
            line.params.get(name) in values for name, values in self.params.items()
        )


class Absent(Model):
    """Why numbers have no counterpart."""

    numbers: Numbers
    because: Sentence


class Cause(Model):
    """Why numbers are off, and the experiments or tests that show it."""

    numbers: Numbers
    because: Sentence
    shown_by: Annotated[list[FileName], some("the experiments that show it")]


Counterparts = dict[FileName, dict[str, Parameter]]
"""By algorithm, the variant that numbers are compared with whose line leaves parameters open; a list: any of these."""


def is_counterpart(chosen: Parameters, variant: Parameters) -> bool:
    """Return True if a variant has the values named for its algorithm; parameters that it does not vary count."""
    listed = {name: value if isinstance(value, list) else [value] for name, value in chosen.items()}
    return all(name not in variant or variant[name] in values for name, values in listed.items())

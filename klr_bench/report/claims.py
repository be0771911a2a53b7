"""What a paper asserts of its results, as statements over records: the schema of `claims` in a paper.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from klr_bench.experiment.config.models import Parameter
from klr_bench.experiment.config.parsing import Check, FileName, Model, Words, above, some

Relation = Literal["above", "below", "at least", "at most"]
Sentence = Annotated[str, Check("a sentence that ends in a full stop", lambda text: text.strip().endswith("."))]
Share = Annotated[float, Check("at least 0", lambda share: share >= 0)]


class Columns(Model):
    """Columns of results: those of some algorithms whose variant has one of the listed values."""

    algorithms: Annotated[list[FileName], some("the algorithms")]
    experiments: Annotated[list[FileName], some("the experiments")] | None = None
    """Some of the experiments of the claim; null: all."""
    params: dict[str, Annotated[list[Parameter], some("the values")]] = Field(default_factory=dict)


class Statement(Model):
    """Each column of `of` stands in a relation to each column of `than`, to a `value`, or to its neighbour.

    The number on the right is multiplied by `times`, and the relation may be missed by `within`.  With `same` only
    columns are compared that agree in these parameters; "algorithm" stands for the algorithm.  With `along` a column
    is compared with that of the next smaller value of this parameter, all else equal.
    """

    metric: Words
    of: Columns
    relation: Relation
    than: Columns | None = None
    than_metric: Words | None = None
    """The metric on the right, where it is another."""
    value: float | None = None
    along: Words | None = None
    same: list[Words] = Field(default_factory=list)
    times: Annotated[float, above(0)] = 1.0
    within: Share = 0.0
    """In the unit of records.csv: fractions, seconds, counts."""
    spread: bool = False
    """Compare standard deviations over the repeats in place of means."""


class Claim(Model):
    """A sentence of ours about what a paper asserts, where it does, and what has to be true for it to hold."""

    says: Sentence
    where: Words
    experiments: list[FileName] = Field(default_factory=list)
    datasets: list[FileName] | None = None
    statements: list[Statement] = Field(default_factory=list)
    share: Annotated[float, Check("above 0, at most 1", lambda share: 0 < share <= 1)] = 1.0
    """The least share of the comparisons that must be right: 0.5 where the paper says "in most cases"."""
    open: Sentence | None = None
    """Why it cannot be judged here; a claim without statements has it."""

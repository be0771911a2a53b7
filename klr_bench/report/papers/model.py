"""The models of paper.yaml and of the lines of tables.csv."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from klr_bench.config.models import Parameter
from klr_bench.instantiate import Parameters
from klr_bench.parsing import DISTINCT, PRINTABLE, Check, FileName, Model, Text, Words, above, between, matching, some

PARTS = ("dataset", "algorithm", "label", "params", "metric")
"""What the rows and columns of a printed table may represent, besides a parameter such as lam."""
SCALES = {
    **{"percent": Decimal("0.01"), "fraction": Decimal(1), "count": Decimal(1)},
    **{"s": Decimal(1), "min": Decimal(60), "": Decimal(1)},
}
"""One printed unit in the unit of records.csv."""
NUMBER = r"[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?"


Sentence = Annotated[str, Check("a sentence that ends in a full stop", lambda text: text.strip().endswith("."))]
Names = Annotated[list[Text], some("the names")]
Values = Annotated[list[Parameter], some("the values")]
ExperimentNames = Annotated[list[FileName], some("the experiments")]
TableNumber = Annotated[Text, PRINTABLE]
"""The number or name of a table or figure: 3, "4.1", "C.2"."""
Number = Annotated[str, matching("a number as printed", f"[+-]?{NUMBER}")]
Spread = Annotated[str, matching("a number of at least 0 as printed, or nothing", rf"(\+?{NUMBER})?")]


class Printed(Model):
    """A published number, a line of tables.csv.

    `mean` and `std` are text: "85.8" and "85.80" have different last digits.  `value`, `spread` and `half_unit` are in
    the unit of records.csv (fractions, seconds, counts).
    """

    table: Words
    dataset: FileName
    algorithm: Words
    params: Parameters
    metric: Words
    mean: Number
    std: Spread
    unit: Literal["percent", "fraction", "count", "s", "min", ""]
    label: Words

    @property
    def value(self) -> float:
        """The mean; computed in decimals, so that 85.8 percent is 0.858."""
        return float(Decimal(self.mean) * SCALES[self.unit])

    @property
    def spread(self) -> float | None:
        """The standard deviation, or None."""
        return float(Decimal(self.std) * SCALES[self.unit]) if self.std else None

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit of the mean: the largest rounding error."""
        exponent = int(Decimal(self.mean).as_tuple().exponent)
        return float(Decimal((0, (5,), exponent - 1)) * SCALES[self.unit])

    @property
    def tolerance(self) -> float:
        """The largest difference from the published mean within the published spread: max(2 std, half a unit)."""
        return max(2 * (self.spread or 0.0), self.half_unit)

    def outside(self, mean: float) -> bool:
        """Return True if a mean lies outside the published spread; its edge is inside, up to rounding."""
        return not abs(mean - self.value) <= self.tolerance * (1 + 1e-9)


class Layout(Model):
    """How a table is printed: blocks, rows and columns are the values of these parts, PARTS or parameters.

    Numbers that differ in their metric alone share a cell.
    """

    blocks: list[Words] = Field(default_factory=lambda: ["dataset"])
    rows: Annotated[list[Words], some("the parts of a row")] = Field(default_factory=lambda: ["metric"])
    columns: Annotated[list[Words], some("the parts of a column")] = Field(default_factory=lambda: ["label"])


class Numbers(Model):
    """A set of printed numbers: those with one of the listed values of each part that has a list."""

    table: Names | None = None
    dataset: Names | None = None
    algorithm: Names | None = None
    metric: Names | None = None
    params: dict[str, Values] = Field(default_factory=dict)

    def holds(self, line: Printed) -> bool:
        """Return True if a printed number is in the set."""
        parts = {part: names for part, names in self if part != "params" and names is not None}
        return all(getattr(line, part) in names for part, names in parts.items()) and all(
            line.params.get(name) in values for name, values in self.params.items()
        )


class Absent(Model):
    """Why numbers have no measured counterpart."""

    numbers: Numbers
    because: Sentence


class Cause(Absent):
    """Why numbers differ, and the experiments that show it."""

    shown_by: ExperimentNames


class Columns(Model):
    """Measured methods: those of some algorithms whose variant has one of the listed values."""

    algorithms: Annotated[list[FileName], some("the algorithms")]
    experiments: ExperimentNames | None = None
    """Some of the experiments of the claim; null: all."""
    params: dict[str, Values] = Field(default_factory=dict)


class Statement(Model):
    """A relation of each method of `of` to each method of `than`, to a `value`, or to its neighbor.

    The number on the right is multiplied by `times`, and the relation may be missed by `within`.  With `same` only
    methods are compared that agree in these parameters, or in "algorithm".  With `along` a method is compared with the
    one of the next smaller value of this parameter, all else equal.
    """

    metric: Words
    of: Columns
    relation: Literal["above", "below", "at least", "at most"]
    than: Columns | None = None
    than_metric: Words | None = None
    """The metric on the right, if it is another one."""
    value: float | None = None
    along: Words | None = None
    same: list[Words] = Field(default_factory=list)
    times: Annotated[float, above(0)] = 1.0
    within: Annotated[float, Check("at least 0", lambda share: share >= 0)] = 0.0
    """In the unit of records.csv: fractions, seconds, counts."""
    spread: bool = False
    """Compare standard deviations over the repeats instead of means."""


class Claim(Model):
    """A sentence of a paper, where it is, and the statements that must be true for it to hold."""

    says: Sentence
    where: Words
    experiments: list[FileName] = Field(default_factory=list)
    datasets: list[FileName] | None = None
    statements: list[Statement] = Field(default_factory=list)
    share: Annotated[float, Check("above 0, at most 1", lambda share: 0 < share <= 1)] = 1.0
    """The least share of the comparisons that must hold: 0.5 where the paper says "in most cases"."""
    open: Sentence | None = None
    """Why it cannot be judged here; for a claim without statements."""


class PrintedFigure(Model):
    """A figure of a paper and the experiments that make it."""

    title: Words
    experiments: list[FileName] = Field(default_factory=list)


class PrintedTable(PrintedFigure):
    """A table of a paper and the experiments that make it."""

    columns: Words | None = None
    """A parameter whose values are the columns of the experiment's table."""
    layout: Layout = Layout()
    """How the paper prints it."""
    repeats: Annotated[int, between(1, 1_000_000)] | None = None
    """Number of runs behind a printed mean, where the paper says so."""
    counterparts: dict[FileName, dict[str, Parameter]] = Field(default_factory=dict)
    """By algorithm, the variant that is compared where a printed number leaves it open; a list: any of these."""

    def is_counterpart(self, algorithm: str, variant: Parameters) -> bool:
        """Return True if the numbers of this table are compared with this variant of the algorithm."""
        chosen = self.counterparts.get(algorithm, {})
        listed = {name: value if isinstance(value, list) else [value] for name, value in chosen.items()}
        return all(name not in variant or variant[name] in values for name, values in listed.items())


class Paper(Model):
    """paper.yaml."""

    title: Words
    authors: Words
    venue: Words
    year: Annotated[int, between(1000, 9999)]
    reference: Words
    about: Sentence | None = None
    """What it compares, in a sentence."""
    tables: Annotated[dict[TableNumber, PrintedTable], DISTINCT] = Field(default_factory=dict)
    figures: Annotated[dict[TableNumber, PrintedFigure], DISTINCT] = Field(default_factory=dict)
    stand_ins: dict[FileName, FileName] = Field(default_factory=dict)
    """Our data sets that replace one of the paper's that is unavailable."""
    causes: list[Cause] = Field(default_factory=list)
    tried: list[Cause] = Field(default_factory=list)
    """What was tried for numbers that differ, without finding the cause."""
    absent: list[Absent] = Field(default_factory=list)
    claims: list[Claim] = Field(default_factory=list)

    def published_name(self, dataset: str) -> str:
        """Return the paper's name of a data set, or of the one that it replaces."""
        return self.stand_ins.get(dataset, dataset)

    def named(self) -> dict[str, list[str]]:
        """Return what each experiment that the paper names is for: its tables, figures, claims and causes."""
        parts = {f"table {number}": table.experiments for number, table in self.tables.items()}
        parts |= {
            f"figure {number}" if number[0].isdigit() else number: figure.experiments
            for number, figure in self.figures.items()
        }
        parts |= {f"claim {number}": claim.experiments for number, claim in enumerate(self.claims, 1)}
        parts["a cause"] = [name for cause in (*self.causes, *self.tried) for name in cause.shown_by]
        names = dict.fromkeys(name for experiments in parts.values() for name in experiments)
        return {name: [what for what, experiments in parts.items() if name in experiments] for name in names}

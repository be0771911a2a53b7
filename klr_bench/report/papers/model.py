"""Data models of paper.yaml and of the rows of tables.csv."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from klr_bench.config.models import Parameter
from klr_bench.instantiate import Parameters
from klr_bench.parsing import (
    DISTINCT,
    PRINTABLE,
    Check,
    FileName,
    Model,
    Text,
    Words,
    above,
    between,
    matching,
    non_empty,
)

PARTS = ("dataset", "algorithm", "label", "params", "metric")
"""What the rows and columns of a published table may stand for, apart from a parameter such as lam."""
SCALES = {
    **{"percent": Decimal("0.01"), "fraction": Decimal(1), "count": Decimal(1)},
    **{"s": Decimal(1), "min": Decimal(60), "": Decimal(1)},
}
"""The factor that converts a printed unit to the unit of records.csv."""
PUBLISHED, BENCHMARK, DIFFERENCE = "published", "benchmark", "difference"
"""Names used in place of an experiment: for numbers that the paper prints, for results of scripts/benchmark, and, in a
cause, for the difference that it explains."""
NUMBER = r"[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?"


Sentence = Annotated[str, Check("a sentence that ends in a full stop", lambda text: text.strip().endswith("."))]
Names = Annotated[list[Text], non_empty("the names")]
Values = Annotated[list[Parameter], non_empty("the values")]
ExperimentNames = Annotated[list[FileName], non_empty("the experiments")]
TableNumber = Annotated[Text, PRINTABLE]
"""The number or name of a table or figure: 3, "4.1", "C.2"."""
Number = Annotated[str, matching("a number as printed", f"[+-]?{NUMBER}")]
Spread = Annotated[str, matching("a number of at least 0 as printed, or nothing", rf"(\+?{NUMBER})?")]


class Printed(Model):
    """Published number: one row of tables.csv.

    `mean` and `std` are strings, because "85.8" and "85.80" have different precisions.  `value`, `spread` and
    `half_unit` are in the unit of records.csv (fractions, seconds, counts).
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
        """The published mean as a float; exact decimal arithmetic converts 85.8 percent to 0.858."""
        return float(Decimal(self.mean) * SCALES[self.unit])

    @property
    def spread(self) -> float | None:
        """The published standard deviation, or None."""
        return float(Decimal(self.std) * SCALES[self.unit]) if self.std else None

    @property
    def half_unit(self) -> float:
        """Half a unit in the last printed digit of the mean, which is the largest rounding error."""
        return self._half_unit(self.mean)

    @property
    def spread_half_unit(self) -> float:
        """Half a unit in the last printed digit of the standard deviation, or 0 without one."""
        return self._half_unit(self.std) if self.std else 0.0

    def _half_unit(self, text: str) -> float:
        exponent = int(Decimal(text).as_tuple().exponent)
        return float(Decimal((0, (5,), exponent - 1)) * SCALES[self.unit])


class Layout(Model):
    """Fields or parameters that define the blocks, rows and columns of a published table.

    Numbers that differ only in their metric share a cell.
    """

    blocks: list[Words] = Field(default_factory=lambda: ["dataset"])
    rows: Annotated[list[Words], non_empty("the parts of a row")] = Field(default_factory=lambda: ["metric"])
    columns: Annotated[list[Words], non_empty("the parts of a column")] = Field(default_factory=lambda: ["label"])


class Numbers(Model):
    """Filter for published numbers by lists of accepted values; None accepts all values."""

    table: Names | None = None
    dataset: Names | None = None
    algorithm: Names | None = None
    metric: Names | None = None
    params: dict[str, Values] = Field(default_factory=dict)

    def holds(self, line: Printed) -> bool:
        """Return True if a published number passes the filter."""
        parts = {part: names for part, names in self if part != "params" and names is not None}
        return all(getattr(line, part) in names for part, names in parts.items()) and all(
            line.params.get(name) in values for name, values in self.params.items()
        )


class Absent(Model):
    """Reason why a set of published numbers cannot be measured."""

    numbers: Numbers
    because: Sentence


class Calibration(Model):
    """Setting that was chosen because it leads to the published numbers."""

    numbers: Numbers
    setting: Sentence
    instead: dict[str, Parameter] = Field(default_factory=dict)
    """Parameter values without this choice, such as a cross-validated one, whose results are also shown."""
    instead_in: FileName | None = None
    """The experiment that has these results, if it is another one."""


class Columns(Model):
    """Filter for measured methods: accepted algorithms, experiments and parameter values."""

    algorithms: Annotated[list[FileName], non_empty("the algorithms")]
    experiments: ExperimentNames | None = None
    """Experiments of the claim or cause to which the filter is limited; null: all.

    In a claim, a published number belongs to the experiments of its table, and to `published`.
    """
    params: dict[str, Values] = Field(default_factory=dict)


class Statement(Model):
    """Relation that each method in `of` must have to each method in `than`, or to `value`.

    The right-hand side is multiplied by `times`, and the relation may be violated by up to `within`.  `same` lists
    parameters (or "algorithm") that compared methods must share.  With `along`, each method is compared with the one
    that has the next smaller value of this parameter and is otherwise equal.
    """

    metric: Words
    of: Columns
    relation: Literal["above", "below", "at least", "at most", "equal to"]
    than: Columns | None = None
    than_metric: Words | None = None
    """The metric of the right-hand side, if it differs from `metric`."""
    value: float | None = None
    datasets: list[FileName] | None = None
    """Data sets to which the statement applies; null: all of the claim."""
    along: Words | None = None
    across: Words | None = None
    """Compare methods with those on the data sets where this metric is better, instead of on the same data set."""
    nearest: Words | None = None
    """Compare each method with only one method of each algorithm: the one whose mean of this metric is nearest."""
    same: list[Words] = Field(default_factory=list)
    times: Annotated[float, above(0)] = 1.0
    within: Annotated[float, Check("at least 0", lambda share: share >= 0)] = 0.0
    """Tolerance in the unit of records.csv (fractions, seconds, counts)."""
    spread: bool = False
    """Compare standard deviations over the repeats instead of means."""


class Cause(Absent):
    """Reason why measured values differ from published ones, and what its experiments must show.

    In the statements, methods have the experiments of `shown_by`; PUBLISHED is the row of the published number that is
    explained, and DIFFERENCE the absolute difference between this number and the measured mean.
    """

    shown_by: ExperimentNames
    statements: list[Statement] = Field(default_factory=list)


class Claim(Model):
    """Claim of a paper, its location, and the statements that must be true for it to hold."""

    says: Sentence
    where: Words
    experiments: list[FileName] = Field(default_factory=list)
    datasets: list[FileName] | None = None
    any_data: bool = False
    """True for a claim on any data, such as a theorem; else, only the data sets of tables.csv affect the verdict."""
    statements: list[Statement] = Field(default_factory=list)
    share: Annotated[float, Check("above 0, at most 1", lambda share: 0 < share <= 1)] = 1.0
    """The minimum share of comparisons that must hold, such as 0.5 for "in most cases"."""
    open: Sentence | None = None
    """The reason why a claim cannot be judged, shown if there are no comparisons."""
    note: Sentence | None = None
    """A remark that is shown with the verdict."""
    calibrated: Sentence | None = None
    """A setting or limit of the comparisons that was chosen after the results had been seen."""


class PrintedFigure(Model):
    """Published figure and the experiments that reproduce it."""

    title: Words
    experiments: list[FileName] = Field(default_factory=list)
    calibrated: Sentence | None = None
    """A setting of the experiments that was chosen because it leads to what the figure or table shows."""


class PrintedTable(PrintedFigure):
    """Published table and the experiments that reproduce it."""

    columns: Words | None = None
    """The parameter whose values form the columns of the experiment's table."""
    layout: Layout = Layout()
    """The layout of the table in the paper."""
    repeats: Annotated[int, between(1, 1_000_000)] | None = None
    """The number of runs behind a published mean, if the paper states it."""
    counterparts: dict[FileName, dict[str, Parameter]] = Field(default_factory=dict)
    """Per algorithm, the parameter values (or lists of values) to use if a published number leaves them open.

    They are calibrated (see `Calibration`), or named in `as_stated`.
    """
    as_stated: dict[FileName, Sentence] = Field(default_factory=dict)
    """Per algorithm, where the paper states the values in `counterparts`."""

    @property
    def settings(self) -> list[str]:
        """The parameters that the layout names, such as lam; numbers are next to equal ones."""
        parts = [*self.layout.blocks, *self.layout.rows, *self.layout.columns]
        return [part for part in parts if part not in PARTS]

    def is_counterpart(self, algorithm: str, variant: Parameters) -> bool:
        """Return True if the numbers of this table are compared with the given variant."""
        chosen = self.counterparts.get(algorithm, {})
        listed = {name: value if isinstance(value, list) else [value] for name, value in chosen.items()}
        return all(name not in variant or variant[name] in values for name, values in listed.items())


class Paper(Model):
    """Content of a paper.yaml file."""

    title: Words
    authors: Words
    venue: Words
    year: Annotated[int, between(1000, 9999)]
    reference: Words
    about: Sentence | None = None
    """One sentence on what the paper compares."""
    tables: Annotated[dict[TableNumber, PrintedTable], DISTINCT] = Field(default_factory=dict)
    figures: Annotated[dict[TableNumber, PrintedFigure], DISTINCT] = Field(default_factory=dict)
    stand_ins: dict[FileName, FileName] = Field(default_factory=dict)
    """Data sets of klr-bench, mapped to the unavailable published data sets that they substitute."""
    causes: list[Cause] = Field(default_factory=list)
    tried: list[Cause] = Field(default_factory=list)
    """Possible causes that were tested but do not explain the difference."""
    absent: list[Absent] = Field(default_factory=list)
    estimated_hours: dict[FileName, Annotated[float, above(0)]] = Field(default_factory=dict)
    """Estimated hours of experiments that have no reference results."""
    inferred_spreads: list[Numbers] = Field(default_factory=list)
    """Numbers whose standard deviation is not printed but was inferred from another one."""
    calibrated: list[Calibration] = Field(default_factory=list)
    claims: list[Claim] = Field(default_factory=list)

    def has_inferred_spread(self, line: Printed) -> bool:
        """Return True if the standard deviation of a number was inferred from another one."""
        return line.spread is not None and any(numbers.holds(line) for numbers in self.inferred_spreads)

    def calibration_of(self, line: Printed) -> Calibration | None:
        """Return the setting that was chosen because it leads to a published number, or None."""
        return next((calibration for calibration in self.calibrated if calibration.numbers.holds(line)), None)

    def published_name(self, dataset: str) -> str:
        """Return the published data set that `dataset` replaces, or `dataset` itself."""
        return self.stand_ins.get(dataset, dataset)

    def named(self) -> dict[str, list[str]]:
        """Map each experiment to the tables, figures, claims and explanations that refer to it."""
        parts = {f"table {number}": table.experiments for number, table in self.tables.items()}
        parts |= {
            f"figure {number}" if number[0].isdigit() else number: figure.experiments
            for number, figure in self.figures.items()
        }
        parts |= {f"claim {number}": claim.experiments for number, claim in enumerate(self.claims, 1)}
        parts["a cause"] = [name for cause in (*self.causes, *self.tried) for name in cause.shown_by]
        names = dict.fromkeys(name for experiments in parts.values() for name in experiments if name != BENCHMARK)
        return {name: [what for what, experiments in parts.items() if name in experiments] for name in names}

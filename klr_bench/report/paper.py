"""Papers as data: configs/paper/<paper>/paper.yaml says what there is, tables.csv has each printed number.

A line of tables.csv is in klr-bench's own names (data set, algorithm, parameters, metric), so it belongs to the columns
of a results table that have the same; number, spread and unit are as printed.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from klr_bench.errors import KlrBenchError, located
from klr_bench.experiment.config import files
from klr_bench.experiment.config.parsing import (
    DISTINCT,
    PRINTABLE,
    Check,
    FileName,
    Model,
    Text,
    Words,
    between,
    check_choice,
    parse,
    refuse,
    refuse_unknown,
)
from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.targets import TARGET, Parameters
from klr_bench.files import read_regular
from klr_bench.report.claims import Claim, Sentence
from klr_bench.report.numbers import Absent, Cause, Counterparts, Layout
from klr_bench.yaml_file import read_yaml

SCALES = {
    "percent": Decimal("0.01"),
    "fraction": Decimal(1),
    "count": Decimal(1),
    "s": Decimal(1),
    "min": Decimal(60),
    "": Decimal(1),
}
"""One printed unit in the unit of records.csv."""
UNITS = {"percent": ("percent", "fraction"), "count": ("count",), "s": ("s", "min")}
"""Units that a number may be printed in, for each unit of a metric; for others, "fraction" or none."""
LARGEST_TABLES = 10**7
"""Bytes of a tables.csv: 100,000 printed numbers."""
FACTS = ("n_train", "n_test", "n_features", "n_examples", "nnz_per_instance", "lam")
"""What tables say of a data set itself, in lines without an algorithm."""
NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")
KERNEL = ("kernel", "gamma", "degree", "coef0")
"""Parameters that a run gives to any learner with a kernel."""
OWN_FILE = re.compile(r".+-[0-9a-f]{6}")
"""The name of the user's own file in records: its stem and a part of its hash."""


def _is_spread(text: str) -> bool:
    return not text or (NUMBER.fullmatch(text) is not None and Decimal(text) >= 0)


TableNumber = Annotated[Text, PRINTABLE]
"""The number or name of a table or figure: 3, "4.1", "C.2"."""
Number = Annotated[str, Check("a number as printed", lambda text: NUMBER.fullmatch(text) is not None)]
Spread = Annotated[str, Check("a number of at least 0 as printed, or nothing", _is_spread)]


class PrintedFigure(Model):
    """A figure of a paper and the experiments that make it."""

    title: Words
    experiments: list[FileName] = Field(default_factory=list)


class PrintedTable(PrintedFigure):
    """A table of a paper and the experiments that make it."""

    columns: Words | None = None
    """A parameter whose values are the columns of our table."""
    layout: Layout = Layout()
    """How the paper prints it."""
    repeats: Annotated[int, between(1, 1_000_000)] | None = None
    """How many runs a printed mean is of, where the paper says so."""
    counterparts: Counterparts = Field(default_factory=dict)
    """Which variant of ours is meant where a printed number leaves it open."""


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
    """Data sets of ours that stand for one of the paper's that cannot be had."""
    causes: list[Cause] = Field(default_factory=list)
    tried: list[Cause] = Field(default_factory=list)
    """What was tried for numbers that are off, without finding the cause."""
    absent: list[Absent] = Field(default_factory=list)
    claims: list[Claim] = Field(default_factory=list)

    def named(self) -> dict[str, list[str]]:
        """Return all experiments that the paper names, and what each is for: tables, figures, claims, causes."""
        found: dict[str, list[str]] = {}
        parts = [(f"table {number}", table.experiments) for number, table in self.tables.items()]
        parts += [
            (f"figure {number}" if number[0].isdigit() else number, figure.experiments)
            for number, figure in self.figures.items()
        ]
        parts += [(f"claim {place}", claim.experiments) for place, claim in enumerate(self.claims, 1)]
        parts += [("a cause", cause.shown_by) for cause in (*self.causes, *self.tried)]
        for what, experiments in parts:
            for name in experiments:
                found.setdefault(name, []).append(what)
        return found


class Printed(Model):
    """A line of tables.csv.  `mean` and `std` are text: "85.8" and "85.80" have different last digits."""

    table: Words
    dataset: FileName
    algorithm: Words
    params: Parameters
    metric: Words
    mean: Number
    std: Spread
    unit: Literal["percent", "fraction", "count", "s", "min", ""]
    label: Words


@dataclass(frozen=True)
class Published:
    """A published number: as printed, and in the unit of records.csv (fractions, seconds, counts)."""

    printed: Printed
    mean: float
    std: float | None
    half_unit: float
    """Half a unit of the last printed digit of the mean: the most that rounding can have moved it."""
    stand_in: bool = False
    """Whether ours are of other data, so that the two cannot be compared."""

    @classmethod
    def of(cls, printed: Printed, *, stand_in: bool = False) -> Published:
        """Read a line; in decimals, so that 85.8 percent is 0.858."""
        mean, scale = Decimal(printed.mean), SCALES[printed.unit]
        half_unit = Decimal((0, (5,), int(mean.as_tuple().exponent) - 1)) * scale
        std = float(Decimal(printed.std) * scale) if printed.std else None
        return cls(printed, float(mean * scale), std, float(half_unit), stand_in)

    @property
    def tolerance(self) -> float:
        """How far from the published mean is within the published spread: max(2 std, half a unit)."""
        return max(2 * (self.std or 0.0), self.half_unit)

    def outside(self, mean: float) -> bool:
        """Return True if a mean lies outside the published spread; its edge is inside, up to rounding."""
        return not abs(mean - self.mean) <= self.tolerance * (1 + 1e-9)


def paper_files(searched: Sequence[Path]) -> dict[str, Path]:
    """Return the folders of all papers by name; those that ship with klr-bench first."""
    found: dict[str, Path] = {}
    for folder in searched:
        for path in sorted(folder.glob("paper/*/paper.yaml")):
            name = path.parent.name
            if name in found:
                message = f"two papers called {name!r}: {found[name]} and {path.parent}. Give yours another name."
                raise KlrBenchError(message)
            found[name] = path.parent
    return found


def read_paper(folder: Path, searched: Sequence[Path]) -> Paper:
    """Return a paper.yaml; KlrBenchError where it names an experiment that there is not, or is not well formed."""
    path = folder / "paper.yaml"
    experiments = files.names("experiment", searched)
    content = read_yaml(path)
    with located(path):
        paper = parse(Paper, content)
        groups: dict[str, Mapping[str, PrintedFigure]] = {"tables": paper.tables, "figures": paper.figures}
        for kind, group in groups.items():
            for number, entry in group.items():
                for name in entry.experiments:
                    check_choice(f"{kind}.{number}.experiments", name, experiments)
        datasets = files.names("dataset", searched)
        for ours, theirs in paper.stand_ins.items():
            check_choice("stand_ins", ours, datasets)
            check_choice(f"stand_ins.{ours}", theirs, datasets)
        named = {f"causes[{place}].shown_by": cause.shown_by for place, cause in enumerate(paper.causes)}
        named |= {f"tried[{place}].shown_by": tried.shown_by for place, tried in enumerate(paper.tried)}
        named |= {f"claims[{place}].experiments": claim.experiments for place, claim in enumerate(paper.claims)}
        for where, names in named.items():
            for name in names:
                check_choice(where, name, experiments)
    return paper


def read_lines(folder: Path, paper: Paper, metrics: Mapping[str, Metric], searched: Sequence[Path]) -> list[Printed]:
    """Return the lines of a tables.csv, [] where there is none; KlrBenchError names a line that is wrong."""
    path = folder / "tables.csv"
    try:
        text = read_regular(path, LARGEST_TABLES).decode()
        rows = list(csv.reader(StringIO(text, newline=""), strict=True))
    except FileNotFoundError:
        return []
    except (ValueError, csv.Error) as error:
        message = f"{path}: expected a CSV file, got something that cannot be read ({error})."
        raise KlrBenchError(message) from error
    header, expected = (rows[0] if rows else []), list(Printed.model_fields)
    if header != expected:
        message = f"{path}: expected the columns {', '.join(expected)}, got {', '.join(header) or 'none'}."
        raise KlrBenchError(message)
    known = {
        "table": [*map(str, paper.tables)],
        "dataset": files.names("dataset", searched),
        "algorithm": ["", *files.names("algorithm", searched)],
    }
    lines: dict[str, tuple[int, Printed]] = {}
    for number, row in enumerate(rows[1:], 2):
        with located(f"{path}, line {number}"):
            if len(row) != len(header):
                message = f"expected {len(header)} values, got {len(row)}."
                raise KlrBenchError(message)
            line = _line(dict(zip(header, row, strict=True)))
            _check_line(line, known, metrics)
            same = {"mean": "", "std": "", "label": ""} if line.algorithm else {}
            place = json.dumps(line.model_dump() | same, sort_keys=True)
            if place in lines:
                message = f"expected another number of the table, got that of {line.metric} again."
                raise KlrBenchError(message)
            lines[place] = number, line
    _check_params(dict(lines.values()), path, searched)
    return [line for _, line in lines.values()]


def _line(values: Mapping[str, str]) -> Printed:
    try:
        params = json.loads(values["params"] or "{}")
    except (ValueError, RecursionError):
        refuse("params", 'JSON such as {"lam": 0.1} with double quotes, or nothing', values["params"])
    return parse(Printed, {**values, "params": params})


def _check_params(lines: Mapping[int, Printed], path: Path, searched: Sequence[Path]) -> None:
    """Refuse a parameter that no run can have: neither its algorithm's YAML file nor an experiment names it.

    `lines` are those of `path`, by their numbers.
    """
    named: dict[str, set[str]] = {}
    for algorithm in {line.algorithm for line in lines.values() if line.params} - {""}:
        content = files.read(files.find("algorithm", algorithm, searched))
        named[algorithm] = {*KERNEL, *_keys(content, "estimator"), *_keys(content, "grid")} - {TARGET}
    unknown = [number for number, line in lines.items() if line.params.keys() - named.get(line.algorithm, line.params)]
    for name in files.names("experiment", searched) if unknown else ():
        content = files.read(files.find("experiment", name, searched))
        for algorithm, known in named.items():
            known |= _keys(content, "sweep", algorithm)
            known |= _keys(content, "algorithms", algorithm, "estimator")
            known |= _keys(content, "algorithms", algorithm, "grid")
    for number in unknown:
        with located(f"{path}, line {number}"):
            refuse_unknown(lines[number].params, sorted(named[lines[number].algorithm]), "params.")


def _keys(content: Any, *path: str) -> set[str]:
    """Return the keys of a section, or nothing where there is no such section."""
    for name in path:
        content = content.get(name) if isinstance(content, Mapping) else None
    return {*content} if isinstance(content, Mapping) else set()


def _check_line(line: Printed, known: Mapping[str, list[str]], metrics: Mapping[str, Metric]) -> None:
    """Refuse names that there are not, and a unit that the metric cannot be printed in."""
    names = dict(known)
    names["metric"] = list(metrics) if line.algorithm else list(FACTS)
    for key, choices in names.items():
        value = getattr(line, key)
        if not (key == "dataset" and OWN_FILE.fullmatch(value)):
            check_choice(key, value, choices)
    if line.algorithm:
        units = UNITS.get(metrics[line.metric].unit, ("", "fraction"))
        if line.unit not in units:
            refuse("unit", f"{' or '.join(map(repr, units))} for {line.metric}", line.unit)
        mean = replace(metrics[line.metric], whole=False)  # of whole numbers it is none
        if not mean.possible(Published.of(line).mean):
            refuse("mean", f"{mean.range}, in the unit of records.csv", f"{line.mean} {line.unit}".strip())

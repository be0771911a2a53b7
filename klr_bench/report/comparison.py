"""Which published numbers stand beside a column of ours: those of equal data set, algorithm and parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.targets import Parameters
from klr_bench.report.paper import Paper, Printed, Published, paper_files, read_lines, read_paper


@dataclass(frozen=True)
class Source:
    """The tables of a paper that stand beside an experiment, and all of its lines."""

    name: str
    paper: Paper
    lines: Sequence[Printed]
    tables: Collection[str]

    def published(self, dataset: str, algorithm: str, values: Parameters) -> dict[str, Published]:
        """Return the numbers of these tables for a column, by metric; `values` are its parameters.

        All parameters of a line must be among them, with the same value.  Where several lines fit, the one with the
        most parameters is meant.
        """
        stand_in = dataset in self.paper.stand_ins
        key = self.paper.stand_ins.get(dataset, dataset), algorithm
        best: dict[str, Printed] = {}
        for line in self._lines():
            if (line.dataset, line.algorithm) == key and fits(line, values):
                rival = best.get(line.metric)
                if rival is None or len(line.params) > len(rival.params):
                    best[line.metric] = line
        return {metric: Published.of(line, stand_in=stand_in) for metric, line in best.items()}

    def values(self, dataset: str, algorithm: str, parameter: str) -> set[Any]:
        """Return the values of a parameter in the lines of an algorithm on a data set."""
        key = self.paper.stand_ins.get(dataset, dataset), algorithm
        lines = [line for line in self._lines() if (line.dataset, line.algorithm) == key]
        return {line.params[parameter] for line in lines if parameter in line.params}

    def facts(self, dataset: str) -> list[Printed]:
        """Return what these tables say of a data set, or of that which it stands in for."""
        name = self.paper.stand_ins.get(dataset, dataset)
        return [line for line in self._lines() if line.dataset == name and not line.algorithm]

    def _lines(self) -> list[Printed]:
        return [line for line in self.lines if line.table in self.tables]


def fits(line: Printed, values: Parameters) -> bool:
    """Say whether all parameters of a line are among the values; true is not 1."""
    return all(
        name in values and values[name] == value and (type(values[name]) is bool) == (type(value) is bool)
        for name, value in line.params.items()
    )


@dataclass(frozen=True)
class Comparison:
    """All published tables that stand beside an experiment."""

    sources: Sequence[Source] = ()

    @property
    def columns(self) -> str | None:
        """The parameter whose values are the columns, where all of these tables have the same."""
        found = {source.paper.tables[table].columns for source in self.sources for table in source.tables}
        return found.pop() if len(found) == 1 else None

    def published(self, dataset: str, algorithm: str, values: Parameters) -> dict[str, Published]:
        """Return the published numbers of a column, by metric; the first paper that has one is meant."""
        found: dict[str, Published] = {}
        for source in self.sources:
            found = source.published(dataset, algorithm, values) | found
        return found

    def alike(self, dataset: str, algorithm: str, parameter: str, ours: Collection[Any]) -> dict[Any, Any]:
        """Return the printed value of a parameter for each of ours, the largest for the largest and so on.

        Nothing where there are more of the one than of the other, or where some are no numbers.
        """
        for source in self.sources:
            theirs = source.values(dataset, algorithm, parameter)
            if len(theirs) == len(ours) and all(isinstance(value, int | float) for value in (*ours, *theirs)):
                return dict(zip(sorted(ours), sorted(theirs), strict=True))
        return {}

    def facts(self, dataset: str) -> list[Printed]:
        """Return what the tables say of a data set."""
        return [line for source in self.sources for line in source.facts(dataset)]

    def stands_for(self, dataset: str) -> str | None:
        """Return the data set that this one stands in for, None where it is that of the paper or in none."""
        names = (source.paper.stand_ins.get(dataset) for source in self.sources)
        return next((name for name in names if name), None)


def comparison(
    experiment: str,
    keys: Collection[tuple[str, str]],
    metrics: Mapping[str, Metric],
    searched: Sequence[Path],
    table: str | None = None,
) -> Comparison:
    """Return the tables beside an experiment: those whose paper.yaml names it, or the one asked for.

    `keys` are the data sets and algorithms of the experiment.  KlrBenchError where `table` says nothing about them.
    """
    sources = []
    usual: set[str] = set()
    for name, folder in paper_files(searched).items():
        paper = read_paper(folder, searched)
        tables = [number for number, entry in paper.tables.items() if experiment in entry.experiments]
        if tables:
            sources.append(Source(name, paper, read_lines(folder, paper, metrics, searched), tables))
            usual |= set(tables)
    if table is None:
        return Comparison(sources)
    if not sources:
        message = f"table={table}: the experiment {experiment} is in no table of a paper.yaml; leave `table` out."
        raise KlrBenchError(message)
    asked = [Source(s.name, s.paper, s.lines, (table,)) for s in sources if _speaks(s, table, keys)]
    if not asked:
        known = usual | {number for s in sources for number in s.paper.tables if _speaks(s, number, keys)}
        message = (
            f"table={table}: expected a table of {' or '.join(s.name for s in sources)} that says something about the "
            f"data sets and algorithms of this experiment: {', '.join(sorted(known))}."
        )
        raise KlrBenchError(message)
    return Comparison(asked)


def _speaks(source: Source, table: str, keys: Collection[tuple[str, str]]) -> bool:
    """Say whether a table has a number of one of these data sets and algorithms, or is made by the experiment."""
    theirs = {(source.paper.stand_ins.get(dataset, dataset), algorithm) for dataset, algorithm in keys}
    return table in source.tables or any(
        line.table == table and (line.dataset, line.algorithm) in theirs for line in source.lines
    )

"""A paper as a whole: all of its printed numbers, matched and judged, its claims, and the records behind both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from klr_bench.config.locations import folders
from klr_bench.errors import located
from klr_bench.metrics.labels import METRICS
from klr_bench.report.load import Results, read_results, was_run
from klr_bench.report.manifest import Manifest
from klr_bench.report.measured import UNKNOWN as UNKNOWN_MACHINE
from klr_bench.report.measured import Measured, conditions_of, measure
from klr_bench.report.papers.claims import JudgedClaim, judge
from klr_bench.report.papers.match import Match, Source, match
from klr_bench.report.papers.reading import check_numbers, read_lines, read_paper

UNKNOWN = "not known"
COMMIT = 10
"""Characters of a commit that are shown."""


class WholePaper:
    """A paper and all results that it names.

    Parameters
    ----------
    name : the folder of the paper
    folder : its path, with paper.yaml and tables.csv
    results_dir : the folder of all results; experiments that are not there count as not run
    only : the experiments that its numbers are compared with; None: all of its tables and figures
    """

    def __init__(self, name: str, folder: Path, results_dir: Path, only: Collection[str] | None = None) -> None:
        self.name = name
        self.paper = read_paper(folder, folders())
        self.lines = read_lines(folder, self.paper, METRICS, folders())
        self._results_dir = results_dir
        self._only = only
        with located(folder / "paper.yaml"):
            check_numbers(self.paper, self.lines, METRICS)

    @cached_property
    def judged(self) -> dict[str, list[Match]]:
        """Each printed number with its verdict, by table, in the order of tables.csv."""
        return {str(number): self._judged(str(number)) for number in self.paper.tables}

    @property
    def numbers(self) -> list[Match]:
        """All printed numbers with their verdicts."""
        return [one for judged in self.judged.values() for one in judged]

    def _judged(self, number: str) -> list[Match]:
        """Return the numbers of a table; of several measured ones the first of the same data is meant."""
        source, table = self.source([number]), self.paper.tables[number]
        found: dict[int, list[Match]] = {}
        for experiment in self.experiments(number):
            for one in match(source, self.measured[experiment]):
                if one.mean is not None and (one.column is None or table.is_counterpart(*one.column)):
                    found.setdefault(id(one.printed), []).append(one)
        return [
            min(found.get(id(line)) or [source.judged(Match(line))], key=lambda one: one.stand_in)
            for line in source.of_tables
        ]

    @cached_property
    def claims(self) -> list[JudgedClaim]:
        """The claims, judged."""
        others = {name: measure(results) for name, results in self.behind.items() if name not in self.results}
        return [judge(claim, self.measured | others, METRICS) for claim in self.paper.claims]

    @cached_property
    def results(self) -> dict[str, Results]:
        """The results of the experiments of all tables and figures that were run."""
        entries = (*self.paper.tables.values(), *self.paper.figures.values())
        names = dict.fromkeys(name for entry in entries for name in entry.experiments)
        return self._read(name for name in names if self._only is None or name in self._only)

    @cached_property
    def behind(self) -> dict[str, Results]:
        """The results of all experiments that a verdict on a number or on a claim rests on."""
        names = dict.fromkeys(name for claim in self.paper.claims for name in claim.experiments)
        return self.results | self._read(name for name in names if name not in self.results)

    @cached_property
    def measured(self) -> dict[str, Measured]:
        """The means of these experiments."""
        return {name: measure(results) for name, results in self.results.items()}

    def _read(self, names: Iterable[str]) -> dict[str, Results]:
        """Return those of some experiments that were run."""
        return {name: read_results(self._results_dir / name) for name in names if was_run(self._results_dir / name)}

    def source(self, tables: Collection[str]) -> Source:
        """Return some of the paper's tables."""
        return Source(self.name, self.paper, self.lines, tables, self._results_dir)

    def experiments(self, table: str) -> list[str]:
        """Return the experiments of a table that were run; of one that names none, all of them."""
        asked = self.paper.tables[table].experiments
        return [name for name in self.results if not asked or name in asked]


def origin(found: Mapping[str, Results]) -> list[str]:
    """Return a sentence on the commits and machines of some experiments, [] if there is no experiment."""
    if not found:
        return []
    commits = Counter(_commit(results.manifest) for results in found.values())
    machines = Counter(machine for results in found.values() for machine in _machines(results))
    return [f"Records of {_counted(len(found))}. {_spread('commit', commits)}. {_spread('machine', machines)}."]


def source_of(manifest: Manifest) -> tuple[str, bool]:
    """Return the commit of the source that ran, "" if it is not known, and whether it had changes besides.

    Earlier versions wrote these as <commit>+changes.
    """
    commit, plus, _ = str(manifest.git_commit or "").partition("+")
    return commit[:COMMIT], bool(plus or manifest.changed)


def _commit(manifest: Manifest) -> str:
    commit, changed = source_of(manifest)
    return (commit + (" with changes" if changed else "")) if commit else UNKNOWN


def _machines(results: Results) -> set[str]:
    measured = results.records[results.records["fit_time_s"].notna()]  # others ended with their worker, unmeasured
    found = conditions_of(measured.to_dict("records")).machines or {UNKNOWN_MACHINE}
    return {UNKNOWN if one == UNKNOWN_MACHINE else f"{one.cpu} ({one.host})" for one in found}


def _spread(what: str, counted: Counter[str]) -> str:
    """Return the one value that all have, or each with the number of experiments that have it."""
    if len(counted) == 1:
        return f"One {what}: {next(iter(counted))}"
    listed = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return f"{len(counted)} {what}s: " + "; ".join(f"{value}, {_counted(count)}" for value, count in listed)


def _counted(number: int) -> str:
    return f"{number} experiment" + ("" if number == 1 else "s")

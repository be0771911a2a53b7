"""Reproduction of a paper: verdicts on its published numbers and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from klr_bench.config.locations import folders
from klr_bench.errors import error_context
from klr_bench.metrics.labels import METRICS
from klr_bench.report.labels import pluralize
from klr_bench.report.load import Results, read_results
from klr_bench.report.manifest import Column, Manifest
from klr_bench.report.measured import UNKNOWN as UNKNOWN_MACHINE
from klr_bench.report.measured import Measured, conditions_of, measure
from klr_bench.report.papers.benchmark import LOOPS, Benchmark
from klr_bench.report.papers.candidates import published_methods
from klr_bench.report.papers.claims import HasDatasets, JudgedClaim, judge
from klr_bench.report.papers.evidence import with_cause, with_evidence
from klr_bench.report.papers.match import Match, Source, match
from klr_bench.report.papers.model import BENCHMARK, Printed
from klr_bench.report.papers.reading import check_numbers, find_papers, read_lines, read_paper
from klr_bench.results.store import was_run

UNKNOWN = "not known"
COMMIT = 10
"""The number of displayed characters of a commit hash."""


Rows = dict[tuple[str, str, Column | None, str], Match]


class Reproduction:
    """Paper together with the results of all experiments that its files name.

    Parameters
    ----------
    name : str
        Name of the paper's folder.
    folder : Path
        The folder with paper.yaml and tables.csv.
    results_dir : Path
        Folder with the results of all experiments; missing ones count as not run.
    only : collection of str or None
        Experiments to compare the published numbers with; None: all experiments of its tables and figures.
    """

    def __init__(self, name: str, folder: Path, results_dir: Path, only: Collection[str] | None = None) -> None:
        self.name = name
        self.paper = read_paper(folder, folders())
        self.lines = read_lines(folder, self.paper, METRICS, folders())
        self.results_dir = results_dir
        entries = (*self.paper.tables.values(), *self.paper.figures.values())
        named = [name for entry in entries for name in entry.experiments]
        self._compared = dict.fromkeys(name for name in named if only is None or name in only)
        with error_context(folder / "paper.yaml"):
            check_numbers(self.paper, self.lines)

    @cached_property
    def matches_by_table(self) -> dict[str, list[Match]]:
        """Published numbers with verdicts, keyed by table and in the order of tables.csv."""
        return {number: self._table_matches(number) for number in self.paper.tables}

    @property
    def matches(self) -> list[Match]:
        """All published numbers, with their verdicts."""
        return [pair for pairs in self.matches_by_table.values() for pair in pairs]

    def _table_matches(self, number: str) -> list[Match]:
        """Return a table's numbers with verdicts; results on the published data set are preferred."""
        source, table = self.source([number]), self.paper.tables[number]
        matches: dict[int, list[Match]] = {}
        for experiment in self.experiments(number):
            for pair in match(source, self.measured[experiment]):
                if pair.mean is not None and (pair.column is None or table.is_counterpart(*pair.column)):
                    matches.setdefault(id(pair.printed), []).append(pair)
        chosen = [_chosen(matches.get(id(line)), line, source) for line in source.selected_numbers]
        explained = [with_cause(pair, self.paper, self.lines, self.measured) for pair in chosen]
        return with_evidence(explained, self.paper, table)

    @cached_property
    def claims(self) -> list[JudgedClaim]:
        """The claims of the paper, with their verdicts."""
        own_data = {line.dataset for line in self.lines} - {*self.paper.stand_ins} if self.lines else None
        loops = self.results_dir / LOOPS
        results: dict[str, HasDatasets] = dict(self.measured)
        if loops.is_file():
            results[BENCHMARK] = Benchmark(loops)
        return [
            judge(claim, results, published_methods(claim, self.paper, self.lines), own_data)
            for claim in self.paper.claims
        ]

    @cached_property
    def _runs(self) -> dict[str, Results]:
        names = [*self._compared, *(name for claim in self.paper.claims for name in claim.experiments)]
        names += [name for cause in (*self.paper.causes, *self.paper.tried) for name in cause.shown_by]
        folders = {name: self.results_dir / name for name in dict.fromkeys(names)}
        return {name: read_results(folder) for name, folder in folders.items() if was_run(folder)}

    @property
    def changed(self) -> dict[str, list[str]]:
        """Runs that do not count, with the settings that differ from their experiment's file."""
        return {name: changes for name, run in self._runs.items() if (changes := run.manifest.changes)}

    @cached_property
    def all_results(self) -> dict[str, Results]:
        """Results of all experiments that are compared with published numbers or claims."""
        return {name: results for name, results in self._runs.items() if not results.manifest.changes}

    @cached_property
    def results(self) -> dict[str, Results]:
        """Results of those experiments of the paper that were run."""
        return {name: results for name, results in self.all_results.items() if name in self._compared}

    @cached_property
    def measured(self) -> dict[str, Measured]:
        """Measured means, keyed by experiment."""
        return {name: measure(results) for name, results in self.all_results.items()}

    def rows(self, tables: Collection[str], experiment: str) -> Rows:
        """Return the numbers of an experiment, by table, data set, method and metric."""
        return {
            (number, pair.dataset, pair.column, pair.printed.metric): pair
            for number in tables
            for pair in self.matches_by_table[number]
            if pair.experiment == experiment
        }

    def source(self, tables: Collection[str]) -> Source:
        """Return the requested tables of the paper, for comparison with results."""
        return Source(self.name, self.paper, self.lines, tables, self.results_dir)

    def experiments(self, table: str) -> list[str]:
        """Return the experiments that were run for a table, or all if the table names none."""
        named = self.paper.tables[table].experiments
        return [name for name in self.results if not named or name in named]


def _chosen(matches: Sequence[Match] | None, line: Printed, source: Source) -> Match:
    """Return the match of a number, with the result of the paper's own protocol, if any."""
    if not matches:
        return source.with_verdict(Match(line))
    chosen = min(matches, key=lambda pair: pair.stand_in)
    calibration = chosen.calibration
    if calibration is None or calibration.instead_in is None:
        return chosen
    others = (pair.entry for pair in matches if pair.experiment == calibration.instead_in)
    return source.with_uncalibrated(chosen, next(others, None))


def compared_rows(source: Source, experiment: str) -> Rows | None:
    """Return a paper's numbers for an experiment, by table, data set, method and metric.

    Returns None if the paper is not compared with these results, as for a run with another name.
    """
    named = [name for number in source.tables for name in source.paper.tables[number].experiments]
    if source.results_dir is None or experiment not in named or not was_run(source.results_dir / experiment):
        return None
    folder = find_papers(source.name)[source.name]
    return Reproduction(source.name, folder, source.results_dir, only=named).rows(source.tables, experiment)


def provenance(results: Mapping[str, Results]) -> list[str]:
    """Return sentences on the commits and machines of the experiments, or [] without results."""
    if not results:
        return []
    commits: Counter[str] = Counter()
    machines: Counter[str] = Counter()
    for run in results.values():
        commit, changed = source_of(run.manifest)
        commits[f"{commit} with changes" if commit and changed else commit or UNKNOWN] += 1
        measured = run.records[run.records["fit_time_s"].notna()]  # records of killed workers do not name a machine
        names = conditions_of(measured.to_dict("records")).machines or {UNKNOWN_MACHINE}
        machines.update(UNKNOWN if name == UNKNOWN_MACHINE else f"{name.cpu} ({name.host})" for name in names)
    sentences = [f"Records of {pluralize(len(results), 'experiment')}."]
    for what, values in (("commit", commits), ("machine", machines)):
        listed = sorted(values.items(), key=lambda item: (-item[1], item[0]))
        every = "; ".join(f"{value}, {pluralize(count, 'experiment')}" for value, count in listed)
        sentences.append(f"One {what}: {listed[0][0]}." if len(listed) == 1 else f"{len(listed)} {what}s: {every}.")
    return [" ".join(sentences)]


def selection_sentence(manifest: Manifest) -> str:
    """Return how parameters were selected; "" if by the best score over all folds and rows."""
    selection, parts = manifest.config.selection, []
    if not selection.nested:
        parts.append("on the test rows of the reported folds, so the results may be better than on new rows")
    elif selection.max_examples is not None:
        parts.append(f"by cross-validation on at most {selection.max_examples:,} training rows")
    if selection.tolerance:
        metric = manifest.metrics.get(selection.score)
        is_rate = metric is not None and metric.unit == "percent"
        within = f"{100 * selection.tolerance:g} points" if is_rate else f"{selection.tolerance:g}"
        name = metric.title.lower() if metric is not None else selection.score
        parts.append(f"the first value of the grid whose mean {name} is within {within} of the best one")
    names = ", ".join(manifest.selected)
    return f"Selection of {names}: {'; '.join(parts)}." if names and parts else ""


def source_of(manifest: Manifest) -> tuple[str, bool]:
    """Return the commit of a run ("" if unknown), and whether there were uncommitted changes."""
    return str(manifest.git_commit or "")[:COMMIT], bool(manifest.changed)

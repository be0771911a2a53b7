"""All numbers of a paper, each joined with ours: the columns of results that a printed line belongs to."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path

from klr_bench.errors import located
from klr_bench.experiment.config import files
from klr_bench.experiment.config.files import folders
from klr_bench.experiment.config.parsing import check_choice, refuse
from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.report.comparison import Comparison, Source
from klr_bench.report.derived import with_derived
from klr_bench.report.load import Results, read_results, was_run
from klr_bench.report.numbers import PARTS, is_counterpart
from klr_bench.report.paper import Paper, Printed, PrintedTable, Published, read_lines, read_paper
from klr_bench.report.table import Entry, Table, build
from klr_bench.report.whole.claims import JudgedClaim, judge
from klr_bench.report.whole.verdict import Counterpart, Judged, Verdict, compare

SIZES = ("n_train", "n_test", "n_features")


class WholePaper:
    """A paper beside all results that its tables name.

    Parameters
    ----------
    name : the folder of the paper
    folder : its path, with paper.yaml and tables.csv
    results_dir : the folder of all results; experiments that are not there count as not run
    only : the experiments that its numbers are compared with; None: all of its tables and figures
    """

    def __init__(self, name: str, folder: Path, results_dir: Path, only: Collection[str] | None = None) -> None:
        searched = folders()
        self.name = name
        self.paper: Paper = read_paper(folder, searched)
        self.lines: Sequence[Printed] = read_lines(folder, self.paper, METRICS, searched)
        self._results_dir = results_dir
        self._only = only
        with located(folder / "paper.yaml"):
            self._check()

    def _check(self) -> None:
        """Refuse what paper.yaml says of numbers that are not in tables.csv."""
        for number, table in self.paper.tables.items():
            lines = [line for line in self.lines if line.table == number]
            parameters = {name for line in lines for name in line.params}
            for key in ("blocks", "rows", "columns"):
                for part in getattr(table.layout, key):
                    check_choice(f"tables.{number}.layout.{key}", part, sorted({*PARTS, *parameters}))
            for algorithm in table.counterparts:
                check_choice(f"tables.{number}.counterparts", algorithm, {line.algorithm for line in lines})
        known = files.names("algorithm", folders())
        for place, claim in enumerate(self.paper.claims):
            for statement in claim.statements:
                where = f"claims[{place}].statements"
                for metric in filter(None, (statement.metric, statement.than_metric)):
                    check_choice(f"{where}.metric", metric, METRICS)
                for algorithm in [*statement.of.algorithms, *(statement.than.algorithms if statement.than else ())]:
                    check_choice(f"{where}.algorithms", algorithm, known)
        sets = {f"causes[{place}]": cause.numbers for place, cause in enumerate(self.paper.causes)}
        sets |= {f"tried[{place}]": tried.numbers for place, tried in enumerate(self.paper.tried)}
        sets |= {f"absent[{place}]": absent.numbers for place, absent in enumerate(self.paper.absent)}
        for where, numbers in sets.items():
            if not any(numbers.holds(line) for line in self.lines):
                refuse(f"{where}.numbers", "numbers of tables.csv", numbers.model_dump())

    @cached_property
    def judged(self) -> dict[str, list[Judged]]:
        """The verdicts, by table, in the order of tables.csv."""
        return {
            str(number): [
                self._judge(line, found.get(id(line), [])) for line in self.lines if line.table == str(number)
            ]
            for number in self.paper.tables
            for found in [self._counterparts(str(number))]
        }

    @cached_property
    def claims(self) -> list[JudgedClaim]:
        """The claims, judged."""
        tables = {name: table_beside(results, Comparison()) for name, results in self._results_of_claims.items()}
        return [judge(claim, tables, METRICS) for claim in self.paper.claims]

    @cached_property
    def results(self) -> dict[str, Results]:
        """The results of the experiments of all tables and figures that were run."""
        entries = (*self.paper.tables.values(), *self.paper.figures.values())
        names = dict.fromkeys(name for entry in entries for name in entry.experiments)
        wanted = [name for name in names if self._only is None or name in self._only]
        return {name: read_results(self._results_dir / name) for name in self._run(wanted)}

    @cached_property
    def _results_of_claims(self) -> dict[str, Results]:
        names = dict.fromkeys(name for claim in self.paper.claims for name in claim.experiments)
        return {name: self.results.get(name) or read_results(self._results_dir / name) for name in self._run(names)}

    @property
    def behind(self) -> dict[str, Results]:
        """The results of all experiments that a verdict on a number or on a claim rests on."""
        return self.results | self._results_of_claims

    def _run(self, names: Iterable[str]) -> list[str]:
        """Return those of some experiments that were run."""
        return [name for name in names if was_run(self._results_dir / name)]

    def table(self, number: str) -> PrintedTable:
        """Return what paper.yaml says of a table."""
        return self.paper.tables[number]

    def experiments(self, table: str) -> list[str]:
        """Return the experiments of a table that were run; of one that names none, all of them."""
        asked = self.table(table).experiments
        return [name for name in self.results if not asked or name in asked]

    def _counterparts(self, table: str) -> dict[int, list[Counterpart]]:
        """Return ours for the lines of a table, by the identity of the line."""
        found: dict[int, list[Counterpart]] = {}
        chosen = self.table(table).counterparts
        for name in self.experiments(table):
            results = self.results[name]
            source = Source(self.name, self.paper, self.lines, [table])
            for block in table_beside(results, Comparison([source])).blocks:
                for line in block.lines:
                    if not is_counterpart(chosen.get(line.algorithm, {}), line.variant):
                        continue
                    for entry in line.entries.values():
                        if entry.published and entry.mean is not None:
                            ours = Counterpart(name, block.dataset, entry)
                            found.setdefault(id(entry.published.printed), []).append(ours)
            for fact, counterpart in self._facts(table, name, results):
                found.setdefault(id(fact), []).append(counterpart)
        return found

    def _facts(self, table: str, experiment: str, results: Results) -> Iterable[tuple[Printed, Counterpart]]:
        """Yield the lines of a table that describe data, with what our records have."""
        for dataset, rows in results.records.groupby("dataset"):
            name = str(dataset)
            fitted = rows[(rows[list(SIZES)] > 0).all(axis=1)].head(1)
            sizes = {size: float(fitted[size].iloc[0]) for size in SIZES if len(fitted)}
            if sizes:
                sizes["n_examples"] = sizes["n_train"] + sizes["n_test"]
                nonzero = float(fitted["nnz_per_instance"].iloc[0])
                sizes |= {} if math.isnan(nonzero) else {"nnz_per_instance": nonzero}
            used = {named.get("lam") for name_of in ("variant", "params") for named in rows[name_of]}
            for line in self.lines:
                if line.table != table or line.algorithm or line.dataset != self.paper.stand_ins.get(name, name):
                    continue
                published = Published.of(line, stand_in=name in self.paper.stand_ins)
                value = sizes.get(line.metric)
                if line.metric == "lam" and published.mean in used:
                    value = published.mean
                if value is not None:
                    yield line, Counterpart(experiment, name, Entry(len(rows), value, None, published))

    def _judge(self, line: Printed, found: Sequence[Counterpart]) -> Judged:
        """Return the verdict on a line; of several counterparts the first of the same data is meant.

        A cause, or what was tried without finding one, counts where the experiments that show it were run.
        """
        if not found:
            reason = next((absent.because for absent in self.paper.absent if absent.numbers.holds(line)), "")
            return Judged(line, Verdict.ABSENT if reason else Verdict.OPEN, reason=reason)
        ours = next((one for one in found if one.dataset not in self.paper.stand_ins), found[0])
        if ours.dataset in self.paper.stand_ins:
            return Judged(line, Verdict.STAND_IN, ours)
        metric = METRICS.get(line.metric)
        if metric is None:
            verdict = Verdict.OFF if ours.entry.outside else Verdict.WITHIN
        else:
            verdict = compare(ours.entry, metric, self.table(line.table).repeats)
        if verdict is Verdict.OFF:
            for off, found_out in ((Verdict.EXPLAINED, self.paper.causes), (Verdict.OFF, self.paper.tried)):
                said = next((one for one in found_out if one.numbers.holds(line)), None)
                if said is not None and self._run(said.shown_by) == said.shown_by:
                    return Judged(line, off, ours, said.because, tuple(said.shown_by))
        return Judged(line, verdict, ours)


def table_beside(results: Results, papers: Comparison) -> Table:
    """Make the table of an experiment beside published numbers."""
    return build(with_derived(results.records, results.traces), results.manifest, papers)

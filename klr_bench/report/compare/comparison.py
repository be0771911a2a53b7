"""All that is the same and all that differs in two runs, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.errors import KlrBenchError, shown
from klr_bench.experiment.config.parsing import check_choice
from klr_bench.report.compare.cells import Cells, ChosenParameter, FixedParameter, compare_cells, compare_parameters
from klr_bench.report.compare.numbers import Block, Number, Outcome, compare_numbers, numbers_of
from klr_bench.report.compare.runs import Run, pairing_of, read_two
from klr_bench.report.compare.settings import Difference, setting_differences
from klr_bench.report.writing import check_formats, write_changed

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Comparison:
    """Two runs and what differs.  A is the first, B the second."""

    first: Run
    second: Run
    setting: Sequence[Difference]
    fixed: Sequence[FixedParameter]
    chosen: Sequence[ChosenParameter]
    cells: Cells
    blocks: Sequence[Block]

    @property
    def numbers(self) -> list[Number]:
        """All numbers that are compared, but for times and memory."""
        return [number for number in numbers_of(self.blocks) if number.outcome is not Outcome.MACHINE]

    @property
    def times(self) -> list[Number]:
        """All times, and memory where it is asked for."""
        return [number for number in numbers_of(self.blocks) if number.outcome is Outcome.MACHINE]

    @property
    def equal_numbers(self) -> bool:
        """Whether all numbers of the tables are equal in each repeat, but for times and memory."""
        return all(number.outcome in (Outcome.EQUAL, Outcome.ONE_ONLY) for number in self.numbers)

    @property
    def identical(self) -> bool:
        """Whether nothing differs but times, memory, and settings on which no number depends."""
        changed = any(difference.has_effect for difference in self.setting)
        return self.cells.equal and not (changed or self.fixed or self.chosen)


def compare(first: Path, second: Path, columns: Sequence[str] | None = None) -> Comparison:
    """Read two results folders, results/<experiment>, and compare them; `columns` are metrics, the usual ones if None.

    Raises KlrBenchError for a folder without results, for one folder twice, for a metric that there is not, and where
    no column, an algorithm with a variant on a data set, is in both.
    """
    one, other = read_two(first, second)
    for name in columns or ():
        check_choice("columns", name, one.manifest.metrics | other.manifest.metrics)
    shared = [name for name in one.columns if one.columns[name].keys() & other.columns.get(name, {}).keys()]
    if not shared:
        raise KlrBenchError(_nothing_shared(one, other))
    pairings = {dataset: pairing_of(dataset, one, other) for dataset in shared}
    return Comparison(
        one,
        other,
        setting_differences(one, other),
        *compare_parameters(one, other, pairings),
        compare_cells(one, other, pairings),
        compare_numbers(one, other, pairings, columns),
    )


def _nothing_shared(one: Run, other: Run) -> str:
    sets = sorted(one.columns.keys() & other.columns.keys())
    if sets:
        held = [{algorithm for name in sets for algorithm, _ in run.columns[name]} for run in (one, other)]
        where, what = f" on {_listed(sets)}", "algorithm"
        if held[0] & held[1]:
            what, held = "variant", [{run.label(c) for name in sets for c in run.columns[name]} for run in (one, other)]
    else:
        held, where, what = [set(one.columns), set(other.columns)], "", "data set"
    return (
        f"{one.name} against {other.name}: no column is in both, because they share no {what}{where}: the first has "
        f"{_listed(sorted(held[0]))}, the second {_listed(sorted(held[1]))}. Name two runs with a data set, an "
        "algorithm and its variant in common."
    )


def _listed(names: Sequence[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return shown(", ".join(names[:most]), 300) + more


def report_comparison(
    first: Path,
    second: Path,
    *,
    console: Console,
    formats: Sequence[str] = ("terminal",),
    columns: Sequence[str] | None = None,
    output: Path | None = None,
) -> list[Path]:
    """Show what differs between two results folders, results/<experiment>, and write its files; return their paths.

    `formats` are some of FORMATS, without pdf; `columns` the metrics that are compared, the usual ones if None;
    `output` the folder of against.md, against.tex and against.csv (<first>/report).  Raises KlrBenchError for what
    `klr_bench.report.compare.comparison.compare` refuses.
    """
    check_formats(formats)

    from klr_bench.report import render
    from klr_bench.report.compare.pages import comma_separated, documents

    two = compare(first, second, columns)
    found = documents(two)
    if "terminal" in formats:
        for document in found:
            render.show(document, console)
            console.print()
    files = {
        f"against.{kind}": "\n".join(spell(document) for document in found)
        for kind, spell in render.WRITERS.items()
        if kind in formats
    }
    if "csv" in formats:
        files["against.csv"] = comma_separated(two)
    return write_changed(output or first / "report", {name: text.encode() for name, text in files.items()})

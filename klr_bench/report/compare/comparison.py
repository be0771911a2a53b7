"""All that is the same and all that differs in two runs, as values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klr_bench.errors import KlrBenchError, shown
from klr_bench.parsing import check_choice
from klr_bench.report.compare.cells import Cells, ChosenParameter, FixedParameter, compare_cells, compare_parameters
from klr_bench.report.compare.numbers import Block, Number, Outcome, compare_numbers, numbers_of
from klr_bench.report.compare.runs import Run, pairing_of, read_two
from klr_bench.report.measured import UNKNOWN, conditions_of
from klr_bench.report.writing import check_formats, write_changed

if TYPE_CHECKING:
    from rich.console import Console

LONGEST = 60
"""Characters of a value that is shown."""
COMMIT = 15
"""Characters of a commit that are shown."""
ABSENT = "-"
SECTIONS = {"datasets": ("datasets", "left_out"), "algorithms": ("algorithms", "sweep")}
"""Sections of the configuration whose entries stand under names, and the sections with the same names."""
SHOWN_ELSEWHERE = re.compile(r"(experiment|started|updated|config\.(seed|name|experiment|results_dir)|labels\b.*)")
"""Keys of a manifest that are told in another way, or say nothing of results."""
NO_EFFECT = re.compile(
    r"config\.(title|n_jobs|shard|force|figures|metrics|against\b.*|parallel\b.*|data\.(mirror|cache|path|test_path)"
    r"|(datasets|algorithms)\.[^.]*\.(label|reference)|datasets\.[^.]*\.source\.(name|reference|path|test_path|.*\.?(url|max_bytes)))"
)
"""Keys of a manifest on which no number but a time depends."""


@dataclass(frozen=True)
class Difference:
    """A setting that differs, with both values as texts."""

    key: str
    """As on the command line where it is of the configuration: "kernel.percentile"; else "numpy version"."""
    first: str
    second: str
    has_effect: bool = True
    """Whether a number may depend on it."""


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
        render.show_all(found, console)
    files = render.texts_of(found, "against", formats)
    if "csv" in formats:
        files["against.csv"] = comma_separated(two)
    return write_changed(output or first / "report", {name: text.encode() for name, text in files.items()})


def setting_differences(first: Run, second: Run) -> list[Difference]:
    """Return what differs, versions and machines before the configuration, and last what has no effect on numbers."""
    found = [
        Difference("seed", _set(_seeds(first)), _set(_seeds(second))),
        Difference("machine of the records", _set(_machines(first)), _set(_machines(second))),
    ]
    found = [one for one in found if one.first != one.second]
    alone = _alone(first, second)
    hidden = set()
    parts: dict[str, list[Difference]] = {"config": []}
    for section, sides in alone.items():
        hidden |= {f"config.{part}.{name}" for part in SECTIONS[section] for names in sides for name in names}
        if any(sides):
            ours, theirs = (", ".join(names) or ABSENT for names in sides)
            parts["config"].append(Difference(f"{section} of one alone", *_beside(ours, theirs, LONGEST)))
    for key, one, other in _apart(first.content, second.content, ""):
        if not SHOWN_ELSEWHERE.fullmatch(key) and key not in hidden:
            texts = _beside(_text(one), _text(other), COMMIT if key == "git_commit" else LONGEST)
            difference = Difference(_named(key), *texts, has_effect=not NO_EFFECT.fullmatch(key))
            parts.setdefault(key.partition(".")[0], []).append(difference)
    order = ["versions", "git_commit", "changed", "schema_version", *parts, "machine", "own_metrics", "config"]
    last = {name: place for place, name in enumerate(order)}
    found += [one for part in sorted(parts, key=last.__getitem__) for one in parts[part]]
    return sorted(found, key=lambda one: not one.has_effect)


def _seeds(run: Run) -> set[str]:
    rows = (row for columns in run.columns.values() for rows in columns.values() for row in rows.values())
    return {str(ABSENT if (seed := run.seed(row)) is None else seed) for row in rows}


def _machines(run: Run) -> set[str]:
    machines = conditions_of(run.results.records.to_dict("records")).machines - {UNKNOWN}
    return {", ".join(filter(None, machine)) for machine in machines}


def _set(texts: Iterable[str]) -> str:
    return shown("; ".join(sorted(texts)), 2 * LONGEST) or ABSENT


class _Nothing:
    """Stands for a key that one of the two does not have."""


NOTHING = _Nothing()


def _apart(first: Any, second: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the dotted keys under which two values differ, with both."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for key in dict.fromkeys([*first, *second]):
            inside = f"{path}.{key}" if path else str(key)
            yield from _apart(first.get(key, NOTHING), second.get(key, NOTHING), inside)
    elif first != second and _text(first) != _text(second) and not (_is_empty(first) and _is_empty(second)):
        yield path, first, second


def _is_empty(value: Any) -> bool:
    """Say whether a value says as little as a key that is not there."""
    return value is NOTHING or value is None or value in ([], {})


def _alone(first: Run, second: Run) -> dict[str, tuple[list[str], list[str]]]:
    """Return the data sets and the algorithms that the configuration of one alone has, by section."""
    found = {}
    for section in SECTIONS:
        ours, theirs = ([str(name) for name in run.config.get(section) or ()] for run in (first, second))
        found[section] = [name for name in ours if name not in theirs], [name for name in theirs if name not in ours]
    return found


def _named(key: str) -> str:
    part, _, rest = key.partition(".")
    if part == "versions":
        return shown(f"{rest} version", LONGEST)
    if part == "config" and rest:
        return shown(rest, LONGEST)
    names = {"git_commit": "git commit", "changed": "files that differ from it", "schema_version": "schema version"}
    return names.get(key) or shown(f"{part}: {rest}" if rest else part, LONGEST)


def _text(value: Any) -> str:
    """Return a value as YAML has it on one line; of a mapping, how much it holds."""
    if value is NOTHING:
        return ABSENT
    if isinstance(value, Mapping):
        return f"({len(value)} keys)" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    words = {"None": "null", "True": "true", "False": "false"}
    return words.get(str(value), str(value)) if value is None or isinstance(value, bool) else str(value)


def _beside(first: str, second: str, most: int) -> tuple[str, str]:
    """Cut two texts so that one sees where they differ."""
    apart = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    start = max(0, apart - 10) if max(len(first), len(second)) > most and apart > most // 2 else 0
    one, other = (f"...{text[start:]}" if start else text for text in (first, second))
    return _cut(one, most), _cut(other, most)


def _cut(text: str, most: int) -> str:
    return shown(text if len(text) <= most else f"{text[: most - 3]}...", 2 * most)

"""Read the files of a paper in configs/paper: paper.yaml, and tables.csv with its numbers.

The rows of tables.csv use klr-bench's names of data sets, algorithms, parameters and metrics; means, spreads and units
are as printed.
"""

from __future__ import annotations

import csv
import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from klr_bench.config import locations
from klr_bench.errors import KlrBenchError, error_context, fail, nearest
from klr_bench.files import read_regular
from klr_bench.instantiate import TARGET
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import check_choice, parse, refuse, refuse_unknown
from klr_bench.report.papers.model import BENCHMARK, DIFFERENCE, PARTS, PUBLISHED, Cause, Claim, Paper, Printed
from klr_bench.yaml_file import read_yaml

logger = logging.getLogger(__name__)

ALL = "all"
UNITS = {"percent": ("percent", "fraction"), "count": ("count",), "s": ("s", "min")}
"""Accepted printed units per unit of a metric; other metrics have the unit "fraction" or none."""
LARGEST_TABLES = 10**7
"""The largest accepted size of tables.csv in bytes, enough for 100,000 numbers."""
FACTS = {
    "n_train": ("Training rows", "{} training rows"),
    "n_test": ("Test rows", "{} test rows"),
    "n_examples": ("Rows", "{} rows"),
    "n_features": ("Features", "{} features"),
    "nnz_per_instance": ("Non-zero per row", "{} non-zero entries per row"),
    "lam": ("lambda / lambda_max", "lambda = {} lambda_max"),
}
"""Titles and phrases of properties of data sets, which tables.csv gives in rows without an algorithm."""
KERNEL = ("kernel", "gamma", "degree", "coef0")
"""Parameters that a run passes to every kernel algorithm."""
SHARE = re.compile(r"\+?0?\.\d{2,}")
"""A printed percentage that looks like a share."""
USER_FILE = re.compile(r".+-[0-9a-f]{6}")
"""The pattern of the name of a user's data file in records: its stem and part of its hash."""


def paper_files(searched: Sequence[Path]) -> dict[str, Path]:
    """Return the folders of all papers, keyed by name; built-in papers come first.

    The paper in a nearer folder takes the place of one of the same name, with a warning if their contents differ.
    """
    folders: dict[str, Path] = {}
    for path in (path for folder in searched for path in sorted(folder.glob("paper/*/paper.yaml"))):
        name, nearer = path.parent.name, path.parent
        if name in folders and _contents(folders[name]) != _contents(nearer):
            _warn(f"The paper {nearer} is used in place of {folders[name]}, which has another content.")
        folders[name] = nearer
    return folders


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def find_papers(name: str) -> dict[str, Path]:
    """Return the folder of one paper, or of all papers if `name` is "all"."""
    folders = paper_files(locations.folders())
    if name not in (*folders, ALL):
        fail(f"paper={name}: expected the name of a paper in configs/paper, or all.{nearest(name, folders)}")
    return folders if name == ALL else {name: folders[name]}


def calibrated_figures(experiment: str, searched: Sequence[Path]) -> list[str]:
    """Return the settings of an experiment that were chosen to lead to published figures."""
    papers = [read_paper(folder, searched) for folder in paper_files(searched).values()]
    figures = [figure for paper in papers for figure in (*paper.tables.values(), *paper.figures.values())]
    chosen = (figure.calibrated for figure in figures if figure.calibrated and experiment in figure.experiments)
    return list(dict.fromkeys(chosen))


def experiments_of(name: str) -> list[str]:
    """Return the experiments named by one paper, or by all papers if `name` is "all"."""
    papers = [read_paper(folder, locations.folders()) for folder in find_papers(name).values()]
    return list(dict.fromkeys(experiment for paper in papers for experiment in paper.named()))


def read_paper(folder: Path, searched: Sequence[Path]) -> Paper:
    """Read and check paper.yaml; raise KlrBenchError for unknown experiments or data sets."""
    path = folder / "paper.yaml"
    content = read_yaml(path)
    with error_context(path):
        paper = parse(Paper, content)
        experiments, datasets = locations.names("experiment", searched), locations.names("dataset", searched)
        for key, value in paper.model_dump().items():
            others = {"claims": [PUBLISHED, BENCHMARK], "causes": [PUBLISHED, DIFFERENCE]}
            others["tried"] = others["causes"]
            names = [*experiments, *others.get(key, ())]
            _check_names(value, key, {"experiments": names, "shown_by": experiments, "instead_in": experiments})
        for name in paper.estimated_hours:
            check_choice("estimated_hours", name, list(paper.named()))
        for ours, theirs in paper.stand_ins.items():
            check_choice("stand_ins", ours, datasets)
            check_choice(f"stand_ins.{ours}", theirs, datasets)
        _check_statements(paper)
    return paper


def _check_statements(paper: Paper) -> None:
    judged: dict[str, Sequence[Claim | Cause]] = {"claims": paper.claims, "causes": paper.causes, "tried": paper.tried}
    for key, entries in judged.items():
        for place, entry in enumerate(entries):
            where = f"{key}[{place}].statements"
            if key != "claims" and not entry.statements:
                refuse(where, "comparisons that the experiments of `shown_by` must pass", [])
            for number, statement in enumerate(entry.statements):
                if statement.than is None and statement.value is None and statement.along is None:
                    refuse(
                        f"{where}[{number}]", "a comparison, with `than`, `value` or `along`", statement.model_dump()
                    )


def check_numbers(paper: Paper, lines: Sequence[Printed]) -> None:
    """Raise KlrBenchError for an unknown name or a number that is not in tables.csv."""
    algorithms = locations.names("algorithm", locations.folders())
    content = paper.model_dump()
    directed = [name for name, metric in METRICS.items() if metric.better]
    known_names = {
        "metric": METRICS,
        "than_metric": METRICS,
        "across": directed,
        "nearest": METRICS,
        "algorithms": algorithms,
    }
    for key in ("claims", "causes", "tried"):
        statements = [entry["statements"] for entry in content[key]]
        _check_names(statements, key, known_names)
    for number, table in paper.tables.items():
        of_table = [line for line in lines if line.table == number]
        parts = sorted({*PARTS, *(name for line in of_table for name in line.params)})
        choices = {"blocks": parts, "rows": parts, "columns": parts}
        _check_names(content["tables"][number]["layout"], f"tables.{number}.layout", choices)
        for algorithm in table.counterparts:
            check_choice(f"tables.{number}.counterparts", algorithm, {line.algorithm for line in of_table})
            lines_of = [line for line in of_table if line.algorithm == algorithm]
            if algorithm not in table.as_stated and not any(map(paper.calibration_of, lines_of)):
                where, values = f"tables.{number}.counterparts.{algorithm}", table.counterparts[algorithm]
                refuse(where, "values in `calibrated`, or stated by the paper, in `as_stated`", values)
    for place, numbers in enumerate(paper.inferred_spreads):
        if not any(numbers.holds(line) and line.std for line in lines):
            refuse(f"inferred_spreads[{place}]", "numbers with a standard deviation", numbers.model_dump())
    for kind in ("causes", "tried", "absent"):
        for place, entry in enumerate(getattr(paper, kind)):
            if not any(entry.numbers.holds(line) for line in lines):
                refuse(f"{kind}[{place}].numbers", "numbers of tables.csv", entry.numbers.model_dump())


def _check_names(content: Any, where: str, choices: Mapping[str, Collection[str]]) -> None:
    """Raise KlrBenchError if, at any depth, the value of a key in `choices` is an unknown name."""
    if isinstance(content, list):
        for place, value in enumerate(content):
            _check_names(value, f"{where}[{place}]", choices)
    elif isinstance(content, dict):
        for key, value in content.items():
            _check_names(value, f"{where}.{key}", choices)
            if key in choices and value is not None:
                for name in value if isinstance(value, list) else [value]:
                    check_choice(f"{where}.{key}", name, choices[key])


def read_lines(folder: Path, paper: Paper, metrics: Mapping[str, Metric], searched: Sequence[Path]) -> list[Printed]:
    """Read and check tables.csv; return an empty list if the file does not exist."""
    path = folder / "tables.csv"
    try:
        text = read_regular(path, LARGEST_TABLES).decode()
        header, *rows = list(csv.reader(StringIO(text, newline=""), strict=True)) or [[]]
    except FileNotFoundError:
        return []
    except (ValueError, csv.Error) as error:
        message = f"{path}: expected a CSV file, got a file that cannot be read ({error})."
        raise KlrBenchError(message) from error
    expected = list(Printed.model_fields)
    if header != expected:
        fail(f"{path}: expected the columns {', '.join(expected)}, got {', '.join(header) or 'none'}.")
    names = {
        "table": [*map(str, paper.tables)],
        "dataset": locations.names("dataset", searched),
        "algorithm": ["", *locations.names("algorithm", searched)],
    }
    lines: dict[str, tuple[int, Printed]] = {}
    for number, row in enumerate(rows, 2):
        with error_context(f"{path}, line {number}"):
            if len(row) != len(header):
                fail(f"expected {len(header)} values, got {len(row)}.")
            line = _line(dict(zip(header, row, strict=True)), names, metrics)
            same = {"mean": "", "std": "", "label": ""} if line.algorithm else {}
            place = json.dumps(line.model_dump() | same, sort_keys=True)
            if place in lines:
                fail(f"expected each number once, got a second {line.metric} for the same position.")
            lines[place] = number, line
    _check_params(dict(lines.values()), path, searched)
    _check_shares(dict(lines.values()), path, metrics)
    return [line for _, line in lines.values()]


def _line(values: Mapping[str, str], names: Mapping[str, list[str]], metrics: Mapping[str, Metric]) -> Printed:
    """Parse one row; raise KlrBenchError for unknown names and invalid units or values."""
    try:
        params = json.loads(values["params"] or "{}")
    except (ValueError, RecursionError):
        refuse("params", 'JSON such as {"lam": 0.1} with double quotes, or nothing', values["params"])
    line = parse(Printed, {**values, "params": params})
    for key, choices in {**names, "metric": [*(metrics if line.algorithm else FACTS)]}.items():
        if not (key == "dataset" and USER_FILE.fullmatch(line.dataset)):
            check_choice(key, getattr(line, key), choices)
    if line.algorithm:
        metric = replace(metrics[line.metric], whole=False)  # a mean of integers need not be an integer
        units = UNITS.get(metric.unit, ("", "fraction"))
        if line.unit not in units:
            refuse("unit", f"{' or '.join(map(repr, units))} for {line.metric}", line.unit)
        if not metric.possible(line.value):
            refuse("mean", f"{metric.range}, in the unit of records.csv", f"{line.mean} {line.unit}".strip())
    return line


def _check_shares(lines: Mapping[int, Printed], path: Path, metrics: Mapping[str, Metric]) -> None:
    """Warn about percentages such as an accuracy of 0.858, which may be shares."""
    shares = [
        (number, line)
        for number, line in lines.items()
        if line.unit == "percent" and line.algorithm and metrics[line.metric].better == "higher"
        if SHARE.fullmatch(line.mean)
    ]
    if shares:
        number, line = shares[0]
        more = f" The same holds for {len(shares) - 1:,} more numbers." if len(shares) > 1 else ""
        where, advice = f"{path}, line {number}", "If it is a share, write fraction as its unit."
        _warn(f"{where}: {line.metric} {line.mean} percent is less than 1 percent. {advice}{more}")


@cache
def _warn(message: str) -> None:
    logger.warning(message)


def _check_params(lines: Mapping[int, Printed], path: Path, searched: Sequence[Path]) -> None:
    parameters: dict[str, set[str]] = {}
    for algorithm in {line.algorithm for line in lines.values() if line.algorithm and line.params}:
        content = locations.read(locations.find("algorithm", algorithm, searched))
        parameters[algorithm] = {*KERNEL, *_keys(content, "estimator"), *_keys(content, "grid")} - {TARGET}
    unknown = [
        number for number, line in lines.items() if line.params.keys() - parameters.get(line.algorithm, line.params)
    ]
    for name in locations.names("experiment", searched) if unknown else ():
        content = locations.read(locations.find("experiment", name, searched))
        for algorithm, names in parameters.items():
            names |= _keys(content, "sweep", algorithm)
            names |= _keys(content, "algorithms", algorithm, "estimator")
            names |= _keys(content, "algorithms", algorithm, "grid")
    for number in unknown:
        with error_context(f"{path}, line {number}"):
            refuse_unknown(lines[number].params, sorted(parameters[lines[number].algorithm]), "params.")


def _keys(content: Any, *path: str) -> set[str]:
    for name in path:
        content = content.get(name) if isinstance(content, Mapping) else None
    return {*content} if isinstance(content, Mapping) else set()

"""The files of a paper: configs/paper/<paper>/paper.yaml and tables.csv, with every printed number.

A line of tables.csv uses klr-bench's names (data set, algorithm, parameters, metric); number, spread and unit are as
printed.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from klr_bench.config import locations
from klr_bench.errors import KlrBenchError, located, nearest
from klr_bench.files import read_regular
from klr_bench.instantiate import TARGET
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import check_choice, parse, refuse, refuse_unknown
from klr_bench.report.papers.model import PARTS, Paper, Printed
from klr_bench.yaml_file import read_yaml

ALL = "all"
UNITS = {"percent": ("percent", "fraction"), "count": ("count",), "s": ("s", "min")}
"""Units that a number may be printed in, for each unit of a metric; for others, "fraction" or none."""
LARGEST_TABLES = 10**7
"""Bytes of a tables.csv: 100,000 printed numbers."""
FACTS = ("n_train", "n_test", "n_features", "n_examples", "nnz_per_instance", "lam")
"""What tables say of a data set itself, in lines without an algorithm."""
KERNEL = ("kernel", "gamma", "degree", "coef0")
"""Parameters that a run gives to any algorithm with a kernel."""
USER_FILE = re.compile(r".+-[0-9a-f]{6}")
"""The name of a user's data file in records: its stem and a part of its hash."""


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


def chosen_papers(name: str) -> dict[str, Path]:
    """Return the folder of the paper of this name, or with "all" those of all papers."""
    found = paper_files(locations.folders())
    if name not in (*found, ALL):
        message = f"paper={name}: expected a paper of configs/paper, or all.{nearest(name, found)}"
        raise KlrBenchError(message)
    return found if name == ALL else {name: found[name]}


def experiments_of(name: str) -> list[str]:
    """Return all experiments that a paper names, such as those of its tables; with "all" those of all papers."""
    papers = [read_paper(folder, locations.folders()) for folder in chosen_papers(name).values()]
    return list(dict.fromkeys(one for paper in papers for one in paper.named()))


def read_paper(folder: Path, searched: Sequence[Path]) -> Paper:
    """Return a paper.yaml; KlrBenchError if it is not well formed or names an experiment or data set unknown here."""
    path = folder / "paper.yaml"
    content = read_yaml(path)
    with located(path):
        paper = parse(Paper, content)
        named: list[tuple[str, Sequence[str]]] = []
        for kind in ("tables", "figures"):
            named += [(f"{kind}.{number}.experiments", one.experiments) for number, one in getattr(paper, kind).items()]
        for kind in ("causes", "tried"):
            named += [(f"{kind}[{place}].shown_by", one.shown_by) for place, one in enumerate(getattr(paper, kind))]
        named += [(f"claims[{place}].experiments", claim.experiments) for place, claim in enumerate(paper.claims)]
        experiments, datasets = locations.names("experiment", searched), locations.names("dataset", searched)
        for where, names in named:
            for name in names:
                check_choice(where, name, experiments)
        for ours, theirs in paper.stand_ins.items():
            check_choice("stand_ins", ours, datasets)
            check_choice(f"stand_ins.{ours}", theirs, datasets)
    return paper


def check_numbers(paper: Paper, lines: Sequence[Printed], metrics: Mapping[str, Metric]) -> None:
    """Refuse what a paper.yaml says of numbers that are not among the lines of tables.csv."""
    for number, table in paper.tables.items():
        of_table = [line for line in lines if line.table == number]
        parts = sorted({*PARTS, *(name for line in of_table for name in line.params)})
        for key in ("blocks", "rows", "columns"):
            for part in getattr(table.layout, key):
                check_choice(f"tables.{number}.layout.{key}", part, parts)
        for algorithm in table.counterparts:
            check_choice(f"tables.{number}.counterparts", algorithm, {line.algorithm for line in of_table})
    known = locations.names("algorithm", locations.folders())
    for place, claim in enumerate(paper.claims):
        where = f"claims[{place}].statements"
        for statement in claim.statements:
            for metric in filter(None, (statement.metric, statement.than_metric)):
                check_choice(f"{where}.metric", metric, metrics)
            for algorithm in [*statement.of.algorithms, *(statement.than.algorithms if statement.than else ())]:
                check_choice(f"{where}.algorithms", algorithm, known)
    for kind in ("causes", "tried", "absent"):
        for place, one in enumerate(getattr(paper, kind)):
            if not any(one.numbers.holds(line) for line in lines):
                refuse(f"{kind}[{place}].numbers", "numbers of tables.csv", one.numbers.model_dump())


def read_lines(folder: Path, paper: Paper, metrics: Mapping[str, Metric], searched: Sequence[Path]) -> list[Printed]:
    """Return the lines of a tables.csv, [] if there is none; KlrBenchError names a line that is wrong."""
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
        "dataset": locations.names("dataset", searched),
        "algorithm": ["", *locations.names("algorithm", searched)],
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


def _check_line(line: Printed, known: Mapping[str, list[str]], metrics: Mapping[str, Metric]) -> None:
    """Refuse unknown names, and a unit or a value that the metric cannot have."""
    for key, choices in {**known, "metric": [*(metrics if line.algorithm else FACTS)]}.items():
        value = getattr(line, key)
        if not (key == "dataset" and USER_FILE.fullmatch(value)):
            check_choice(key, value, choices)
    if line.algorithm:
        metric = metrics[line.metric]
        units = UNITS.get(metric.unit, ("", "fraction"))
        if line.unit not in units:
            refuse("unit", f"{' or '.join(map(repr, units))} for {line.metric}", line.unit)
        if not replace(metric, whole=False).possible(line.value):  # the mean of whole numbers need not be whole
            refuse(
                "mean", f"{replace(metric, whole=False).range}, in the unit of records.csv",
                f"{line.mean} {line.unit}".strip(),
            )  # fmt: skip


def _check_params(lines: Mapping[int, Printed], path: Path, searched: Sequence[Path]) -> None:
    """Refuse a parameter that no run can have: neither its algorithm's YAML file nor an experiment names it.

    `lines` are those of `path`, by their numbers.
    """
    named: dict[str, set[str]] = {}
    for algorithm in {line.algorithm for line in lines.values() if line.params} - {""}:
        content = locations.read(locations.find("algorithm", algorithm, searched))
        named[algorithm] = {*KERNEL, *_keys(content, "estimator"), *_keys(content, "grid")} - {TARGET}
    unknown = [number for number, line in lines.items() if line.params.keys() - named.get(line.algorithm, line.params)]
    for name in locations.names("experiment", searched) if unknown else ():
        content = locations.read(locations.find("experiment", name, searched))
        for algorithm, known in named.items():
            known |= _keys(content, "sweep", algorithm)
            for section in ("estimator", "grid"):
                known |= set(_keys(content, "algorithms", algorithm, section))
    for number in unknown:
        with located(f"{path}, line {number}"):
            refuse_unknown(lines[number].params, sorted(named[lines[number].algorithm]), "params.")


def _keys(content: Any, *path: str) -> set[str]:
    """Return the keys of a section, or nothing if there is no such section."""
    for name in path:
        content = content.get(name) if isinstance(content, Mapping) else None
    return {*content} if isinstance(content, Mapping) else set()

"""Values that come from the records of another experiment: ``budget=from:oskl_magic/oskl``."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config.splitting import MOST_ROWS
from klr_bench.experiment.records import read_variant
from klr_bench.experiment.targets import Parameters
from klr_bench.experiment.variants import Variant
from klr_bench.files import LARGEST_CSV, regular

PREFIX = "from:"


def resolve_references(
    sweep: Mapping[str, Parameters], results: Path, datasets: Collection[str]
) -> dict[str, Parameters]:
    """Return a sweep with lists in place of ``from:<experiment>/<algorithm>``, and of one budget.

    The list has the mean number of support vectors of each variant of that algorithm on the one data set of the run.
    Raises KlrBenchError if there are several data sets, or no such records.
    """

    def values(name: str, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(PREFIX):
            return _support_vectors(f"{name}={value}", value.removeprefix(PREFIX), results, list(datasets))
        return [value] if name == "budget" and type(value) is int else value

    return {stem: {name: values(name, value) for name, value in lists.items()} for stem, lists in sweep.items()}


def _support_vectors(setting: str, source: str, results: Path, datasets: list[str]) -> list[int]:
    experiment, _, algorithm = source.partition("/")
    if len(datasets) != 1:
        message = f"{setting}: expected one data set, whose records are meant; got {', '.join(datasets) or 'none'}."
        raise KlrBenchError(message)
    path = results / experiment / "records.csv"
    again = f"klr-bench run experiment={experiment}"
    try:
        with regular(path, LARGEST_CSV) as file:
            rows = list(csv.DictReader(TextIOWrapper(file, encoding="utf-8", newline="")))
    except OSError as error:
        message = f"{setting}: no records in {path}. Make them with: {again}"
        raise KlrBenchError(message) from error
    except (csv.Error, ValueError) as error:
        message = f"{setting}: {path}: expected a CSV file, got something else ({error}). Rebuild it with: {again}"
        raise KlrBenchError(message) from error
    if not algorithm:
        known = ", ".join(sorted({f"{PREFIX}{experiment}/{row.get('algorithm')}" for row in rows})) or "no records"
        message = f"{setting}: expected {PREFIX}<experiment>/<algorithm>; {path} has {known}."
        raise KlrBenchError(message)
    counts: dict[Variant, list[float]] = {}
    for number, row in enumerate(rows, 1):
        if (row.get("dataset"), row.get("algorithm"), row.get("status")) == (datasets[0], algorithm, "ok"):
            try:
                counts.setdefault(read_variant(row["variant"]), []).append(_count(row["n_support"]))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                message = (
                    f"{setting}: {path}: row {number}: expected a variant and n_support, got {error}. "
                    f"Rebuild it with: {again}"
                )
                raise KlrBenchError(message) from error
    if not counts:
        known = ", ".join(sorted({f"{row.get('algorithm')} on {row.get('dataset')}" for row in rows})) or "nothing"
        message = f"{setting}: {path} has no finished fits of {algorithm} on {datasets[0]}; it has {known}."
        raise KlrBenchError(message)
    return [round(sum(counts[variant]) / len(counts[variant])) for variant in sorted(counts, key=Variant.order)]


def _count(text: str) -> float:
    count = float(text)
    if not 1 <= count <= MOST_ROWS:
        message = f"n_support={text}"
        raise ValueError(message)
    return count

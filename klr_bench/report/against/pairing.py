"""Whether the repeats of two runs on a data set have the same rows to train and to test on, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config.splitting import RESAMPLING, SplitSpec, parse_split
from klr_bench.report.against.runs import Row, Run

Kind = Literal["paired", "unpaired", "unknown"]
PAIRED: Kind = "paired"
UNPAIRED: Kind = "unpaired"
UNKNOWN: Kind = "unknown"

OF_ROWS = (
    *("format", "generator", "train", "test", "file_format", "label_column", "columns"),
    *("n_features", "n_train", "n_samples", "parts", "positive", "multiclass", "only", "derive"),
)
"""Keys of a source and of a data set on which its rows depend; the name of a user's file holds a hash of it."""
NO_ROWS = ("url", "name", "max_bytes")
"""Keys of a file on which no row depends."""
SIZES = ("n_train", "n_test", "n_features")


@dataclass(frozen=True)
class Pairing:
    """How the repeats of two runs on one data set are compared, and why."""

    kind: Kind
    resampled: bool
    """Whether the repeats split one set of rows again, so that their training rows overlap."""
    because: str
    assumed: str = ""
    """What is taken for granted, because no file of the two says it."""


def pairing_of(dataset: str, first: Run, second: Run) -> Pairing:
    """Decide for a data set that both runs have.

    Repeats are pairs where seed, data set and split are the same by the records and manifests.  Equal keys prove it;
    else it is assumed that both versions split in the same way.
    """
    asked = [_asked(dataset, run) for run in (first, second)]
    ways = [_way(one) for one in asked]
    if asked[0] is None or asked[1] is None or ways[0] is None or ways[1] is None:
        lacking = " and ".join(name for name, way in zip("AB", ways, strict=True) if way is None)
        return Pairing(UNKNOWN, resampled=False, because=f"the manifest of {lacking} does not say how it is split")
    resampled = any(isinstance(way, RESAMPLING) for way in ways)
    pairs = list(_pairs(dataset, first, second))
    because = ""
    if not pairs:
        because = "no repeat is in both"
    elif any(first.seed(one) is None or second.seed(two) is None for one, two in pairs):
        because = "not all records name their seed"
    elif any(first.seed(one) != second.seed(two) for one, two in pairs):
        because = "the seeds differ"
    elif ways[0] != ways[1]:
        because = "the splits differ"
    elif _rows(asked[0]) != _rows(asked[1]):
        because = "the data differ"
    elif any(one[size] != two[size] for one, two in pairs for size in SIZES if one[size] > 0 and two[size] > 0):
        because = "the numbers of rows or columns differ"
    if because:
        return Pairing(UNPAIRED, resampled, because)
    proved = any(one["key"] == two["key"] for one, two in pairs)
    assumed = "" if proved or _same_code(first, second) else "both versions of klr-bench split in the same way"
    return Pairing(PAIRED, resampled, "seed, data and split are equal", assumed)


def _pairs(dataset: str, first: Run, second: Run) -> Iterator[tuple[Row, Row]]:
    for column, rows in first.columns[dataset].items():
        others = second.columns[dataset].get(column, {})
        for repeat in rows.keys() & others.keys():
            yield rows[repeat], others[repeat]


def _same_code(first: Run, second: Run) -> bool:
    """Say whether both ran from one commit without changes."""
    one, other = ((run.content.get("git_commit"), run.content.get("changed")) for run in (first, second))
    return one == other and one[0] is not None and not one[1]


def _asked(dataset: str, run: Run) -> Mapping[str, Any] | None:
    """Return the configuration of a data set; that of a user's file stands under another name than its records."""
    datasets = run.config.get("datasets")
    found: Any = datasets.get(dataset) if isinstance(datasets, Mapping) else None
    own = [name for name, asked in run.manifest.config.datasets.items() if asked.own_file]
    if found is None and isinstance(datasets, Mapping) and len(own) == 1:
        found = datasets[own[0]]
    return found if isinstance(found, Mapping) else None


def _way(asked: Mapping[str, Any] | None) -> SplitSpec | None:
    try:
        return parse_split(asked["split"]) if asked and asked.get("split") else None
    except KlrBenchError:
        return None


def _rows(asked: Mapping[str, Any]) -> Any:
    """Return what the rows of a data set depend on; in schema version 1 the source is part of the data set itself."""
    source = asked.get("source")
    every = dict(source) if isinstance(source, Mapping) else {"source": source}
    every |= {name: value for name, value in asked.items() if value is not None}
    return _without({name: every.get(name) for name in OF_ROWS})


def _without(value: Any) -> Any:
    """Return a value without the keys on which no row depends and those that are null or false; a label 3 is "3"."""
    if isinstance(value, list):
        return [_without(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value if value in (None, False) else str(value)
    kept = {name: _without(entry) for name, entry in value.items() if name not in NO_ROWS}
    return {name: entry for name, entry in kept.items() if entry not in (None, False)}

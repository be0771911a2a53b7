"""The ways to split a data set into rows to train on and rows to test on, each with its own keys.

The first key of a way says that it is meant; `klr_bench.experiment.splits` follows it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config.typed import Check, Text, between, hints_of, parse, read, refuse, refuse_unknown

MOST_ROWS = 10**9
MOST_RUNS = 10**6
Rows = Annotated[int, between(1, MOST_ROWS)]
PartOfRows = Annotated[float, Check("above 0 and below 1", lambda share: 0 < share < 1)]
FoldsOfRows = Annotated[int, between(2, MOST_ROWS)]
RunsOfRows = Annotated[
    list[Annotated[list[Rows], Check("a pair: rows, how often", lambda pair: len(pair) == 2)]],
    Check(
        f"at least two and at most {MOST_RUNS} runs of rows, as in [[100, 1], [50, 3]]",
        lambda runs: 2 <= sum(times for _, times in runs) <= MOST_RUNS,
    ),
]


@dataclass(frozen=True)
class Official:
    """Train on the official training part, or on `n_train` rows of it that are drawn once; test on the other part."""

    official: Literal[True] = True
    n_train: Rows | None = None


@dataclass(frozen=True)
class Share:
    """Test on a share of all rows, drawn anew for each repeat.

    With `stratify` it is that share of each class, and any run of training rows has nearly the same shares of them.
    """

    test_size: PartOfRows
    stratify: bool = False


@dataclass(frozen=True)
class Folds:
    """Cross-validation over all rows: repeat 0 is tested on the first fold of a permutation, repeat 1 on the next."""

    folds: FoldsOfRows


@dataclass(frozen=True)
class Runs:
    """Consecutive runs of rows, as pairs of their length and their number; train on the runs 0, 2, 4, ..."""

    runs: RunsOfRows


@dataclass(frozen=True)
class Draw:
    """Test on `n_test` rows and train on `n_train` others, null: on all others, drawn anew for each repeat.

    They are drawn from all rows, official parts or not; with `equal_classes` as many of each class.
    """

    n_test: Rows
    n_train: Rows | None = None
    equal_classes: bool = False


@dataclass(frozen=True)
class Subset:
    """Train on `n_train` rows that are drawn once, of the official training part if there is one; test on the rest."""

    n_train: Rows


@dataclass(frozen=True)
class Stream:
    """Test on each chunk of rows, or on each row, then train on it: one pass over files that need not fit into memory.

    What is measured is kept every `window` rows, the learner every `checkpoint` rows, so that a killed pass goes on.
    """

    stream: Literal[True] = True
    chunk: Annotated[int, between(1, 10**6)] = 1000
    window: Rows = 100_000
    checkpoint: Rows = 1_000_000
    test: Literal["chunks", "rows"] = "chunks"
    """Whether a row is predicted by what was learned from the chunks before its own, or from all rows before it."""
    unbounded: bool = False
    """Whether learners may run whose memory grows with the rows."""
    classes: Annotated[list[Text], Check("at least two labels", lambda labels: len(labels) > 1)] | None = None
    """All labels.  Without them a first pass over the files finds them, and keeps the parsed rows in the cache."""


Way = Official | Share | Folds | Runs | Draw | Subset | Stream
WAYS: tuple[Any, ...] = (Official, Share, Folds, Runs, Draw, Subset, Stream)
EXAMPLE = (
    "{test_size: 0.2}, {official: true}, {folds: 5}, {runs: [[100, 1], [50, 3]]}, {n_test: 1000}, {n_train: 1000} or "
    "{stream: true}"
)


def split_hints() -> dict[str, Any]:
    """Return the types of all keys of all ways."""
    return {key: hint for way in WAYS for key, hint in hints_of(way).items()}


def check_split(values: Any, where: str) -> dict[str, Any]:
    """Return the keys of a split, each of its type, without those that are null; whether they fit is not looked at."""
    if not isinstance(values, Mapping):
        refuse(where, f"one of {EXAMPLE}", values)
    hints = split_hints()
    refuse_unknown(values, hints, f"{where}.")
    return {key: read(hints[key], value, f"{where}.{key}") for key, value in values.items() if value is not None}


def read_split(values: Any, where: str = "split", given: Collection[str] = ()) -> Way:
    """Return the way that the keys of a split mean; keys that are null count as left out.

    Raises KlrBenchError for two ways at once, for none, and for a key that the way does not have.  `given` are the
    dotted keys of the command line: the message then says which other key is in the way.
    """
    keys = check_split(values, where)
    meant = [way for way in WAYS if way is not Subset and fields(way)[0].name in keys]
    if not meant and set(keys) == {"n_train"}:
        meant = [Subset]
    if not meant:
        refuse(where, f"one of {EXAMPLE}", values)
    if len(meant) > 1:
        raise KlrBenchError(_two_ways(keys, [fields(way)[0].name for way in meant], where, given))
    [way] = meant
    for key in keys:
        if key not in hints_of(way):
            first = fields(way)[0].name
            message = (
                f"{where}.{key}={keys[key]}: has no effect beside {first}={_shown(keys[first])}, which splits in "
                f"another way; leave it out, or take the other out with {where}.{first}=null."
            )
            raise KlrBenchError(message)
    return parse(way, keys, f"{where}.")  # type: ignore[no-any-return]


def plain_split(way: Way) -> dict[str, Any]:
    """Return the keys of a way as a mapping that `read_split` reads, without those that say nothing."""
    return {key: value for key, value in asdict(way).items() if value not in (None, False)}


def _two_ways(keys: Mapping[str, Any], firsts: list[str], where: str, given: Collection[str]) -> str:
    wanted = next((key for key in firsts if f"{where}.{key}" in given), firsts[-1])
    other = next(key for key in firsts if key != wanted)
    return (
        f"{where}.{wanted}={_shown(keys[wanted])}: there is {other}={_shown(keys[other])} already, which splits in "
        f"another way; to split by {wanted} add {where}.{other}=null."
    )


def _shown(value: Any) -> str:
    return "true" if value is True else str(value)

"""How a data set is split into rows to train on and rows to test on; the first key of a model selects it.

`klr_bench.datasets.splits` makes the split.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal, get_args

from klr_bench.errors import fail
from klr_bench.parsing import Brief, Check, Text, Yes, between, hints_of, parse, parse_value, refuse, refuse_unknown

MOST_ROWS = 10**9
MOST_RUNS = 10**6
Rows = Annotated[int, between(1, MOST_ROWS)]
PartOfRows = Annotated[float, Check("above 0 and below 1", lambda share: 0 < share < 1)]


class Official(Brief):
    """Train on the official training part, or on `n_train` rows of it that are drawn once; test on the other part."""

    official: Yes
    n_train: Rows | None = None


class Share(Brief):
    """Test on a share of all rows, drawn anew for each repeat.

    With `stratify` it is that share of each class, and any run of training rows has nearly the same shares of them.
    """

    test_size: PartOfRows
    stratify: bool = False


class Folds(Brief):
    """Cross-validation over all rows: repeat 0 is tested on the first fold of a permutation, repeat 1 on the next."""

    folds: Annotated[int, between(2, MOST_ROWS)]


class Runs(Brief):
    """Consecutive runs of rows, as pairs of their length and their number; train on the runs 0, 2, 4, ..."""

    runs: Annotated[
        list[Annotated[list[Rows], Check("a pair: rows, how often", lambda pair: len(pair) == 2)]],
        Check(
            f"at least two and at most {MOST_RUNS} runs of rows, as in [[100, 1], [50, 3]]",
            lambda runs: 2 <= sum(times for _, times in runs) <= MOST_RUNS,
        ),
    ]


class Draw(Brief):
    """Test on `n_test` rows and train on `n_train` others, null: on all others, drawn anew for each repeat.

    They are drawn from all rows, official parts or not; with `equal_classes` as many of each class.
    """

    n_test: Rows
    n_train: Rows | None = None
    equal_classes: bool = False


class Subset(Brief):
    """Train on `n_train` rows that are drawn once, of the official training part if there is one; test on the rest."""

    n_train: Rows


class Stream(Brief):
    """Test on each chunk of rows, or on each row, then train on it: one pass over files that need not fit into memory.

    Metrics are recorded every `window` rows and the learner is saved every `checkpoint` rows, so that a killed pass
    goes on.  `test`: a row is predicted by a learner of the chunks before its own, or of all rows before it.
    `unbounded`: learners may run whose memory grows with the rows.  `classes`: all labels; without them a first pass
    over the files finds them, and keeps the parsed rows in the cache.
    """

    stream: Yes
    chunk: Annotated[int, between(1, 10**6)] = 1000
    window: Rows = 100_000
    checkpoint: Rows = 1_000_000
    test: Literal["chunks", "rows"] = "chunks"
    unbounded: bool = False
    classes: Annotated[list[Text], Check("at least two labels", lambda labels: len(labels) > 1)] | None = None


SplitSpec = Official | Share | Folds | Runs | Draw | Subset | Stream
SPLITS: tuple[type[SplitSpec], ...] = get_args(SplitSpec)
RESAMPLING = (Share, Folds, Draw)
"""Splits that divide one set of rows anew in each repeat; the test rows of the others are fixed."""
EXAMPLE = (
    "{test_size: 0.2}, {official: true}, {folds: 5}, {runs: [[100, 1], [50, 3]]}, {n_test: 1000}, {n_train: 1000} or "
    "{stream: true}"
)


def parse_split(values: Any, where: str = "split", overrides: Collection[str] = ()) -> SplitSpec:
    """Return the split that a mapping describes; keys that are null count as left out.

    `overrides` are the dotted keys of the command line: if two splits are described, the message is about the other.
    Raises KlrBenchError for two splits at once, for none, and for a key that the split does not have.
    """
    if not isinstance(values, dict):
        refuse(where, f"one of {EXAMPLE}", values)
    hints = {key: hint for spec in SPLITS for key, hint in hints_of(spec).items()}
    refuse_unknown(values, hints, f"{where}.")
    keys = {key: parse_value(hints[key], value, f"{where}.{key}") for key, value in values.items() if value is not None}
    specs = {next(iter(hints_of(spec))): spec for spec in SPLITS if spec is not Subset}
    first, *others = [key for key in specs if key in keys] or (["n_train"] if set(keys) == {"n_train"} else [""])
    if not first:
        refuse(where, f"one of {EXAMPLE}", values)
    if others:
        wanted = next((key for key in (first, *others) if f"{where}.{key}" in overrides), others[-1])
        other = next(key for key in (first, *others) if key != wanted)
        fail(
            f"{where}.{wanted}={_shown(keys[wanted])}: there is {other}={_shown(keys[other])} already, which splits in "
            f"another way; to split by {wanted} add {where}.{other}=null."
        )
    spec = specs.get(first, Subset)
    for key in keys:
        if key not in hints_of(spec):
            fail(
                f"{where}.{key}={keys[key]}: has no effect beside {first}={_shown(keys[first])}, which splits in "
                f"another way; leave it out, or take the other out with {where}.{first}=null."
            )
    return parse(spec, keys, f"{where}.")


def _shown(value: Any) -> str:
    return "true" if value is True else str(value)

"""Splits of data sets into training and test rows; the first key selects the kind of split.

`klr_bench.datasets.splits` makes the split.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal, get_args

from klr_bench.errors import fail
from klr_bench.parsing import Brief, Check, Text, Yes, between, parse, refuse, refuse_unknown

MOST_ROWS = 10**9
MOST_RUNS = 10**6
Rows = Annotated[int, between(1, MOST_ROWS)]
PartOfRows = Annotated[float, Check("above 0 and below 1", lambda share: 0 < share < 1)]


class Official(Brief):
    """Use the official parts, optionally with `n_train` training rows drawn once."""

    official: Yes
    n_train: Rows | None = None


class Share(Brief):
    """Test on a random share of all rows, drawn for each repeat.

    With `stratify` it is that share of each class, and any run of training rows has nearly the same shares of them.
    """

    test_size: PartOfRows
    stratify: bool = False


class Folds(Brief):
    """Cross-validation over all rows: repeat k is tested on fold k of one permutation."""

    folds: Annotated[int, between(2, MOST_ROWS)]


class Runs(Brief):
    """Alternate training and test runs of consecutive rows, given as (length, number) pairs.

    Runs 0, 2, 4, ... are for training.
    """

    runs: Annotated[
        list[Annotated[list[Rows], Check("a pair: rows, how often", lambda pair: len(pair) == 2)]],
        Check(
            f"at least two and at most {MOST_RUNS} runs of rows, as in [[100, 1], [50, 3]]",
            lambda runs: 2 <= sum(times for _, times in runs) <= MOST_RUNS,
        ),
    ]


class Draw(Brief):
    """Test on `n_test` random rows and train on `n_train` others (None: all) in each repeat.

    They are drawn from all rows, official parts or not; with `equal_classes` as many of each class.
    """

    n_test: Rows
    n_train: Rows | None = None
    equal_classes: bool = False


class Subset(Brief):
    """Train on `n_train` rows, drawn once from the official training part if there is one.

    All other rows are test rows.
    """

    n_train: Rows


class Stream(Brief):
    """Test on each chunk of rows, or each row, before training on it, in a single pass.

    Metrics are recorded every `window` rows and the learner is saved every `checkpoint` rows, so that a killed pass can
    be resumed.  `test`: a row is predicted by a learner of the chunks before its own, or of all rows before it.
    `unbounded`: accept learners whose memory grows with the number of rows.  `classes`: all labels; without them a
    first pass over the files finds them, and keeps the parsed rows in the cache.
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
"""Splits that divide the same rows differently in each repeat; other splits have fixed test rows."""
EXAMPLE = (
    "{test_size: 0.2}, {official: true}, {folds: 5}, {runs: [[100, 1], [50, 3]]}, {n_test: 1000}, {n_train: 1000} or "
    "{stream: true}"
)


def parse_split(values: Any, where: str = "split", overrides: Collection[str] = ()) -> SplitSpec:
    """Parse a split from a mapping; keys with the value None count as missing.

    `overrides` are the dotted keys of the command line: a message about keys of two splits is about these keys.
    Raises KlrBenchError.
    """
    if not isinstance(values, dict):
        refuse(where, f"one of {EXAMPLE}", values)
    refuse_unknown(values, {key for spec in SPLITS for key in spec.model_fields}, f"{where}.")
    keys = {key: value for key, value in values.items() if value is not None}
    specs = {next(iter(spec.model_fields)): spec for spec in SPLITS if spec is not Subset or set(keys) == {"n_train"}}
    first = next((key for key in specs if key in keys), None)
    if first is None:
        refuse(where, f"one of {EXAMPLE}", values)
    unfit = [key for key in keys if key not in specs[first].model_fields]
    if unfit:
        wanted = next((key for key in keys if f"{where}.{key}" in overrides), unfit[-1])
        other = first if wanted in unfit else unfit[0]
        values = {key: "true" if keys[key] is True else keys[key] for key in (wanted, other)}
        fail(f"{where}.{wanted}={values[wanted]}: {other}={values[other]} is already set; add {where}.{other}=null.")
    return parse(specs[first], keys, f"{where}.")

"""Configuration models of the ways to split a data set into training and test rows.

The first key selects the kind of split, and `klr_bench.datasets.splits` performs it.
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
    """Split of a data set into its official training and test parts.

    If `n_train` is given, this number of training rows is drawn once.
    """

    official: Yes
    n_train: Rows | None = None


class Share(Brief):
    """Split that tests on a random share of all rows, drawn anew in each repeat.

    With `stratify`, the share is drawn from each class, and any block of training rows has nearly the same proportions
    of the classes.
    """

    test_size: PartOfRows
    stratify: bool = False


class Groups(Brief):
    """Split that tests on the rows of a random share of the groups, drawn anew in each repeat.

    `group` is the column of a user's table; rows with the same value stay together.  The share is drawn from the groups
    of each class, that of the first row of a group.
    """

    group: Text
    test_size: PartOfRows


class Later(Brief):
    """Split that tests on the latest share of the rows.

    `time` is the column of a user's table by which the rows are ordered.
    """

    time: Text
    test_size: PartOfRows


class Folds(Brief):
    """Cross-validation: the k-th repeat tests on fold k of the permuted rows."""

    folds: Annotated[int, between(2, MOST_ROWS)]


class Runs(Brief):
    """Split into blocks of consecutive rows that are used alternately for training and testing.

    Each pair (length, number) describes a number of blocks with this length.  Blocks 0, 2, 4, ... are for training.
    """

    runs: Annotated[
        list[Annotated[list[Rows], Check("a pair: rows per block, number of blocks", lambda pair: len(pair) == 2)]],
        Check(
            f"at least two and at most {MOST_RUNS} runs of rows, as in [[100, 1], [50, 3]]",
            lambda runs: 2 <= sum(times for _, times in runs) <= MOST_RUNS,
        ),
    ]


class Draw(Brief):
    """Split that draws test rows and training rows at random in each repeat.

    Both are drawn from all rows, whether or not there are official parts; without `n_train`, all rows that are not test
    rows are for training.  With `equal_classes`, the same number of rows is drawn from each class.
    """

    n_test: Rows
    n_train: Rows | None = None
    equal_classes: bool = False


class Subset(Brief):
    """Split that draws `n_train` training rows once and tests on all other rows.

    The training rows are drawn from the official training part if there is one.
    """

    n_train: Rows


class Stream(Brief):
    """Split of a stream: each chunk of rows is used for testing and then for training.

    Metrics are recorded every `window` rows and the learner is saved every `checkpoint` rows, so that a killed pass can
    be resumed.  `test`: a row is predicted by a learner trained on all earlier chunks, or on all earlier rows.
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


SplitSpec = Official | Groups | Later | Share | Folds | Runs | Draw | Subset | Stream
SPLITS: tuple[type[SplitSpec], ...] = get_args(SplitSpec)
RESAMPLING = (Share, Groups, Folds, Draw)
"""Splits that divide the same rows differently in each repeat; other splits have fixed test rows."""
EXAMPLE = (
    "{test_size: 0.2}, {official: true}, {folds: 5}, {runs: [[100, 1], [50, 3]]}, {n_test: 1000}, {n_train: 1000} or "
    "{stream: true}"
)


def parse_split(values: Any, where: str = "split", overrides: Collection[str] = ()) -> SplitSpec:
    """Return the split that a mapping such as {test_size: 0.2} describes.

    Keys with the value None count as missing.  `overrides` are the dotted keys of the command line: a message about
    keys of two splits is about these keys.  Raises KlrBenchError.
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

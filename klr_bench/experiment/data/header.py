"""Whether the first line of a delimited file is a header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from klr_bench.experiment.data.labels import is_unlabelled, number

YEAR = re.compile(r"(1[89]|2[01])\d\d")


def is_header(first: Sequence[str], below: Sequence[Sequence[str]], label_column: str | int | None) -> bool:
    """Return True if the first line is a header; `below` are some rows after it, of the same length.

    No field is a number, they are 0, 1, ..., one is the name of the label column, or the numbers are names themselves.
    """
    numbered = [str(column) for column in range(len(first) - 1)]
    return (
        all(number(field) is None for field in first)
        or (len(first) > 4 and list(first[:-1]) == numbered)
        or (isinstance(label_column, str) and number(label_column) is None and label_column in first)
        or _has_numeric_names(first, below, label_column)
    )


def _has_numeric_names(first: Sequence[str], below: Sequence[Sequence[str]], label_column: str | int | None) -> bool:
    """Return True if some fields of the first line are numbers, but names of columns as well, such as years.

    All are different and have up to four digits, and the first label does not occur below.  In addition, either labels
    below repeat and the name of a feature is a text above numbers; or the names are years above other values, or count
    columns, and labels below repeat or are numbers without the first.
    """
    names = [field for field in first if number(field) is not None]
    position = int(label_column) if re.fullmatch(r"-?\d{1,6}", str(label_column)) else -1  # type: ignore[arg-type]
    if not below or not -len(first) <= position < len(first):
        return False
    columns = list(zip(*below, strict=True))
    label, labels = first[position], columns[position]
    named = len(set(names)) == len(names) and all(re.fullmatch(r"\d{1,4}", name) for name in names)
    if not named or label in labels or is_unlabelled(label):
        return False
    texts = [number(name) is None and not is_unlabelled(name) for name in first]
    above = [text and None not in map(number, column) for text, column in zip(texts, columns, strict=True)]
    repeat, label_above = len(set(labels)) < len(labels), above.pop(position)
    values = {value for text, column in zip(texts, columns, strict=True) if not text for value in column}
    years = all(map(YEAR.fullmatch, names)) and not any(map(YEAR.fullmatch, values))
    counting = len(names) > 3 and all(int(after) == int(before) + 1 for before, after in pairwise(names))
    return (repeat and any(above)) or ((years or counting) and (repeat or label_above))

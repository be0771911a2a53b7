"""Convert class labels from strings to -1 and +1, or to 0, 1, 2 and so on."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.errors import fail, nearest, sanitize

LARGEST = 1e18
"""Largest absolute value of a feature, whose square can be represented in float32."""
LONGEST_LABEL, MOST_LABELS = 1000, 1_000_000
"""Maximum number of characters of a label, and of different labels in a file."""
MOST_COMPARED = 100
"""Maximum number of labels that are compared with whole arrays; others are looked up in a dictionary."""
MOST_CLASSES = 100
"""Maximum number of classes of a data set, whose indices are stored as int8."""
NO_LABEL = frozenset({"", "na", "n/a", "nan", "null", "?"})
"""Labels (in lower case) that denote a missing value; ``none`` and ``-`` may be classes."""


def parse_number(text: str) -> float | None:
    """Convert a string to a float; return None if the string is not a number.

    Unlike ``float``, this function accepts neither ``1_000`` nor digits other than 0-9.
    """
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def is_missing_label(text: str) -> bool:
    """Return True if a label denotes a missing value."""
    return text.lower() in NO_LABEL


def _key(text: str) -> str | float:
    """Return a key for comparing labels; it is the same for 1, +1 and 1.0."""
    value = parse_number(text)
    if value is None or not math.isfinite(value):
        return text
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else value


class Labels:
    """Mapping from the labels of a data set to consecutive integer codes, starting at 0.

    The codes are assigned in the order in which the labels first occur.  Numbers are compared by value: ``+1``, ``1``
    and ``1.0`` are one label, spelled as in its first occurrence.  The labels in `first` get the first codes; if
    `closed`, no others are allowed.  With `drop_missing`, a missing label has the code -1.
    """

    def __init__(self, first: Sequence[str] = (), *, closed: bool = False, drop_missing: bool = False) -> None:
        self.spellings: list[str] = []
        self.dropped: Counter[str] = Counter()
        """Number of rows that were dropped for each spelling of a missing label."""
        self._codes: dict[str | float, int] = {}
        self._closed, self._drop_missing = False, drop_missing
        for text in first:
            self.code(text)
        self._closed = closed

    def drops(self, text: str, n_rows: int = 1) -> bool:
        """Return True if rows with this label are dropped because the label denotes a missing value."""
        dropped = self._drop_missing and is_missing_label(text)
        self.dropped.update({text: n_rows} if dropped else {})
        return dropped

    def code(self, text: str) -> int:
        """Return the integer code of a label; a new label gets the next code.

        Raises ValueError if the label is invalid or not allowed.
        """
        known = self._codes.get(text)
        if known is not None:
            return known
        if self._drop_missing and is_missing_label(text):
            return -1
        value = parse_number(text)
        if is_missing_label(text) or len(text) > LONGEST_LABEL or (value is not None and not math.isfinite(value)):
            message = f"{sanitize(repr(text))} is not a valid label"
            raise ValueError(message)
        key = _key(text)
        if key not in self._codes:
            if self._closed or len(self.spellings) == MOST_LABELS:
                message = (
                    f"the label {sanitize(repr(text))} is not one of the classes {', '.join(first_ten(self.spellings))}"
                )
                raise ValueError(message)
            self._codes[key] = len(self.spellings)
            self.spellings.append(text)
        self._codes[text] = self._codes[key]
        return self._codes[text]

    def encode(self, values: NDArray[np.float64], code_of: Callable[[int], int]) -> NDArray[np.int32]:
        """Return the integer codes of an array of labels.

        `values` (n,) contains the numeric labels, and NaN for each label that is not a number.  For these, and for
        labels that have no code yet, `code_of(row)` must return the code of the label in the given row.
        """
        codes = np.full(len(values), -1, dtype=np.int32)
        for code, spelling in enumerate(self.spellings[:MOST_COMPARED]):
            if (value := parse_number(spelling)) is not None:
                codes[values == value] = code
        for row in np.flatnonzero(codes < 0).tolist():
            codes[row] = code_of(row)
        return codes


def encode_targets(
    codes: NDArray[Any],
    labels: Labels,
    where: str,
    *,
    positive: str | None,
    multiclass: bool | None,
    n_train: int | None = None,
    column: str = "",
) -> tuple[NDArray[np.int8], tuple[str, ...]]:
    """Convert label codes to targets, and also return the labels of the classes.

    The targets are denoted by y (n,).  With two classes, y is -1 or +1; `positive` is the label that becomes +1, by
    default the last one.  With more than two labels, `positive` selects one class against the rest; without it,
    `multiclass` must be true, and y is the index of the label.  Labels are sorted as numbers if all are numbers,
    otherwise as text.  The first `n_train` rows (all rows if None) must contain all classes.  `column` describes the
    label column in messages.  Raises KlrBenchError.
    """
    names, present = labels.spellings, np.unique(codes[:n_train]).tolist()
    classes = _sorted(names)
    if multiclass and len(names) != 2:
        y, missing = np.array([classes.index(name) for name in names])[codes], len(present) < len(names)
    else:
        if positive is None and len(names) > 2:
            fail(
                f"{where}: expected two classes, got {len(names)} ({', '.join(first_ten(classes))}). "
                "To separate one class from all others, set data.positive=LABEL. To keep all classes, set "
                "data.multiclass=true (multiclass: true in YAML); this requires multiclass learners."
            )
        code = names.index(classes[-1]) if positive is None else code_of_label(labels, positive, where, "data.positive")
        y, missing = np.where(codes == code, 1, -1), code not in present or len(present) == 1
        classes = [names[1 - code] if len(names) == 2 else f"not {names[code]}", names[code]]
    if missing or not 2 <= len(names) <= MOST_CLASSES:
        without = first_ten(_sorted([name for code, name in enumerate(names) if code not in present]))
        counted = f"{len(names)} {'class' if len(names) == 1 else 'classes'}"
        absent = f", with no training rows for {', '.join(without)}" if without else ""
        advice = f" The labels are in {column}; set data.label=NAME to use another column." if column else ""
        fail(f"{where}: expected 2 to {MOST_CLASSES} classes in the training file, got {counted}{absent}.{advice}")
    return y.astype(np.int8), tuple(classes)


def select_labels(
    parts: Sequence[tuple[Any, NDArray[Any]]], labels: Labels, only: Sequence[Any], where: str
) -> tuple[list[tuple[Any, NDArray[Any]]], Labels]:
    """Select the rows whose label is in the list `only`, and renumber the label codes.

    Each part is a pair (X, codes), such as the training rows and the test rows.
    """
    selected = Labels()
    new = np.full(len(labels.spellings), -1)
    for label in only:
        code = code_of_label(labels, label, where, "only")
        new[code] = selected.code(labels.spellings[code])
    return [(X[new[old] >= 0], new[old][new[old] >= 0]) for X, old in parts], selected


def code_of_label(labels: Labels, label: Any, where: str, setting: str) -> int:
    """Return the integer code of a label, ignoring case if there is no exact match.

    Raises KlrBenchError with the name of the setting if the label does not occur.
    """
    text, spellings = str(label).strip(), labels.spellings
    same = [code for code, spelling in enumerate(spellings) if _key(spelling) == _key(text)]
    same = same or [code for code, spelling in enumerate(spellings) if spelling.casefold() == text.casefold()]
    if len(same) != 1:
        fail(
            f"{where}: no row has the label {sanitize(repr(str(label)))} ({setting})."
            f"{nearest(text, first_ten(spellings))}"
        )
    return same[0]


def _sorted(names: Sequence[str]) -> list[str]:
    keys: dict[str, Any] = {name: _key(name) for name in names}
    return sorted(names, key=str if any(isinstance(key, str) for key in keys.values()) else keys.__getitem__)


def first_ten(names: Sequence[str]) -> list[str]:
    """Return at most ten names for a message, followed by "..." if there are more."""
    first = [sanitize(name, 50) for name in names[:10]]
    return first if len(names) <= 10 else [*first, "..."]

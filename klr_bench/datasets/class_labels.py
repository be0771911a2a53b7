"""Labels of data sets: collected as text, then encoded as -1 and +1, or as 0, 1, ..."""

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
"""Maximum absolute value of a feature, whose square still fits in float32."""
LONGEST_LABEL, MOST_LABELS = 1000, 1_000_000
"""Maximum number of characters of a label, and of distinct labels in a file."""
MOST_COMPARED = 100
"""Number of labels that are compared with whole arrays; others are looked up in a dictionary."""
MOST_CLASSES = 100
"""Maximum number of classes, which are stored as int8."""
NO_LABEL = frozenset({"", "na", "n/a", "nan", "null", "?"})
"""Labels (in lower case) that stand for a missing value; ``none`` and ``-`` may be classes."""


def number(text: str) -> float | None:
    """Parse a number; return None for other text, such as ``1_000`` or non-ASCII digits."""
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def is_unlabelled(text: str) -> bool:
    """Return True if a label stands for a missing value."""
    return text.lower() in NO_LABEL


def _key(text: str) -> str | float:
    """Return the value of a label as an exact number, else as text, equal for all its spellings."""
    value = number(text)
    if value is None or not math.isfinite(value):
        return text
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else value


class Labels:
    """Codes 0, 1, ... of labels in the order of their first occurrence in all files.

    Numbers are compared by value: ``+1``, ``1`` and ``1.0`` are one label, spelt as it first occurred.  The
    labels `first` get the first codes; if `closed`, no others are allowed.  With `drop_missing`, a missing label has
    the code -1.
    """

    def __init__(self, first: Sequence[str] = (), *, closed: bool = False, drop_missing: bool = False) -> None:
        self.spellings: list[str] = []
        self.dropped: Counter[str] = Counter()
        """Number of rows dropped for a missing label, by spelling."""
        self._codes: dict[str | float, int] = {}
        self._closed, self._drop_missing = False, drop_missing
        for text in first:
            self.code(text)
        self._closed = closed

    def drops(self, text: str, n_rows: int = 1) -> bool:
        """Return True if rows with this label are dropped, and count them."""
        dropped = self._drop_missing and is_unlabelled(text)
        self.dropped.update({text: n_rows} if dropped else {})
        return dropped

    def code(self, text: str) -> int:
        """Return the code of a label.

        Raises ValueError if it is not allowed, missing, too long or not finite.
        """
        known = self._codes.get(text)
        if known is not None:
            return known
        if self._drop_missing and is_unlabelled(text):
            return -1
        value = number(text)
        if is_unlabelled(text) or len(text) > LONGEST_LABEL or (value is not None and not math.isfinite(value)):
            message = f"{sanitize(repr(text))} is not a label"
            raise ValueError(message)
        key = _key(text)
        if key not in self._codes:
            if self._closed or len(self.spellings) == MOST_LABELS:
                classes = ", ".join(first_names(self.spellings))
                message = f"the label {sanitize(repr(text))} is not one of the classes {classes}"
                raise ValueError(message)
            self._codes[key] = len(self.spellings)
            self.spellings.append(text)
        self._codes[text] = self._codes[key]
        return self._codes[text]

    def encode(self, values: NDArray[np.float64], code_of: Callable[[int], int]) -> NDArray[np.int32]:
        """Return the codes (n,) of labels given as numbers, with NaN for text labels.

        `code_of(row)` is called for words and for new labels.
        """
        codes = np.full(len(values), -1, dtype=np.int32)
        for code, spelling in enumerate(self.spellings[:MOST_COMPARED]):
            if (value := number(spelling)) is not None:
                codes[values == value] = code
        for row in np.flatnonzero(codes < 0).tolist():
            codes[row] = code_of(row)
        return codes


def encoded(
    codes: NDArray[Any],
    labels: Labels,
    where: str,
    *,
    positive: str | None,
    multiclass: bool | None,
    n_train: int | None = None,
    column: str = "",
) -> tuple[NDArray[np.int8], tuple[str, ...]]:
    """Encode the labels as y (n,), and return their names: two, or all if `multiclass`.

    With two classes y is -1 or +1: `positive` names the label that becomes +1, with more than two labels against the
    rest.  Without it the last label becomes +1.  Otherwise y numbers the labels from 0.  Labels are sorted as numbers
    if all are numbers, otherwise as text.  The first `n_train` rows, or all if it is None, must contain all classes.
    `column` is that of the labels in a user's table.  Raises KlrBenchError.
    """
    names, present = labels.spellings, np.unique(codes[:n_train]).tolist()
    classes = _sorted(names)
    if multiclass and len(names) != 2:
        y, missing = np.array([classes.index(name) for name in names])[codes], len(present) < len(names)
    else:
        if positive is None and len(names) > 2:
            fail(
                f"{where}: {len(names)} classes ({', '.join(first_names(classes))}), two are needed. "
                "Choose one against the rest with data.positive=LABEL, or keep all with data.multiclass=true "
                "(multiclass: true in a YAML), for learners that support several classes."
            )
        code = names.index(classes[-1]) if positive is None else known_code(labels, positive, where, "data.positive")
        y, missing = np.where(codes == code, 1, -1), code not in present or len(present) == 1
        classes = [names[1 - code] if len(names) == 2 else f"not {names[code]}", names[code]]
    if missing or not 2 <= len(names) <= MOST_CLASSES:
        without = first_names(_sorted([name for code, name in enumerate(names) if code not in present]))
        counted = (
            f"{len(names)} {'class' if len(names) == 1 else 'classes'}{f', and none of {without}' if without else ''}"
        )
        advice = f" The labels are taken from {column}; data.label=NAME selects another column." if column else ""
        fail(f"{where}: {counted} in the training file, expected 2 to {MOST_CLASSES}.{advice}")
    return y.astype(np.int8), tuple(classes)


def filter_labels(
    parts: Sequence[tuple[Any, NDArray[Any]]], labels: Labels, only: Sequence[Any], where: str
) -> tuple[list[tuple[Any, NDArray[Any]]], Labels]:
    """Keep only rows with one of the labels `only` in each part, and recode the labels."""
    selected = Labels()
    new = np.full(len(labels.spellings), -1)
    for wanted in only:
        code = known_code(labels, wanted, where, "only")
        new[code] = selected.code(labels.spellings[code])
    return [(X[new[old] >= 0], new[old][new[old] >= 0]) for X, old in parts], selected


def known_code(labels: Labels, wanted: Any, where: str, setting: str) -> int:
    """Return the code of the label named by `wanted`, ignoring case if nothing matches exactly.

    Raises KlrBenchError, with the name of the setting.
    """
    text, spellings = str(wanted).strip(), labels.spellings
    same = [code for code, spelling in enumerate(spellings) if _key(spelling) == _key(text)]
    same = same or [code for code, spelling in enumerate(spellings) if spelling.casefold() == text.casefold()]
    if len(same) != 1:
        fail(
            f"{where}: no row has the label {sanitize(repr(str(wanted)))} ({setting})."
            f"{nearest(text, first_names(spellings))}"
        )
    return same[0]


def _sorted(names: Sequence[str]) -> list[str]:
    """Return labels sorted as numbers if all are numbers, otherwise as text."""
    keys: dict[str, Any] = {name: _key(name) for name in names}
    return sorted(names, key=str if any(isinstance(key, str) for key in keys.values()) else keys.__getitem__)


def first_names(names: Sequence[str]) -> list[str]:
    """Return at most ten names for a message, followed by "..." if there are more."""
    first = [sanitize(name, 50) for name in names[:10]]
    return first if len(names) <= 10 else [*first, "..."]

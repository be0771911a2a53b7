"""Convert class labels from strings to -1 and +1, or to 0, 1, 2 and so on."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.errors import fail, nearest, sanitize

LARGEST = 1e19
"""Largest absolute value of a feature, whose square can be represented in float32."""
LONGEST_LABEL, MOST_LABELS = 1000, 1_000_000
"""Maximum number of characters of a label, and of different labels in a file."""
MOST_COMPARED = 100
"""Maximum number of labels that are compared with whole arrays; others are looked up in a dictionary."""
MOST_CLASSES = 100
"""Maximum number of classes of a data set, whose indices are stored as int8."""
NO_LABEL = frozenset({"", "na", "n/a", "nan", "null", "?", "<na>", "#n/a"})
"""Labels (in lower case) that denote a missing value; ``none`` and ``-`` may be classes."""
WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0+)?")
"""Spellings of whole numbers, which are compared by value: 1, +1 and 1.0, but not 01, a code, or 1e0."""
LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
EXACT_DIGITS = 15
"""Two numbers of at most 15 significant digits are equal if and only if they are equal in float64."""


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


def look(text: str) -> str | Decimal:
    """Return a number or a text without differences that are hard to see.

    These are differences in case, blanks, invisible characters, Unicode forms, and spellings of a number.
    """
    visible = "".join(
        character for character in unicodedata.normalize("NFKC", text) if unicodedata.category(character) != "Cf"
    )
    plain = " ".join(visible.casefold().split())
    number = _exact(plain)
    return plain if number is None else number


def whole_numbers(labels: Sequence[str]) -> list[int] | None:
    """Return labels as integers, or None if the spelling of any label would change.

    The integers must be in the range of int64.
    """
    if not all(re.fullmatch("0|-?[1-9][0-9]{0,18}", label) and -(2**63) <= int(label) < 2**63 for label in labels):
        return None
    return [int(label) for label in labels]


def label_values(spellings: Sequence[str], *, numeric: bool) -> NDArray[Any]:
    """Return labels as integers or floats if this changes no label, otherwise as strings.

    `numeric` is true if all numbers are compared by value, so that ``01`` is the number 1 and not a code.
    """
    values = [_exact(text) for text in spellings if numeric or not LEADING_ZERO.match(text)]
    numbers = [value for value in values if value is not None]
    if not len({*numbers}) == len(numbers) == len(spellings):
        return np.array(spellings)
    if all(value == value.to_integral_value() and -(2**63) <= value < 2**63 for value in numbers):
        return np.array([int(value) for value in numbers], dtype=np.int64)
    return np.array([float(value) for value in numbers] if all(map(_fits_float, numbers)) else spellings)


def _fits_float(value: Decimal) -> bool:
    return len("".join(map(str, value.as_tuple().digits)).strip("0")) <= EXACT_DIGITS


def _exact(text: str) -> Decimal | None:
    """Return the exact value of a number, or None if the text is not a finite number."""
    number = parse_number(text)
    is_number = number is not None and (math.isfinite(number) or WHOLE.fullmatch(text))
    return Decimal(text) if is_number else None


class Labels:
    """Mapping from the labels of a data set to consecutive integer codes, starting at 0.

    The codes are assigned in the order in which the labels first occur.  Whole numbers are compared by value: ``+1``,
    ``1`` and ``1.0`` are one label, spelled as in its first occurrence.  All other labels are compared as text, so that
    ``01`` and ``1`` are two; with `numeric`, as in the LIBSVM format, all numbers are compared by value.  The labels in
    `first` get the first codes; if `closed`, no others are allowed.  With `drop_missing`, a missing label has the code
    -1.
    """

    def __init__(
        self, first: Sequence[str] = (), *, closed: bool = False, drop_missing: bool = False, numeric: bool = False
    ) -> None:
        self.spellings: list[str] = []
        self.numeric = numeric
        self.dropped: Counter[str] = Counter()
        """Number of rows that were dropped for each spelling of a missing label."""
        self._codes: dict[str | Decimal, int] = {}
        self._closed, self._drop_missing = False, drop_missing
        for text in first:
            self.code(text)
        self._closed = closed

    def drops(self, text: str, n_rows: int = 1) -> bool:
        """Return True if rows with this label are dropped because the label denotes a missing value."""
        dropped = self._drop_missing and is_missing_label(text)
        self.dropped.update({text: n_rows} if dropped else {})
        return dropped

    def dropped_rows(self) -> str:
        """Return a phrase such as "27 rows without a label ('NA')", or "" if no row was dropped."""
        n, spellings = self.dropped.total(), [repr(text) if text else "empty" for text in self.dropped]
        return f"{n:,} {'row' if n == 1 else 'rows'} without a label ({', '.join(spellings)})" if n else ""

    def code(self, text: str) -> int:
        """Return the integer code of a label; a new label gets the next code.

        Raises ValueError if the label is invalid or not allowed.
        """
        code = self._codes.get(text)
        if code is not None:
            return code
        if self._drop_missing and is_missing_label(text):
            return -1
        value = _exact(text) if len(text) <= LONGEST_LABEL else None
        if is_missing_label(text) or (value is None and (len(text) > LONGEST_LABEL or parse_number(text) is not None)):
            message = f"{sanitize(repr(text))} is not a valid label"
            raise ValueError(message)
        key = value if value is not None and (self.numeric or WHOLE.fullmatch(text)) else text
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

    def lookalikes(self) -> list[str]:
        """Return a warning if labels look alike (see `look`)."""
        alike: dict[str | Decimal, list[str]] = {}
        for spelling in self.spellings:
            alike.setdefault(look(spelling), []).append(spelling)
        groups = [" and ".join(first_ten([*map(repr, names)])) for names in alike.values() if len(names) > 1]
        if not groups:
            return []
        listed = ", ".join(first_ten(groups))
        return [f"warning: labels that look alike are different classes: {listed}; correct them if they are one class"]

    def encode(self, values: NDArray[np.float64], code_of: Callable[[int], int]) -> NDArray[np.int32]:
        """Return the integer codes of an array of labels.

        `values` (n,) contains the labels that are numbers of at most 15 digits, and NaN for each other label.  For
        these, and for labels that have no code yet, `code_of(row)` must return the code of the label in the given row.
        """
        codes = np.full(len(values), -1, dtype=np.int32)
        for code, spelling in enumerate(self.spellings[:MOST_COMPARED]):
            value = _exact(spelling)
            if value is not None and _fits_float(value):
                codes[values == float(value)] = code
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
        rows = labels.dropped_rows()
        dropped = f" Left out: {rows}, which counts as missing; rename it if it is a class." if rows else ""
        advice = f" The labels are in {column}; set data.label=NAME to use another column." if column else ""
        expected = f"{where}: expected 2 to {MOST_CLASSES} classes in the training file"
        fail(f"{expected}, got {counted}{absent}.{dropped}{advice}")
    return y.astype(np.int8), tuple(classes)


def select_labels(
    parts: Sequence[tuple[Any, NDArray[Any]]], labels: Labels, only: Sequence[Any], where: str
) -> tuple[list[tuple[Any, NDArray[Any]]], Labels]:
    """Select the rows whose label is in the list `only`, and renumber the label codes.

    Each part is a pair (X, codes), such as the training rows and the test rows.
    """
    selected = Labels(numeric=labels.numeric)
    new = np.full(len(labels.spellings), -1)
    for label in only:
        code = code_of_label(labels, label, where, "only")
        new[code] = selected.code(labels.spellings[code])
    return [(X[new[old] >= 0], new[old][new[old] >= 0]) for X, old in parts], selected


def code_of_label(labels: Labels, label: Any, where: str, setting: str) -> int:
    """Return the integer code of a label.

    It is the same label or, if there is none, an equal number or the same text in another case.  Raises KlrBenchError
    with the name of the setting if the label does not occur.
    """
    text, spellings = str(label).strip(), labels.spellings
    same: list[int] = []
    views: tuple[Callable[[str], object], ...] = (str, _exact, str.casefold)
    for view in views:
        if not same and (value := view(text)) is not None:
            same = [code for code, spelling in enumerate(spellings) if view(spelling) == value]
    if len(same) != 1:
        problem = f"{len(same)} labels equal" if same else "no row has the label"
        fail(f"{where}: {problem} {sanitize(repr(str(label)))} ({setting}).{nearest(text, first_ten(spellings))}")
    return same[0]


def _sorted(names: Sequence[str]) -> list[str]:
    numbers = {name: number for name in names if (number := _exact(name)) is not None}
    return sorted(names, key=(lambda name: (numbers[name], name)) if len(numbers) == len(names) else str)


def first_ten(names: Sequence[str], most: int = 50) -> list[str]:
    """Return at most ten names, of at most `most` characters, and "..." if there are more."""
    first = [sanitize(name, most) for name in names[:10]]
    return first if len(names) <= 10 else [*first, "..."]

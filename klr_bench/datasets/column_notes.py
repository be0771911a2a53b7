"""Describe in notes how columns are converted, and which values of test rows are new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from klr_bench.datasets.class_labels import first_ten, look
from klr_bench.datasets.column import KINDS, ORDERED, TEXT, Column
from klr_bench.datasets.column_kinds import setting_of
from klr_bench.errors import sanitize

LISTED = 200
"""Maximum number of columns that a note names."""


def describe_unseen(column: Column, counts: Counter[str]) -> str:
    """Describe the strings counted by `Column.unseen`, with the values that look alike."""
    alike = {look(value): f" (but {value!r} occurs)" for value in column.known}
    texts = [f"{text!r}{alike.get(look(text), '')}" if text else "missing values" for text, _ in counts.most_common()]
    n = counts.total()
    return f"{column.name}: {', '.join(first_ten(texts))} in {n:,} {'row' if n == 1 else 'rows'}"


def unseen_values(counts: Mapping[Column, Counter[str]]) -> str | None:
    """Return a warning that names the values of `Column.unseen`, or None if there are none."""
    parts = [describe_unseen(column, unseen) for column, unseen in counts.items() if unseen]
    if not parts:
        return None
    return (
        f"values that the training rows do not have: {'; '.join(first_ten(parts, 300))}. A text counts as none of the "
        "values of its column, a missing or unreadable number as the median"
    )


def describe(path: Path | None, columns: Sequence[Column]) -> list[str]:
    """Describe how the columns are converted, in a list of notes that names each column."""
    numbers, texts, dates, others, ordered = (
        [column for column in columns if column.kind == kind] for kind in (*KINDS, ORDERED)
    )
    notes: list[str] = []

    def note(text: str, columns: Sequence[Column], detail: Callable[[Column], object] | None = None) -> None:
        names = [sanitize(column.name, 50) + (f" ({detail(column)})" if detail else "") for column in columns[:LISTED]]
        listed = ", ".join([*names, *["..."] * (len(columns) > LISTED)])
        counted = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        notes.extend([text.format(counted, listed)] if columns else [])

    note("{} of numbers: {}", numbers)
    with_unit = [column for column in numbers if column.unit]
    note("the unit is removed from {} of numbers: {}", with_unit, lambda column: repr(column.unit))
    commas = [column for column in numbers if column.commas]
    note("commas separate thousands in {}: {}", [column for column in commas if column.decimal == "."])
    note("points separate thousands in {}: {}", [column for column in commas if column.decimal == ","])
    shares = [column for column in texts if column.classes]
    for kind in ("text", "whole numbers"):
        binary = [column for column in texts if column.whole == (kind != "text") and column not in shares]
        width, why = sum(column.width for column in binary), {column.validation for column in binary} - {""}
        note("; ".join([f"{{}} of {kind} as {width} binary features: {{}}", *why]), binary, lambda column: column.width)
    note("{} of text as shares of the classes in the rows of each value: {}", shares, lambda column: column.validation)
    rare = [column for column in texts if column.rare]
    note("rare values share a feature in {} of text: {}", rare, lambda column: f"{len(column.rare):,} values")
    note("{} of dates or times: {}", dates, lambda column: ", ".join(column.values))
    note("{} of ordered categories as numbers: {}", ordered, lambda column: " < ".join(first_ten(column.values)))
    notes += [
        f"warning: {column.name} is read as text because it has {column.why}; convert the numbers to one unit, or "
        f"confirm with {setting_of(path, column.place, column.name, TEXT)}"
        for column in texts
        if column.why
    ]
    unreadable = [column for column in columns if column.n_unreadable]
    note(
        "warning: unreadable values are missing values in {}: {}", unreadable, lambda column: f"{column.n_unreadable:,}"
    )
    replaced = "are replaced by the median of the training rows, and an indicator feature is added"
    for text, some in (
        (f"missing values in {{}} of numbers {replaced}: {{}}", [*numbers, *dates, *ordered]),
        ("missing values in {} of text are treated as a separate value: {}", texts),
    ):
        note(text, [column for column in some if column.n_missing], lambda column: f"{column.n_missing:,}")
    if others:
        reasons = "; ".join(f"{sanitize(column.name, 50)}: {sanitize(column.why, 100)}" for column in others[:LISTED])
        more = "; ..." if len(others) > LISTED else ""
        setting = (
            "data.columns={NAME: number} or {NAME: text}" if path else "columns={NAME: 'number'} or {NAME: 'text'}"
        )
        notes.append(f"left out: {reasons}{more}. To keep a column, set {setting}")
    return notes

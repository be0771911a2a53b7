"""Groups of rows that stay together in splits, and the order of rows in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from klr_bench.datasets.amounts import amount_value, is_missing, parse_amount, parse_numbers
from klr_bench.datasets.columns import ColumnProfile
from klr_bench.datasets.dates import CLOCK, UNKNOWN_ORDER, date_form, in_utc, order_of
from klr_bench.errors import fail

Indices = NDArray[np.intp]


def group_codes(
    texts: Sequence[str], cell: Callable[[int], str], *, is_time: bool, decimal: str = "."
) -> NDArray[np.int64]:
    """Return codes (n,) of the groups of rows, or the ranks of their times.

    Groups are numbered by first appearance.  `texts` are the values of the column; `cell` describes the value in a row
    for messages.  Times are numbers, whose decimal mark is `decimal`, or dates.  Raises KlrBenchError for missing
    values, and for times of other kinds.
    """
    for row, text in enumerate(texts):
        if is_missing(text):
            expected = "a number or a date" if is_time else "the group of the row"
            fail(f"{cell(row)}: expected {expected}, got none; fill it in, or remove the row.")
    values = _times(texts, cell, decimal) if is_time else np.array(texts, dtype=object)
    return pd.factorize(values, sort=is_time)[0].astype(np.int64)


def _times(texts: Sequence[str], cell: Callable[[int], str], decimal: str) -> NDArray[Any]:
    def refuse(row: int, reason: str) -> NoReturn:
        fail(f"{cell(row)}: {reason} (data.time).")

    profile = ColumnProfile(decimal=decimal)
    profile.add(range(len(texts)), texts)
    if grouped := profile.point_of_thousands:
        reason = "may be thousands, since others have three digits and no point; for thousands, set data.decimal=comma"
        refuse(grouped[0], f"{reason}; for decimals, give all numbers a point")
    numbers = parse_numbers(texts, decimal)
    if numbers is not None:
        return numbers
    commas = profile.commas == "thousands"
    amounts = [amount_value(text, "", commas=commas, decimal=decimal) for text in texts]
    if None not in amounts:
        return np.array(amounts)
    forms = {text: date_form(text) for text in {*texts}}
    for row, text in enumerate(texts):
        form = forms[text]
        if form is None or form[0] == CLOCK:
            is_number = decimal == "." and parse_amount(text, ",")
            advice = "for a decimal comma, set data.decimal=comma" if is_number else "correct it"
            refuse(row, f"expected a number or a date in each row, got another value; {advice}")
    day_first = order_of({form[0] for form in forms.values() if form})
    if day_first is None:
        refuse(0, UNKNOWN_ORDER)
    times = {text: in_utc(text, day_first=bool(day_first)) for text in forms}
    return np.array([times[text] for text in texts], dtype="datetime64[us]")


def later_folds(ranks: NDArray[np.int64], n_folds: int, *, first: float | None = None) -> list[tuple[Indices, Indices]]:
    """Return folds whose validation rows are later than their training rows.

    A fold is a pair of indices.  The rows in the order of their `ranks` (n,) are divided into n_folds + 1 parts, of
    which the first has the share `first` (None is that of the others); fold i validates on part i + 1 and trains on all
    before it.  Rows of equal rank stay together.
    """
    n = len(ranks)
    share = 1 / (n_folds + 1) if first is None else first
    cuts = np.linspace(share * n, n, n_folds + 1).round().astype(int)
    in_time, cuts = np.sort(ranks), np.clip(cuts, 1, n - 1)
    limits = [*in_time[cuts[:-1]], in_time[-1] + 1]
    folds = [
        (np.flatnonzero(ranks < begin), np.flatnonzero((ranks >= begin) & (ranks < end)))
        for begin, end in pairwise(limits)
    ]
    return [fold for fold in folds if len(fold[0]) and len(fold[1])]


def group_folds(groups: NDArray[np.int64], n_folds: int) -> list[tuple[Indices, Indices]]:
    """Return folds of whole groups (n,) with nearly equal numbers of rows, as pairs of indices.

    The groups are taken in the order of their first rows.
    """
    codes = pd.factorize(groups)[0]
    sizes = np.bincount(codes)
    middles = np.cumsum(sizes) - sizes / 2
    fold_of = np.searchsorted(np.linspace(0, len(codes), n_folds + 1)[1:-1], middles, side="right")[codes]
    return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n_folds)]

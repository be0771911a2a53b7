"""Fast compiled parser for files in svmlight format.

The parser handles simple lines, that is, almost all lines.  It stops at any other line (a mistake, `nan`, a number
whose rounding is uncertain), which is then parsed or rejected in Python.

The first 18 significant digits of a number form an integer, which is multiplied or divided by a power of ten.  With up
to 15 digits and a power up to 22, both are exact in float64, and IEEE division and multiplication round correctly (the
fast path of Clinger, 1990).  Otherwise the relative error is below 2^-50.  If all numbers within this error round to
the same float32, the correctly rounded float64 rounds to it, too, because rounding is monotone.  Values are returned in
float64; rounded to float32, they are always correct.

All functions are in one module because numba's cache detects changes only in the file that defines a function.
"""

from __future__ import annotations

import numpy as np

from klr_bench.datasets.class_labels import LARGEST
from klr_bench.estimators.core.jit import compiled

LINE_FEED, RETURN, TAB, BLANK, HASH, COLON = (ord(c) for c in "\n\r\t #:")
PLUS, MINUS, POINT, ZERO, SMALL_E, LARGE_E, Q, I, D = (ord(c) for c in "+-.0eEqid")  # noqa: E741
MOST_DIGITS = 18  # an int64 can represent every integer with 18 digits
EXACT_DIGITS, EXACT_POWER = 15, 22  # float64 represents integers below 10^15 and powers of ten up to 10^22 exactly
POWERS = np.array([float(f"1e{k}") for k in range(301)])
DOUBT = 2.0**-50
LARGEST32 = np.float32(LARGEST)

POSITION, ROWS, ENTRIES, LOWEST, HIGHEST = range(5)
"""Entries of `state`: start of the next line, counts of rows and entries so far, smallest and largest index."""


@compiled()
def _number(text, at):
    """Parse the number that starts at position `at` of an array of ASCII codes.

    Return the number, True if it is correctly rounded, and the position after it, which is `at` if there is no number.
    """
    begin = at
    sign = text[at]
    if sign in (MINUS, PLUS):
        at += 1
    digits, n_digits, power, n_read = 0, 0, 0, 0
    while np.uint8(text[at] - ZERO) < 10:
        if n_digits < MOST_DIGITS:
            digits = 10 * digits + np.int64(text[at] - ZERO)
            n_digits += digits > 0
        else:
            power += 1
        at += 1
        n_read += 1
    if text[at] == POINT:
        at += 1
        while np.uint8(text[at] - ZERO) < 10:
            if n_digits < MOST_DIGITS:
                digits = 10 * digits + np.int64(text[at] - ZERO)
                n_digits += digits > 0
                power -= 1
            at += 1
            n_read += 1
    if n_read == 0:
        return 0.0, False, begin
    if text[at] == SMALL_E or text[at] == LARGE_E:
        at += 1
        negative = text[at] == MINUS
        if negative or text[at] == PLUS:
            at += 1
        exponent, first = 0, at
        while np.uint8(text[at] - ZERO) < 10:
            exponent = min(10 * exponent + np.int64(text[at] - ZERO), 1_000_000_000)
            at += 1
        if at == first:
            return 0.0, False, begin
        power += -exponent if negative else exponent
    value = float(-digits if sign == MINUS else digits)
    exact = n_digits <= EXACT_DIGITS and -EXACT_POWER <= power <= EXACT_POWER
    if digits == 0:
        return 0.0, True, at
    if power > 300:
        return np.inf, False, at
    if power < -300:
        return 0.0, False, at
    return (value * POWERS[power] if power >= 0 else value / POWERS[-power]), exact, at


@compiled()
def _rounded(value, exact):
    """Round a float64 to float32; return NaN if it is out of range or the rounding is uncertain."""
    rounded = np.float32(value)
    if not exact and np.float32(value * (1 - DOUBT)) != np.float32(value * (1 + DOUBT)):
        return np.float32(np.nan)
    return rounded if abs(rounded) <= LARGEST32 else np.float32(np.nan)


@compiled()
def _ends_token(code):
    return code in (BLANK, LINE_FEED, TAB, RETURN, HASH)


@compiled()
def _skip_blanks(text, at):
    while text[at] == BLANK or text[at] == TAB or text[at] == RETURN:
        at += 1
    return at


@compiled("void(Array(u1, 1, 'C', readonly=True), i8, i8, f8[::1], i4[:, ::1], i8[::1], i4[::1], f8[::1], i8[::1])")
def svmlight_rows(text, lowest, highest, labels, places, ends, indices, values, state):
    """Parse lines of svmlight text up to the first line that must be parsed in Python.

    Parsing starts at ``state[POSITION]``.  Indices must be between `lowest` and `highest`.  For row i, ``labels[i]`` is
    the label, or NaN if it is not a number of at most 15 digits; ``text[places[i, 0] : places[i, 1]]`` is the text of
    the label; the entries of the row that are not zero end at ``ends[i]``.
    """
    at, row, entry = state[POSITION], state[ROWS], state[ENTRIES]
    smallest, largest = state[LOWEST], state[HIGHEST]
    while at < len(text):
        at = _skip_blanks(text, at)
        if text[at] != LINE_FEED and text[at] != HASH:
            places[row, 0] = at
            label, exact, at = _number(text, at)
            if not exact or not _ends_token(text[at]):
                label = np.nan
                while not _ends_token(text[at]):
                    at += 1
            labels[row], places[row, 1] = label, at
            previous = -1
            while True:
                at = _skip_blanks(text, at)
                if text[at] == LINE_FEED or text[at] == HASH:
                    break
                first, index = at, 0
                while np.uint8(text[at] - ZERO) < 10 and at - first < 10:
                    index = 10 * index + np.int64(text[at] - ZERO)
                    at += 1
                if at == first and text[at] == Q and text[at + 1] == I and text[at + 2] == D and text[at + 3] == COLON:
                    while not _ends_token(text[at]):
                        at += 1
                    continue
                if at == first or text[at] != COLON or index <= previous or index < lowest or index > highest:
                    return
                begin = at + 1
                value, exact, at = _number(text, begin)
                rounded = _rounded(value, exact)
                underflow = value == 0 and not exact  # perhaps not in float64
                if at == begin or not _ends_token(text[at]) or np.isnan(rounded) or underflow:
                    return
                if previous < 0:
                    smallest = min(smallest, index)
                previous = index
                if value != 0:
                    indices[entry], values[entry] = index, value
                    entry += 1
            largest = max(largest, previous)
            ends[row] = entry
            row += 1
        while text[at] != LINE_FEED:
            at += 1
        at += 1
        state[POSITION], state[ROWS], state[ENTRIES], state[LOWEST], state[HIGHEST] = at, row, entry, smallest, largest

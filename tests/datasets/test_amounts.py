"""Numbers with units and separators, missing values, and what each of them is not."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas._libs.parsers import STR_NA_VALUES

from klr_bench.datasets.amounts import amount_value, is_missing, parse_amount, parse_numbers

NUMBERS = st.decimals(-(10**9), 10**9, places=2)


@pytest.mark.parametrize("mark", sorted(STR_NA_VALUES | {"--", "n.a.", ".", "#REF!", "?"}))
def test_each_missing_value_of_pandas_is_one(mark: str) -> None:
    for spelling in (mark, mark.lower(), mark.upper()):
        assert is_missing(spelling)
        assert not is_missing(f"{spelling}x!")


@given(NUMBERS, st.sampled_from(["{}", "{} kg", "$ {}", "{} %"]))
def test_a_number_in_brackets_is_negative(number: object, form: str) -> None:
    text, unit = str(abs(number)), form.replace("{}", "").strip()  # type: ignore[call-overload]
    for written in (f"({form.format(text)})", form.format(f"({text})")):
        assert amount_value(written, unit, commas=False) == -float(text)
    assert parse_amount(f"({text}") is None
    assert parse_amount(f"(-{text})") is None


@pytest.mark.parametrize("text", ["(030)1234567", "(030) 1234567", "1e(5)", "5(3)", "(5)3 kg"])
def test_brackets_beside_other_digits_are_no_negative_number(text: str) -> None:
    assert parse_amount(text) is None


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.booleans(), st.booleans())
def test_decimal_commas_are_those_of_the_same_numbers_with_points(
    numbers: list[object], grouped: bool, with_unit: bool
) -> None:
    english = [f"{number:,}" if grouped else str(number) for number in numbers]
    german = [text.translate(str.maketrans(",.", ".,")) for text in english]
    unit = "€" if with_unit else ""
    for number, text in zip(numbers, german, strict=True):
        value = amount_value(f"{text} {unit}".strip(), unit, commas=True, decimal=",")
        assert value == float(number)  # type: ignore[arg-type]
    plain = parse_numbers(german, ",")
    if not any("." in text for text in german):
        assert plain is not None
        assert plain.tolist() == [float(number) for number in numbers]  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["1.5", "0.123", "12.34", "1.5 kg"])
def test_a_point_that_cannot_separate_thousands_is_no_number_with_decimal_commas(text: str) -> None:
    parts = parse_amount(text, ",")
    assert parts is not None
    assert parts.mark == "decimal"
    assert amount_value(text, parts.unit, commas=True, decimal=",") is None
    assert not math.isnan(amount_value(text, parts.unit, commas=False) or math.nan)

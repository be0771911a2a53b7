"""Numbers with units and separators, missing values, and what each of them is not."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas._libs.parsers import STR_NA_VALUES

from klr_bench.datasets.amounts import amount_value, is_missing, parse_amount, parse_numbers

NUMBERS = st.decimals(-(10**9), 10**9, places=2)


OTHERS = {"--", "n.a.", ".", "#REF!", "?", "NaT", r"\N", "(null)", "#NV", "#WERT!", "0000-00-00", "\u2014"}
"""Marks of databases, of spreadsheets in other languages, and of typists."""


@pytest.mark.parametrize("mark", sorted(STR_NA_VALUES | OTHERS))
def test_each_missing_value_of_pandas_is_one(mark: str) -> None:
    for spelling in (mark, mark.lower(), mark.upper()) if mark != "NaT" else (mark,):  # NAT may be a name
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


@given(st.decimals(0, 10**9, places=2), st.sampled_from(["{}", "{} kg", "€{}", "€ {}", " {}"]))
def test_a_dash_before_a_number_is_a_minus(number: object, form: str) -> None:
    unit = form.replace("{}", "").strip()
    for dash in ("-", "\u2212", "\u2013"):
        assert amount_value(f"{dash}{form.format(number)}", unit, commas=False) == -float(number)  # type: ignore[arg-type]
    assert parse_amount(f"{number}\u2013{number}") is None


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        *(("₱1,234", "₱", 1234), ("Rs. 500", "Rs.", 500), ("Rs500", "Rs", 500), ("kr 500", "kr", 500)),
        *(("1,00,000", "", 100_000), ("12,34,567.5", "", 1_234_567.5), ("1,23,45,678", "", 12_345_678)),
    ],
)
def test_currencies_and_groups_of_digits_of_other_countries(text: str, unit: str, value: float) -> None:
    assert amount_value(text, unit, commas=True) == value


@pytest.mark.parametrize("text", ["kr. 1.234,50", "Rs. 1.234,50", "Rs 1.234,50", "kr 1.234,50"])
def test_currencies_stand_before_decimal_commas(text: str) -> None:
    assert amount_value(text, text.split()[0], commas=True, decimal=",") == 1234.5


@pytest.mark.parametrize("text", ["10.20.30.100", "12.34.567", "1,00,000"])
def test_other_groups_of_digits_are_no_numbers_with_decimal_commas(text: str) -> None:
    assert amount_value(text, "", commas=True, decimal=",") is None


@pytest.mark.parametrize("text", ["AB123", "AB-123", "kr500x", "1,00", "1,0000", "1,00,00"])
def test_codes_and_other_commas_are_no_amounts(text: str) -> None:
    assert amount_value(text, getattr(parse_amount(text), "unit", ""), commas=True) is None

"""Dates and clock times in any of the usual spellings become years, months, weekdays and hours."""

from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench import TablePreparer
from klr_bench.datasets.dates import date_form, in_utc, order_of

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)).map(lambda time: time.replace(microsecond=0))
DAY_FIRST = ["%d.%m.%Y", "%d/%m/%Y", "%d-%m-%y", "%d.%m.%y"]
CERTAIN = ["%Y-%m-%d", "%Y/%m/%d", "%d %b %Y", "%d-%b-%y", "%B %d, %Y", "%d %B %Y"]
MONTH_FIRST = ["%m/%d/%Y", "%m-%d-%y"]
CLOCKS = ["", " %H:%M", "T%H:%M:%S", " %I:%M %p", ", %H:%M:%S", "T%H:%M:%SZ", " %H:%M:%S+00:00"]


def frame(texts: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"when": texts, "x": np.arange(len(texts)) % 7})


@given(
    st.lists(MOMENTS, min_size=30, max_size=40, unique=True),
    st.sampled_from(DAY_FIRST + CERTAIN + MONTH_FIRST),
    st.sampled_from(CLOCKS),
)
def test_features_are_those_of_pandas_in_each_spelling(times: list[datetime], days: str, clock: str) -> None:
    times = [*times, datetime(2001, 2, 23, 5, 30), datetime(2002, 3, 24, 16, 45)]  # whose days exceed 12
    texts = [time.strftime(days + clock) for time in times]
    preparer = TablePreparer(scale=None).fit(frame(texts))
    expected = pd.DatetimeIndex([datetime.strptime(text, days + clock.replace("+00:00", "%z")) for text in texts])
    parts = [expected.year, expected.month, expected.day_of_week]
    if clock:
        parts.append(expected.hour + expected.minute / 60 + expected.second / 3600)
    found = preparer.transform(frame(texts))[:, : len(parts)]
    np.testing.assert_allclose(found, np.array(parts).T, rtol=1e-6)
    names = ["when_year", "when_month", "when_weekday", "when_hour"][: len(parts)]
    assert preparer.get_feature_names_out().tolist() == [*names, "x"]


@given(st.lists(st.times(), min_size=30, max_size=40))
def test_a_clock_time_is_its_hour_and_never_a_column_for_each_time(times: list[object]) -> None:
    texts = [time.strftime("%H:%M") for time in times]  # type: ignore[attr-defined]
    texts[:2] = ["3:15 PM", "14:45:30"]
    preparer = TablePreparer(scale=None).fit(frame(texts))
    assert preparer.get_feature_names_out().tolist() == ["when_hour", "x"]
    found = preparer.transform(frame(texts))[:, 0]
    np.testing.assert_allclose(found[:2], [15.25, 14.75 + 30 / 3600], rtol=1e-6)
    hours = [time.hour + time.minute / 60 for time in times[2:]]  # type: ignore[attr-defined]
    np.testing.assert_allclose(found[2:], hours, rtol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        *("", "3", "31/31/2020", "2021-02-30", "29.2.2021", "25:00", "13:30 PM", "0:15 PM", "2021-01-01 25:00"),
        *("mai 3, 2020", "2021-01-01 noon", "10-20", "x 2021-01-01", "2021-01-01 12", "12:3", "2021-W03", "1.2.345"),
    ],
)
def test_other_texts_are_no_dates(text: str) -> None:
    assert date_form(text) is None


def test_the_order_of_day_and_month_is_that_of_the_column() -> None:
    forms = {text: date_form(text)[0] for text in ("3/4/2021", "13/4/2021", "4/13/2021", "3.4.2021", "4/4/2021")}  # type: ignore[index]
    either, day, month, dotted, same = forms.values()
    assert order_of({either, day}) is order_of({day, same}) is order_of({dotted}) is True
    assert order_of({either, month}) is order_of({dotted, month}) is False
    assert order_of({either}) is order_of({either, same}) is order_of({day, month}) is None
    texts = [f"{1 + i % 12}/{1 + i % 11}/2021" for i in range(40)]
    with pytest.warns(UserWarning, match="when: dates whose day and month cannot be told apart; write 2021-04-03"):
        assert TablePreparer().fit(frame(texts)).columns_[0].kind == "leave_out"
    texts[7] = "30/1/2021"
    assert TablePreparer().fit(frame(texts)).columns_[0].day_first


@pytest.mark.parametrize("make", [pd.to_datetime, lambda texts: pd.to_datetime(texts).date, list])
def test_dates_of_each_type_have_equal_features(make: object) -> None:
    texts = [f"2021-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(40)]
    table = frame(texts)
    expected = TablePreparer().fit_transform(table)
    found = TablePreparer().fit_transform(table.assign(when=make(texts)))  # type: ignore[operator]
    np.testing.assert_array_equal(found, expected)
    assert expected.shape[1] == 4


def test_a_missing_date_is_imputed_and_another_text_is_refused() -> None:
    texts = [f"2021-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(40)]
    texts[3] = ""
    preparer = TablePreparer(scale=None).fit(frame(texts))
    assert preparer.get_feature_names_out().tolist()[-3:] == [
        f"missingindicator_when_{part}" for part in ("year", "month", "weekday")
    ]
    with pytest.raises(ValueError, match=r"row 0, column 1 \('when'\): 'never' is not a date or a time as in the"):
        preparer.transform(frame(["never"]))
    with pytest.warns(UserWarning, match="when: 'never' in 1 row"):
        found = preparer.transform(frame([*texts[4:24], "never"]))
    assert found[-1, -3:].tolist() == [1.0, 1.0, 1.0]


def test_a_new_date_is_refused_if_no_training_date_shows_whether_its_day_is_first() -> None:
    texts = [f"2021-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(40)]
    preparer = TablePreparer(scale=None).fit(frame(texts))
    with pytest.raises(ValueError, match=r"'03/04/2021' is not .* as in the column, where day and month can"):
        preparer.transform(frame(["03/04/2021"]))
    with pytest.warns(UserWarning, match="when: '03/04/2021' in 1 row"):
        assert np.isfinite(preparer.transform(frame([*texts[:20], "03/04/2021"]))).all()
    expected = preparer.transform(frame(["2021-04-25"]))
    for other in ("25/04/2021", "04/25/2021", "25.4.2021"):
        np.testing.assert_array_equal(preparer.transform(frame([other])), expected)
    dotted = TablePreparer(scale=None).fit(frame([f"{1 + i % 28}.{1 + i % 12}.2021" for i in range(40)]))
    np.testing.assert_array_equal(dotted.transform(frame(["3.4.2021"])), dotted.transform(frame(["2021-04-03"])))


def test_offsets_of_time_zones_count_in_the_order_of_time() -> None:
    summer, winter = (in_utc(f"2021-10-31 02:30:00{zone}", day_first=True) for zone in ("+02:00", "+0100"))
    assert str(summer) == "2021-10-31 00:30:00"
    assert str(winter) == "2021-10-31 01:30:00"
    assert str(in_utc("31.10.2021 02:30 -05:00", day_first=True)) == "2021-10-31 07:30:00"


@pytest.mark.parametrize("offset", ["+14:00", "+01:00", "-05:00", "-12:00", "+00:00"])
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
@pytest.mark.parametrize("clock", ["00:00:00", "23:59:59"])
def test_dates_at_the_limits_of_the_calendar_have_an_order(day: str, clock: str, offset: str) -> None:
    found = in_utc(f"{day}T{clock}{offset}", day_first=True)
    assert found is not None
    assert (found > datetime(2021, 1, 1)) == (day > "2021")


@pytest.mark.parametrize("zone", ["+02", "+0200", "+02:00", " +02"])
def test_offsets_of_databases_are_those_of_time_zones(zone: str) -> None:
    text = f"2021-04-30 10:15:00{zone}"
    assert str(in_utc(text, day_first=True)) == "2021-04-30 08:15:00"
    assert date_form(text) == date_form("2021-04-30 10:15:00")

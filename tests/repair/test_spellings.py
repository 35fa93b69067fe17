"""When a value is the same in another spelling."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.repair.spellings import converts, the_day

DAYS = st.dates(min_value=date(1900, 1, 1), max_value=date(2200, 12, 31))
TEXTS = st.text(max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS


@pytest.mark.parametrize(
    ("value", "into"),
    [
        ("5", 5),
        (5, "5"),
        (" 5 ", 5),
        ("5.50", 5.5),
        ("-3", -3),
        (" office ", "office"),
        ("2026-03-01", "1.3.2026"),
        ("2026/3/1", "2026年3月1日"),
        ("20260301", "1 March 2026"),
        ("Mar 1, 2026", "2026-03-01T00:00:00"),
        ("2026-03-01T00:00:00Z", "2026.03.01"),
        ("31/12/2026", "12/31/2026"),
        ({"a": [1]}, {"a": [1.0]}),
    ],
)
def test_the_same_value_is_spelled_otherwise(value: object, into: object) -> None:
    assert converts(value, into)


@pytest.mark.parametrize(
    ("value", "into"),
    [
        ("5", 6),
        ("5 kg", 5),
        ("five", 5),
        (True, 1),
        ("1", True),
        (1, "true"),
        (None, ""),
        ("office", "Office"),
        ("2026-03-01", "2026-03-02"),
        ("03/04/2026", "2026-04-03"),
        ("03-04-2026", "2026-03-04"),
        ("2026-03-01T09:00:00", "2026-03-01"),
        ("2026-02-30", "30.2.2026"),
        ("1 Marchtober 2026", "2026-03-01"),
        ("Tomorrow", "Today"),
        ("2026-03-01" + " " * 40, "1.3.2026"),
        ([1], 1),
    ],
)
def test_another_value_is_no_spelling(value: object, into: object) -> None:
    assert not converts(value, into)


def test_the_case_of_an_enumerations_word_is_spelling() -> None:
    assert converts("OFFICE", "office", ["office", "home"])
    assert not converts("OFFICE", "office", ["home"])
    assert not converts("offices", "office", ["office"])


def test_what_may_be_two_days_is_none() -> None:
    assert the_day("03/04/2026") is None
    assert the_day("04/04/2026") == date(2026, 4, 4)
    assert the_day("2026-03-01Tnoon") is None


@given(SCALARS)
def test_every_value_is_itself(value: object) -> None:
    assert converts(value, value)


@given(st.integers(min_value=-(10**15), max_value=10**15), st.integers())
def test_a_text_spells_one_number(number: int, other: int) -> None:
    assert converts(str(number), number)
    assert converts(str(number), other) is (number == other)


@given(DAYS, st.integers(min_value=1, max_value=400))
def test_each_way_of_writing_a_day_is_that_day_and_no_other(day: date, later: int) -> None:
    ways = ["%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%d %B %Y", "%b %d, %Y", "%Y年%m月%d日"]
    texts = [day.strftime(way) for way in ways]
    other = (day + timedelta(days=later)).isoformat()
    for text in texts:
        assert the_day(text) == day
        assert converts(text, day.isoformat())
        assert not converts(text, other)

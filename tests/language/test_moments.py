"""Moments as authors write them: dates, durations and times of day."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, reset_tzpath

import pytest

from holdfast.language.moments import (
    NoMoment,
    next_time,
    read_duration,
    read_moment,
    read_zone,
    utc_text,
)


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2026-12-01T09:00:00+08:00", "", "2026-12-01T01:00:00Z"),
        (" 2026-12-01T09:00:00Z ", "", "2026-12-01T09:00:00Z"),
        ("2026-12-01T09:00:00", "Asia/Shanghai", "2026-12-01T01:00:00Z"),
        ("2026-12-01", "+08:00", "2026-11-30T16:00:00Z"),
        ("2026-12-01T09:00:00Z", "Asia/Shanghai", "2026-12-01T09:00:00Z"),
    ],
)
def test_a_date_and_time_is_a_moment(text: str, zone: str, moment: str) -> None:
    assert utc_text(read_moment(text, zone)) == moment


@pytest.mark.parametrize(
    ("text", "zone", "key", "words"),
    [
        ("tomorrow", "", "until", "tomorrow is no moment: write it as 2026-12-01T09:00:00+08:00"),
        ("0001-01-01T00:00:00Z", "", "until", "is no moment"),
        ("9999-12-31T23:59:59-12:00", "", "until", "is no moment"),
        (
            "2026-12-01T09:00:00",
            "",
            "until",
            "may be any of 24 hours: add its offset, or a timezone",
        ),
        ("2026-12-01", "Mars/Base", "timezone", "there is no time zone Mars/Base"),
        ("2026-12-01", "../etc", "timezone", "there is no time zone ../etc"),
    ],
)
def test_what_is_no_moment_says_what_to_write(text: str, zone: str, key: str, words: str) -> None:
    with pytest.raises(NoMoment) as refused:
        read_moment(text, zone)
    assert refused.value.key == key
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0.5", 0.5), ("90m", 5400), ("2h", 7200), ("1d 12h", 129600), ("1 w", 604800)],
)
def test_a_duration_is_seconds_or_has_units(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["soon", "-1", "2 hours", "h", "1e3", "5000d", "999999999"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(NoMoment) as refused:
        read_duration(text)
    assert refused.value.key == "after"


MONDAY = at("2026-11-16T08:00:00+00:00")


@pytest.mark.parametrize(
    ("clock", "zone", "weekdays", "moment"),
    [
        ("09:00", "", (), "2026-11-16T09:00:00Z"),
        ("08:00", "", (), "2026-11-17T08:00:00Z"),
        ("07:59:30", "", (), "2026-11-17T07:59:30Z"),
        ("09:00", "Asia/Shanghai", (), "2026-11-17T01:00:00Z"),
        ("17:00", "+08:00", (), "2026-11-16T09:00:00Z"),
        ("09:00", "", ("Wed", "fri"), "2026-11-18T09:00:00Z"),
        ("08:00", "", ("mon",), "2026-11-23T08:00:00Z"),
    ],
)
def test_a_time_of_day_is_the_next_one(
    clock: str, zone: str, weekdays: tuple[str, ...], moment: str
) -> None:
    assert utc_text(next_time(MONDAY, clock, zone, weekdays)) == moment


def test_a_time_that_clocks_skip_comes_as_much_later() -> None:
    before = at("2026-03-29T00:30:00+01:00")
    assert utc_text(next_time(before, "02:30", "Europe/Berlin")) == "2026-03-29T01:30:00Z"


@pytest.mark.parametrize(
    ("clock", "weekdays", "key"),
    [
        ("9:00", (), "clock"),
        ("24:00", (), "clock"),
        ("noon", (), "clock"),
        ("09:00", ("someday",), "weekdays"),
    ],
)
def test_what_no_clock_shows_is_refused(clock: str, weekdays: tuple[str, ...], key: str) -> None:
    with pytest.raises(NoMoment) as refused:
        next_time(MONDAY, clock, "", weekdays)
    assert refused.value.key == key


def test_an_offset_is_a_zone() -> None:
    assert datetime(2026, 1, 1, tzinfo=read_zone("-05:30")).astimezone(UTC).hour == 5


def test_time_zones_are_known_where_the_system_has_none() -> None:
    ZoneInfo.clear_cache()
    reset_tzpath(to=[])
    try:
        assert read_moment("2026-12-01T09:00:00", "Asia/Shanghai") == at(
            "2026-12-01T09:00:00+08:00"
        )
    finally:
        reset_tzpath()

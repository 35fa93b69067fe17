"""Moments as authors write them: a date and time, a time from now, or a time of day.

A date and time has its offset (`2026-12-01T09:00:00+08:00`) or stands in a `timezone`, where a date
alone is its midnight. A duration is seconds, or numbers with units (`2h`, `1d 12h`). A time of day
(`09:00`) is the next one in the time zone, on one of the weekdays if some are named; where clocks
are put forward past it, it is as much later.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from holdfast.i18n.message import msg

LONGEST_WAIT: Final = 3_660 * 86_400.0
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_YEARS: Final = (1970, 9000)
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?([smhdw]) *", re.ASCII)
_PARTS: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_SECONDS: Final = re.compile(r"\d{1,9}(?:\.\d{1,3})?", re.ASCII)
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
_OFFSET: Final = re.compile(r"[+-](?:0\d|1[0-4]):[0-5]\d", re.ASCII)


class NoMoment(ValueError):
    """What was written stands for no moment; `key` says where it was written."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key
        self.message = message


def read_zone(name: str) -> tzinfo:
    """A time zone by its name (`Asia/Shanghai`) or its offset (`+08:00`)."""
    if _OFFSET.fullmatch(name):
        zone = datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo
        assert zone is not None
        return zone
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        message = msg("there is no time zone {name}: write Asia/Shanghai or +08:00", name=name)
        raise NoMoment("timezone", message) from None


def read_moment(text: str, zone: str = "") -> float:
    """A date and time in seconds since the epoch."""
    try:
        moment = datetime.fromisoformat(text.strip())
        if not _YEARS[0] <= moment.year <= _YEARS[1]:
            raise ValueError(text)
    except ValueError:
        example = "2026-12-01T09:00:00+08:00"
        message = msg("{text} is no moment: write it as {example}", text=text, example=example)
        raise NoMoment("until", message) from None
    if moment.tzinfo is None:
        if not zone:
            message = msg("{text} may be any of 24 hours: add its offset, or a timezone", text=text)
            raise NoMoment("until", message)
        moment = moment.replace(tzinfo=read_zone(zone))
    return moment.timestamp()


def read_duration(text: str) -> float:
    """Seconds."""
    plain = text.strip()
    if _SECONDS.fullmatch(plain):
        seconds = float(plain)
    elif _PARTS.fullmatch(plain):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(plain))
    else:
        message = msg("{text} is no time to wait: write seconds, or 90m, 2h, 1d 12h", text=text)
        raise NoMoment("after", message)
    if seconds > LONGEST_WAIT:
        raise NoMoment("after", msg("{text} is more than ten years", text=text))
    return seconds


def next_time(now: float, text: str, zone: str = "", weekdays: Sequence[str] = ()) -> float:
    """The first moment after `now` at which the clock shows this time, on one of those days."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        raise NoMoment("clock", msg("{text} is no time of day: write it as 09:00", text=text))
    hour, minute, second = (int(part or 0) for part in found.groups())
    at = time(hour, minute, second)
    days = [_weekday(one) for one in weekdays] or range(7)
    here = read_zone(zone) if zone else UTC
    today = datetime.fromtimestamp(now, here).date()
    ahead = (datetime.combine(today + timedelta(days=n), at, here) for n in range(9))
    due = (one.timestamp() for one in ahead if one.weekday() in days)
    return next(moment for moment in due if moment > now)


def _weekday(name: str) -> int:
    if name.lower() in WEEKDAYS:
        return WEEKDAYS.index(name.lower())
    known = ", ".join(WEEKDAYS)
    raise NoMoment(
        "weekdays", msg("there is no weekday {name}: write {known}", name=name, known=known)
    )


def utc_text(moment: float) -> str:
    """As tools and people read it, to the second."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

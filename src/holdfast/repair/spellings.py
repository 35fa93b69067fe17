"""Conversions that leave a value what it is: another spelling of it, and no other value.

* a number and the text that spells it: 5 and `5`;
* dates of the same day: 2026-03-01, 1.3.2026, 2026年3月1日 and midnight of that day. A text that
  may mean two days, such as 03/04/2026, is none of them;
* a text and the same text without the blanks around it;
* a text and the word of an enumeration that differs from it by case alone.

A time of day that is lost, a unit that changes, an amount that is rounded are other values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Final

from holdfast.language.conditions import equal
from holdfast.model.values import Json

_NUMBER: Final = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?", re.ASCII)
_YEAR_FIRST: Final = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})", re.ASCII)
_COMPACT: Final = re.compile(r"(\d{4})(\d{2})(\d{2})", re.ASCII)
_CHINESE: Final = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})日", re.ASCII)
_DOTTED: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", re.ASCII)
_EITHER: Final = re.compile(r"(\d{1,2})([-/])(\d{1,2})\2(\d{4})", re.ASCII)
_DAY_NAMED: Final = re.compile(r"(\d{1,2}) ([A-Za-z]{3,9}),? (\d{4})", re.ASCII)
_MONTH_NAMED: Final = re.compile(r"([A-Za-z]{3,9}) (\d{1,2}),? (\d{4})", re.ASCII)
_MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MIDNIGHT: Final = time()
_LONGEST_DATE: Final = 40


def converts(value: Json, into: Json, words: Collection[Json] = ()) -> bool:
    """Whether `into` is the same value, perhaps spelled otherwise; `words` are the enumeration
    that it is to belong to."""
    if equal(value, into) or _same_number(value, into) or _same_number(into, value):
        return True
    if not isinstance(value, str) or not isinstance(into, str):
        return False
    if value.strip() == into.strip() or _same_day(value, into):
        return True
    return into in words and value.casefold() == into.casefold()


def the_day(text: str) -> date | None:
    """The one day that the text can mean, if it is a date."""
    if len(text) > _LONGEST_DATE:
        return None
    days = set(_days(text.strip()))
    return days.pop() if len(days) == 1 else None


def _same_number(text: Json, number: Json) -> bool:
    if not isinstance(text, str) or isinstance(number, bool) or not isinstance(number, int | float):
        return False
    plain = text.strip()
    return _NUMBER.fullmatch(plain) is not None and Decimal(plain) == Decimal(repr(number))


def _same_day(left: str, right: str) -> bool:
    day = the_day(left)
    return day is not None and day == the_day(right)


def _days(text: str) -> Iterator[date]:
    for year, month, day in _readings(text):
        try:
            yield date(int(year), int(month), int(day))
        except ValueError:
            continue
    yield from _at_midnight(text)


def _readings(text: str) -> Iterator[tuple[str | int, str | int, str | int]]:
    """Year, month and day, in each way in which the text can be read."""
    if found := _YEAR_FIRST.fullmatch(text):
        yield found[1], found[3], found[4]
    if found := _COMPACT.fullmatch(text) or _CHINESE.fullmatch(text):
        yield found[1], found[2], found[3]
    if found := _DOTTED.fullmatch(text):
        yield found[3], found[2], found[1]
    if found := _EITHER.fullmatch(text):
        yield found[4], found[3], found[1]
        yield found[4], found[1], found[3]
    if found := _DAY_NAMED.fullmatch(text):
        yield found[3], _month(found[2]), found[1]
    if found := _MONTH_NAMED.fullmatch(text):
        yield found[3], _month(found[1]), found[2]


def _month(name: str) -> int:
    """Its number, 0 for a word that is no month."""
    known = (n for n, each in enumerate(_MONTHS, 1) if name.lower() in (each, each[:3]))
    return next(known, 0)


def _at_midnight(text: str) -> Iterator[date]:
    if "T" not in text:
        return
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return
    if moment.time() == _MIDNIGHT:
        yield moment.date()

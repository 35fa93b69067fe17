"""How long a service asked to be left alone: its Retry-After, wherever a tool's failure has it.

That may be the failure itself (`TransientError(…, retry_after=30)`), the answer that an HTTP
library's error carries, a result's `retry_after`, or whatever the failure was raised from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from holdfast.work.failures import attribute_of, read

_ENDLESS: Final = 1e12


def asked_seconds(value: object, sent: object = None) -> float | None:
    """Seconds, from a number or a header's text; a date counts from when the answer was `sent`."""
    match value:
        case bool() | None:
            return None
        case timedelta():
            return _sound(value.total_seconds())
        case int() | float():
            return _sound(value)
        case str():
            return _of_text(value.strip(), sent)
        case _:
            return None


def asked_by(error: BaseException) -> float | None:
    """What the first of the error and its causes that says anything asks for."""
    asked = (one for each in _chain(error) for one in _asked(each))
    return read(lambda: next((one for one in asked if one is not None), None), None)


def asked_in(headers: Any) -> float | None:
    """What an answer's headers ask for; their names have no case in any HTTP library."""
    if not isinstance(headers, Mapping) and not hasattr(headers, "get"):
        return None
    return asked_seconds(headers.get("Retry-After"), headers.get("Date"))


def _asked(error: BaseException) -> Iterator[float | None]:
    yield asked_seconds(attribute_of(error, "retry_after"))
    yield asked_in(attribute_of(attribute_of(error, "response"), "headers"))
    yield asked_in(attribute_of(error, "headers"))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _of_text(text: str, sent: object) -> float | None:
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return _sound(float(text))
    if (due := _date(text)) is None:
        return _longest(text)
    return max(0.0, (due - (_date(sent) or datetime.now(UTC))).total_seconds())


def _longest(text: str) -> float | None:
    """Of several headers, which HTTP libraries join with commas."""
    each = [one.strip() for one in text.split(",")]
    whole = all(one.isascii() and one.isdigit() for one in each)
    return _sound(max(map(float, each))) if whole else None


def _date(text: object) -> datetime | None:
    try:
        date = parsedate_to_datetime(str(text))
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _sound(seconds: float) -> float | None:
    seconds = min(seconds, _ENDLESS)
    return float(seconds) if seconds >= 0 else None

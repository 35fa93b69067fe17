"""What an attempt raised, as its outcome: kind and message, traceback, details, and the wait that a
service asked for.

`work/failures.py` says which kind of failure an exception is, `work/failure_details.py` its status,
code and argument. The wait is Retry-After, wherever a failure has it: the failure itself
(`TransientError(…, retry_after=30)`), the answer that an HTTP library's error carries, a result's
`retry_after`, a member of a group, or a cause.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from holdfast.i18n.message import msg
from holdfast.language.strict import NUL
from holdfast.model import commands as c
from holdfast.model.retry import Failure, FailureKind
from holdfast.work.failure_details import details_of
from holdfast.work.failures import attribute_of, classify, read, words_of
from holdfast.work.tracebacks import chain, traceback_of

LONGEST_MESSAGE: Final = 2_000
_ENDLESS: Final = 1e12


def ends_from_without(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Whether the work was cancelled by another, interrupted at the terminal, or thrown away, and
    has not failed by itself; `task` did the work."""
    match error:
        case asyncio.CancelledError():
            return task is not None and bool(task.cancelling())
        case KeyboardInterrupt():
            return threading.current_thread() is threading.main_thread()
        case GeneratorExit():
            return _running_task() is not task
    return False


def _running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def failed(error: BaseException) -> c.Outcome:
    if isinstance(error, asyncio.CancelledError):
        return c.Lost(msg("the work was cancelled from within"))
    kind, message = classify(error), kept_text(words_of(error))
    asked, traceback = asked_by(error), sound(traceback_of(error))
    if kind is FailureKind.UNKNOWN:
        return c.Lost(message, asked, traceback)
    told = details_of(error, kind)
    failure = Failure(kind, message, asked, None, told.status, told.code, told.field)
    return c.Failed(failure, traceback=traceback)


def kept_text(said: object) -> str:
    """Text of a tool as the journal can keep it: valid Unicode, up to `LONGEST_MESSAGE`."""
    given = str(said)
    text = sound(given)
    if len(text) > LONGEST_MESSAGE:
        return f"{text[:LONGEST_MESSAGE]}…"
    return given if text == given else text


def sound(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode().replace(NUL, r"\x00")


def asked_seconds(value: object, sent: object = None) -> float | None:
    """Seconds, from a number or a header's text; a date counts from when the answer was `sent`."""
    match value:
        case bool() | None:
            return None
        case timedelta():
            return _capped(value.total_seconds())
        case int() | float():
            return _capped(value)
        case str():
            return _of_text(value.strip(), sent)
        case _:
            return None


def asked_by(error: BaseException) -> float | None:
    """What the first of the error and its causes that says anything asks for."""
    return read(lambda: _first(error, set()), None)


def asked_in(headers: Any) -> float | None:
    """What an answer's headers ask for."""
    if not isinstance(headers, Mapping) and not hasattr(headers, "get"):
        return None
    return asked_seconds(_header(headers, "retry-after"), _header(headers, "date"))


def _header(headers: Any, name: str) -> object:
    """Names have no case in HTTP libraries, but some hand out a plain dict."""
    found = headers.get(name)
    if found is None and isinstance(headers, Mapping):
        return next((value for key, value in headers.items() if str(key).lower() == name), None)
    return found


def _first(error: BaseException, seen: set[int]) -> float | None:
    asked = (one for each in chain(error, seen) for one in _asked(each, seen))
    return next((one for one in asked if one is not None), None)


def _asked(error: BaseException, seen: set[int]) -> Iterator[float | None]:
    """Of a group, the longest that a member asks for."""
    if isinstance(error, BaseExceptionGroup):
        members = [_first(one, seen) for one in error.exceptions]
        yield max((one for one in members if one is not None), default=None)
    yield asked_seconds(attribute_of(error, "retry_after"))
    yield from map(asked_in, _headers_of(error))


def _headers_of(error: BaseException) -> Iterator[object]:
    """Where HTTP libraries keep them, botocore among its answer's other data."""
    response = attribute_of(error, "response")
    yield from (attribute_of(one, "headers") for one in (response, error))
    yield attribute_of(error, "resp")
    told = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    yield told.get("HTTPHeaders") if isinstance(told, Mapping) else None


def _of_text(text: str, sent: object) -> float | None:
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return _capped(float(text))
    if (due := _date(text)) is None:
        return _longest(text)
    return max(0.0, (due - (_date(sent) or datetime.now(UTC))).total_seconds())


def _longest(text: str) -> float | None:
    """Of several headers, which HTTP libraries join with commas."""
    each = [one.strip() for one in text.split(",")]
    whole = all(one.isascii() and one.isdigit() for one in each)
    return _capped(max(map(float, each))) if whole else None


def _date(text: object) -> datetime | None:
    try:
        date = parsedate_to_datetime(str(text))
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _capped(seconds: float) -> float | None:
    seconds = min(seconds, _ENDLESS)
    return float(seconds) if seconds >= 0 else None

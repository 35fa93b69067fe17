"""How long a service asked to be left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.error import HTTPError

import httpx
import pytest

from holdfast.errors import PermanentError, TransientError
from holdfast.work.failed_attempts import asked_by, asked_in, asked_seconds

SENT = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (30, 30),
        (0, 0),
        (1.5, 1.5),
        ("30", 30),
        (" 1.5 ", 1.5),
        (timedelta(minutes=1), 60),
        (10**400, 1e12),
        ("9" * 400, 1e12),
        (float("inf"), 1e12),
        ("Wed, 21 Oct 2015 07:29:30 GMT", 90),
        ("Wed, 21 Oct 2015 07:29:30 -0000", 90),
        ("Wed, 21 Oct 2015 07:00:00 GMT", 0),
        ("5, 100", 100),
        ("100,5", 100),
        ("5, soon", None),
        (None, None),
        (True, None),
        (-1, None),
        (float("nan"), None),
        ("-1", None),
        ("", None),
        ("soon", None),
        ("٣", None),
        ([30], None),
    ],
)
def test_a_wish_is_seconds_or_a_date(value: object, seconds: float | None) -> None:
    assert asked_seconds(value, SENT) == seconds


def test_a_date_counts_from_now_where_the_answer_has_none() -> None:
    due = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    asked = asked_in({"Retry-After": due})
    assert asked is not None
    assert 3_500 < asked <= 3_600


def test_headers_may_be_missing() -> None:
    assert asked_in(None) is None
    assert asked_in({}) is None


def busy(seconds: str) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://127.0.0.1/")
    answer = httpx.Response(503, headers={"retry-after": seconds})
    return httpx.HTTPStatusError("busy", request=request, response=answer)


def test_an_error_has_it_in_its_answer_or_in_its_headers() -> None:
    assert asked_by(busy("7")) == 7
    headers = httpx.Headers({"retry-after": "8"})
    error = HTTPError("http://127.0.0.1/", 429, "busy", headers, None)  # type: ignore[arg-type]
    assert asked_by(error) == 8
    assert asked_by(PermanentError("no")) is None


def test_an_error_may_have_it_from_its_cause() -> None:
    error = TransientError("try later")
    error.__cause__ = busy("7")
    assert asked_by(error) == 7


def test_what_an_error_says_itself_goes_before_its_cause() -> None:
    error = TransientError("try later", retry_after=3)
    error.__cause__ = busy("7")
    error.__cause__.__cause__ = error
    assert asked_by(error) == 3


def test_a_chain_without_end_is_walked_once() -> None:
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert asked_by(first) is None


def test_of_a_group_the_longest_counts_that_a_member_asks_for() -> None:
    asked = [TransientError("a", retry_after=3), busy("7"), ValueError("b")]
    group = ExceptionGroup("several", [ExceptionGroup("inner", asked)])
    assert asked_by(group) == 7
    wrapped = RuntimeError("all failed")
    wrapped.__cause__ = group
    asked[2].__cause__ = wrapped
    assert asked_by(wrapped) == 7
    assert asked_by(ExceptionGroup("none", [ValueError("b")])) is None


@pytest.mark.parametrize(
    "kept",
    [
        {"headers": {"retry-after": "8"}},
        {"headers": {"RETRY-AFTER": "Wed, 21 Oct 2015 07:28:08 GMT", "date": SENT}},
        {"resp": {"status": "503", "retry-after": "8"}},
        {"response": {"ResponseMetadata": {"HTTPHeaders": {"retry-after": "8"}}}},
    ],
)
def test_headers_may_be_a_plain_dict(kept: dict[str, object]) -> None:
    error = RuntimeError("busy")
    vars(error).update(kept)
    assert asked_by(error) == 8


def test_what_looks_like_headers_and_is_none_asks_for_nothing() -> None:
    error = RuntimeError("busy")
    vars(error).update(response={"ResponseMetadata": None}, resp=7, headers={})
    assert asked_by(error) is None

"""What an HTTP tool tells of an answer that is an error."""

from __future__ import annotations

from typing import Any

import pytest
from lossy_service import answering, lossy_service

from holdfast.core.repair.causes import judged
from holdfast.errors import ToolError
from holdfast.model import commands as c
from holdfast.model.effects import Work
from holdfast.model.retry import Cause, Failure
from holdfast.work.driver import call_with_secrets
from holdfast.work.failed_attempts import failed
from holdfast.work.http_tools import HttpClients, load_http_tools
from holdfast.work.tools import ToolRegistry

CANARY = "Kanari7f3c9Q"
WORK = Work("inst_000001", "L001", 1, 1, 1, "k")


def of(error: BaseException) -> Failure:
    """The failure that comes of an exception, judged."""
    outcome = failed(error)
    assert isinstance(outcome, c.Failed), outcome
    return judged(outcome.failure, "pay")


async def refused(said: object, status: int = 422, **declared: Any) -> Failure:
    """What comes of an HTTP tool that is answered so."""
    raw = said if isinstance(said, bytes) else answering(status, said)
    clients = HttpClients()
    parameters = {"type": "object", "properties": {"employee": {}, "model": {}}}
    with lossy_service(raw) as service:
        endpoint = f"http://127.0.0.1:{service.port}/"
        entry = {"name": "pay", "endpoint": endpoint, "parameters": parameters, **declared}
        [tool] = load_http_tools([entry], {"TOKEN": CANARY}, clients)
        args = {"employee": "E1", "model": "x"}
        with pytest.raises(ToolError) as caught:
            await call_with_secrets(ToolRegistry(), tool, args, WORK, "k")
        await clients.aclose()
    return of(caught.value)


async def test_an_http_tool_tells_status_code_and_argument() -> None:
    failure = await refused({"error": "model is missing", "code": "missing", "field": "model"})
    assert failure.message == "pay: 127.0.0.1 answered 422: model is missing"
    assert (failure.status, failure.code, failure.field) == (422, "missing", "model")
    assert failure.cause is Cause.ARGUMENT
    by_words = await refused({"error": "pay: model is not an argument of this tool"}, 400)
    assert (by_words.status, by_words.field) == (400, "model")


@pytest.mark.parametrize(
    ("declared", "said", "field"),
    [
        ({"envelope": "tool"}, "args.model", "model"),
        ({"envelope": "tool"}, "tool", "tool"),
        ({"envelope": "tool"}, "args", "args"),
        ({"body": {"order": {"laptop": "{model}"}}}, "order.laptop", "model"),
        ({"body": {"order": {"laptop": "{model}"}}}, "order.laptop.size", "model.size"),
        ({"body": {"order": {"laptop": "{model}"}}}, "order.phone", "order.phone"),
        ({"body": {"fixed": 7}}, "fixed", "fixed"),
        ({}, "model", "model"),
        ({}, "", ""),
    ],
)
async def test_the_argument_goes_by_the_tools_own_name(
    declared: dict[str, Any], said: str, field: str
) -> None:
    assert (await refused({"error": "no", "field": said}, **declared)).field == field


async def test_a_page_without_end_still_has_its_status() -> None:
    raw = b"HTTP/1.1 404 X\r\nConnection: close\r\n\r\n" + b"x" * 1_200_000
    failure = await refused(raw)
    assert (failure.status, failure.code, failure.cause) == (404, "", Cause.PRECONDITION)


async def test_a_page_where_json_was_due_is_a_wrong_shape() -> None:
    for content in (b"<html>", b'{"n": 123456789012345678901234567890}', b"x" * 1_200_000):
        raw = b"HTTP/1.1 200 X\r\nConnection: close\r\n\r\n" + content
        assert (await refused(raw)).cause is Cause.RESULT_SHAPE


async def test_failures_of_one_service_are_alike_or_not() -> None:
    office = "HR has no employee {!r}: create the profile first"
    first, second = [await refused({"error": office.format(one)}, 409) for one in ("E1", "E2")]
    other = await refused({"error": "the user name 'will' is taken: choose another"}, 409)
    assert first.message != second.message
    assert first.fingerprint == second.fingerprint != other.fingerprint
    assert (first.cause, other.cause) == (Cause.PRECONDITION, Cause.CONFLICT)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<h1>busy</h1>", "<h1>busy</h1>"),
        (b'["busy"]', '["busy"]'),
        (b"", "no reason"),
        (b"[" * 50_000, "[" * 300 + "…"),
    ],
)
async def test_what_is_no_object_says_no_more_than_its_words(content: bytes, reason: str) -> None:
    failure = await refused(b"HTTP/1.1 503 X\r\nConnection: close\r\n\r\n" + content)
    assert failure.message == f"pay: 127.0.0.1 answered 503: {reason}"
    assert (failure.status, failure.code, failure.field) == (503, "", "")


async def test_what_a_service_echoes_of_a_secret_is_no_code_and_no_argument() -> None:
    said = {"error": "no", "code": CANARY, "errors": {CANARY: ["no"]}}
    failure = await refused(said, headers={"Authorization": "Bearer ${TOKEN}"})
    assert (failure.status, failure.code, failure.field) == (422, "", "")
    assert CANARY not in repr(failure)

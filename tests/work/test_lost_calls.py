"""A call lost after sending is made once, wherever it is made, and a person is asked about it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import urllib.error
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from lossy_service import (
    CLIENTS,
    CLOSE,
    HURRIED,
    PATIENT,
    RESET,
    Manner,
    call,
    lossy_service,
    refusing_port,
    status,
)
from pydantic import SecretStr

from holdfast import Client, Holdfast
from holdfast.conversations.engine import ConversationEngine, EngineEventType
from holdfast.journal.codec import decode
from holdfast.model.events import AttemptFailed
from holdfast.model.retry import RetryPolicy
from holdfast.testing.model_script import Entry, Seen
from holdfast.testing.model_script import call as wants
from holdfast.testing.scripted_model import ScriptedModel

PLAN = """
plan_id: {name}
main_task_id: "001"
tasks: [{{task_id: "001"}}]
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    retry: {{attempts: 3, initial: 0.001, maximum: 0.001}}
    {action}
    success_output: {{task_id: "001", status: Done}}
"""
BY_TOOL = "listener_type: tool\n    tool: pay\n    args: {amount: 7}"
BY_SNIPPET = (
    "listener_type: code\n    functions: [pay]\n"
    "    code_snippet: 'result = {\"paid\": pay(amount=7)}'"
)
QUICK = RetryPolicy(attempts=3, initial=0.001, maximum=0.001)
PATIENCE = 30.0


def clerk(seen: Seen) -> Entry:
    return "Seen." if seen.results else wants("pay", amount=7)


class Llm:
    async def decompose_goal(self, text: str) -> Any:
        return [{"id": "t1", "type": "pay", "args": {"amount": 7}}]


@contextlib.asynccontextmanager
async def office(pay: Callable[..., Any], **options: Any) -> AsyncIterator[Holdfast]:
    app = Holdfast.in_memory(model=ScriptedModel(clerk))
    app.tool(pay, name="pay", **options)
    app.agent("clerk", tools=["pay"], retry=QUICK)
    app.load_plan_text(PLAN.format(name="by_tool", action=BY_TOOL))
    app.load_plan_text(PLAN.format(name="by_snippet", action=BY_SNIPPET))
    async with app:
        yield app


async def in_a_plan(app: Holdfast) -> None:
    await (await app.plans.start_plan_by_prompt("", "by_tool")).wait_until_settled(PATIENCE)


async def in_a_snippet(app: Holdfast) -> None:
    await (await app.plans.start_plan_by_prompt("", "by_snippet")).wait_until_settled(PATIENCE)


async def in_a_chat(app: Holdfast) -> None:
    session = await app.sessions.open("clerk")
    await app.sessions.say(session.id, "please")
    await session.wait_until_settled(PATIENCE)


async def in_a_conversation(app: Holdfast) -> None:
    """Consumed until it is done, or has asked."""
    events = ConversationEngine(llm=Llm(), app=app, retry=QUICK).run("pay 7")
    async with contextlib.aclosing(events), asyncio.timeout(PATIENCE):
        async for event in events:
            if event.event_type is EngineEventType.INTERACTION:
                return


PLACES = {
    "plan": in_a_plan,
    "snippet": in_a_snippet,
    "chat": in_a_chat,
    "conversation": in_a_conversation,
}


@pytest.mark.parametrize(
    ("client", "manner"),
    [
        ("httpx2", None),
        ("requests", RESET),
        ("requests", None),
        ("urllib3", CLOSE),
        ("aiohttp", RESET),
        ("openai", status(502)),
    ],
    ids=["httpx2 stalls", "requests reset", "requests stalls", "urllib3", "aiohttp", "openai 502"],
)
@pytest.mark.parametrize("place", PLACES)
async def test_it_is_not_repeated(place: str, client: str, manner: Manner) -> None:
    async def pay(amount: int) -> None:
        await call(CLIENTS[client], service.port, HURRIED if manner is None else PATIENT)

    with lossy_service(manner) as service:
        async with office(pay) as app:
            await PLACES[place](app)
            asked = [row.title for row in await app.inbox()]
    assert (service.calls, asked) == (1, ["Did pay happen?"])


@pytest.mark.parametrize("place", PLACES)
async def test_nor_is_one_whose_exception_cannot_be_read(place: str) -> None:
    tried: list[int] = []

    async def pay(amount: int) -> None:
        tried.append(amount)
        raise urllib.error.URLError(("timed out", "after 30 s"))  # type: ignore[arg-type]

    async with office(pay) as app:
        await PLACES[place](app)
        asked = [row.title for row in await app.inbox()]
    assert (tried, asked) == ([7], ["Did pay happen?"])


async def test_nor_is_what_another_holdfast_may_have_done() -> None:
    async def pay(amount: int) -> None:
        async with Client(f"http://127.0.0.1:{service.port}", "hf_x", patience=0.0) as client:
            await client.instances.start("pay", plan_id="pay")

    with lossy_service(RESET) as service:
        async with office(pay) as app:
            await in_a_plan(app)
            asked = [row.title for row in await app.inbox()]
    assert (service.calls, asked) == (1, ["Did pay happen?"])


async def test_a_secret_is_hidden_although_the_exception_cannot_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def pay(amount: int, pin: SecretStr) -> None:
        told = ("denied for", pin.get_secret_value())
        raise urllib.error.URLError(told) from ValueError(told)  # type: ignore[arg-type]

    async with office(pay) as app:
        instance = await app.plans.start_plan_by_prompt("", "by_tool")
        await instance.wait_until_settled(PATIENCE)
        [row] = await app.inbox()
        await app.answer(row.question_id, data={"pin": "open-sesame-77"})
        await instance.wait_until_settled(PATIENCE)
        assert [one.title for one in await app.inbox()] == ["Did pay happen?"]
    assert "open-sesame-77" not in caplog.text


@pytest.mark.parametrize("place", PLACES)
async def test_not_even_where_a_group_holds_it(place: str) -> None:
    async def pay(amount: int) -> None:
        async with asyncio.TaskGroup() as both:
            both.create_task(call(CLIENTS["aiohttp"], service.port))
            both.create_task(asyncio.sleep(0))

    with lossy_service(RESET) as service:
        async with office(pay) as app:
            await PLACES[place](app)
            asked = [row.title for row in await app.inbox()]
    assert (service.calls, asked) == (1, ["Did pay happen?"])


@pytest.mark.parametrize("client", ["httpx2", "requests", "aiohttp"])
@pytest.mark.parametrize("place", PLACES)
async def test_what_was_never_sent_is_tried_again(place: str, client: str) -> None:
    tried: list[int] = []

    async def pay(amount: int) -> dict[str, int]:
        tried.append(amount)
        if len(tried) == 1:
            await call(CLIENTS[client], port)
        return {"paid": amount}

    with refusing_port() as port:
        async with office(pay) as app:
            await PLACES[place](app)
            assert (await app.inbox(), tried) == ([], [7, 7])


@pytest.mark.parametrize("promise", ["idempotent", "read_only"])
@pytest.mark.parametrize("place", PLACES)
async def test_what_may_be_repeated_is(place: str, promise: str) -> None:
    tried: list[int] = []

    async def pay(amount: int) -> dict[str, int]:
        tried.append(amount)
        if len(tried) == 1:
            await call(CLIENTS["requests"], service.port)
        return {"paid": amount}

    with lossy_service(RESET) as service:
        async with office(pay, **{promise: True}) as app:
            await PLACES[place](app)
            assert (await app.inbox(), tried, service.calls) == ([], [7, 7], 1)


class Odd(BaseException):
    """Neither an Exception nor the interpreter's own."""


ENDINGS: dict[str, Callable[[], BaseException]] = {
    "GeneratorExit": GeneratorExit,
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "CancelledError": asyncio.CancelledError,
    "Odd": Odd,
}


def raising(error: Callable[[], BaseException], tried: list[int]) -> dict[str, Callable[..., Any]]:
    def in_its_thread(amount: int) -> None:
        tried.append(amount)
        raise error()

    async def on_the_loop(amount: int) -> None:
        in_its_thread(amount)

    async def through_a_future(amount: int) -> None:
        await asyncio.to_thread(in_its_thread, amount)

    return {"thread": in_its_thread, "loop": on_the_loop, "future": through_a_future}


@pytest.mark.parametrize("place", ["plan", "chat", "conversation"])
@pytest.mark.parametrize(
    ("ending", "manner"),
    [
        (ending, manner)
        for ending in ENDINGS
        for manner in ("thread", "loop", "future")
        # On the main thread it is a person at the terminal, who wants the process to end.
        if ending != "KeyboardInterrupt" or manner == "thread"
    ],
)
async def test_no_exception_ends_more_than_its_call(place: str, ending: str, manner: str) -> None:
    tried: list[int] = []
    async with office(raising(ENDINGS[ending], tried)[manner]) as app, asyncio.timeout(PATIENCE):
        await PLACES[place](app)
        asked = [row.title for row in await app.inbox()]
    assert tried == [7]
    assert ("Did pay happen?" in asked) is (ending == "CancelledError")


@pytest.mark.parametrize("manner", ["thread", "loop"])
async def test_a_tool_that_exits_because_its_call_was_lost_leaves_doubt(manner: str) -> None:
    tried: list[int] = []

    def pay(amount: int) -> None:
        tried.append(amount)
        try:
            raise ConnectionResetError("gone")
        except OSError:
            sys.exit(1)

    async def on_the_loop(amount: int) -> None:
        pay(amount)

    async with office(pay if manner == "thread" else on_the_loop) as app:
        await in_a_chat(app)
        asked = [row.title for row in await app.inbox()]
    assert (tried, asked) == ([7], ["Did pay happen?"])


@pytest.mark.parametrize(
    ("code", "idempotent", "calls", "asked"),
    [
        (408, False, 1, ["Did pay happen?"]),
        (502, False, 1, ["Did pay happen?"]),
        (504, False, 1, ["Did pay happen?"]),
        (504, True, 3, []),
        (503, False, 3, []),
    ],
)
async def test_a_gateway_that_speaks_for_an_http_tool_leaves_doubt(
    tmp_path: Path, code: int, idempotent: bool, calls: int, asked: list[str]
) -> None:
    with lossy_service(status(code)) as service:
        async with served_over_http(tmp_path, service.port, idempotent) as app:
            await in_a_chat(app)
            assert [row.title for row in await app.inbox()] == asked
    assert service.calls == calls


@contextlib.asynccontextmanager
async def served_over_http(home: Path, port: int, idempotent: bool) -> AsyncIterator[Holdfast]:
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    declared = {"name": "pay", "endpoint": f"http://127.0.0.1:{port}/pay", "parameters": schema}
    file = home / "tools.yaml"
    file.write_text(json.dumps({"tools": [{**declared, "idempotent": idempotent}]}))
    app = Holdfast.in_memory(model=ScriptedModel(clerk))
    app.load_tools(file)
    app.agent("clerk", tools=["pay"], retry=QUICK)
    async with app:
        yield app


async def test_a_gateway_that_asks_for_time_is_given_it_where_the_call_may_be_repeated(
    tmp_path: Path,
) -> None:
    asks = status(504).replace(b"Content-Length", b"Retry-After: 30\r\nContent-Length")
    with lossy_service(asks) as service:
        async with served_over_http(tmp_path, service.port, idempotent=True) as app:
            session = await app.sessions.open("clerk")
            await app.sessions.say(session.id, "please")
            await app.engine.wait_for(session.id, lambda state: bool(state.timers), PATIENCE)
            records = await app.journal.read(session.id)
    [failed] = [(one.at, decode(one)) for one in records if one.type.startswith("AttemptFailed")]
    at, event = failed
    assert isinstance(event, AttemptFailed)
    assert (event.failure.kind, event.failure.retry_after) == ("unknown", 30.0)
    assert event.retry_at >= at + 30.0
